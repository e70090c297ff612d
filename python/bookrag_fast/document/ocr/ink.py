"""Measuring the ink of one line: where it stands, how large and how heavy its type is.

A detector's box says little about the size of type: it takes in more or less of the paper around,
and a line without an ascender is lower than one with. The band of rows that most letters fill is
telling: from the baseline to the height of an x, or of a capital, or of a kanji.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from bookrag_fast.document.lines import is_cjk

__all__ = ["Ink", "measure"]

BAND = 0.4  # of the fullest row: what a row of the band has, at least
X_HEIGHT = 0.49  # of the size of type
CAPITAL_HEIGHT = 0.70
KANJI_HEIGHT = 0.88
KANJI_DROP = 0.12  # of the size: how far kanji reach below the baseline


class Ink(NamedTuple):
    """Pixels, from the left and from the top of the line's picture."""

    left: float
    right: float
    base: float
    size: float
    stroke: float


def measure(crop: npt.NDArray[np.uint8], text: str) -> Ink | None:
    """The ink of a level line that says ``text``; None if there is no telling ink from paper."""
    level, mask = cv2.threshold(crop, 0, 1, cv2.THRESH_BINARY_INV + cv2.THRESH_OTSU)
    ink = np.asarray(mask, np.uint8)
    if 2 * int(ink.sum()) > ink.size:  # light on dark
        ink = 1 - ink
    across, down = ink.sum(axis=0), ink.sum(axis=1, dtype=np.int64)
    columns = np.flatnonzero(across)
    if not len(columns) or level <= 0:
        return None
    rows = np.flatnonzero(down >= BAND * down.max())
    top, bottom = _largest_run(rows)
    high = float(bottom - top + 1)
    starts = int(np.count_nonzero(np.diff(ink.astype(np.int8), axis=1, prepend=0) == 1))
    share, drop = _proportions(text)
    size = high / share
    return Ink(
        float(columns[0]),
        float(columns[-1] + 1),
        bottom + 1 - drop * size,
        size,
        float(ink.sum()) / max(starts, 1),
    )


def _largest_run(rows: npt.NDArray[np.intp]) -> tuple[int, int]:
    """First and last of the longest run of rows, allowing gaps of a tenth of its length."""
    breaks = np.flatnonzero(np.diff(rows) > max(1, len(rows) // 10)) + 1
    longest = max(np.split(rows, breaks), key=len)
    return int(longest[0]), int(longest[-1])


def _proportions(text: str) -> tuple[float, float]:
    """Height of the band and its drop below the baseline, as parts of the size of type."""
    kanji = sum(is_cjk(ord(c)) for c in text)
    if 2 * kanji >= len(text.replace(" ", "")):
        return KANJI_HEIGHT, KANJI_DROP
    low = sum(c.islower() for c in text)
    tall = sum(c.isupper() or c.isdigit() for c in text)
    return (X_HEIGHT, 0.0) if low >= tall else (CAPITAL_HEIGHT, 0.0)
