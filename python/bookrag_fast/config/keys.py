"""The names of all settings, and which of them are secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from bookrag_fast.config.models import MODEL_KINDS
from bookrag_fast.config.settings import Settings

__all__ = ["is_secret", "known_keys", "section_in"]

_SECRETS = {"api_key", "headers"}


def known_keys(models: Mapping[str, Any]) -> list[str]:
    """Dotted names of every setting there is with ``models``, which may be unchecked: a model's
    settings go by its kind."""
    keys = list(_keys(Settings))
    for name, model in models.items():
        kind = model.get("kind", "chat") if isinstance(model, Mapping) else "chat"
        if isinstance(kind, str) and kind in MODEL_KINDS:
            keys += _keys(MODEL_KINDS[kind], f"models.{name}.")
    return keys


def _keys(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in section.model_fields.items():
        inner = section_in(info.annotation)
        if inner is None:
            yield prefix + name
        else:
            yield from _keys(inner, f"{prefix}{name}.")


def section_in(annotation: Any) -> type[BaseModel] | None:
    """The section that a field holds, perhaps optionally."""
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def is_secret(key: str) -> bool:
    """Whether a setting's value, or a part of it, is nobody's business."""
    parts = key.split(".")
    return parts[0] == "models" and not _SECRETS.isdisjoint(parts[2:])
