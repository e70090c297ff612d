"""What a layout model saw on a page, and what of the page coincides with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bookrag_fast.document.model import BBox, Block

__all__ = ["FIGURE", "TITLE", "PageRegion", "boxes_of", "marked"]

FIGURE, TITLE = "figure", "title"  # classes, as the models name them
COINCIDES = 0.4  # intersection over union


class PageRegion(NamedTuple):
    """A region with the model's word for it, its confidence (0 to 1), and its box in points."""

    kind: str
    score: float
    bbox: BBox


def boxes_of(regions: Sequence[PageRegion], kind: str) -> list[BBox]:
    return [region.bbox for region in regions if region.kind == kind]


def marked(blocks: Sequence[Block], regions: Sequence[Sequence[PageRegion]]) -> tuple[Block, ...]:
    """The blocks, those that a region coincides with marked as what it is.

    Args:
        regions: of each page.
    """
    return tuple(
        replace(block, seen_as=kind) if (kind := _seen_as(block, regions)) else block
        for block in blocks
    )


def _seen_as(block: Block, regions: Sequence[Sequence[PageRegion]]) -> str:
    best = ("", COINCIDES)
    for page, box in block.regions[:1]:
        for region in regions[page - 1]:
            alike = _overlap(box, region.bbox)
            if alike > best[1]:
                best = (region.kind, alike)
    return best[0]


def _overlap(a: BBox, b: BBox) -> float:
    """Intersection over union."""
    x = min(a.x1, b.x1) - max(a.x0, b.x0)
    y = min(a.y1, b.y1) - max(a.y0, b.y0)
    if x <= 0 or y <= 0:
        return 0.0
    return x * y / (a.width * a.height + b.width * b.height - x * y)
