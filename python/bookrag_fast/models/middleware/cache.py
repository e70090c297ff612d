"""Calls that were made before do not go out, nor do calls that are just being made."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from bookrag_fast.errors import ModelError
from bookrag_fast.models.middleware.call import Call, Next, Reply
from bookrag_fast.models.protocols import TokenUsage
from bookrag_fast.models.reply_cache import ReplyCache

__all__ = ["Cache", "Codec"]


class Codec(Protocol):
    """The bytes of an item's value."""

    def encode(self, value: Any) -> bytes: ...

    def decode(self, data: bytes) -> Any:
        """None for bytes that are of no value."""
        ...


class Cache:
    """Looks up a call's items and lets out only those that are not there; of calls for the same
    item at the same time one goes out. Whoever waits for another's reply shares its fate, but not
    its cancellation. A call without keys passes by.

    A reply is kept as soon as it is one. Whether it makes sense is for those above to say, who ask
    in other words then, which is another key; the same words would be answered alike. Where it is
    worth trying, a call that is ``fresh`` is asked anew, and its reply kept in place of the old.
    """

    def __init__(self, replies: ReplyCache, codec: Codec) -> None:
        self._replies = replies
        self._codec = codec
        self._flights: dict[bytes, asyncio.Future[Any]] = {}

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        keys = call.keys
        if not keys:
            return await ahead(call)
        values = {} if call.fresh else self._kept(keys)
        usage = TokenUsage()
        while missing := [i for i, key in enumerate(keys) if key not in values]:
            flights = {} if call.fresh else self._flights
            theirs = {keys[i]: flights[keys[i]] for i in missing if keys[i] in flights}
            mine = [i for i in missing if keys[i] not in theirs]
            if mine:
                part = call.part(mine)
                reply = await self._let_out(part, ahead)
                values.update(zip(part.keys, reply.values, strict=True))
                usage += reply.usage
            if theirs:  # last: whoever waits for this one's reply must not be waited for first
                await asyncio.wait(theirs.values())
                values.update((k, f.result()) for k, f in theirs.items() if not f.cancelled())
        if call.sink is not None and not call.sink.begun:
            call.sink.put(values[keys[0]][0])
        return Reply([values[key] for key in keys], usage if usage.calls else TokenUsage(cached=1))

    def _kept(self, keys: Sequence[bytes]) -> dict[bytes, Any]:
        found = self._replies.get(keys)
        decoded = ((key, self._codec.decode(data)) for key, data in found.items())
        return {key: value for key, value in decoded if value is not None}

    async def _let_out(self, call: Call, ahead: Next) -> Reply:
        loop = asyncio.get_running_loop()
        flights = {key: loop.create_future() for key in call.keys}
        self._flights.update(flights)
        try:
            reply = await ahead(call)
        except BaseException as error:
            for flight in flights.values():
                if isinstance(error, ModelError):
                    flight.set_exception(error)
                    flight.exception()  # nobody need be waiting for it
                else:
                    flight.cancel()
            raise
        else:
            for flight, value in zip(flights.values(), reply.values, strict=True):
                flight.set_result(value)
        finally:
            for key, flight in flights.items():
                if self._flights.get(key) is flight:
                    del self._flights[key]
        self._replies.put(
            {k: self._codec.encode(v) for k, v in zip(call.keys, reply.values, strict=True)}
        )
        return reply
