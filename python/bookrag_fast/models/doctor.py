"""What `doctor` asks of the models: is the runtime whole, what runs where, do the models work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata

from bookrag_fast.errors import BookragError
from bookrag_fast.models import Embedder, create_embedder

__all__ = ["DEFAULT_EMBEDDERS", "Finding", "embedder_finding", "runtime_report"]

DEFAULT_EMBEDDERS: tuple[str, ...] = ("wordllama",)

_RUNTIMES = ("onnxruntime", "onnxruntime-gpu")
_REPAIR = "pip uninstall -y onnxruntime onnxruntime-gpu && pip install {keep}"
# Alike in meaning, alike in length but not in meaning: an embedder must tell them apart.
_PROBES = (
    "the cat sat quietly on the mat",
    "a cat was sitting on the rug",
    "quarterly revenue fell by nine percent",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked: ``detail`` says what was seen, ``remedy`` how to mend it, and
    ``needed`` whether anything depends on it."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True


def runtime_report(
    specs: Sequence[str] = DEFAULT_EMBEDDERS,
    *,
    installed: Callable[[str], str | None] | None = None,
) -> list[Finding]:
    """Checks onnxruntime and each embedder of ``specs``. Never raises for a broken installation.

    Args:
        specs: embedders as `create_embedder` takes them; each is loaded and embeds three texts.
        installed: version of a distribution or None; for tests.
    """
    versions = {name: (installed or _installed)(name) for name in _RUNTIMES}
    return [
        _check_shadowing(versions),
        _check_providers(),
        *(embedder_finding(f"embedder {spec}", partial(create_embedder, spec)) for spec in specs),
    ]


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _check_shadowing(versions: dict[str, str | None]) -> Finding:
    present = [f"{name} {version}" for name, version in versions.items() if version]
    if len(present) > 1:
        return Finding(
            "onnxruntime installation",
            False,
            f"{' and '.join(present)} are both installed and overwrite each other's files, "
            "so CUDA may be missing without a word",
            _REPAIR.format(keep="onnxruntime-gpu"),
        )
    if not present:
        return Finding(
            "onnxruntime installation",
            False,
            "no onnxruntime is installed, so ONNX models cannot run",
            "pip install onnxruntime-gpu   # Linux x86-64; elsewhere: pip install onnxruntime",
        )
    return Finding("onnxruntime installation", True, present[0])


def _check_providers() -> Finding:
    from bookrag_fast.models.onnx.sessions import available_providers

    try:
        providers = available_providers()
    except BookragError as error:
        return Finding("onnxruntime providers", False, error.message, error.hint)
    names = [name.removesuffix("ExecutionProvider") for name in providers]
    return Finding("onnxruntime providers", True, f"compiled with {', '.join(names)}")


def embedder_finding(name: str, opened: Callable[[], Embedder]) -> Finding:
    """Opens an embedder and has it embed three texts."""
    started = time.perf_counter()
    try:
        embedder = opened()
        fault = _fault(embedder)
        took = time.perf_counter() - started
    except BookragError as error:
        return Finding(name, False, error.message, error.hint)
    if fault:
        return Finding(
            name, False, fault, "reinstall the model, or choose another embedder in the settings"
        )
    info = embedder.info
    placement = getattr(embedder, "placement", None)
    where = f"{info.provider} ({placement.reason})" if placement else info.provider
    return Finding(
        name,
        True,
        f"{info.name}, {info.dimension} dimensions, on {where}; loaded and tried in {took:.2f} s",
    )


def _fault(embedder: Embedder) -> str:
    vectors = embedder.embed(_PROBES)
    if vectors.shape != (len(_PROBES), embedder.info.dimension):
        return f"gives an array of shape {vectors.shape} for {len(_PROBES)} texts"
    alike, unlike = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    if not alike > unlike:
        return f"finds unrelated sentences closer ({unlike:.2f}) than a paraphrase ({alike:.2f})"
    return ""
