"""What passes between the process that reads a document and those that read its pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["OcrLine", "PageFailure", "PageJob", "PageReading"]


class OcrLine(NamedTuple):
    """A line as the recogniser saw it; lengths in points of the frame (see `lines.page_to_frame`).

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


@dataclass(frozen=True, slots=True)
class PageJob:
    """A page to read: ``index`` is 0-based, ``kind`` is "pdf" or "image"; the size in points as
    displayed."""

    kind: str
    path: str
    password: str | None
    index: int
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class PageReading:
    lines: list[OcrLine]

    @property
    def confidence(self) -> float:
        """Mean over the characters; 1 for a page without any."""
        count = sum(len(line.text) for line in self.lines)
        return sum(len(line.text) * line.score for line in self.lines) / count if count else 1.0


@dataclass(frozen=True, slots=True)
class PageFailure:
    """Why a page could not be read; the others are."""

    reason: str
