"""Figures drawn with lines and shapes: where on a page something is drawn, and what it encloses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bookrag_fast.document.blocks import Draft
from bookrag_fast.document.captions import caption_kind
from bookrag_fast.document.model import BBox, BlockKind, Style

__all__ = ["add_drawn_figures", "drawn_regions"]

CELL = 6.0  # points; shapes up to two cells apart belong together
BACKDROP = 0.6  # of the page's area: not part of a figure
REACH = 70.0  # points between a figure and its caption
MIN_WIDTH, MIN_HEIGHT = 50.0, 28.0  # points
MAX_INSIDE = 200  # characters: a longer text inside makes the shape a box around text


def drawn_regions(shapes: list[BBox], width: float, height: float) -> list[BBox]:
    """Connected areas of the shapes of a page.

    Works on a coarse grid, so that a map of ten thousand lines costs no more than a chart.
    """
    shapes = [b for b in shapes if b.width * b.height < BACKDROP * width * height]
    if not shapes or width * height > 4e7:
        return []
    rows, columns = int(height / CELL) + 3, int(width / CELL) + 3
    grid = np.zeros((rows, columns), np.bool_)
    for box in shapes:
        grid[
            int(box.y0 / CELL) : int(box.y1 / CELL) + 2, int(box.x0 / CELL) : int(box.x1 / CELL) + 2
        ] = True
    out = [
        BBox(left * CELL, top * CELL, right * CELL, bottom * CELL)
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


def add_drawn_figures(drafts: list[Draft], regions: list[BBox], page: int) -> list[Draft]:
    """Drafts of a page with an image for each figure caption that has a drawing and no picture.

    The short texts inside the drawing (labels, axes) become the image's own text.
    """
    out = list(drafts)
    for caption in [d for d in drafts if d.kind is BlockKind.CAPTION]:
        if caption_kind(caption.text) != "figure" or _has_picture(out, caption):
            continue
        box = _region_at(out, regions, caption, above=True) or _region_at(
            out, regions, caption, above=False
        )
        if box is None:
            continue
        inside = [d for d in out if d is not caption and _inside(d, box) and _is_label(d)]
        at = out.index(caption) if not inside else min(out.index(caption), out.index(inside[0]))
        figure = Draft(
            kind=BlockKind.IMAGE,
            text="\n".join(d.text for d in inside),
            page=page,
            box=box,
            style=Style(),
            line_count=sum(d.line_count for d in inside),
            column=caption.column,
        )
        out.insert(at, figure)
        gone = {id(d) for d in inside}
        out = [d for d in out if id(d) not in gone]
    return out


def _has_picture(drafts: list[Draft], caption: Draft) -> bool:
    return any(
        d.kind is BlockKind.IMAGE
        and min(d.box.x1, caption.box.x1) > max(d.box.x0, caption.box.x0)
        and max(caption.box.y0 - d.box.y1, d.box.y0 - caption.box.y1) < REACH
        for d in drafts
    )


def _region_at(
    drafts: list[Draft], regions: list[BBox], caption: Draft, *, above: bool
) -> BBox | None:
    """The drawing next to a caption, grown by what is close to it."""
    near = [b for b in regions if (b.y1 <= caption.box.y0 + 8) == above]
    near = [b for b in near if above or b.y0 >= caption.box.y1 - 8]
    edge = _text_edge(drafts, caption, above=above)
    near = [b for b in near if (b.y0 >= edge - 8 if above else b.y1 <= edge + 8)]
    near.sort(key=lambda b: -b.y1 if above else b.y0)
    found: BBox | None = None
    for box in near:
        if found is None:
            gap = caption.box.y0 - box.y1 if above else box.y0 - caption.box.y1
            beside = min(box.x1, caption.box.x1) > max(box.x0, caption.box.x0)
            if gap < REACH and beside:
                found = box
        elif _distance(found, box) < 40.0:
            found = found.union(box)
    if found is None or found.width < MIN_WIDTH or found.height < MIN_HEIGHT:
        return None
    # Labels stand a little outside the lines that they explain.
    for draft in drafts:
        if draft is not caption and _is_label(draft) and _distance(found, draft.box) < 10.0:
            middle = (draft.box.y0 + draft.box.y1) / 2
            if (edge <= middle <= caption.box.y0) if above else (caption.box.y1 <= middle <= edge):
                found = found.union(draft.box)
    return found


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
