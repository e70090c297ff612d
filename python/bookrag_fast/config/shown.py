"""Settings as they are shown: every one with its source, and without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from bookrag_fast.config.keys import is_secret
from bookrag_fast.config.loading import Origin, SourcedSettings

__all__ = ["REDACTED", "ShownSetting", "as_toml", "shown_settings"]

REDACTED = "***"
_SOUNDS_SECRET = re.compile(r"key$|token$|secret|passw|authorization|credential", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """``value`` is plain data; what is secret in it is `REDACTED`."""

    key: str
    value: Any
    origin: Origin


def shown_settings(sourced: SourcedSettings) -> Iterator[ShownSetting]:
    """All that holds, in the order of the classes."""
    for key, value in _values(sourced.settings):
        yield ShownSetting(key, _open(key, value), sourced.origin(key))


def _values(section: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in type(section).model_fields:
        key, value = prefix + name, getattr(section, name)
        if isinstance(value, BaseModel):
            yield from _values(value, f"{key}.")
        elif key == "models":
            for model, settings in value.items():
                yield from _values(settings, f"{key}.{model}.")
        else:
            yield key, value


def _open(key: str, value: Any) -> Any:
    if is_secret(key) and value is not None:
        return dict.fromkeys(value, REDACTED) if isinstance(value, Mapping) else REDACTED
    if isinstance(value, Mapping):  # what is sent along may hold a key as well
        return {
            k: REDACTED if _SOUNDS_SECRET.search(str(k)) else _open(key, v)
            for k, v in value.items()
        }
    return value


def as_toml(value: Any) -> str:
    """A value as it stands in the file; "(none)", which TOML has no word for, for None."""
    if value is None:
        return "(none)"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_bare(str(k))} = {as_toml(v)}" for k, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(as_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _bare(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
