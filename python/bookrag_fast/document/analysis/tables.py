"""Tables out of rows whose cells stand in line, with or without rules."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from bookrag_fast.document.analysis.cells import mend_wrapped
from bookrag_fast.document.analysis.joining import ends_sentence
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.analysis.rows import Row

__all__ = ["table_spans"]

MAX_CELL = 60  # characters, on average: longer "cells" are columns of text
MAX_PLAIN_ROWS = 2  # in a row, between rows of cells: subheadings
MAX_WRAPPED_ROWS = 6  # in a row, lines of a wrapped cell
MIN_WHITE = 0.4  # of the size: the white between two columns, shared by rows
MAX_SKEW = 0.15  # of the size: cells of a row stand on one baseline
MAX_SEEN = 60  # rows that tell how wide a column of text is
MAX_PROSE = 0.3  # of the cells go on in the cell below


def table_spans(rows: Sequence[Row], *, mono: bool = False) -> list[tuple[int, int]]:
    """Ranges [first, last) of rows that make a table.

    ``mono`` says that the document's running text is in a typewriter face; otherwise rows of it are
    code.
    """
    out: list[tuple[int, int]] = []
    at = 0
    while at < len(rows):
        if len(rows[at].cells) < 2:
            at += 1
            continue
        end = _span_end(rows, at)
        # A first row without numbers often heads the table: it has been taken by its cells.
        if _is_table(rows[at:end], mono):
            out.append((at, end))
            at = end
        else:
            at += 1
    return out


def _span_end(rows: Sequence[Row], first: int) -> int:
    """One past the last row that can belong to the table that starts at ``first``."""
    end = first + 1
    plain = wrapped = 0
    left, right = rows[first].x0, rows[first].x1
    full = rows[first]
    for k in range(first + 1, len(rows)):
        row, before = rows[k], rows[k - 1]
        if row.cells[0].stands_for:
            break
        limit = 3.2 if len(row.cells) > 1 else 2.0
        step = row.base - before.base
        if step > limit * max(row.size, before.size):
            break
        if len(row.cells) > 1:
            plain = wrapped = 0
            end = k + 1
            left, right = min(left, row.x0), max(right, row.x1)
            full = row
            continue
        if _wraps(full, row) and step < 1.5 * row.size and row.x1 < right + row.size:
            wrapped += 1
            if wrapped > MAX_WRAPPED_ROWS:
                break
            if end == k:
                end = k + 1
            continue
        plain += 1
        width = row.x1 - row.x0
        if plain > MAX_PLAIN_ROWS or width > 0.75 * (right - left) or row.x1 > right + row.size:
            break
    return end


def _wraps(full: Row, row: Row) -> bool:
    """Whether a lone line goes on below a cell of a row other than its first."""
    return any(abs(row.x0 - cell.x0) < 0.6 * row.size for cell in full.cells[1:])


def _is_table(rows: Sequence[Row], mono: bool) -> bool:
    many = [row for row in mend_wrapped(rows) if len(row.cells) > 1]
    if len(many) < 2 or _is_prose(many):
        return False
    many = [row for row in rows if len(row.cells) > 1]
    cells = [cell for row in many for cell in row.cells]
    mean = sum(len(cell.text) for cell in cells) / len(cells)
    if mean > MAX_CELL or _is_code(many, mono):
        return False
    if len(many) == 2 and max(len(row.cells) for row in many) < 3:
        numbers = sum(any(c.isdigit() for c in cell.text) for cell in cells)
        if mean > 25 or numbers * 4 < len(cells):
            return False
    if sum(_on_one_line(row) for row in many) < 0.6 * len(many):
        return False
    pairs = list(itertools.pairwise(many))
    in_line = sum(_in_line(a, b) and _shares_white(a, b) for a, b in pairs)
    return in_line >= (0.5 if len(many) > 3 else 0.99) * len(pairs)


def _on_one_line(row: Row) -> bool:
    bases = [cell.base for cell in row.cells]
    return max(bases) - min(bases) < MAX_SKEW * row.size


def _is_code(many: Sequence[Row], mono: bool) -> bool:
    return not mono and 2 * sum(all(c.mono for c in row.cells) for row in many) > len(many)


def _is_prose(many: Sequence[Row]) -> bool:
    """Columns of text side by side: a row that starts anew all the same goes on from the one above.

    The wrapped cells of a table go on too, but its first column does not start then.
    """
    seen = goes_on = 0
    for a, b in itertools.pairwise(many):
        if not _overlap(a.cells[0], b.cells[0]):
            continue
        for below in b.cells:
            above = next((c for c in a.cells if _overlap(c, below)), None)
            if above is None:
                continue
            seen += 1
            if len(above.text) <= 15 or not below.text[0].islower() or ends_sentence(above.text):
                continue
            lane = [c for row in many[:MAX_SEEN] for c in row.cells if _overlap(c, below)]
            left = min((c.x0 for c in lane), default=below.x0)
            right = max((c.x1 for c in lane), default=below.x1)
            goes_on += above.x1 > right - 0.15 * (right - left)
    return goes_on > MAX_PROSE * seen


def _overlap(a: Line, b: Line) -> bool:
    return min(a.x1, b.x1) > max(a.x0, b.x0)


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


def _shares_white(a: Row, b: Row) -> bool:
    """Whether a gap between cells goes through both rows.

    The edges of justified text stand in line whatever is between them; its gaps do not.
    """
    least = MIN_WHITE * max(a.size, b.size)
    gaps = [[(x.x1, y.x0) for x, y in itertools.pairwise(row.cells)] for row in (a, b)]
    return any(min(p[1], q[1]) - max(p[0], q[0]) > least for p in gaps[0] for q in gaps[1])
