"""Tables out of rows whose cells stand in line, with or without rules."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from bookrag_fast.document.lines import Line, frame_to_page
from bookrag_fast.document.model import Cell
from bookrag_fast.document.rows import Row

__all__ = ["cells_of", "table_spans"]

MAX_CELL = 60  # characters, on average: longer "cells" are columns of text
MAX_PLAIN_ROWS = 2  # in a row, between rows of cells: wrapped cells and subheadings


def table_spans(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Ranges [first, last) of rows that make a table."""
    out: list[tuple[int, int]] = []
    at = 0
    while at < len(rows):
        if len(rows[at].cells) < 2:
            at += 1
            continue
        end = _span_end(rows, at)
        # A first row without numbers often heads the table: it has been taken by its cells.
        if _is_table(rows[at:end]):
            out.append((at, end))
            at = end
        else:
            at += 1
    return out


def _span_end(rows: Sequence[Row], first: int) -> int:
    """One past the last row that can belong to the table that starts at ``first``."""
    end = first + 1
    plain = 0
    left, right = rows[first].x0, rows[first].x1
    for k in range(first + 1, len(rows)):
        row, before = rows[k], rows[k - 1]
        if row.cells[0].pieces:
            break
        limit = 3.2 if len(row.cells) > 1 else 2.0
        if row.base - before.base > limit * max(row.size, before.size):
            break
        if len(row.cells) > 1:
            plain = 0
            end = k + 1
            left, right = min(left, row.x0), max(right, row.x1)
            continue
        plain += 1
        width = row.x1 - row.x0
        if plain > MAX_PLAIN_ROWS or width > 0.75 * (right - left) or row.x1 > right + row.size:
            break
    return end


def _is_table(rows: Sequence[Row]) -> bool:
    many = [row for row in rows if len(row.cells) > 1]
    if len(many) < 2:
        return False
    cells = [cell for row in many for cell in row.cells]
    mean = sum(len(cell.text) for cell in cells) / len(cells)
    if mean > MAX_CELL:
        return False
    if len(many) == 2 and max(len(row.cells) for row in many) < 3 and mean > 25:
        return False
    in_line = sum(_in_line(a, b) for a, b in itertools.pairwise(many))
    return in_line >= 0.5 * (len(many) - 1)


def _in_line(a: Row, b: Row) -> bool:
    """At least two cells of the rows stand under each other, by an edge or their middle."""
    tolerance = 0.6 * max(a.size, b.size)
    hits = 0
    for one in a.cells:
        for other in b.cells:
            if (
                abs(one.x0 - other.x0) < tolerance
                or abs(one.x1 - other.x1) < tolerance
                or abs(one.middle_x - other.middle_x) < tolerance
            ):
                hits += 1
                break
    return hits >= 2


def cells_of(rows: Sequence[Row]) -> tuple[Cell, ...]:
    """The grid of a table's rows. A cell over several columns keeps its span."""
    edges = _column_edges(rows)
    out: list[Cell] = []
    header = _header_rows(rows)
    for r, row in enumerate(rows):
        taken: dict[int, int] = {}
        for line in row.cells:
            covered = [
                c
                for c, (left, right) in enumerate(edges)
                if min(line.x1, right) - max(line.x0, left) > 0.3 * min(line.width, right - left)
            ]
            if not covered:
                covered = [min(range(len(edges)), key=lambda c: _distance(line, edges[c]))]
            column = covered[0]
            if column in taken:
                old = out[taken[column]]
                out[taken[column]] = Cell(
                    old.row, old.column, f"{old.text} {line.text}", 1, old.column_span,
                    old.header, old.bbox,
                )  # fmt: skip
                continue
            taken[column] = len(out)
            out.append(
                Cell(
                    row=r,
                    column=column,
                    text=line.text,
                    column_span=covered[-1] - column + 1,
                    header=r < header,
                    bbox=frame_to_page(line.frame, line.x0, line.y0, line.x1, line.y1),
                )
            )
    return tuple(out)


def _distance(line: Line, edge: tuple[float, float]) -> float:
    return abs(line.middle_x - (edge[0] + edge[1]) / 2)


def _column_edges(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Columns as the x ranges that cells cover, taken from the fuller rows."""
    most = max(len(row.cells) for row in rows)
    spans = sorted(
        (cell.x0, cell.x1) for row in rows if len(row.cells) >= 0.7 * most for cell in row.cells
    )
    edges: list[tuple[float, float]] = []
    for left, right in spans:
        if edges and left < edges[-1][1] - 0.5:
            edges[-1] = (edges[-1][0], max(edges[-1][1], right))
        else:
            edges.append((left, right))
    return edges


def _header_rows(rows: Sequence[Row]) -> int:
    """How many rows head the table: the leading ones without numbers, before some with numbers."""
    numeric = [sum(_is_number(c.text) for c in row.cells) > 0 for row in rows]
    if not any(numeric):
        return 1 if len(rows) > 1 else 0
    first = numeric.index(True)
    if first == 0:
        # Years head financial tables: "2022 2021 2020".
        return 1 if all(_is_year(c.text) for c in rows[0].cells) else 0
    return min(first, 3)


def _is_number(text: str) -> bool:
    digits = sum(c.isdigit() for c in text)
    return digits > 0 and digits * 2 >= len(text.replace(" ", "")) - 2 and not _is_year(text)


def _is_year(text: str) -> bool:
    return len(text) == 4 and text.isdigit() and text[:2] in ("19", "20")
