"""The HTTP of one endpoint: bodies out, parsed replies in, every fault in our own errors."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx2
import openai

from bookrag_fast._version import __version__
from bookrag_fast.config import EndpointSettings
from bookrag_fast.errors import ConfigError, ModelRefusedError
from bookrag_fast.forks import begins_anew, keep
from bookrag_fast.models.endpoints.address import Address, address_of, key_from_environment, trusted
from bookrag_fast.models.endpoints.faults import Faults
from bookrag_fast.models.endpoints.pools import PooledTransport
from bookrag_fast.models.endpoints.transport import BoundedTransport

__all__ = ["EndpointClient"]

_CONNECT_S = 10.0  # a server that is there takes a connection sooner
_PLACEHOLDER = "sent by the transport"  # what the openai client has for a key


class EndpointClient:
    """Calls run on one loop. Makes one attempt a call, follows no redirect, uses no proxy, and
    sends no header that the settings do not name, whatever the environment says. A forked child
    has connections of its own.

    A key that the environment holds is looked up at the first call, so that it need not be there
    for what calls no model; that it is missing is an error of calls, as a key that is refused.

    Raises:
        ConfigError: an address, key or certificate in the settings that cannot be used.
    """

    def __init__(
        self,
        name: str,
        settings: EndpointSettings,
        *,
        reply_limit: int,
        events_limit: int = 0,
        api_version: str = "",
    ) -> None:
        address = address_of(name, settings)
        self.host = address.host
        self.faults = Faults(name, address.host, settings.model, address.secrets)
        self._name = name
        self._settings = settings
        self._address = address
        self._has_key = False
        self._api_version = api_version
        self._concurrency = settings.concurrency
        self._verify = trusted(name, settings.ca_file) if settings.ca_file else address.secure
        self._timeout_s = settings.timeout_s
        self._reply_limit = reply_limit
        self._events_limit = events_limit
        self._begin()
        begins_anew(self)

    def _begin(self) -> None:
        self._transport = BoundedTransport(
            PooledTransport(self._concurrency, self._verify),
            headers=self._headers(),
            reply_limit=self._reply_limit,
            events_limit=self._events_limit,
        )
        timeout = httpx2.Timeout(
            self._timeout_s, connect=min(_CONNECT_S, self._timeout_s), pool=None
        )
        self._client = _openai_client(
            self._address,
            self._api_version,
            httpx2.AsyncClient(
                transport=self._transport, timeout=timeout, follow_redirects=False, trust_env=False
            ),
        )

    def forked(self) -> None:
        keep(self._client)
        self._begin()

    def limit_replies(self, size: int) -> None:
        """To so many bytes from now on."""
        self._reply_limit = self._transport.reply_limit = size

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON of the reply, of any shape. Raises ModelError."""
        with self._asking(body):
            reply = await self._client.post(path, cast_to=object, body=body)
            # Whatever is not declared to be JSON, or is none, comes as it is.
            return json.loads(reply) if isinstance(reply, str) else reply

    async def events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """The JSON of each event of a streamed reply. Raises ModelError."""
        with self._asking(body):
            stream = await self._client.post(
                path,
                cast_to=object,
                body={**body, "stream": True},
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
            async with stream:
                async for event in stream:
                    yield event

    async def aclose(self) -> None:
        await self._client.close()

    @contextmanager
    def _asking(self, asked: object = None) -> Iterator[None]:
        """Around each call: with the key, and every fault as a ModelError."""
        self._take_key()
        with self.faults.named(asked):
            yield

    def _take_key(self) -> None:
        if self._has_key:
            return
        try:
            key = key_from_environment(self._name, self._settings)
        except ConfigError as error:
            raise ModelRefusedError(error.message, error.hint) from None
        if key:
            self._address = address = replace(self._address, key=key)
            self.faults = Faults(self._name, self.host, self._settings.model, address.secrets)
            self._transport.headers = self._headers()
        self._has_key = True

    def _headers(self) -> dict[str, str]:
        address, headers = self._address, {"User-Agent": f"bookrag-fast/{__version__}"}
        if address.key:
            name, scheme = ("api-key", "") if self._api_version else ("Authorization", "Bearer ")
            headers[name] = scheme + address.key
        given = {name.lower() for name in address.headers}
        return {k: v for k, v in headers.items() if k.lower() not in given} | address.headers


def _openai_client(
    address: Address, api_version: str, http_client: httpx2.AsyncClient
) -> openai.AsyncOpenAI:
    """The key is the transport's: the client never sees it, and cannot take another one from the
    environment."""
    if not api_version:
        return openai.AsyncOpenAI(
            api_key=_PLACEHOLDER, base_url=address.url, max_retries=0, http_client=http_client
        )
    url = address.url if "/openai" in address.url else f"{address.url}/openai"
    return openai.AsyncAzureOpenAI(
        api_key=_PLACEHOLDER,
        base_url=url,
        api_version=api_version,
        max_retries=0,
        http_client=http_client,
    )
