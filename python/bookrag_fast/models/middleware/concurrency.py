"""How many calls run at once: of a role, and of a model over all roles."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping

from bookrag_fast.models.middleware.call import Call, Next, Reply

__all__ = ["Concurrency", "Slots"]

_APART_S = 0.001  # between the starts of calls


class Slots:
    """A semaphore that serves calls in the order in which they came to the stack, wherever they
    have waited meanwhile."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._line: list[tuple[int, asyncio.Future[None]]] = []  # a heap

    async def take(self, came: int) -> None:
        if self._free > 0:  # nobody waits then: a slot that is given back goes to who waits
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._line, (came, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()  # its turn came at the same moment
            raise

    def give_back(self) -> None:
        while self._line:
            _, turn = heapq.heappop(self._line)
            if not turn.done():  # else it was cancelled
                turn.set_result(None)
                return
        self._free += 1


class Concurrency:
    """A call waits for a slot of its role first, so that it does not keep one of the model from
    other roles while its own is busy.

    Calls that get their slots together start a millisecond apart, or as soon as the one before has
    ended. Preparing a request and reading a reply takes about as long. Were they all begun at once,
    the loop would work on all of them in turn, so that none is out before the last one is ready;
    their replies would come together too, and so on for ever, with the server idle in between.

    Args:
        calls: of the model at once.
        roles: of a role at once, for roles that have a limit of their own.
    """

    def __init__(self, calls: int, roles: Mapping[str, int] | None = None) -> None:
        self._model = Slots(calls)
        self._roles = {role: Slots(count) for role, count in (roles or {}).items()}
        self._door = Slots(1)

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        role = self._roles.get(call.role)
        slots = (self._model,) if role is None else (role, self._model)
        place = _Place(slots, self._door, call.came)
        await place.enter()
        call.place = place
        try:
            return await ahead(call)
        finally:
            place.leave()


class _Place:
    def __init__(self, slots: tuple[Slots, ...], door: Slots, came: int) -> None:
        self._slots = slots
        self._door = door
        self._came = came
        self._held: list[Slots] = []
        self._starting: asyncio.TimerHandle | None = None

    async def enter(self) -> None:
        try:
            for slots in self._slots:
                await slots.take(self._came)
                self._held.append(slots)
            await self._door.take(self._came)
        except BaseException:
            self.leave()
            raise
        self._starting = asyncio.get_running_loop().call_later(_APART_S, self._started)

    def leave(self) -> None:
        self._started()
        while self._held:
            self._held.pop().give_back()

    def _started(self) -> None:
        """Through the door, which is another one's now."""
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None
            self._door.give_back()
