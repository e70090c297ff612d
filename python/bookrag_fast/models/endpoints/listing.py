"""What models a server has, for those who look for the name of one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing

from bookrag_fast.config import EndpointSettings
from bookrag_fast.models.endpoints.client import EndpointClient

__all__ = ["listed_models"]

_LIST_BYTES = 1 << 20
_MOST = 20


class _Lister(EndpointClient):
    async def models(self) -> object:
        with self._asking():
            return await self._client.get("/models", cast_to=object)


async def listed_models(name: str, settings: EndpointSettings) -> list[str]:
    """Names by GET /models, at most 20. Raises ModelError, also where there are none."""
    async with aclosing(_Lister(name, settings, reply_limit=_LIST_BYTES)) as client:
        reply = await client.models()
        data = reply.get("data") if isinstance(reply, Mapping) else None
        entries = data if isinstance(data, list) else []
        names = [
            e["id"] for e in entries if isinstance(e, Mapping) and isinstance(e.get("id"), str)
        ]
        if not names:
            client.faults.reply("lists no models")
        return [client.faults.quoted(name) for name in names[:_MOST]]
