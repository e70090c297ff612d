"""Sync as a thin shell over async: coroutines run on one loop of their owner's.

A running loop in the caller's thread does not matter: the work happens on another thread. What a
library does and the calls of its models share one loop, so that limits and connections have one
home, whichever threads and loops the callers have.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from bookrag_fast.errors import LibraryError
from bookrag_fast.forks import begins_anew, keep

__all__ = ["CarriedError", "LoopRunner", "settled"]

T = TypeVar("T")

# The runner whose work this is, in its tasks and in the threads that they started.
_working_for: ContextVar[object] = ContextVar("_working_for", default=None)
_UNWIND_S = 30.0  # how long an interrupted call waits for its work to be undone


class CarriedError(Exception):
    """What a caller's callback raised to end the caller's program, thread or iteration. Raised as
    it is, it would end the runner's loop; so it passes in this, and is raised where the work was
    begun."""

    ENDING = (GeneratorExit, KeyboardInterrupt, StopIteration, SystemExit)

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


async def settled(work: asyncio.Future[Any]) -> None:
    """Wait until cancelled work is done, however often the waiter is cancelled (a deadline passes
    while the caller hangs up); such a cancellation is raised then. What the work raised is no news
    to anybody."""
    cancelled = False
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            cancelled = True
    if not work.cancelled():
        work.exception()  # looked at
    if cancelled:
        raise asyncio.CancelledError


class LoopRunner:
    """An event loop on a daemon thread, started at the first call. Safe to share; a forked child
    gets one of its own."""

    def __init__(self) -> None:
        self._begin()
        self._closed = False
        begins_anew(self)

    def _begin(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()

    def forked(self) -> None:
        keep(self._loop)
        self._begin()

    def __del__(self) -> None:
        # Forgotten without close: its thread ends the loop. Nobody waits for it here.
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(loop.stop)

    @property
    def closed(self) -> bool:
        return self._closed

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return or raise what it does. An interrupt (Ctrl-C) of
        the waiting thread cancels it and waits until it has unwound."""
        ended = threading.Event()

        async def watched() -> T:
            _working_for.set(self)
            try:
                return await work
            finally:
                ended.set()

        with self._guard:  # nothing is handed to a loop that close is about to end
            if self._closed:
                work.close()
                raise _closed()
            future = asyncio.run_coroutine_threadsafe(watched(), self._started())
        try:
            return future.result()
        except CarriedError as carried:
            raise carried.error from carried.error.__cause__
        except concurrent.futures.CancelledError:
            if self._closed:
                raise _closed() from None
            raise
        except BaseException:
            if future.cancel() or not future.done():
                ended.wait(_UNWIND_S)
            raise

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """`run`, awaited on any loop; on this runner's own the work simply goes on there.
        Cancelling the caller cancels the work, and returns when it has unwound."""
        if self._loop is not None and asyncio.get_running_loop() is self._loop:
            return await work
        unwanted = False
        task: asyncio.Task[T] | None = None

        async def watched() -> T:
            nonlocal task
            _working_for.set(self)
            task = asyncio.current_task()
            if unwanted:
                work.close()
                raise asyncio.CancelledError
            return await work

        def stop() -> None:  # on the runner's loop, perhaps before the work has begun
            nonlocal unwanted
            unwanted = True
            if task is not None:
                task.cancel()

        with self._guard:
            if self._closed:
                work.close()
                raise _closed()
            loop = self._started()
            result = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(watched(), loop))
        try:
            return await asyncio.shield(result)
        except CarriedError as carried:
            raise carried.error from carried.error.__cause__
        except asyncio.CancelledError:
            if not result.done():  # the caller was cancelled, not the work
                loop.call_soon_threadsafe(stop)
                await settled(result)
            elif self.closed and result.cancelled():  # by close: the caller was not cancelled
                raise _closed() from None
            raise

    def close(self, last: Callable[[], Awaitable[None]] | None = None) -> None:
        """Cancel what is running, wait for it to unwind, do ``last`` on the loop, and end the
        thread. Closing once more does nothing.

        Raises:
            LibraryError: called by the very work that it would wait for (a progress callback).
        """
        if _working_for.get() is self:
            raise LibraryError(
                "a callback of the library cannot close it", "raise an exception to stop the work"
            )
        with self._guard:
            if last is not None and not self._closed:
                self._started()
            self._closed = True
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return

        async def drain() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if last is not None:
                await last()
            await loop.shutdown_default_executor()

        try:
            asyncio.run_coroutine_threadsafe(drain(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=_serve, args=(self._loop,), name="bookrag-loop", daemon=True
            )
            self._thread.start()
        return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _closed() -> LibraryError:
    return LibraryError("the library is closed", "open it again with Library.open")
