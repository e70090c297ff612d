"""Reading order: lines of a page → columns, each a list of lines from top to bottom.

A page is cut at gutters: upright white bands with running text on both sides. What crosses a gutter
(titles, captions, the rules of a wide table) splits the page into bands that are read one after the
other; within a band the left column comes before the right one. Columns are cut again by the same
rule.

Each band is judged by itself: a wide table over two columns of text has gaps where the gutter is,
and must neither be torn apart nor hide the gutter below it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.model import BBox

__all__ = ["columns_of"]

MAX_DEPTH = 4
MIN_LINES = 5  # on each side of a gutter
MIN_GUTTER = 0.7  # of the median size
CROSSING = (0.02, 0.04, 0.07, 0.12, 0.25)  # of the lines
FULL, NEARLY_FULL = 0.62, 0.8  # of a column's width: a line of running text is that long
MAX_INDENT = 3.0  # of the size; what stands further in is set apart from the text
MEAN_LINE = 18  # characters, weighted by themselves
MIN_CROSSING = 12.0  # points on either side of the gutter
MIN_TIGHT = 0.55  # of the steps from line to line are those inside paragraphs
SAME_ROW = 0.15  # of the size
MAX_HEAD = 8  # lines above the columns that stand in the gutter
HEAD_GAP = 1.8  # of the size: from the last of them to the columns, baseline to baseline


@dataclass(slots=True)
class _Band:
    """Lines between two that cross the gutter, or with nothing but such lines in ``wide``."""

    left: list[Line]
    right: list[Line]
    wide: list[Line]
    running: bool = False  # running text on both sides

    @property
    def white(self) -> float:
        return min(x.x0 for x in self.right) - max(x.x1 for x in self.left)


def columns_of(
    lines: list[Line], rules: Sequence[BBox] = (), *, depth: int = 0
) -> list[list[Line]]:
    """Columns in reading order. All lines are of one frame; none is lost or doubled.

    ``rules`` are what is drawn on the page, in the same frame.
    """
    if not lines:
        return []
    if depth >= MAX_DEPTH or len(lines) < 2 * MIN_LINES:
        return [sorted(lines, key=_down)]
    bands = _best_bands(lines, rules)
    if bands is None:
        return [sorted(lines, key=_down)]
    out: list[list[Line]] = []
    wide: list[Line] = []
    columns = _Columns([band for band in bands if band.running])
    for band in bands:
        if band.wide:
            wide += band.wide
        elif (
            band.running
            or (not wide and not (band.left and band.right))
            or (band.left and band.right and columns.hold(band))
            or (len(band.left) + len(band.right) >= MIN_LINES and not (band.left and band.right))
        ):
            if wide:
                out.append(wide)
                wide = []
            for side in (band.left, band.right):
                out.extend(columns_of(side, rules, depth=depth + 1))
        else:
            wide += sorted(band.left + band.right, key=_down)
    if wide:
        out.append(wide)
    return out


def _down(line: Line) -> tuple[float, float]:
    return (line.base, line.x0)


class _Columns:
    """Where the columns of running text stand that a gutter parts."""

    def __init__(self, running: list[_Band]) -> None:
        self._left = _extent([x for band in running for x in band.left])
        self._right = _extent([x for band in running for x in band.right])

    def hold(self, band: _Band) -> bool:
        """Whether the lines of a band belong to the columns, and not to a table over both."""
        unit = max(x.size for x in band.left)
        if band.white < MIN_GUTTER * unit:
            return False
        if min(x.x0 for x in band.right) < self._right[0] - unit:
            return False
        if _reads(band.left, self._left) or _reads(band.right, self._right):
            return True
        bases = np.array([x.base for x in band.right])
        shared = sum(
            bool((np.abs(bases - x.base) < SAME_ROW * x.size).any()) for x in band.left
        )  # fmt: skip
        return shared < 0.5 * min(len(band.left), len(band.right))


def _reads(lines: list[Line], column: tuple[float, float]) -> bool:
    """Whether lines are text of a column: long, and none beside another."""
    beside = sum(abs(a.base - b.base) < SAME_ROW * a.size for a, b in itertools.pairwise(lines))
    return beside <= 0.2 * len(lines) and _share(lines, column, NEARLY_FULL) >= 0.5


def _extent(lines: list[Line]) -> tuple[float, float]:
    return min(x.x0 for x in lines), max(x.x1 for x in lines)


def _share(lines: list[Line], column: tuple[float, float], full: float = FULL) -> float:
    """Share of the characters that stand in lines about as long as the column is wide."""
    least = full * (column[1] - column[0])
    total = sum(len(x.text) for x in lines)
    long = (x for x in lines if x.width > least and x.x0 < column[0] + MAX_INDENT * x.size)
    return sum(len(x.text) for x in long) / max(total, 1)


def _best_bands(lines: list[Line], rules: Sequence[BBox]) -> list[_Band] | None:
    """The bands at the best gutter, None when there is no gutter with text on both sides."""
    x0 = np.array([line.x0 for line in lines])
    x1 = np.array([line.x1 for line in lines])
    low, high = float(x0.min()), float(x1.max())
    span = high - low
    if span < 100:
        return None
    unit = float(np.median([line.size for line in lines]))
    # How many lines cover each point across the page.
    bins = int(span) + 2
    cover = np.zeros(bins + 1)
    np.add.at(cover, np.clip((x0 - low).astype(int), 0, bins), 1)
    np.add.at(cover, np.clip(np.ceil(x1 - low).astype(int), 0, bins), -1)
    cover = np.cumsum(cover)[:bins]
    best: list[_Band] | None = None
    best_score = 0.0
    ordered = sorted(lines, key=_down)
    for at in _lows(cover, len(lines), int(0.12 * span), int(0.88 * span)):
        middle = low + at
        if min(int((x1 <= middle).sum()), int((x0 >= middle).sum())) < MIN_LINES:
            continue
        bands = _freed(_bands(ordered, _crossing(rules, middle), middle), unit, span)
        score = 0.0
        for band in bands:
            band.running = _is_running(band, unit, span)
            if band.running:
                score += min(len(band.left), len(band.right)) * (1.0 + band.white / span)
        if score > best_score:
            best, best_score = bands, score
    return best


def _lows(
    cover: npt.NDArray[np.float64], count: int, inner_from: int, inner_to: int
) -> list[float]:
    """Places that few lines cover, by several measures of few: wide tables cover a gutter too."""
    out: list[float] = []
    for share in CROSSING:
        free = (cover <= max(1.0, share * count)).tolist()
        at = inner_from
        while at < inner_to:
            if not free[at]:
                at += 1
                continue
            end = at
            while end < len(cover) and free[end]:
                end += 1
            # Within the stretch that few lines cross, where the fewest do.
            inner = np.flatnonzero(cover[at:end] == cover[at:end].min())
            place = at + (int(inner[0]) + int(inner[-1]) + 1) / 2
            if not any(abs(place - known) < 2 for known in out):
                out.append(place)
            at = end + 1
    return out


def _crossing(rules: Sequence[BBox], middle: float) -> list[float]:
    """Heights at which something drawn begins or ends on both sides of the gutter, ascending."""
    across = [b for b in rules if b.x0 < middle - MIN_CROSSING and b.x1 > middle + MIN_CROSSING]
    return sorted({y for b in across for y in (b.y0, b.y1)})


def _bands(ordered: list[Line], edges: list[float], middle: float) -> list[_Band]:
    out: list[_Band] = []
    passed = 0
    for line in ordered:
        before = passed
        while passed < len(edges) and edges[passed] < line.base - 0.3 * line.size:
            passed += 1
        crosses = line.x0 < middle - 2 and line.x1 > middle + 2
        if not out or crosses != bool(out[-1].wide) or (passed > before and not crosses):
            out.append(_Band([], [], []))
        if crosses:
            out[-1].wide.append(line)
        else:
            (out[-1].left if line.middle_x <= middle else out[-1].right).append(line)
    return out


def _freed(bands: list[_Band], unit: float, span: float) -> list[_Band]:
    """Bands whose first lines narrow the gutter, such as addresses below a title, without them:
    they become a band of their own, if running text is left, and white stands between."""
    out: list[_Band] = []
    for band in bands:
        lines = sorted(band.left + band.right, key=_down)
        start = _head(band, lines, MIN_GUTTER * unit)
        if not 0 < start <= MAX_HEAD or lines[start].base - lines[start - 1].base < HEAD_GAP * unit:
            out.append(band)
            continue
        head = {id(x) for x in lines[:start]}
        above = _Band(
            [x for x in band.left if id(x) in head], [x for x in band.right if id(x) in head], []
        )
        below = _Band(
            [x for x in band.left if id(x) not in head],
            [x for x in band.right if id(x) not in head],
            [],
        )
        out += [above, below] if _is_running(below, unit, span) else [band]
    return out


def _head(band: _Band, lines: Sequence[Line], least: float) -> int:
    """How many of a band's ``lines`` from the top must go for its gutter to be ``least`` wide."""
    if not (band.left and band.right):
        return 0
    of_left = {id(x) for x in band.left}
    left, right = -np.inf, np.inf
    for k in range(len(lines) - 1, -1, -1):
        if id(lines[k]) in of_left:
            left = max(left, lines[k].x1)
        else:
            right = min(right, lines[k].x0)
        if right - left < least:
            return k + 1
    return 0


def _is_running(band: _Band, unit: float, span: float) -> bool:
    """Running text on both sides fills its column; the cells of a table do not."""
    if min(len(band.left), len(band.right)) < MIN_LINES or band.white < MIN_GUTTER * unit:
        return False
    for side in (band.left, band.right):
        extent = _extent(side)
        width = extent[1] - extent[0]
        if width < 0.12 * span or width < 6 * unit or _share(side, extent) < 0.5:
            return False
        # The lines of a paragraph follow each other closely; the rows of a table do not.
        steps = np.diff([x.base for x in side if x.width > FULL * width])
        steps = steps[steps > 0.3 * unit]
        if len(steps) and (steps <= 1.4 * np.percentile(steps, 25)).mean() < MIN_TIGHT:
            return False
        letters = [len(x.text) for x in side]
        if sum(n * n for n in letters) / max(sum(letters), 1) < MEAN_LINE:
            return False
    return True
