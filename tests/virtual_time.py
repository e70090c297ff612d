"""An event loop whose clock jumps: whoever sleeps wakes up at once, an hour later by the clock."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from bookrag_fast.loops import LoopRunner

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:  # nothing but a thread or a socket can go on
            return super().select(None)
        events = super().select(0)
        if not events:
            self.loop.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = 1000.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now


def virtually(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on such a loop. Deadlocks end in an error rather than never: a test's own
    timeout sees to that."""
    loop = VirtualLoop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(work)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        asyncio.set_event_loop(None)
        loop.close()


class Here(LoopRunner):
    """A runner whose loop is whichever the caller runs on."""

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        return await work
