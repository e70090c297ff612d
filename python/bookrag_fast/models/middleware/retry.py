"""Calls that failed in passing are made again."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random

from bookrag_fast.errors import (
    ModelError,
    ModelRateLimitError,
    ModelReplyError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from bookrag_fast.models.middleware.breaker import Breaker, CircuitOpenError
from bookrag_fast.models.middleware.call import Call, Next, Reply
from bookrag_fast.models.middleware.deadline import within
from bookrag_fast.models.middleware.rate import RateLimit

__all__ = ["Retry"]

_FIRST_PAUSE_S = 0.5  # at most; twice that before the next attempt, and so on
_LONGEST_PAUSE_S = 20.0
_PATIENCE_S = 5.0  # with an open circuit; beyond it calls fail at once
_LONGEST_REST_S = 600.0  # that a server can ask for


class Retry:
    """Which failures are worth another attempt, and when.

    * `ModelUnavailableError` (with 429): up to ``retries`` times, after a pause drawn evenly from
      0 to 0.5, 1, 2 … 20 s, or as long as ``Retry-After`` says, during which no other call of the
      model goes out either. A pause that would pass the deadline is not begun.
    * `ModelReplyError`: once, at once. A reply that is none is rarely better the third time.
    * `ModelTimeoutError`: never; an attempt may take all that is left of the deadline.
    * `ModelRefusedError`: never; the call is wrong.
    * After the first piece of a streamed reply: never; pieces cannot be called back.

    Failures in a row open the circuit (`Breaker`); 429 is no failure, but a server that works. A
    call waits for a circuit that is open for a few seconds more, and fails at once for longer.
    ``failed`` is told of every attempt that brought no reply.
    """

    def __init__(
        self,
        model: str,
        *,
        timeout_s: float,
        retries: int,
        rate: RateLimit,
        late: Callable[[], ModelTimeoutError],
        failed: Callable[[Call, ModelError], None],
        random: Random,
    ) -> None:
        self._model = model
        self._timeout_s = timeout_s
        self._retries = retries
        self._rate = rate
        self._late = late
        self._failed = failed
        self._random = random
        self._breaker = Breaker()

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        now = asyncio.get_running_loop().time
        call.deadline = now() + self._timeout_s
        attempts, odd_replies = 0, 0
        while True:
            await self._admitted(call, attempts)
            try:
                return await self._attempt(call, ahead)
            except ModelReplyError:
                odd_replies += 1
                if odd_replies > 1 or self._retries == 0 or _begun(call):
                    raise
                pause = 0.0
            except ModelUnavailableError as error:
                attempts += 1
                pause = self._pause(attempts, error)
                if attempts > self._retries or now() + pause >= call.deadline or _begun(call):
                    raise
            await self._again(call, pause)

    async def _admitted(self, call: Call, attempts: int) -> None:
        """Returns when the circuit lets the call through."""
        now = asyncio.get_running_loop().time
        patience = min(now() + _PATIENCE_S, call.deadline)
        while (wait := self._breaker.wait(now())) > 0:
            left = patience - now()
            if left <= 0 or left < wait < math.inf:
                until = "until a probe ends" if wait == math.inf else f"for {wait:.0f} s more"
                raise CircuitOpenError(
                    f"model {self._model!r} failed many times in a row and is left alone {until}",
                    "see whether its server is up: `bookrag doctor`",
                    retry_after=min(wait, _LONGEST_REST_S),
                    sent=attempts > 0,
                )
            await self._aside(call, partial(self._breaker.changed, min(wait, left)))

    async def _attempt(self, call: Call, ahead: Next) -> Reply:
        now = asyncio.get_running_loop().time
        probe = self._breaker.go()
        try:
            reply = await ahead(call)
        except ModelError as error:
            self._failed(call, error)
            down = isinstance(error, ModelUnavailableError | ModelTimeoutError)
            if down and not isinstance(error, ModelRateLimitError):
                self._breaker.failed(now(), probe=probe)
            else:
                self._breaker.answered()
            raise
        except BaseException:
            self._breaker.abandoned(probe=probe)
            raise
        self._breaker.answered()
        return reply

    def _pause(self, attempts: int, error: ModelUnavailableError) -> float:
        """Seconds before the next attempt. A server that asks to be left alone is, by all."""
        longest = min(_FIRST_PAUSE_S * 2 ** (attempts - 1), _LONGEST_PAUSE_S)
        pause = self._random.uniform(0, longest)
        asked = error.retry_after
        if asked is None or not asked > 0:
            return pause
        asked = min(asked, _LONGEST_REST_S)
        if asked < self._timeout_s:
            self._rate.pause(asked)
        else:  # longer than any call can wait
            self._breaker.open(asked, asyncio.get_running_loop().time())
        return asked + min(pause, _FIRST_PAUSE_S)

    async def _again(self, call: Call, pause: float) -> None:
        """What comes before a further attempt."""

        async def waits() -> None:
            await asyncio.sleep(pause)
            await self._rate.take(call)

        await self._aside(call, waits)

    async def _aside(self, call: Call, waits: Callable[[], Awaitable[None]]) -> None:
        """Wait without holding a place, until the deadline."""

        async def without_place() -> None:
            if call.place is not None:
                call.place.leave()
            await waits()
            if call.place is not None:
                await call.place.enter()

        await within(call.deadline, without_place(), self._late)


def _begun(call: Call) -> bool:
    return call.sink is not None and call.sink.begun
