"""Steps of a piece of async work: told as they come, done on threads, stopped when cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from contextvars import copy_context
from time import monotonic
from typing import TypeVar

from bookrag_fast.errors import SpendingLimitError
from bookrag_fast.loops import settled

__all__ = ["Stages", "side_by_side"]

MENTION_EVERY_S = 0.2

S = TypeVar("S")
T = TypeVar("T")


class Stages:
    """Told of the progress of one piece of work; this one keeps silent. Once cancelled, the next
    check of a worker thread raises ``CancelledError`` there, which unwinds it.

    Args:
        workers: has the threads that blocking work is done on; None: those of the loop.
    """

    def __init__(self, workers: Executor | None = None) -> None:
        self._workers = workers
        self._cancelled = threading.Event()
        self._telling = asyncio.Lock()
        self._told = -MENTION_EVERY_S

    def cancel(self) -> None:
        self._cancelled.set()

    def check(self) -> None:
        """On any thread. Raises what is to end the work, if anything is."""
        if self._cancelled.is_set():
            raise asyncio.CancelledError

    async def heard(self, stage: str, done: int, total: int | None, unit: str) -> None:
        """What becomes of a step that is told. Its time is the work's; may raise to end it."""

    async def tell(self, stage: str, done: int, total: int | None, unit: str) -> None:
        """Returns when the step was heard; one at a time, in the order of the calls."""
        async with self._telling:
            self.check()
            await self.heard(stage, done, total, unit)
            self._told = monotonic()

    async def mention(self, stage: str, done: int, total: int | None, unit: str) -> None:
        """`tell`, unless something was told just now or is being told: nobody waits for it."""
        if not self._telling.locked() and monotonic() - self._told >= MENTION_EVERY_S:
            await self.tell(stage, done, total, unit)

    async def run(self, work: Callable[[], T], *, on: Executor | None = None) -> T:
        """Blocking work on a worker thread, or on one of ``on``. When this is cancelled, so is all
        that is told of here, and the cancellation returns when the work has stopped: nothing goes
        on unseen. Work that still waits for a thread is not begun then."""
        context, workers = copy_context(), on or self._workers
        first = threading.Lock()  # taken by whoever is: the thread, or the cancellation

        def begun() -> T:
            if not first.acquire(blocking=False):
                raise asyncio.CancelledError
            return context.run(work)

        working = asyncio.get_running_loop().run_in_executor(workers, begun)
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            self.cancel()
            if first.acquire(blocking=False):
                working.cancel()
            else:
                await settled(working)
            raise


async def side_by_side(
    items: Iterable[S], work: Callable[[S], Awaitable[T]], *, limit: int
) -> list[T]:
    """The results of work on all items, in their order, at most ``limit`` at once. The first
    failure, and a cancellation, cancels what is under way, waits for it, and is raised. Only of a
    spent budget what is under way is a part: it is paid for, and ends in its own time."""
    todo = enumerate(items)
    results: dict[int, T] = {}
    spent = False

    async def worker() -> None:
        for place, item in todo:
            if spent:
                return
            results[place] = await work(item)

    tasks = [asyncio.ensure_future(worker()) for _ in range(limit)]
    try:
        await asyncio.gather(*tasks)
    except SpendingLimitError:
        spent = True
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [results[place] for place in range(len(results))]
