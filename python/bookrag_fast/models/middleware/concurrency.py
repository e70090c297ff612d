"""How many calls run at once: of a role, and of a model over all roles."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping

from bookrag_fast.models.middleware.call import Call, Next, Reply

__all__ = ["Concurrency", "Slots"]


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

    Args:
        calls: of the model at once.
        roles: of a role at once, for roles that have a limit of their own.
    """

    def __init__(self, calls: int, roles: Mapping[str, int] | None = None) -> None:
        self._model = Slots(calls)
        self._roles = {role: Slots(count) for role, count in (roles or {}).items()}

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        role = self._roles.get(call.role)
        place = _Place((self._model,) if role is None else (role, self._model), call.came)
        await place.enter()
        call.place = place
        try:
            return await ahead(call)
        finally:
            place.leave()


class _Place:
    def __init__(self, slots: tuple[Slots, ...], came: int) -> None:
        self._slots = slots
        self._came = came
        self._held: list[Slots] = []

    async def enter(self) -> None:
        try:
            for slots in self._slots:
                await slots.take(self._came)
                self._held.append(slots)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        while self._held:
            self._held.pop().give_back()
