"""The grid of a table: rows of cells with wrapped lines put back, columns, spans, header rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from bookrag_fast.document.analysis.frames import frame_to_page
from bookrag_fast.document.analysis.joining import join_two
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.analysis.rows import Row
from bookrag_fast.document.analysis.spans import is_number, is_year, regular_spans, stands_over
from bookrag_fast.document.model import Cell

__all__ = ["cells_of", "mend_wrapped"]

TIGHT = 1.25  # of the smallest step: lines of one cell
SPACED = 1.2  # of the smallest step: from row to row, where rows stand apart


def mend_wrapped(rows: Sequence[Row]) -> list[Row]:
    """Rows of a table with the further lines of wrapped cells put into the row they belong to.

    Where rows stand further apart than the lines of a cell, the distance tells. Where all lines
    stand alike, a lone line that leaves the first column empty goes on from above.
    """
    steps = [b.base - a.base for a, b in itertools.pairwise(rows)]
    inside = [s for s, row in zip(steps, rows[1:], strict=True) if s > 0.8 * row.size]
    if not inside:
        return list(rows)
    leading = min(inside)
    most = max(len(row.cells) for row in rows)
    between = [s for s, row in zip(steps, rows[1:], strict=True) if len(row.cells) > 0.6 * most]
    spaced = bool(between) and median(between) > SPACED * leading
    first_column = max(row.cells[0].x1 for row in rows if len(row.cells) > 0.6 * most)
    left = min(row.x0 for row in rows)
    out = [Row(list(rows[0].cells))]
    for step, row in zip(steps, rows[1:], strict=True):
        tight = 0.8 * row.size < step <= TIGHT * leading and step < 1.6 * row.size
        in_first = row.x0 < min(first_column, left + 2 * row.size)
        lone = len(row.cells) == 1 and not in_first and not is_number(row.cells[0].text)
        fewer = len(row.cells) < most and (spaced or lone)
        if tight and fewer and all(_above(out[-1], cell) is not None for cell in row.cells):
            for cell in row.cells:
                k = _above(out[-1], cell)
                if k is not None:
                    out[-1].cells[k] = _stacked(out[-1].cells[k], cell)
        else:
            out.append(Row(list(row.cells)))
    return out


def _above(row: Row, cell: Line) -> int | None:
    """The cell of a row that stands over ``cell``."""
    shared = [min(c.x1, cell.x1) - max(c.x0, cell.x0) for c in row.cells]
    best = max(range(len(shared)), key=shared.__getitem__)
    return best if shared[best] > 0 else None


def _stacked(upper: Line, lower: Line) -> Line:
    return replace(
        upper,
        text=join_two(upper.text, lower.text),
        x0=min(upper.x0, lower.x0),
        x1=max(upper.x1, lower.x1),
        y1=max(upper.y1, lower.y1),
    )


def cells_of(rows: Sequence[Row]) -> tuple[Cell, ...]:
    """The grid of a table's rows. A cell over several columns keeps its span."""
    edges = _column_edges(rows)
    out: list[Cell] = []
    header = _header_rows(rows)
    for r, row in enumerate(rows):
        taken: dict[int, int] = {}
        places = [_columns_under(line, edges) for line in row.cells]
        if r < header:
            places = _widened(row, places, edges)
        for line, (column, last) in zip(row.cells, places, strict=True):
            if column in taken:
                old = out[taken[column]]
                box = frame_to_page(line.frame, line.x0, line.y0, line.x1, line.y1)
                out[taken[column]] = Cell(
                    old.row, old.column, f"{old.text} {line.text}", 1, old.column_span,
                    old.header, old.bbox.union(box) if old.bbox else box,
                )  # fmt: skip
                continue
            taken[column] = len(out)
            out.append(
                Cell(
                    row=r,
                    column=column,
                    text=line.text,
                    column_span=last - column + 1,
                    header=r < header,
                    bbox=frame_to_page(line.frame, line.x0, line.y0, line.x1, line.y1),
                )
            )
    return tuple(out)


def _columns_under(line: Line, edges: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """The first and the last column that a text reaches into, else the nearest one."""
    covered = [
        c
        for c, (left, right) in enumerate(edges)
        if min(line.x1, right) - max(line.x0, left) > 0.3 * min(line.width, right - left)
    ]
    if covered:
        return covered[0], covered[-1]
    nearest = min(range(len(edges)), key=lambda c: _distance(line, edges[c]))
    return nearest, nearest


def _widened(
    row: Row, places: list[tuple[int, int]], edges: Sequence[tuple[float, float]]
) -> list[tuple[int, int]]:
    """The places of a header row's cells, grown over the columns that they are centred on."""
    firsts = [first for first, _ in places]
    if len(places) >= len(edges) or sorted(set(firsts)) != firsts:
        return places
    grown = regular_spans(firsts, len(edges)) if _starts_columns(row, firsts, edges) else []
    grown = grown or stands_over([line.middle_x for line in row.cells], edges, firsts)
    return [(min(a, b), max(c, d)) for (a, c), (b, d) in zip(places, grown, strict=True)]


def _starts_columns(row: Row, firsts: Sequence[int], edges: Sequence[tuple[float, float]]) -> bool:
    """Whether every cell begins where its column does."""
    return all(
        abs(line.x0 - edges[first][0]) < 0.6 * line.size
        for line, first in zip(row.cells, firsts, strict=True)
    )


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
    numeric = [sum(is_number(c.text) for c in row.cells) > 0 for row in rows]
    if not any(numeric):
        return 1 if len(rows) > 1 else 0
    first = numeric.index(True)
    if first == 0:
        # Years head financial tables: "2022 2021 2020".
        return 1 if all(is_year(c.text) for c in rows[0].cells) else 0
    # A lone cell below the headers names a group of rows: "Assets".
    group = next((k for k in range(1, first) if len(rows[k].cells) == 1), first)
    return min(first, 3) if len(rows[0].cells) == 1 else min(group, 3)
