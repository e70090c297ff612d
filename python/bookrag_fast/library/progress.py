"""Progress of one indexing run: rates and remaining time."""

from __future__ import annotations

from time import monotonic

from bookrag_fast.index.stages import Stages
from bookrag_fast.library.types import Progress, ProgressCallback

__all__ = ["ProgressReporter"]


_SHORTEST_S = 0.02  # a rate over less time than this says nothing


class ProgressReporter(Stages):
    """Turns (stage, done, total) into Progress."""

    def __init__(self, callback: ProgressCallback | None) -> None:
        super().__init__()
        self._callback = callback
        self._stage = ""
        self._since = monotonic()

    def pages(self, done: int, total: int) -> None:
        self.stage("parse", done, total, "pages")

    def stage(self, stage: str, done: int, total: int | None, unit: str) -> None:
        super().stage(stage, done, total, unit)
        if stage != self._stage:
            self._stage, self._since = stage, monotonic()
        if self._callback is None:
            return
        elapsed = monotonic() - self._since
        rate = done / elapsed if done and elapsed >= _SHORTEST_S else None
        eta = (total - done) / rate if rate and total is not None else None
        self._callback(Progress(stage, done, total, unit, rate, eta))
