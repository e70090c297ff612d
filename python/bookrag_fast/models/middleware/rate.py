"""Requests and tokens a minute: a bucket for each, and one line of calls before both."""

from __future__ import annotations

import asyncio
import heapq
from typing import NamedTuple

from bookrag_fast.models.middleware.breaker import CircuitOpenError
from bookrag_fast.models.middleware.call import Call, Next, Reply

__all__ = ["Bucket", "RateLimit"]

_MINUTE = 60.0
_BURST = 0.1  # of a minute's amount may go at once
# Between two calls of a server that refuses some. Near its limit one in fourteen is refused.
_FIRST_GAP_S, _LEAST_GAP_S, _LONGEST_GAP_S = 0.1, 0.001, 10.0
_APART, _CLOSER, _MUCH_CLOSER = 1.5, 0.97, 0.9
_USUAL_REPLIES = 14  # more in a row say that the limit is further away


class Bucket:
    """Lets through at most ``limit`` in any minute: ``burst`` at once, the rest evenly.

    An amount larger than the burst goes when the bucket is full, and leaves a debt: of such ones a
    minute may see the last one's excess over the limit. Times are seconds of any steady clock.
    """

    def __init__(self, limit: int, now: float, *, whole: bool) -> None:
        self.burst = max(1.0, limit * _BURST)
        # Of whole things n, a minute that starts with a full bucket sees n < burst + 60 refill.
        self.refill = (limit - self.burst + whole) / _MINUTE
        self._level = self.burst
        self._at = now

    def wait(self, amount: float, now: float) -> float:
        """Seconds until an amount may go; 0 for now."""
        missing = min(amount, self.burst) - self._filled(now)
        return missing / self.refill if missing > 1e-9 else 0.0

    def take(self, amount: float, now: float) -> None:
        """Also of a negative amount, which is put back."""
        self._level = min(self.burst, self._filled(now) - amount)

    def _filled(self, now: float) -> float:
        self._level = min(self.burst, self._level + (now - self._at) * self.refill)
        self._at = now
        return self._level


class _Waiter(NamedTuple):
    came: int
    tokens: int
    turn: asyncio.Future[None]


class RateLimit:
    """First come, first served; a call that is made again is before all that came to the stack
    later. A call takes its estimated tokens, and the difference to what it really took is settled
    when its reply is there.

    A server may have limits that nobody has told. When it answers 429, calls go further apart, by
    half each time, and come closer again with every reply; so few go out in vain, and those that
    wait do so here, where no deadline runs."""

    def __init__(
        self, *, requests_per_minute: int | None = None, tokens_per_minute: int | None = None
    ) -> None:
        self._limits = requests_per_minute, tokens_per_minute
        self._requests: Bucket | None = None
        self._tokens: Bucket | None = None
        self._line: list[_Waiter] = []  # a heap
        self._timer: asyncio.TimerHandle | None = None
        self._paused_until = 0.0
        self._next_at = 0.0
        self.gap = 0.0  # seconds between two calls
        self._replies = 0  # since the gap grew
        self._pace = 0  # counts how often it was slowed down or stopped
        self._begun = False

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        await self.take(call)
        try:
            reply = await ahead(call)
        except CircuitOpenError:
            self.pass_on(call)
            raise
        self._answered()
        used = reply.usage.prompt_tokens + reply.usage.completion_tokens
        self._put_back(0, call.taken_tokens - used)
        return reply

    async def take(self, call: Call) -> None:
        """Wait until a call may go, once for each attempt."""
        loop = asyncio.get_running_loop()
        tokens = call.tokens
        if not self._line and self._wait(tokens, loop.time()) <= 0:
            self._let_go(tokens, loop.time())
        else:
            waiter = _Waiter(call.came, tokens, loop.create_future())
            heapq.heappush(self._line, waiter)
            self._serve(loop)
            try:
                await waiter.turn
            except asyncio.CancelledError:
                if waiter.turn.done() and not waiter.turn.cancelled():
                    self._put_back(1, tokens)  # its turn came at the same moment
                else:
                    self._serve(loop)
                raise
        call.taken_tokens += tokens
        call.pace = self._pace

    def overtaken(self, call: Call) -> bool:
        """Whether calls were slowed down or stopped after this one was let go. If it has not gone
        out yet it should `give_up` its turn and `take` another."""
        return call.pace != self._pace

    def pass_on(self, call: Call) -> None:
        """Leave a turn to the next one: this call does not go out after all."""
        self._next_at = 0.0
        self.give_up(call)

    def give_up(self, call: Call) -> None:
        call.taken_tokens -= call.tokens
        self._put_back(1, call.tokens)

    def pause(self, seconds: float) -> None:
        """Let nobody go for a while: the server said so."""
        self._pace += 1
        until = asyncio.get_running_loop().time() + seconds
        self._paused_until = max(self._paused_until, until)

    def refused(self, call: Call) -> None:
        """The server has answered 429. Of the calls that were out together one counts."""
        if call.pace == self._pace:
            self._pace += 1
            self.gap = min(max(self.gap * _APART, _FIRST_GAP_S), _LONGEST_GAP_S)
            self._replies = 0

    def _answered(self) -> None:
        self._replies += 1
        closer = _CLOSER if self._replies <= _USUAL_REPLIES else _MUCH_CLOSER
        self.gap = self.gap * closer if self.gap > _LEAST_GAP_S else 0.0

    def _put_back(self, requests: int, tokens: int) -> None:
        loop = asyncio.get_running_loop()
        if self._requests is not None and requests:
            self._requests.take(-requests, loop.time())
        if self._tokens is not None and tokens:
            self._tokens.take(-tokens, loop.time())
        if self._line:
            self._serve(loop)

    def _wait(self, tokens: int, now: float) -> float:
        if not self._begun:  # by the clock of the loop that it is used on
            self._begun = True
            requests, per_minute = self._limits
            self._requests = None if requests is None else Bucket(requests, now, whole=True)
            self._tokens = None if per_minute is None else Bucket(per_minute, now, whole=False)
        return max(
            self._paused_until - now,
            self._next_at - now,
            0.0 if self._requests is None else self._requests.wait(1, now),
            0.0 if self._tokens is None else self._tokens.wait(tokens, now),
        )

    def _let_go(self, tokens: int, now: float) -> None:
        self._next_at = now + self.gap
        if self._requests is not None:
            self._requests.take(1, now)
        if self._tokens is not None:
            self._tokens.take(tokens, now)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let go who may, from the head of the line, and come again when the next one may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = loop.time()
        while self._line:
            waiter = self._line[0]
            if waiter.turn.done():  # cancelled
                heapq.heappop(self._line)
                continue
            wait = self._wait(waiter.tokens, now)
            if wait > 0:
                self._timer = loop.call_later(wait, self._serve, loop)
                return
            heapq.heappop(self._line)
            self._let_go(waiter.tokens, now)
            waiter.turn.set_result(None)
