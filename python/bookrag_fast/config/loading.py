"""Settings from the nearest source: flag > environment > file > default.

Environment variables are ``BOOKRAG_<KEY>`` and ``BOOKRAG_<SECTION>__<KEY>``; the file is TOML
with the same names. Unknown keys are refused with the nearest known one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from bookrag_fast.config.mistakes import explain
from bookrag_fast.config.references import check_references
from bookrag_fast.config.settings import Settings
from bookrag_fast.config.sources import PREFIX, from_environment, from_file

__all__ = ["Origin", "SourcedSettings", "load_settings", "load_sourced"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from; ``file`` is the path of a file."""

    kind: Literal["default", "file", "environment", "command line"] = "default"
    file: str = ""

    def __str__(self) -> str:
        return {"default": "the defaults", "file": self.file}.get(self.kind, f"the {self.kind}")


@dataclass(frozen=True, slots=True)
class SourcedSettings:
    settings: Settings
    origins: Mapping[str, Origin]

    def origin(self, key: str) -> Origin:
        """Of a setting by its dotted name."""
        return _origin(key, self.origins) or Origin()


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
        ConfigError: unknown key (named with the nearest known one), impossible value, the name of
            a model that is not there, or a file that is missing or is not TOML.
    """
    return load_sourced(file, environ=environ, **flags).settings


def load_sourced(
    file: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    **flags: Any,
) -> SourcedSettings:
    """`load_settings`, with where each value comes from."""
    env = os.environ if environ is None else environ
    path = _chosen_file(file, env)
    merged: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for origin, found in (
        (Origin("file", str(path)), from_file(path) if path is not None else {}),
        (Origin("environment"), from_environment(env)),
        (Origin("command line"), {k: v for k, v in flags.items() if v is not None}),
    ):
        _write_out_roles(found)
        origins.update(dict.fromkeys(_leaves(found), origin))
        _merge(merged, found)

    def where(key: str) -> str:
        return str(_origin(key, origins) or "")

    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        raise explain(error, merged, where) from None
    check_references(settings, where)
    return SourcedSettings(settings, origins)


def _chosen_file(file: str | Path | None, env: Mapping[str, str]) -> Path | None:
    named = file if file is not None else env.get(PREFIX + "CONFIG")
    if named is not None:
        return Path(named)
    usual = Path("bookrag.toml")
    return usual if usual.is_file() else None


def _write_out_roles(tree: Mapping[str, Any]) -> None:
    """``plan = "small"`` as {"model": "small"}, so that another source can add to it."""
    roles = tree.get("roles")
    if isinstance(roles, dict):
        roles.update({k: {"model": v} for k, v in roles.items() if isinstance(v, str)})


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted names of all values."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _origin(key: str, origins: Mapping[str, Origin]) -> Origin | None:
    """Of a value or of what stands below it, else of the section that it would stand in."""
    if key in origins:
        return origins[key]
    below = [origin for name, origin in origins.items() if name.startswith(key + ".")]
    return below[-1] if below else None
