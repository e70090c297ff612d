"""Headings whose levels the source itself states: Markdown, HTML, DOCX, JSON of a layout parser.

What such a source does not call a heading is none, however short or large it is set.
"""

from __future__ import annotations

from collections.abc import Sequence

from bookrag_fast.document.model import Block, BlockKind, Document
from bookrag_fast.document.numbering import Numbering, Scheme, parse_numbering
from bookrag_fast.index.candidates import UNNUMBERED
from bookrag_fast.index.section import Heading, plain_key

__all__ = ["headings_from_markup", "states_headings", "title_block"]

MIN_NUMBERED = 0.4  # of the headings, for numbers to tell the levels of a source that has but one


def states_headings(document: Document) -> bool:
    """Whether the source says which blocks are headings: some, and every one that looks so."""
    stated = False
    for block in document.blocks:
        if block.level is not None:
            stated = True
        elif block.kind is BlockKind.TITLE:
            return False
    return stated


def title_block(document: Document) -> int | None:
    """The stated heading that is the document's title and no chapter of it: the only one of the
    top level, before all others. None when there is no such heading."""
    stated = [(k, b) for k, b in enumerate(document.blocks) if b.level is not None]
    if len(stated) < 2 or document.title is None:
        return None
    at, first = stated[0]
    alone = all((b.level or 0) > (first.level or 0) for _, b in stated[1:])
    return at if alone and plain_key(first.text) == plain_key(document.title) else None


def headings_from_markup(document: Document) -> list[Heading]:
    """Every stated heading but the document's title. Levels may jump; `close_levels` mends that."""
    title = title_block(document)
    found = [
        (k, b)
        for k, b in enumerate(document.blocks)
        if b.level is not None and k != title and b.text.strip()
    ]
    levels = _levels([b for _, b in found])
    return [
        Heading(
            title=" ".join(block.text.split()),
            level=level,
            page=block.page,
            at=k,
            blocks=(k,),
            regions=block.regions,
            numbering=block.numbering,
            evidence=("markup",),
        )
        for (k, block), level in zip(found, levels, strict=True)
    ]


def _levels(blocks: Sequence[Block]) -> list[int]:
    """As stated; where all are the same (layout parsers often know no other), by numbering."""
    stated = [block.level or 1 for block in blocks]
    if len(set(stated)) != 1:
        return stated
    numbers = [parse_numbering(block.text) for block in blocks]
    depths = [_depth(n) for n in numbers]
    numbered = sum(d is not None for d in depths)
    if numbered < MIN_NUMBERED * len(blocks) or max((d or 0 for d in depths), default=0) < 2:
        return stated
    out: list[int] = []
    around = 0  # depth of the last numbered heading: what has no number stands inside it
    for block, depth in zip(blocks, depths, strict=True):
        if depth is not None:
            around = depth
        elif plain_key(block.text) in UNNUMBERED:
            around = 0
        out.append(depth or around + 1)
    return out


def _depth(number: Numbering | None) -> int | None:
    if number is None:
        return None
    if number.scheme in (Scheme.CHAPTER, Scheme.APPENDIX, Scheme.PART, Scheme.ITEM):
        return 1
    return number.depth if number.scheme is Scheme.DECIMAL and number.rest else None
