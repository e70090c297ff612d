"""Sync as a thin shell over async: coroutines run on one loop of the library's own.

A running loop in the caller's thread does not matter: the work happens on another thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["LoopRunner"]

T = TypeVar("T")

_UNWIND_S = 30.0  # how long an interrupted call waits for its work to be undone


class LoopRunner:
    """An event loop on a daemon thread, started at the first call. Safe to share."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return or raise what it does. An interrupt (Ctrl-C) of
        the waiting thread cancels it and waits until it has unwound."""
        ended = threading.Event()

        async def watched() -> T:
            try:
                return await work
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(watched(), self._started())
        try:
            return future.result()
        except BaseException:
            if future.cancel() or not future.done():
                ended.wait(_UNWIND_S)
            raise

    def close(self) -> None:
        """Cancel what is running, wait for it to unwind, and end the thread."""
        with self._guard:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return

        async def drain() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await loop.shutdown_default_executor()

        asyncio.run_coroutine_threadsafe(drain(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="bookrag-loop", daemon=True
                )
                self._thread.start()
            return self._loop
