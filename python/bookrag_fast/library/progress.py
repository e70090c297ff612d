"""Progress of one indexing run, told to a callback: rates and remaining time."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from time import monotonic

from bookrag_fast.index.stages import Stages
from bookrag_fast.library.types import Progress, ProgressCallback
from bookrag_fast.loops import CarriedError, settled

__all__ = ["ProgressReporter"]


_SHORTEST_S = 0.02  # a rate over less time than this says nothing


class ProgressReporter(Stages):
    """Turns (stage, done, total) into Progress. Close it.

    The callback is called on a thread of its own. It may wait for the very library that works for
    it, so no worker thread that the library's work needs may wait for the callback: coroutines
    wait for it, and the reading of pages goes on without.
    """

    def __init__(self, callback: ProgressCallback | None, workers: Executor) -> None:
        super().__init__(workers)
        self._callback = callback
        self._thread = ThreadPoolExecutor(1, "bookrag-progress")  # begins with the first step
        self._stage = ""
        self._since = monotonic()
        self._pages: tuple[int, int] | None = None  # done and total, not told yet
        self._telling_pages: Future[None] | None = None

    def pages(self, done: int, total: int) -> None:
        """From the thread that reads them. While the callback is busy only the latest is kept; what
        the callback raises is raised by the next call, or by `check`."""
        self._pages = done, total
        busy = self._telling_pages is not None and not self._telling_pages.done()
        self.check()
        if not busy and self._callback is not None:
            self._telling_pages = self._thread.submit(copy_context().run, self._tell_pages)

    def check(self) -> None:
        super().check()
        if self._telling_pages is not None and self._telling_pages.done():
            self._telling_pages.result()

    async def heard(self, stage: str, done: int, total: int | None, unit: str) -> None:
        if self._callback is not None:
            await self.run(partial(self._say, stage, done, total, unit), on=self._thread)

    async def all_pages(self) -> None:
        """Returns when the callback knows of all pages; raises what it did."""
        if self._telling_pages is not None:
            await self.run(self._tell_pages, on=self._thread)

    async def aclose(self) -> None:
        """Returns when the callback does: it is not called any more."""
        if self._callback is None:
            return
        try:
            await settled(asyncio.wrap_future(self._thread.submit(lambda: None)))
        finally:
            self._thread.shutdown(wait=False)

    # --- on the callback's thread ---------------------------------------------------------------

    def _tell_pages(self) -> None:
        self.check()
        pages, self._pages = self._pages, None
        if pages is not None:
            self._say("parse", *pages, "pages")

    def _say(self, stage: str, done: int, total: int | None, unit: str) -> None:
        assert self._callback is not None
        if stage != self._stage:
            self._stage, self._since = stage, monotonic()
        elapsed = monotonic() - self._since
        rate = done / elapsed if done and elapsed >= _SHORTEST_S else None
        eta = (total - done) / rate if rate and total is not None else None
        try:
            self._callback(Progress(stage, done, total, unit, rate, eta))
        except CarriedError.ENDING as error:
            raise CarriedError(error) from error
