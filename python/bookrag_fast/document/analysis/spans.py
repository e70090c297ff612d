"""Header rows of a table's grid, and the columns that a header cell stands over."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bookrag_fast.document.model import Cell

__all__ = ["header_rows", "is_number", "is_year", "regular_spans", "stands_over"]

MAX_HEADER_ROWS = 4
REACH = 0.2  # of the columns' width that the middle of a header may be off theirs

_NAMED = re.compile(r"[^\W\d_]{1,3}\.?\s?\d{1,2}")  # "Q1", "H2", "No. 3"


def header_rows(cells: Sequence[Cell]) -> int:
    """How many rows head a grid: the first unless it is mostly numbers, and those that a header
    cell over several columns or rows is divided by. A row with numbers is none of these."""
    rows = 1 + max((c.row for c in cells), default=-1)
    numeric = {c.row for c in cells if is_number(c.text)}
    data = [c for c in cells if c.row == 0 and c.column > 0]
    numbers = sum(is_number(c.text) for c in data)
    count = 1 if rows > 1 and 2 * numbers <= len(data) else 0
    while 0 < count < min(MAX_HEADER_ROWS, rows - 1) and count not in numeric:
        above = [c for c in cells if c.row < count]
        tall = any(c.row + c.row_span > count for c in above)
        divided = any(
            c.row == count - 1
            and c.column_span > 1
            and sum(b.row == count and c.column <= b.column < c.column + c.column_span
                    for b in cells) > 1
            for c in above
        )  # fmt: skip
        if not tall and not divided:
            break
        count += 1
    return count


def stands_over(
    middles: Sequence[float], edges: Sequence[tuple[float, float]], taken: Sequence[int]
) -> list[tuple[int, int]]:
    """For each cell of a header row the first and the last column that it stands over.

    Args:
        middles: of the cells, left to right.
        edges: left and right of the columns.
        taken: the column that each cell stands in by itself, ascending.

    A cell that is centred over several columns takes all of them, as long as none of them has a
    cell of its own in the row.
    """
    out: list[tuple[int, int]] = []
    for k, (middle, column) in enumerate(zip(middles, taken, strict=True)):
        low = taken[k - 1] + 1 if k else 0
        low = max(low, out[-1][1] + 1) if out else low
        high = taken[k + 1] - 1 if k + 1 < len(taken) else len(edges) - 1
        best, off = (column, column), _off(middle, edges, column, column)
        for first in range(low, column + 1):
            for last in range(column, high + 1):
                here = _off(middle, edges, first, last)
                if here < REACH * (edges[last][1] - edges[first][0]) and here < off - 2.0:
                    best, off = (first, last), here
        out.append(best)
    return out


def regular_spans(taken: Sequence[int], columns: int) -> list[tuple[int, int]]:
    """The columns of header cells that begin with every second, third, … column up to the last
    one, the first column of row names apart; empty where they do not.

    Args:
        taken: the column that each cell begins with, ascending.
        columns: of the table.
    """
    named = [0] if taken[0] == 0 else []
    over = list(taken[len(named) :])
    if len(over) < 2 or over[0] != 1:
        return []
    step = over[1] - over[0]
    if step < 2 or over != list(range(1, columns, step)) or (columns - 1) % step:
        return []
    return [(0, 0)] * len(named) + [(first, first + step - 1) for first in over]


def _off(middle: float, edges: Sequence[tuple[float, float]], first: int, last: int) -> float:
    return abs(middle - (edges[first][0] + edges[last][1]) / 2)


def is_number(text: str) -> bool:
    """Mostly digits, and neither a year nor a name such as "Q1"."""
    digits = sum(c.isdigit() for c in text)
    return (
        digits > 0
        and digits * 2 >= len(text.replace(" ", "")) - 2
        and not is_year(text)
        and not _NAMED.fullmatch(text)
    )


def is_year(text: str) -> bool:
    return len(text) == 4 and text.isdigit() and text[:2] in ("19", "20")
