"""Settings that name models: whether there is one, of a kind that serves."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator

from bookrag_fast.config.models import (
    ChatModelSettings,
    EmbeddingsModelSettings,
    ModelSettings,
    OnnxEmbedderSettings,
    OnnxRerankerSettings,
    RerankModelSettings,
    RolesSettings,
)
from bookrag_fast.config.settings import Settings
from bookrag_fast.errors import ConfigError

__all__ = ["check_references", "named_models"]

_EMBEDDERS = (EmbeddingsModelSettings, OnnxEmbedderSettings)
_RERANKERS = (RerankModelSettings, OnnxRerankerSettings)
_BUILTIN = {"embedder": 'use "wordllama" or "onnx:SOURCE"', "reranker": 'use "onnx:SOURCE"'}


def named_models(settings: Settings) -> Iterator[tuple[str, str]]:
    """(dotted name of the setting, name of the model) for each that names one of `models`."""
    if not _is_builtin(settings.embedder, "wordllama"):
        yield "embedder", settings.embedder
    if not _is_builtin(settings.reranker, ""):
        yield "reranker", settings.reranker
    for role in RolesSettings.model_fields:
        chosen = getattr(settings.roles, role)
        if chosen is not None:
            yield f"roles.{role}", chosen.model


def check_references(settings: Settings, where: Callable[[str], str] = lambda _: "") -> None:
    """Raises ConfigError for a setting that names a model which is not configured, or is of a kind
    that cannot do it. ``where`` gives the source of a setting, "" for none."""
    for key, name in named_models(settings):
        source = where(key)
        place = f" in {source}" if source else ""
        serving = {n: m for n, m in settings.models.items() if _serves(key, m)}
        if name in serving:
            continue
        needed = _needed(key)
        there = f"models that do: {', '.join(serving)}" if serving else ""
        if name in settings.models:
            raise ConfigError(
                f"setting {key!r}{place} names the model {name!r}, which is no {needed}",
                _either(there or f"configure {_one(needed)}", _BUILTIN.get(key, "")),
            )
        near = difflib.get_close_matches(name, serving, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        there = there or f"configure {name!r} as {_one(needed)} under [models]"
        raise ConfigError(
            f"setting {key!r}{place} names the model {name!r}, which is not configured",
            hint + _either(there, _BUILTIN.get(key, "")),
        )


def _one(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _either(first: str, second: str) -> str:
    return f"{first}, or {second}" if second else first


def _is_builtin(spec: str, name: str) -> bool:
    return spec.strip() == name or spec.strip().startswith("onnx:")


def _serves(key: str, model: ModelSettings) -> bool:
    if key == "embedder":
        return isinstance(model, _EMBEDDERS)
    if key == "reranker":
        return isinstance(model, _RERANKERS)
    return isinstance(model, ChatModelSettings) and (model.vision or key != "roles.vision")


def _needed(key: str) -> str:
    if key in ("embedder", "reranker"):
        return key
    return "chat model with vision = true" if key == "roles.vision" else "chat model"
