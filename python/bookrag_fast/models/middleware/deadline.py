"""The end of every call, whatever the client does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from bookrag_fast.errors import ModelError, ModelTimeoutError, ModelUnavailableError
from bookrag_fast.models.middleware.call import Call, Next, Reply

__all__ = ["Deadline", "within"]

T = TypeVar("T")

_UNWIND_S = 0.25  # for a cancelled call to close its connection
_left_behind: set[asyncio.Task[Any]] = set()  # those that took longer; held until they end


class Deadline:
    """Cancels what is below at the call's deadline, which the retry stage has set, and does not
    wait for it longer than a moment."""

    def __init__(self, model: str, timeout_s: float) -> None:
        self._model = model
        self._timeout_s = timeout_s

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        return await within(call.deadline, _awaited(ahead, call), self._passed)

    def _passed(self) -> ModelTimeoutError:
        return ModelTimeoutError(
            f"model {self._model!r} did not answer within {self._timeout_s:g} s; "
            "the call was cancelled",
            f"raise models.{self._model}.timeout_s if it is slow rather than stuck",
        )


async def within(
    deadline: float, work: Coroutine[Any, Any, T], late: Callable[[], ModelError]
) -> T:
    """What ``work`` returns or raises, or the error of ``late`` when the loop's clock has reached
    ``deadline``. Work that does not heed its cancellation is left behind."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    try:
        await asyncio.wait((task,), timeout=max(0.0, deadline - loop.time()))
        if not task.done():
            await _end(task)
            if not task.done() or task.cancelled() or task.exception() is not None:
                raise late()
    except asyncio.CancelledError:
        await _end(task)
        raise
    if task.cancelled():  # by itself: nobody asked this call to end
        raise ModelUnavailableError("the client gave up the call", "try again")
    return task.result()


async def _end(task: asyncio.Task[Any]) -> None:
    if task.done():
        return
    _left_behind.add(task)
    task.add_done_callback(_forgotten)
    task.cancel()
    await asyncio.wait((task,), timeout=_UNWIND_S)


def _forgotten(task: asyncio.Task[Any]) -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # seen, so that asyncio does not complain of it


async def _awaited(ahead: Next, call: Call) -> Reply:
    return await ahead(call)
