"""Where an endpoint is and what is sent along to it, from its settings."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bookrag_fast.config import EndpointSettings
from bookrag_fast.errors import ConfigError

__all__ = ["Address", "address_of", "trusted"]


@dataclass(frozen=True, slots=True)
class Address:
    """``host`` is what messages name it by; ``key`` is "" for a server without keys."""

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
        ConfigError: a key that is not where it should be, or that no header can hold.
    """
    where = f"models.{name}"
    parts = urlsplit(settings.base_url)  # the settings took it for an address
    host, port = parts.hostname or "", parts.port
    shown = f"[{host}]" if ":" in host else host
    return Address(
        url=f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}",
        host=shown if port is None else f"{shown}:{port}",
        secure=parts.scheme == "https",
        key=_fit(f"{where}.api_key", _key(where, settings)),
        headers={
            header: _fit(f"{where}.headers.{header}", value.get_secret_value())
            for header, value in settings.headers.items()
        },
    )


def _key(where: str, settings: EndpointSettings) -> str:
    if settings.api_key is not None:
        return settings.api_key.get_secret_value()
    if not settings.api_key_env:
        return ""
    key = os.environ.get(settings.api_key_env, "")
    if not key.strip():
        raise ConfigError(
            f"{where} takes its key from the environment variable {settings.api_key_env},"
            " which is not set",
            hint=f"set {settings.api_key_env}, or leave out api_key_env for a server without keys",
        )
    return key


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
