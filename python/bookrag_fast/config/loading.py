"""Settings from the nearest source: flag > environment > file > default.

Environment variables are ``BOOKRAG_<KEY>`` and ``BOOKRAG_<SECTION>__<KEY>``; the file is TOML
with the same names. Unknown keys are refused with the nearest known one.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from bookrag_fast.config.settings import Settings
from bookrag_fast.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:  # Python 3.10
    import tomli as tomllib

__all__ = ["load_settings"]

_PREFIX = "BOOKRAG_"


def load_settings(
    file: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    **flags: Any,
) -> Settings:
    """Settings from flags, environment, file and defaults, in that order of precedence.

    Args:
        file: a TOML file; None takes ``BOOKRAG_CONFIG`` from the environment, else
            ``bookrag.toml`` in the working folder if there is one.
        environ: instead of ``os.environ``.
        flags: top-level keys; a value of None means "not given".

    Raises:
        ConfigError: unknown key (named with the nearest known one), impossible value, or a file
            that is missing or is not TOML.
    """
    env = os.environ if environ is None else environ
    merged, name = _from_file(file, env)
    sources = dict.fromkeys(_keys(merged), name)
    for origin, found in (
        ("the environment", _from_environment(env)),
        ("the command line", {k: v for k, v in flags.items() if v is not None}),
    ):
        sources.update(dict.fromkeys(_keys(found), origin))
        _merge(merged, found)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise _explain(error, sources) from None


def _from_file(file: str | Path | None, env: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """What the file says, and its name."""
    named = file if file is not None else env.get(_PREFIX + "CONFIG")
    path = Path(named) if named is not None else Path("bookrag.toml")
    if named is None and not path.is_file():
        return {}, ""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")), str(path)
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in env.items():
        if not name.startswith(_PREFIX) or name in _RESERVED:
            continue
        parts = name[len(_PREFIX) :].lower().split("__")
        place = found
        for part in parts[:-1]:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise ConfigError(f"{name} names a section, but a variable sets it as a value")
        place[parts[-1]] = value
    return found


# Names that start like ours but are not settings.
_RESERVED = {"BOOKRAG_CONFIG", "BOOKRAG_ISA", "BOOKRAG_LIBRARY", "BOOKRAG_TEST_DATA"}


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _known_keys() -> list[str]:
    keys: list[str] = []
    for name, info in Settings.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            keys += [f"{name}.{k}" for k in section.model_fields]
        else:
            keys.append(name)
    return keys


def _keys(tree: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Dotted names of all values."""
    found: list[str] = []
    for key, value in tree.items():
        inner = _keys(value, f"{prefix}{key}.") if isinstance(value, Mapping) else []
        found += inner or [f"{prefix}{key}"]
    return found


def _explain(error: ValidationError, sources: Mapping[str, str]) -> ConfigError:
    """The first problem, in our words, with where it stands; the nearest known key for a
    misspelt one."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(p) for p in first["loc"])
    where = sources.get(key) or next((v for k, v in sources.items() if k.startswith(key)), "")
    place = f" in {where}" if where else ""
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, _known_keys(), n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(_known_keys())}"
        return ConfigError(f"unknown setting {key!r}{place}", hint)
    problem = str(first["msg"])
    return ConfigError(
        f"setting {key!r}{place} is {str(first.get('input'))[:80]!r}: "
        f"{problem[:1].lower()}{problem[1:]}",
        "correct it, or leave it out to take the default",
    )
