"""Progress of one indexing run: rates, remaining time, and the way to stop it."""

from __future__ import annotations

import threading
from asyncio import CancelledError
from time import monotonic

from bookrag_fast.library.types import Progress, ProgressCallback

__all__ = ["ProgressReporter"]


_SHORTEST_S = 0.02  # a rate over less time than this says nothing


class ProgressReporter:
    """Turns (stage, done, total) into Progress. Once cancelled, the next report raises
    ``CancelledError`` in the working thread, which unwinds it."""

    def __init__(self, callback: ProgressCallback | None) -> None:
        self._callback = callback
        self._cancelled = threading.Event()
        self._stage = ""
        self._since = monotonic()

    def cancel(self) -> None:
        self._cancelled.set()

    def check(self) -> None:
        if self._cancelled.is_set():
            raise CancelledError

    def pages(self, done: int, total: int) -> None:
        self.stage("parse", done, total, "pages")

    def stage(self, stage: str, done: int, total: int | None, unit: str) -> None:
        self.check()
        if stage != self._stage:
            self._stage, self._since = stage, monotonic()
        if self._callback is None:
            return
        elapsed = monotonic() - self._since
        rate = done / elapsed if done and elapsed >= _SHORTEST_S else None
        eta = (total - done) / rate if rate and total is not None else None
        self._callback(Progress(stage, done, total, unit, rate, eta))
