"""MinerU's content_list.json → blocks.

A flat list in reading order. It states pages from 0, boxes in thousandths of the page (older
versions none), and the levels of headings, but no size of a page.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bookrag_fast.document.formats.boxes import MAX_PAGES, box_of, sheets, text_of, whole_of
from bookrag_fast.document.formats.building import Reading, block, heading
from bookrag_fast.document.formats.html import html_target
from bookrag_fast.document.model import BBox, Block, BlockKind, Region

__all__ = ["read_mineru"]

_SIDE = 1000.0  # MinerU's unit is a thousandth of the page
_WHOLE_PAGE = BBox(0.0, 0.0, _SIDE, _SIDE)
_NOTE = "boxes are in thousandths of the page, whose size the file does not state"
# Running heads, page numbers and marginal marks are none of the text.
_FURNITURE = frozenset(
    "header footer page_header page_footer page_number aside_text discarded abandon".split()
)
_MAX_LEVEL = 9
_MAX_KINDS = 12  # that a warning names each


def read_mineru(items: list[dict[str, Any]]) -> Reading:
    """Content of the list. An item of an unknown type is read as what text it has."""
    blocks: list[Block] = []
    known: dict[int, tuple[float, float]] = {}
    unknown: dict[str, int] = {}
    for item in items:
        if item["type"] in _FURNITURE:
            continue
        regions = _regions(item)
        known.update((r.page, (_SIDE, _SIDE)) for r in regions)
        made = [b for b in _blocks(item) if b.text or b.kind is BlockKind.IMAGE]
        if not made:
            unknown[item["type"]] = unknown.get(item["type"], 0) + 1
        blocks += (replace(b, regions=regions) for b in made)
    warnings = [
        f"{count} items of type {kind[:80]!r} have nothing to read"
        for kind, count in itertools.islice(unknown.items(), _MAX_KINDS)
    ]
    if len(unknown) > _MAX_KINDS:
        warnings.append(f"nor have those of {len(unknown) - _MAX_KINDS} other types")
    first = blocks[0] if blocks else None
    titled = first is not None and first.level == 1 and not first.numbering
    title = first.text if first is not None and titled else None
    return Reading(blocks, title, sheets(known, _NOTE), tuple(warnings))


def _regions(item: dict[str, Any]) -> tuple[Region, ...]:
    page = whole_of(item.get("page_idx"))
    if page is None or not 0 <= page < MAX_PAGES:
        return ()
    stated = item.get("bbox")
    box = box_of(stated) if isinstance(stated, list) else None
    return (Region(page + 1, box or _WHOLE_PAGE),)


def _blocks(item: dict[str, Any]) -> Iterator[Block]:
    kind = item["type"]
    text = text_of(item.get("text"))
    if kind == "table":
        yield from _table(item)
    elif kind in ("image", "chart", "seal"):
        yield block(BlockKind.IMAGE, text_of(item.get("content")) or text)
        yield from _around(item, (kind, "img"))
    elif kind == "equation":
        yield block(BlockKind.EQUATION, text.strip("$").strip())
    elif kind in ("code", "algorithm"):
        yield block(BlockKind.CODE, text_of(item.get("code_body")) or text)
        for caption in _texts(item, ("code_caption",)):
            yield block(BlockKind.TEXT, caption)
    elif kind == "list":
        lines = text_of(item.get("list_items")) or text
        if lines:
            yield block(BlockKind.LIST, lines)
    elif text:
        level = whole_of(item.get("text_level")) or (1 if kind == "title" else 0)
        if level > 0:
            yield heading(" ".join(text.split()), min(level, _MAX_LEVEL))
        else:
            yield block(BlockKind.FOOTNOTE if "footnote" in kind else BlockKind.TEXT, text)


def _table(item: dict[str, Any]) -> Iterator[Block]:
    """The table of its HTML; a body that is none (one column, plain text) as what it is."""
    yield from html_target(text_of(item.get("table_body"))).blocks
    yield from _around(item, ("table",))


def _around(item: dict[str, Any], names: tuple[str, ...]) -> Iterator[Block]:
    """Captions, then footnotes."""
    for caption in _texts(item, tuple(f"{name}_caption" for name in names)):
        yield block(BlockKind.CAPTION, caption)
    for note in _texts(item, tuple(f"{name}_footnote" for name in names)):
        yield block(BlockKind.FOOTNOTE, note)


def _texts(item: dict[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        if text := text_of(item.get(key)):
            yield " ".join(text.split())
