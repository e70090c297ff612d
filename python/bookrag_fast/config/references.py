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
        there = f"models that do: {', '.join(serving)}" if serving else f"no {needed} is configured"
        if name in settings.models:
            raise ConfigError(
                f"setting {key!r}{place} names the model {name!r}, which is no {needed}", there
            )
        near = difflib.get_close_matches(name, serving, n=1, cutoff=0.5)
        builtin = {"embedder": 'or "wordllama", or "onnx:SOURCE"', "reranker": 'or "onnx:SOURCE"'}
        hint = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            f"setting {key!r}{place} names the model {name!r}, which is not configured",
            f"{hint}{there}" + (f"; {builtin[key]}" if key in builtin else ""),
        )


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
