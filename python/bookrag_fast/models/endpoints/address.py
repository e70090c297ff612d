"""Where an endpoint is and what is sent along to it, from its settings."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bookrag_fast.config import EndpointSettings
from bookrag_fast.errors import ConfigError

__all__ = ["Address", "address_of", "key_from_environment", "trusted"]


@dataclass(frozen=True, slots=True)
class Address:
    """``host`` is what messages name it by; ``key`` is "" while there is none."""

    url: str
    host: str
    secure: bool
    key: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)

    @property
    def secrets(self) -> list[str]:
        """What no message may hold."""
        return [self.key, *self.headers.values()]


def address_of(name: str, settings: EndpointSettings) -> Address:
    """Of the model of that name in the configuration.

    Raises:
        ConfigError: a key or header in the settings that no header can hold.
    """
    where = f"models.{name}"
    parts = urlsplit(settings.base_url)  # the settings took it for an address
    host, port = parts.hostname or "", parts.port
    shown = f"[{host}]" if ":" in host else host
    return Address(
        url=f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}",
        host=shown if port is None else f"{shown}:{port}",
        secure=parts.scheme == "https",
        key=_fit(f"{where}.api_key", settings.api_key.get_secret_value())
        if settings.api_key is not None
        else "",
        headers={
            header: _fit(f"{where}.headers.{header}", value.get_secret_value())
            for header, value in settings.headers.items()
        },
    )


def key_from_environment(name: str, settings: EndpointSettings) -> str:
    """The key of the model of that name; "" where the settings have it, or name no variable.

    Raises:
        ConfigError: the variable is not set, or no header can hold its value.
    """
    variable = settings.api_key_env
    if settings.api_key is not None or not variable:
        return ""
    key = os.environ.get(variable, "")
    if not key.strip():
        raise ConfigError(
            f"models.{name} takes its key from the environment variable {variable},"
            " which is not set",
            hint=f"set {variable}, or leave out api_key_env for a server without keys",
        )
    return _fit(variable, key)


def _fit(where: str, value: str) -> str:
    """A header's value, checked here because whoever sends it would quote it when it is unfit."""
    stripped = value.strip()
    if not stripped.isascii() or not stripped.isprintable():
        raise ConfigError(f"{where} holds characters that a header cannot")
    return stripped


def trusted(name: str, ca_file: str) -> ssl.SSLContext:
    """The certificates of a file. ConfigError if it cannot be read or holds none."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or "it holds no certificate in PEM form"
        raise ConfigError(
            f"models.{name}.ca_file: {ca_file} cannot be used: {reason}",
            hint="name a file of certificates in PEM form",
        ) from None
