"""Figures drawn with lines and shapes: where on a page something is drawn, and what it encloses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bookrag_fast.document.analysis.blocks import Draft
from bookrag_fast.document.analysis.captions import caption_kind
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.model import BBox, BlockKind

__all__ = ["drawn_regions", "take_figures"]

CELL = 6.0  # points
BACKDROP = 0.6  # of the page's area: not part of a figure
REACH = 70.0  # points between a figure and its caption
PART_REACH = 40.0  # points between parts of one figure
LABEL_REACH = 14.0  # points between a label and the lines that it explains
SIDE_REACH = 60.0  # the same for short labels at the side
MAX_LABEL = 80  # characters of a label outside the lines
MAX_SIDE_LABEL = 0.25  # of the drawing's width
MIN_WIDTH, MIN_HEIGHT = 50.0, 28.0  # points
MAX_INSIDE = 200  # characters: a longer text inside makes the shape a box around text
MAX_TEXT = 500  # characters of such texts in a figure


def drawn_regions(shapes: list[BBox], width: float, height: float, *, reach: int = 1) -> list[BBox]:
    """Connected areas of the shapes of a page; up to ``reach`` cells apart counts as connected.

    Works on a coarse grid, so that a map of ten thousand lines costs no more than a chart.
    """
    shapes = [b for b in shapes if b.width * b.height < BACKDROP * width * height]
    if not shapes or width * height > 4e7:
        return []
    rows, columns = int(height / CELL) + 3, int(width / CELL) + 3
    grid = np.zeros((rows, columns), np.bool_)
    for box in shapes:
        grid[
            int(box.y0 / CELL) : int(box.y1 / CELL) + reach,
            int(box.x0 / CELL) : int(box.x1 / CELL) + reach,
        ] = True
    out = [
        BBox(left * CELL, top * CELL, (right + 2 - reach) * CELL, (bottom + 2 - reach) * CELL)
        for left, top, right, bottom in _components(grid)
    ]
    return [b for b in out if b.width > 2 * CELL or b.height > 2 * CELL]


def _components(grid: npt.NDArray[np.bool_]) -> list[tuple[int, int, int, int]]:
    """(left, top, right, bottom) of the connected areas, by union of the runs of each row."""
    padded = np.zeros((grid.shape[0], grid.shape[1] + 2), np.int8)
    padded[:, 1:-1] = grid
    steps = np.diff(padded, axis=1)
    rows, starts = np.nonzero(steps == 1)
    _, ends = np.nonzero(steps == -1)
    runs = list(zip(rows.tolist(), starts.tolist(), (ends - 1).tolist(), strict=True))
    parent = list(range(len(runs)))

    def find(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    above = 0
    for k, (row, start, end) in enumerate(runs):
        while runs[above][0] < row - 1 or (
            runs[above][0] == row - 1 and runs[above][2] < start - 1
        ):
            above += 1
        other = above
        while runs[other][0] == row - 1 and runs[other][1] <= end + 1:
            parent[find(other)] = find(k)
            other += 1
    boxes: dict[int, tuple[int, int, int, int]] = {}
    for k, (row, start, end) in enumerate(runs):
        root = find(k)
        left, top, right, bottom = boxes.get(root, (start, row, end, row))
        boxes[root] = (min(left, start), min(top, row), max(right, end), max(bottom, row))
    return list(boxes.values())


def take_figures(
    lines: list[Line],
    drafts: list[Draft],
    regions: list[BBox],
    pictures: list[BBox],
    seen: list[BBox],
) -> tuple[list[Line], list[Line]]:
    """(lines outside figures, one stand-in line a figure).

    ``drafts`` are the page's blocks as they are without tables. A figure is a drawing next to a
    figure's caption; the short texts inside it (labels, axes) become the figure's own text, so that
    boxes with words in them are not taken for a table, nor labels side by side for columns.
    ``seen`` are what a layout model takes for figures: where nothing is drawn, one above a caption
    does.
    """
    regions = _without_tables(drafts, regions)
    figures: list[Line] = []
    gone: set[int] = set()
    for caption in [d for d in drafts if d.kind is BlockKind.CAPTION]:
        if caption_kind(caption.text) != "figure" or _has_picture(pictures, caption):
            continue
        box = (
            _region_at(drafts, regions, caption, above=True)
            or _region_at(drafts, regions, caption, above=False)
            or _region_at(drafts, seen, caption, above=True, labels=False)
        )
        if box is None or any(_overlap(box, BBox(f.x0, f.y0, f.x1, f.y1)) for f in figures):
            continue
        inside = [d for d in drafts if d is not caption and _inside(d, box)]
        labels = [d for d in inside if _is_label(d)]
        if sum(len(d.text) for d in inside if not _is_label(d)) > MAX_TEXT:
            continue  # text in a frame
        pieces = tuple(line for d in labels for line in d.lines)
        gone.update(id(line) for line in pieces)
        size = pieces[0].size if pieces else caption.style.size
        figures.append(
            Line(
                text="\n".join(d.text for d in labels),
                x0=box.x0, y0=box.y0, x1=box.x1, y1=box.y1, base=box.y0 + size, size=size,
                bold=False, italic=False, mono=False, family=caption.style.family, color=0,
                frame=0, stands_for=BlockKind.IMAGE, pieces=pieces,
            )
        )  # fmt: skip
    return [line for line in lines if id(line) not in gone], figures


def _overlap(a: BBox, b: BBox) -> bool:
    return min(a.x1, b.x1) > max(a.x0, b.x0) and min(a.y1, b.y1) > max(a.y0, b.y0)


def _has_picture(pictures: list[BBox], caption: Draft) -> bool:
    return any(
        min(box.x1, caption.box.x1) > max(box.x0, caption.box.x0)
        and max(caption.box.y0 - box.y1, box.y0 - caption.box.y1) < REACH
        for box in pictures
    )


def _without_tables(drafts: list[Draft], regions: list[BBox]) -> list[BBox]:
    """The drawings without the rules and boxes of tables.

    A table's caption claims the drawing next below it, and what follows down to the next caption or
    paragraph with the same left and right edge: top, middle and bottom rules are often three
    drawings.
    """
    captions = [d for d in drafts if d.kind is BlockKind.CAPTION and caption_kind(d.text)]
    free = sorted(regions, key=lambda b: b.y0)
    for caption in captions:
        if caption_kind(caption.text) != "table":
            continue
        end = min((d.box.y0 for d in captions if d.box.y0 > caption.box.y1), default=1e9)
        below = [b for b in free if caption.box.y1 - 8 <= b.y0 and b.y1 <= end + 8]
        if not below or below[0].y0 - caption.box.y1 > 0.5 * REACH:
            continue
        top = below[0]
        ends = [
            d.box.y0
            for d in drafts
            if d.line_count > 2 and d.box.y0 > top.y0 and d.box.width > 0.75 * top.width
            and min(d.box.x1, top.x1) - max(d.box.x0, top.x0) > 0.75 * top.width
        ]  # fmt: skip
        end = min(ends, default=1e9)
        figures = [d.box for d in captions if caption_kind(d.text) == "figure"]
        for b in below:
            alike = abs(b.x0 - top.x0) <= 2 * CELL and abs(b.x1 - top.x1) <= 2 * CELL
            # A figure may be as wide as the table: its own caption is nearer.
            named = b.height > 3 * CELL and any(0 <= f.y0 - b.y1 + 8 < REACH for f in figures)
            if b is top or (b.y0 <= end and alike and not named):
                free.remove(b)
    return free


def _region_at(
    drafts: list[Draft], regions: list[BBox], caption: Draft, *, above: bool, labels: bool = True
) -> BBox | None:
    """The drawing next to a caption, grown by what is close to it: parts, and ``labels`` if they
    are not in the regions anyway."""
    near = [b for b in regions if (b.y1 <= caption.box.y0 + 8) == above]
    near = [b for b in near if above or b.y0 >= caption.box.y1 - 8]
    edge = _text_edge(drafts, caption, above=above)
    near = [b for b in near if (b.y0 >= edge - 8 if above else b.y1 <= edge + 8)]
    near.sort(key=lambda b: -b.y1 if above else b.y0)
    low, high = (edge, caption.box.y0) if above else (caption.box.y1, edge)
    near_by = [
        d
        for d in drafts
        if labels
        and d is not caption
        and len(d.text) <= MAX_LABEL
        and _is_label(d)
        and low <= (d.box.y0 + d.box.y1) / 2 <= high
    ]
    found: BBox | None = None
    for part in near:
        if found is None:
            gap = caption.box.y0 - part.y1 if above else part.y0 - caption.box.y1
            beside = min(part.x1, caption.box.x1) > max(part.x0, caption.box.x0)
            if gap >= REACH or not beside:
                continue
            found = part
        elif _distance(found, part) < PART_REACH:
            found = found.union(part)
        else:
            continue
        for label in near_by:
            if _explains(label, part, caption.column):
                found = found.union(label.box)
    if found is None or found.width < MIN_WIDTH or found.height < MIN_HEIGHT:
        return None
    return found


def _explains(label: Draft, part: BBox, column: int) -> bool:
    """Labels stand a little outside the lines that they explain, or at the side further off."""
    middle = (label.box.y0 + label.box.y1) / 2
    beside = part.y0 <= middle <= part.y1 and label.column == column
    short = label.box.width < MAX_SIDE_LABEL * part.width
    return _distance(part, label.box) < (SIDE_REACH if beside and short else LABEL_REACH)


def _text_edge(drafts: list[Draft], caption: Draft, *, above: bool) -> float:
    """Where the nearest paragraph, heading or table on that side begins: a figure ends there."""
    edge = 0.0 if above else 1e9
    for draft in drafts:
        stops = len(draft.text) > MAX_INSIDE or (
            draft.kind is BlockKind.CAPTION and caption_kind(draft.text) is not None
        )
        overlap = min(draft.box.x1, caption.box.x1) > max(draft.box.x0, caption.box.x0)
        if draft is caption or not stops or not overlap:
            continue
        if above and draft.box.y1 <= caption.box.y0 + 2:
            edge = max(edge, draft.box.y1)
        elif not above and draft.box.y0 >= caption.box.y1 - 2:
            edge = min(edge, draft.box.y0)
    return edge


def _distance(a: BBox, b: BBox) -> float:
    x = max(a.x0 - b.x1, b.x0 - a.x1, 0.0)
    y = max(a.y0 - b.y1, b.y0 - a.y1, 0.0)
    return max(x, y)


def _inside(draft: Draft, box: BBox) -> bool:
    x, y = (draft.box.x0 + draft.box.x1) / 2, (draft.box.y0 + draft.box.y1) / 2
    return box.x0 - 4 <= x <= box.x1 + 4 and box.y0 - 4 <= y <= box.y1 + 4


def _is_label(draft: Draft) -> bool:
    return len(draft.text) <= MAX_INSIDE and draft.kind not in (
        BlockKind.IMAGE,
        BlockKind.FOOTNOTE,
    )
