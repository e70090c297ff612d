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

from bookrag_fast.document.analysis.lettering import is_cjk

__all__ = ["Ink", "measure"]

RULE = 0.75  # of a line's width: a row with more ink is a rule, no row of letters has that
BAND = 0.4  # of the fullest row: what a row of the band has, at least
X_HEIGHT = 0.49  # of the size of type
CAPITAL_HEIGHT = 0.70
TALL_RANGE = (0.6, 1.15)  # what capitals may tell of the size, times what the band does
PLAUSIBLE = (0.5, 1.15)  # size of type, of the height of what the detector marks for it
USUAL = 0.78
MIDDLE = 0.36  # of the size: the middle of a line's ink above its baseline
SPECK = 1  # pixels of ink that a row may have and count as empty
KANJI_HEIGHT = 0.79
KANJI_DROP = 0.05  # of the size: how far kanji reach below the baseline

_TALL = frozenset("bdfhklß")


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
    if columns[-1] - columns[0] > 1.5 * crop.shape[0]:
        rules = down > RULE * (columns[-1] - columns[0])
        if not rules.all():
            ink[rules] = 0
            down[rules] = 0
    if not down.any():
        return None
    top, bottom = _largest_run(np.flatnonzero(down >= BAND * down.max()))
    band = float(bottom - top + 1)
    starts = int(np.count_nonzero(np.diff(ink.astype(np.int8), axis=1, prepend=0) == 1))
    size, drop = _size(text, band, float(bottom - _summit(down, top) + 1))
    base = bottom + 1 - drop
    least, most = PLAUSIBLE
    if not least * crop.shape[0] < size < most * crop.shape[0]:  # the band was a serif or a rule
        size = USUAL * crop.shape[0]
        base = crop.shape[0] / 2 + MIDDLE * size
    return Ink(
        float(columns[0]),
        float(columns[-1] + 1),
        base,
        size,
        float(ink.sum()) / max(starts, 1),
    )


def _largest_run(rows: npt.NDArray[np.intp]) -> tuple[int, int]:
    """First and last of the longest run of rows, allowing gaps of a tenth of its length."""
    breaks = np.flatnonzero(np.diff(rows) > max(1, len(rows) // 10)) + 1
    longest = max(np.split(rows, breaks), key=len)
    return int(longest[0]), int(longest[-1])


def _summit(down: npt.NDArray[np.int64], top: int) -> int:
    """The highest row that hangs together with the band: of ascenders, not of the line above."""
    empty = np.flatnonzero(down[:top] <= SPECK)
    return int(empty[-1]) + 1 if len(empty) else 0


def _size(text: str, band: float, whole: float) -> tuple[float, float]:
    """Size of type, and its drop below the band, from the heights of the band and of the ink
    above the baseline."""
    letters = text.replace(" ", "")
    if 2 * sum(is_cjk(ord(c)) for c in letters) >= len(letters):
        size = band / KANJI_HEIGHT
        return size, KANJI_DROP * size
    if any(c.isupper() or c.isdigit() or c in _TALL for c in letters):
        low, high = (x * band / X_HEIGHT for x in TALL_RANGE)
        return min(max(whole / CAPITAL_HEIGHT, low), high), 0.0
    return band / X_HEIGHT, 0.0
