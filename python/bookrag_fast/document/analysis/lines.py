"""Lines: runs of characters on one baseline without a wide gap.

A table row or two columns side by side give several. Coordinates of a line are in its *frame* (see
`frames`), in which text always reads to the right and downwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from bookrag_fast.document.analysis.lettering import is_cjk
from bookrag_fast.document.model import BlockKind, Cell, Lead

__all__ = ["Line", "lead_of", "put_together"]


@dataclass(slots=True)
class Line:
    """Characters on one baseline. x and y in points of the frame; ``base`` is the baseline's y."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    base: float
    size: float
    bold: bool
    italic: bool
    mono: bool
    family: str
    color: int
    frame: int
    part_bold: bool = False  # starts bold, ends otherwise
    lead: Lead | None = None  # what it starts with in another face than it ends in
    tilted: bool = False  # at an angle to all four sides; its box is where its middle is
    stands_for: BlockKind | None = None  # a whole table or figure; ``pieces`` are its lines
    pieces: tuple[Line, ...] = ()
    cells: tuple[Cell, ...] = ()

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.y1 - self.y0

    @property
    def middle(self) -> float:
        return (self.y0 + self.y1) / 2

    @property
    def middle_x(self) -> float:
        return (self.x0 + self.x1) / 2


def put_together(lines: list[Line], *, some_rtl: bool = False) -> list[Line]:
    """Joins neighbours on one baseline that the content stream holds apart or out of order.

    All lines are of one frame. The list may be returned itself, its lines may have grown.
    """
    if len(lines) < 2:
        return lines
    order = sorted(range(len(lines)), key=lambda k: (lines[k].base, lines[k].x0))
    gone: set[int] = set()
    for at, k in enumerate(order):
        if k in gone:
            continue
        here = lines[k]
        for other in order[at + 1 : at + 40]:
            there = lines[other]
            if there.base - here.base > 0.6 * max(here.size, there.size):
                break
            if other in gone or not _adjacent(here, there):
                continue
            _join(here, there, some_rtl)
            gone.add(other)
    return [line for k, line in enumerate(lines) if k not in gone]


def _adjacent(a: Line, b: Line) -> bool:
    left, right = (a, b) if a.x0 <= b.x0 else (b, a)
    big, small = max(a.size, b.size), min(a.size, b.size)
    gap = right.x0 - left.x1
    if not -0.35 * big < gap < 0.6 * big:
        return False
    if small < 0.85 * big:  # a superscript, a subscript, a drop cap
        overlap = min(a.y1, b.y1) - max(a.y0, b.y0)
        little = a if a.size < b.size else b
        return overlap > 0.3 * min(a.height, b.height) and little.width < 4 * big
    return abs(a.base - b.base) < 0.25 * big


def lead_of(left: Line, right: Line, glue: str) -> Lead | None:
    """The lead of a line put together of two."""
    if left.lead is not None:
        return left.lead
    face = (left.bold, left.italic, left.family)
    if right.lead is not None and face == right.lead[1:]:
        return right.lead._replace(text=left.text + glue + right.lead.text)
    return Lead(left.text, *face) if face != (right.bold, right.italic, right.family) else None


def _join(a: Line, b: Line, some_rtl: bool) -> None:
    left, right = (a, b) if a.x0 <= b.x0 else (b, a)  # ``a`` grows by ``b``
    glue = " " if right.x0 - left.x1 > 0.18 * min(a.size, b.size) else ""
    if glue and is_cjk(ord(left.text[-1])) and is_cjk(ord(right.text[0])):
        glue = ""
    if some_rtl and any(0x0590 <= ord(c) <= 0x08FF for c in a.text + b.text):
        a.text = right.text + glue + left.text
    else:
        a.text = left.text + glue + right.text
    if b.width > a.width and b.size >= a.size:
        a.size, a.base, a.family, a.color = b.size, b.base, b.family, b.color
        a.italic, a.mono = b.italic, b.mono
        a.bold = b.bold
    elif b.width > 0.4 * a.width:
        a.bold = a.bold and b.bold
    a.part_bold = (left.bold or left.part_bold) and not right.bold
    a.lead = lead_of(left, right, glue)
    a.x0, a.y0 = min(a.x0, b.x0), min(a.y0, b.y0)
    a.x1, a.y1 = max(a.x1, b.x1), max(a.y1, b.y1)
