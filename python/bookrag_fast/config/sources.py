"""Where settings come from: a TOML file and environment variables, as trees of plain values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from bookrag_fast.config.settings import Settings
from bookrag_fast.errors import ConfigError

__all__ = ["PREFIX", "from_environment", "from_file", "variable_of"]

PREFIX = "BOOKRAG_"
_NESTING = "__"
# Names that start like ours but are not settings.
_RESERVED = {"BOOKRAG_CONFIG", "BOOKRAG_ISA", "BOOKRAG_LIBRARY", "BOOKRAG_TEST_DATA"}


class _Fields(Settings, BaseSettings):
    """What the sources look for. None is ever made: the engine's Settings read nothing by
    themselves, so that ``Settings()`` is the defaults on every machine."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter=_NESTING, defer_build=True
    )


class _Environment(EnvSettingsSource):
    """Variables of our prefix; what they cannot mean is left for validation to explain."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = {
            name.lower(): value
            for name, value in environ.items()
            if name.upper().startswith(PREFIX) and name.upper() not in _RESERVED
        }
        super().__init__(_Fields)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return self._environ

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Lists and tables; all else stays the text that it is, be it a key of digits alone."""
        try:
            decoded = super().decode_complex_value(field_name, field, value)
        except ValueError:  # no JSON
            return value
        return decoded if isinstance(decoded, (list, dict)) else value

    def __call__(self) -> dict[str, Any]:
        found = super().__call__()
        for name, value in self._environ.items():  # the names that are no setting's
            found.setdefault(name[len(PREFIX) :].split(_NESTING)[0], value)
        return found


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """``BOOKRAG_RETRIEVAL__DAMPING=0.5`` as {"retrieval": {"damping": "0.5"}}; lists and tables are
    JSON."""
    return _Environment(environ)()


def from_file(path: Path) -> dict[str, Any]:
    """Raises ConfigError for a file that is not there or is no TOML."""
    try:
        with path.open("rb"):  # a missing one would count as empty
            return TomlConfigSettingsSource(_Fields, path).toml_data
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from None
    except ValueError as error:  # of TOML, or of UTF-8
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def variable_of(key: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + key.upper().replace(".", _NESTING)
