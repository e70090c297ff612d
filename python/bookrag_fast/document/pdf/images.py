"""Pictures of a page as blocks, placed where they are read."""

from __future__ import annotations

from bookrag_fast.document.analysis.blocks import Draft
from bookrag_fast.document.model import BBox, BlockKind, Style

__all__ = ["add_images", "picture_boxes"]

MIN_SIDE = 28.0  # points
MIN_SHARE = 0.006  # of the page's area
BACKGROUND = 0.85  # of the page's area: a scan or a backdrop, not a figure


def picture_boxes(images: list[BBox], width: float, height: float) -> list[BBox]:
    """Images that are figures; strips and tiles of one picture are put together."""
    merged: list[BBox] = []
    for box in sorted(images[:500], key=lambda b: (b.y0, b.x0)):
        for k in range(len(merged) - 1, -1, -1):
            if _touching(merged[k], box):
                merged[k] = merged[k].union(box)
                break
        else:
            merged.append(box)
    page = max(width * height, 1.0)
    return [
        b
        for b in merged
        if b.width >= MIN_SIDE and b.height >= MIN_SIDE and b.width * b.height >= MIN_SHARE * page
    ]


def _touching(a: BBox, b: BBox) -> bool:
    """Overlapping, or edge to edge along most of a side."""
    x = min(a.x1, b.x1) - max(a.x0, b.x0)
    y = min(a.y1, b.y1) - max(a.y0, b.y0)
    if x > 0 and y > 0:
        return x * y > 0.1 * min(a.width * a.height, b.width * b.height)
    along_x = x > 0.9 * max(a.width, b.width) and y > -1.5
    along_y = y > 0.9 * max(a.height, b.height) and x > -1.5
    return along_x or along_y


def add_images(
    drafts: list[Draft], boxes: list[BBox], page: int, width: float, height: float
) -> list[Draft]:
    """Drafts of a page with its pictures: before a caption that is near, else by place."""
    out = list(drafts)
    has_text = bool(drafts)
    for box in boxes:
        if has_text and box.width * box.height > BACKGROUND * width * height:
            continue
        at = _place(out, box)
        out.insert(
            at,
            Draft(
                kind=BlockKind.IMAGE,
                text="",
                page=page,
                box=box,
                style=Style(),
                line_count=0,
                column=out[at - 1].column if at > 0 else 0,
            ),
        )
    return out


def _place(drafts: list[Draft], box: BBox) -> int:
    best, distance = None, 40.0
    for k, draft in enumerate(drafts):
        if draft.kind is not BlockKind.CAPTION:
            continue
        overlap = min(draft.box.x1, box.x1) - max(draft.box.x0, box.x0)
        gap = max(draft.box.y0 - box.y1, box.y0 - draft.box.y1, 0.0)
        if overlap > 0 and gap < distance:
            best, distance = k, gap
    if best is not None:
        return best if drafts[best].box.y0 >= box.y0 else best + 1
    at = 0
    for k, draft in enumerate(drafts):
        overlap = min(draft.box.x1, box.x1) - max(draft.box.x0, box.x0)
        if overlap > 0 and draft.box.y0 < box.y0:
            at = k + 1
    return at
