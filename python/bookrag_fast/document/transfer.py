"""A Document as JSON and back, to cross from the process that reads a file to the one that asked.

JSON, because what comes out of a process that parses hostile files is data, never code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from bookrag_fast.document.model import (
    Annotation,
    BBox,
    Block,
    BlockKind,
    Cell,
    Document,
    Lead,
    OutlineEntry,
    Page,
    PageStatus,
    Region,
    Style,
)

__all__ = [
    "annotations_from_json",
    "annotations_to_json",
    "cells_from_json",
    "cells_to_json",
    "from_json",
    "style_from_json",
    "style_to_json",
    "to_json",
]


def to_json(document: Document) -> bytes:
    """Compact ASCII; what a damaged font made of a text (lone surrogates) survives as escapes."""
    return json.dumps(
        {
            "name": document.name,
            "sha256": document.sha256,
            "title": document.title,
            "pages": [
                (p.number, p.label, p.width, p.height, p.status.value, p.note)
                for p in document.pages
            ],
            "blocks": [_block_to(b) for b in document.blocks],
            "outline": [(e.title, e.level, e.page, e.top) for e in document.outline],
            "warnings": document.warnings,
            "span": document.span,
            "annotations": annotations_to_json(document.annotations),
            "tags": [(e.title, e.level, e.page, e.top) for e in document.tags],
        },
        separators=(",", ":"),
    ).encode("ascii")


def from_json(data: bytes) -> Document:
    """Raises ValueError, TypeError or LookupError for what `to_json` did not write."""
    found = json.loads(data)
    return Document(
        name=found["name"],
        sha256=found["sha256"],
        title=found["title"],
        pages=tuple(
            Page(number, label, width, height, PageStatus(status), note)
            for number, label, width, height, status, note in found["pages"]
        ),
        blocks=tuple(_block_from(b) for b in found["blocks"]),
        outline=tuple(OutlineEntry(*entry) for entry in found["outline"]),
        warnings=tuple(found["warnings"]),
        annotations=tuple(annotations_from_json(found["annotations"])),
        span=tuple(found["span"]) if found["span"] else None,
        tags=tuple(OutlineEntry(*entry) for entry in found["tags"]),
    )


def annotations_to_json(annotations: Iterable[Annotation]) -> list[tuple[Any, ...]]:
    return [(a.page, a.kind, a.bbox, a.text, a.name, a.target) for a in annotations]


def annotations_from_json(values: list[Any]) -> list[Annotation]:
    return [
        Annotation(page, kind, BBox(*box), text, name, target)
        for page, kind, box, text, name, target in values
    ]


def style_to_json(s: Style) -> tuple[Any, ...]:
    return (s.size, s.bold, s.italic, s.family, s.color, s.indent, s.gap_before, s.centered)


def style_from_json(values: list[Any]) -> Style:
    return Style(*values)


def cells_to_json(cells: tuple[Cell, ...]) -> list[tuple[Any, ...]]:
    return [(c.row, c.column, c.text, c.row_span, c.column_span, c.header, c.bbox) for c in cells]


def cells_from_json(values: list[Any]) -> tuple[Cell, ...]:
    return tuple(
        Cell(row, column, words, row_span, column_span, header, box and BBox(*box))
        for row, column, words, row_span, column_span, header, box in values
    )


def _block_to(b: Block) -> tuple[Any, ...]:
    return (
        b.kind.value,
        b.text,
        [(r.page, *r.bbox) for r in b.regions],
        style_to_json(b.style),
        b.line_count,
        b.numbering,
        cells_to_json(b.cells),
        b.level,
        b.lead,
        b.seen_as,
    )


def _block_from(values: list[Any]) -> Block:
    kind, text, regions, style, line_count, numbering, cells, level, lead, seen_as = values
    return Block(
        BlockKind(kind),
        text,
        tuple(Region(page, BBox(*box)) for page, *box in regions),
        style_from_json(style),
        line_count,
        numbering,
        cells_from_json(cells),
        level,
        lead and Lead(*lead),
        seen_as,
    )
