"""What passes between the process that reads a document and those that read its pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["OcrLine", "PageReading"]

SPARSE = 2.5  # of the size, a character; Latin letters take 0.4 to 0.5, kanji 1


class OcrLine(NamedTuple):
    """A line as the recogniser saw it; lengths in points of the frame (see `frames.page_to_frame`).

    ``size`` is the size of type that such ink would have, ``stroke`` the mean thickness of its
    strokes; ``score`` is the recogniser's confidence, 0 to 1.
    """

    text: str
    score: float
    frame: int
    x0: float
    x1: float
    base: float
    size: float
    stroke: float

    @property
    def is_sparse(self) -> bool:
        """Whether far fewer characters were read than there is room for: the recogniser passes
        over what it does not know, and is sure of the rest."""
        return self.x1 - self.x0 > SPARSE * self.size * len(self.text)


@dataclass(frozen=True, slots=True)
class PageReading:
    lines: list[OcrLine]

    @property
    def confidence(self) -> float:
        """Mean over the characters; 1 for a page without any."""
        count = sum(len(line.text) for line in self.lines)
        return sum(len(line.text) * line.score for line in self.lines) / count if count else 1.0

    @property
    def unknown(self) -> float:
        """The part of its lines, by length, that are in no script that the models know."""
        length = sum(line.x1 - line.x0 for line in self.lines)
        sparse = sum(line.x1 - line.x0 for line in self.lines if line.is_sparse)
        return sparse / length if length else 0.0
