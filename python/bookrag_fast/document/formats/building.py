"""What every reader here yields, and blocks made the same way by all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bookrag_fast.document.model import BBox, Block, BlockKind, Cell, Page, Region
from bookrag_fast.document.numbering import parse_numbering

__all__ = ["RawCell", "Reading", "block", "grid", "heading", "table"]

MAX_COLUMNS = 1000  # as browsers bound colspan; what a wider span would cover is not there


@dataclass(slots=True)
class Reading:
    """A file's content before it is a Document: without its name and digest."""

    blocks: list[Block]
    title: str | None = None
    pages: tuple[Page, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class RawCell:
    """A cell as it stands in its row, before spans put it in a column."""

    text: str
    row_span: int = 1  # 0 reaches to the last row
    column_span: int = 1
    header: bool = False
    bbox: BBox | None = None


def block(kind: BlockKind, text: str, regions: tuple[Region, ...] = ()) -> Block:
    """A block that is no heading and no table."""
    numbered = kind in (BlockKind.TEXT, BlockKind.LIST)
    numbering = parse_numbering(text) if numbered else None
    return Block(
        kind,
        text,
        regions,
        line_count=text.count("\n") + 1,
        numbering=numbering.label if numbering else "",
    )


def heading(text: str, level: int, regions: tuple[Region, ...] = ()) -> Block:
    """``level`` is 1-based, as stated."""
    numbering = parse_numbering(text)
    return Block(
        BlockKind.TITLE,
        text,
        regions,
        numbering=numbering.label if numbering else "",
        level=level,
    )


def table(cells: Sequence[Cell], regions: tuple[Region, ...] = ()) -> Block:
    """A row a line, " | " between its cells, as tables of a PDF are told."""
    rows: dict[int, list[Cell]] = {}
    for cell in cells:
        rows.setdefault(cell.row, []).append(cell)
    lines = (
        " | ".join(" ".join(c.text.split()) for c in sorted(row, key=lambda c: c.column))
        for _, row in sorted(rows.items())
    )
    return Block(
        BlockKind.TABLE, "\n".join(lines), regions, line_count=len(rows), cells=tuple(cells)
    )


def grid(rows: Sequence[Sequence[RawCell]]) -> list[Cell]:
    """Cells with their columns, spans of earlier rows and cells kept free.

    Time O(cells + columns covered); a span is cut at the last row and at :data:`MAX_COLUMNS`, and
    what stands further right than that is put into the last column.
    """
    out: list[Cell] = []
    busy_until = [0] * MAX_COLUMNS  # column → first row in which it is free again
    for at, row in enumerate(rows):
        column = 0
        for raw in row:
            while column < MAX_COLUMNS - 1 and busy_until[column] > at:
                column += 1
            width = min(max(raw.column_span, 1), MAX_COLUMNS - column)
            height = raw.row_span if raw.row_span > 0 else len(rows)
            height = min(height, len(rows) - at)
            for covered in range(column, column + width):
                busy_until[covered] = at + height
            out.append(Cell(at, column, raw.text, height, width, raw.header, raw.bbox))
            column = min(column + width, MAX_COLUMNS - 1)
    return out
