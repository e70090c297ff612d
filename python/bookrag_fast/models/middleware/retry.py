"""Calls that failed in passing are made again."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
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
from bookrag_fast.models.middleware.rate import RateLimit

__all__ = ["Retry"]

_FIRST_PAUSE_S = 0.5  # at most; twice that before the next attempt, and so on
_LONGEST_PAUSE_S = 20.0
_INTERACTIVE_RETRIES = 1  # of a connection: who waits is better off with the rules' answer
_LONGEST_REST_S = 600.0  # that a server can ask for


class Retry:
    """Which failures are worth another attempt, and when.

    * `ModelUnavailableError`: up to ``retries`` times, after a pause drawn evenly from 0 to 0.5,
      1, 2 … 20 s, or as long as ``Retry-After`` says, during which no other call of the model goes
      out either. A pause that would pass the deadline is not begun.
    * The same, where somebody waits for the reply (`Call.interactive`) and the server cannot even
      be reached: once. Nor does such a call wait for a circuit to close, but for a probe's end.
    * `ModelRateLimitError` the same way, but as often as the deadline allows: who is told to come
      later is let in some time.
    * `ModelReplyError`: once, at once. A reply that is none is rarely better the third time.
    * `ModelTimeoutError`: never; an attempt may take all that is left of the deadline.
    * `ModelRefusedError`: never; the call is wrong.
    * After the first piece of a streamed reply: never; pieces cannot be called back.

    Failures in a row open the circuit (`Breaker`), two of a server that hangs: which answered
    nobody from when the call went out to its deadline. A slow one answers in between. 429 is no
    failure, but a server that works, unless it is all that anybody gets for as long as a call may
    take. While the server has been down for less than that, calls wait for it, until their
    deadlines; then they fail at once, but for a probe now and then. A probe that fails counts as
    no attempt of its call.
    ``failed`` is told of every attempt that brought no reply, ``cancelled`` of each that was given
    up by whoever made the call.
    """

    def __init__(
        self,
        model: str,
        *,
        timeout_s: float,
        retries: int,
        rate: RateLimit,
        failed: Callable[[Call, ModelError], None],
        cancelled: Callable[[Call], None],
        random: Random,
    ) -> None:
        self._model = model
        self._timeout_s = timeout_s
        self._retries = retries
        self._rate = rate
        self._failed = failed
        self._cancelled = cancelled
        self._random = random
        self._breaker = Breaker(model, timeout_s)

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        now = asyncio.get_running_loop().time
        call.deadline = now() + self._timeout_s
        sent, failures, odd_replies = 0, 0, 0
        await self._let_out(call, sent=False)
        while True:
            sent += 1
            probe = self._breaker.go()
            try:
                return await self._attempt(call, ahead, probe)
            except ModelReplyError:
                odd_replies += 1
                if odd_replies > 1 or self._retries == 0 or _begun(call):
                    raise
                await self._again(call, 0.0)
            except ModelUnavailableError as error:
                failures += not (probe or isinstance(error, ModelRateLimitError))
                pause = self._pause(sent, error)
                soonest = now() + max(pause, self._rate.gap)
                if failures > self._most(call, error) or soonest >= call.deadline or _begun(call):
                    raise
                await self._again(call, pause)
                if now() >= call.deadline:
                    self._rate.pass_on(call)
                    raise

    async def _let_out(self, call: Call, *, sent: bool) -> None:
        """Returns when the call may go out here and now."""
        await self._admitted(call, sent)
        while self._rate.overtaken(call):  # while it waited for a place
            self._rate.give_up(call)
            await self._queue(call, sent)
            await self._admitted(call, sent)

    async def _admitted(self, call: Call, sent: bool) -> None:
        """Returns when the circuit lets the call through."""
        now = asyncio.get_running_loop().time
        while (wait := self._breaker.wait(now())) > 0:
            left = call.deadline - now()
            too_long = wait < math.inf and (left < wait or call.interactive)
            if left <= 0 or too_long or self._breaker.given_up(now()):
                until = "until a probe ends" if wait == math.inf else f"for {wait:.0f} s more"
                raise CircuitOpenError(
                    f"model {self._model!r} failed time after time and is left alone {until}",
                    "see whether its server is up: `bookrag doctor`",
                    retry_after=min(wait, _LONGEST_REST_S),
                )
            if call.place is not None:
                call.place.leave()
            await self._breaker.changed(min(wait, left))
            await self._queue(call, sent, rate=False)

    async def _attempt(self, call: Call, ahead: Next, probe: bool) -> Reply:
        now = asyncio.get_running_loop().time
        begun, answers = now(), self._breaker.answers
        try:
            reply = await ahead(call)
        except ModelError as error:
            self._failed(call, error)
            if isinstance(error, ModelRateLimitError):
                self._breaker.refused(now())
                self._rate.refused(call)
            elif isinstance(error, ModelTimeoutError) and (
                self._breaker.answers == answers
                and not _begun(call)
                and now() - begun >= self._timeout_s / 2  # else it had little time
            ):
                self._breaker.hung(begun, now(), probe=probe)
            elif isinstance(error, ModelUnavailableError | ModelTimeoutError):
                self._breaker.failed(now(), probe=probe)
            else:
                self._breaker.answered()
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                self._cancelled(call)
            self._breaker.abandoned(probe=probe)
            raise
        self._breaker.answered()
        return reply

    def _most(self, call: Call, error: ModelUnavailableError) -> int:
        """Retries that a call has."""
        if call.interactive and error.unreachable:
            return min(self._retries, _INTERACTIVE_RETRIES)
        return self._retries

    def _pause(self, sent: int, error: ModelUnavailableError) -> float:
        """Seconds before the next attempt. A server that asks to be left alone is, by all."""
        longest = min(_FIRST_PAUSE_S * 2 ** (sent - 1), _LONGEST_PAUSE_S)
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
        """What comes before a further attempt: a pause, within the deadline, then the lines."""
        if call.place is not None:
            call.place.leave()
        await asyncio.sleep(pause)
        await self._queue(call, sent=True)
        await self._let_out(call, sent=True)

    async def _queue(self, call: Call, sent: bool, *, rate: bool = True) -> None:
        """Wait in the lines again. It is no time of the model while it answers others, or for a
        call that was not sent yet."""
        now = asyncio.get_running_loop().time
        begun, answers = now(), self._breaker.answers
        if call.place is not None:
            call.place.leave()
        if rate:
            await self._rate.take(call)
        if call.place is not None:
            await call.place.enter()
        if not sent or self._breaker.answers > answers:
            call.deadline += now() - begun


def _begun(call: Call) -> bool:
    return call.sink is not None and call.sink.begun
