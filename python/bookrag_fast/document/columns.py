"""Reading order: lines of a page → columns, each a list of lines from top to bottom.

A page is cut at gutters: upright white bands with running text on both sides. Lines that cross a
gutter (titles, wide figures' captions) split the page into bands that are read one after the other;
within a band the left column comes before the right one. Columns are cut again by the same rule.
"""

from __future__ import annotations

import numpy as np

from bookrag_fast.document.lines import Line

__all__ = ["columns_of"]

MAX_DEPTH = 4
MIN_LINES = 5  # on each side of a gutter
MIN_GUTTER = 0.7  # of the median size


def columns_of(lines: list[Line], *, depth: int = 0) -> list[list[Line]]:
    """Columns in reading order. All lines are of one frame; none is lost or doubled."""
    if not lines:
        return []
    if depth >= MAX_DEPTH or len(lines) < 2 * MIN_LINES:
        return [sorted(lines, key=_down)]
    gutter = _gutter(lines)
    if gutter is None:
        return [sorted(lines, key=_down)]
    left_edge, right_edge = gutter
    middle = (left_edge + right_edge) / 2
    out: list[list[Line]] = []
    left: list[Line] = []
    right: list[Line] = []
    wide: list[Line] = []

    def close_band() -> None:
        nonlocal left, right
        for side in (left, right):
            out.extend(columns_of(side, depth=depth + 1))
        left, right = [], []

    for line in sorted(lines, key=_down):
        crosses = line.x0 < middle - 2 and line.x1 > middle + 2
        if crosses:
            if left or right:
                close_band()
            wide.append(line)
            continue
        if wide:
            out.append(wide)
            wide = []
        (left if line.middle_x <= middle else right).append(line)
    if wide:
        out.append(wide)
    close_band()
    return out


def _down(line: Line) -> tuple[float, float]:
    return (line.base, line.x0)


def _gutter(lines: list[Line]) -> tuple[float, float] | None:
    """The best white band between two columns of running text, None when there is none."""
    x0 = np.array([line.x0 for line in lines])
    x1 = np.array([line.x1 for line in lines])
    size = np.array([line.size for line in lines])
    letters = np.array([len(line.text) for line in lines])
    low, high = float(x0.min()), float(x1.max())
    span = high - low
    if span < 100:
        return None
    unit = float(np.median(size))
    # How many lines cover each point across the page.
    bins = int(span) + 2
    cover = np.zeros(bins + 1)
    np.add.at(cover, np.clip((x0 - low).astype(int), 0, bins), 1)
    np.add.at(cover, np.clip(np.ceil(x1 - low).astype(int), 0, bins), -1)
    cover = np.cumsum(cover)[:bins]
    allowed = max(1.0, 0.12 * len(lines))
    inner_from, inner_to = int(0.12 * span), int(0.88 * span)
    free = cover <= allowed
    best: tuple[float, float] | None = None
    best_score = 0.0
    at = inner_from
    while at < inner_to:
        if not free[at]:
            at += 1
            continue
        end = at
        while end < bins and free[end]:
            end += 1
        level = cover[at:end].min()
        # Within the band that few lines cross, the stretch that the fewest cross.
        inner = np.flatnonzero(cover[at:end] == level)
        start, stop = at + int(inner[0]), at + int(inner[-1]) + 1
        score = _gutter_score(x0 - low, x1 - low, letters, size, start, stop, unit, span)
        if score > best_score:
            best, best_score = (low + start, low + stop), score
        at = end + 1
    return best


def _gutter_score(
    x0: np.ndarray, x1: np.ndarray, letters: np.ndarray, size: np.ndarray,
    start: int, stop: int, unit: float, span: float,
) -> float:  # fmt: skip
    if stop - start < MIN_GUTTER * unit:
        return 0.0
    middle = (start + stop) / 2
    is_left, is_right = x1 <= middle + 2, x0 >= middle - 2
    crossing = int(len(x0) - is_left.sum() - is_right.sum())
    n_left, n_right = int(is_left.sum()), int(is_right.sum())
    if min(n_left, n_right) < MIN_LINES or crossing > 0.5 * (n_left + n_right):
        return 0.0
    # Running text fills its column; the cells of a table do not.
    for side in (is_left, is_right):
        width = float(x1[side].max() - x0[side].min())
        if width < 0.12 * span or width < 6 * unit:
            return 0.0
        count = letters[side]
        total = float(count.sum())
        filled = float(count[(x1[side] - x0[side]) > 0.62 * width].sum())
        mean_line = float((count * count).sum()) / max(total, 1.0)
        if filled < 0.5 * total or mean_line < 18:
            return 0.0
    return float(min(n_left, n_right)) * (1.0 + (stop - start) / span) / (1.0 + crossing)
