"""Tables with rules: grids of lines on a page, and the lines of text in their cells."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import dataclass, replace
from statistics import median

from bookrag_fast.document.analysis.joining import join_lines
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.analysis.spans import header_rows
from bookrag_fast.document.model import BBox, BlockKind, Cell

__all__ = ["Grid", "ruled_grids", "take_tables"]

TOLERANCE = 3.0  # points between two rules that are one edge
MIN_SHARE = 0.25  # of the grid's side that the rules of an edge cover together
MIN_UPRIGHT = 0.6  # of the grid's height that an upright rule covers, for merged cells
MIN_DRAWN = 0.4  # of a cell's edge
MAX_CELLS = 3000
MAX_WHITE = 1.3  # of a row's height: a row that is not drawn between two that are
ONE_ROW = 0.5  # of the size, between baselines
SAME_COLUMN = 7.0  # points between the edges of one column in two parts of a table
MIN_FILLED = 0.4  # of the cells; the grid of a chart is empty
MAX_EMPTY = 0.25  # of the columns
MIN_GRID = 0.75  # of the lines × columns between two rules that hold text, for rows of text
MAX_CELL_TEXT = 120  # characters on average; more is a page laid out in boxes


@dataclass(frozen=True, slots=True)
class Grid:
    """Edges of columns and rows in points, ascending.

    ``open`` holds (edge, column) where nothing is drawn between a cell and the one above it: they
    are one merged cell. Edges count from 0, the top. ``wide`` holds (edge, row) where nothing is
    drawn between a cell and the one to the left of it, edges counting from the left.
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    open: frozenset[tuple[int, int]] = frozenset()
    wide: frozenset[tuple[int, int]] = frozenset()

    def columns_of(self, row: int, column: int) -> tuple[int, int]:
        """The first and the last column of the merged cell that a cell belongs to."""
        first = last = column
        while first > 0 and (first, row) in self.wide:
            first -= 1
        while last + 2 < len(self.xs) and (last + 1, row) in self.wide:
            last += 1
        return first, last

    def top_of(self, row: int, column: int) -> int:
        """The first row of the merged cell that a cell belongs to."""
        while row > 0 and (row, column) in self.open:
            row -= 1
        return row

    def bottom_of(self, row: int, column: int) -> int:
        """The last row of that cell."""
        while row + 2 < len(self.ys) and (row + 1, column) in self.open:
            row += 1
        return row

    def within(self, line: Line) -> bool:
        """Whether its middle is in the box of a line."""
        x, y = (self.xs[0] + self.xs[-1]) / 2, (self.ys[0] + self.ys[-1]) / 2
        return line.x0 <= x <= line.x1 and line.y0 <= y <= line.y1

    def cell_at(self, x: float, y: float) -> tuple[int, int] | None:
        """(row, column), None outside."""
        if not (self.xs[0] - 1 <= x <= self.xs[-1] + 1 and self.ys[0] - 1 <= y <= self.ys[-1] + 1):
            return None
        row = min(max(bisect_right(self.ys, y) - 1, 0), len(self.ys) - 2)
        column = min(max(bisect_right(self.xs, x) - 1, 0), len(self.xs) - 2)
        return row, column


def ruled_grids(rules: list[BBox], shapes: list[BBox], regions: list[BBox]) -> list[Grid]:
    """Grids among the drawn regions of a page: at least two rows and two columns."""
    if len(rules) + 4 * len(shapes) < 5 or len(rules) + len(shapes) > 8000:
        return []
    across = [(b.y0 + b.y1, b.x0, b.x1) for b in rules if b.width > b.height]
    down = [(b.x0 + b.x1, b.y0, b.y1) for b in rules if b.height >= b.width]
    for b in shapes:
        if b.width > 8 and b.height > 6:
            across += [(2 * b.y0, b.x0, b.x1), (2 * b.y1, b.x0, b.x1)]
            down += [(2 * b.x0, b.y0, b.y1), (2 * b.x1, b.y0, b.y1)]
    out = []
    for region in regions:
        if region.width < 60 or region.height < 20:
            continue
        left, top = region.x0 - 7, region.y0 - 7
        right, bottom = region.x1 + 7, region.y1 + 7
        ys = _edges(
            [
                (y / 2, b - a)
                for y, a, b in across
                if top < y / 2 < bottom and a > left and b < right
            ],
            MIN_SHARE * region.width,
        )
        upright = [
            (x / 2, b - a) for x, a, b in down if left < x / 2 < right and a > top and b < bottom
        ]
        xs = _edges(upright, MIN_SHARE * region.height)
        if len(ys) < 3 or len(xs) < 1:
            continue
        # Tables are often open at the sides.
        ends = [(a, b) for y, a, b in across if top < y / 2 < bottom and a > left and b < right]
        first, last = min(a for a, _ in ends), max(b for _, b in ends)
        if xs[0] - first > 12:
            xs.insert(0, first)
        if last - xs[-1] > 12:
            xs.append(last)
        if len(xs) >= 3 and (len(xs) - 1) * (len(ys) - 1) <= MAX_CELLS:
            # Merged cells stand between upright rules; rules under numbers only merge nothing.
            strong = _edges(upright, MIN_UPRIGHT * region.height)
            merged = _open_edges(xs, ys, across) if len(strong) > 2 else frozenset()
            # An edge that is drawn along most of the table is missing where a cell goes over it.
            drawn = {k for k, x in enumerate(xs) if any(abs(x - s) <= TOLERANCE for s in strong)}
            wide = frozenset((k, row) for k, row in _open_edges(ys, xs, down) if k in drawn)
            out.append(Grid(tuple(xs), tuple(ys), merged, wide))
    return out


def _open_edges(
    xs: list[float], ys: list[float], across: list[tuple[float, float, float]]
) -> frozenset[tuple[int, int]]:
    """(edge, column) of the inner edges where no rule runs along most of the column."""
    out: set[tuple[int, int]] = set()
    for edge in range(1, len(ys) - 1):
        low, high = 2 * (ys[edge] - TOLERANCE), 2 * (ys[edge] + TOLERANCE)
        here = _united([(a, b) for y, a, b in across if low <= y <= high])
        for column, (left, right) in enumerate(itertools.pairwise(xs)):
            drawn = sum(max(0.0, min(b, right) - max(a, left)) for a, b in here)
            if drawn < MIN_DRAWN * (right - left):
                out.add((edge, column))
    return frozenset(out)


def _united(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans that overlap put together: rules are often drawn twice, or in pieces."""
    out: list[tuple[float, float]] = []
    for left, right in sorted(spans):
        if out and left <= out[-1][1] + 1.0:
            out[-1] = (out[-1][0], max(out[-1][1], right))
        else:
            out.append((left, right))
    return out


def _edges(found: list[tuple[float, float]], least: float) -> list[float]:
    """Places where rules of together at least that length stand."""
    out: list[float] = []
    total, start, last = 0.0, 0.0, -1e9
    for place, length in [*sorted(found), (1e9, 0.0)]:
        if place - last > TOLERANCE:
            if total >= least:
                out.append((start + last) / 2)
            total, start = 0.0, place
        total, last = total + length, place
    return out


def take_tables(lines: list[Line], grids: list[Grid]) -> tuple[list[Line], list[Line]]:
    """(lines outside tables, one stand-in line a table).

    A stand-in has the table's box and text, and its lines as ``pieces``; ``cells_of_grid`` makes
    the cells of it.
    """
    rest = lines
    tables: list[Line] = []
    for grid in _stacked(grids, lines):
        inside: list[tuple[int, int, Line]] = []
        outside: list[Line] = []
        for line in rest:
            cell = grid.cell_at(line.middle_x, line.middle) if line.frame == 0 else None
            if cell is None:
                outside.append(line)
            else:
                inside.append((*cell, line))
        cells = cells_of_grid(grid, inside)
        if (
            _stands_apart(grid, cells)
            or not _is_table(grid, cells)
            or _holds_headings([line for _, _, line in inside])
        ):
            continue
        rest = outside
        size = inside[0][2].size
        tables.append(
            Line(
                text=_text_of(cells), x0=grid.xs[0], y0=grid.ys[0], x1=grid.xs[-1], y1=grid.ys[-1],
                base=grid.ys[0] + size, size=size, bold=False, italic=False, mono=False,
                family=inside[0][2].family, color=0, frame=0,
                stands_for=BlockKind.TABLE, pieces=tuple(line for _, _, line in inside),
                cells=cells,
            )
        )  # fmt: skip
    return rest, tables


def _stacked(grids: list[Grid], lines: list[Line]) -> list[Grid]:
    """Grids of the same columns one row apart as one: where every second row is shaded, a white
    row parts what is drawn."""
    out: list[Grid] = []
    for grid in sorted(grids, key=lambda g: g.ys[0]):
        above = next((k for k, upper in enumerate(out) if _goes_on(upper, grid, lines)), None)
        if above is None:
            out.append(grid)
            continue
        upper = out[above]
        edges = len(upper.ys)
        xs = upper.xs if edges >= len(grid.ys) else grid.xs
        lower_open = {(edge + edges, column) for edge, column in grid.open}
        out[above] = Grid(xs, upper.ys + grid.ys, upper.open | lower_open)
    return out


def _goes_on(upper: Grid, lower: Grid, lines: list[Line]) -> bool:
    """Whether only a white row stands between two grids: one line of text, in several columns."""
    top, bottom = upper.ys[-1], lower.ys[0]
    row = median(b - a for g in (upper, lower) for a, b in itertools.pairwise(g.ys))
    if (
        not TOLERANCE < bottom - top < MAX_WHITE * row
        or len(upper.xs) != len(lower.xs)
        or any(abs(a - b) > SAME_COLUMN for a, b in zip(upper.xs, lower.xs, strict=True))
    ):
        return False
    between = Grid(upper.xs, (top, bottom))
    found = [
        (cell[1], line)
        for line in lines
        if line.frame == 0
        and top < line.middle < bottom
        and (cell := between.cell_at(line.middle_x, line.middle)) is not None
    ]
    bases = [line.base for _, line in found]
    return (
        len({column for column, _ in found}) > 1
        and max(bases) - min(bases) < ONE_ROW * found[0][1].size
    )


def cells_of_grid(grid: Grid, inside: list[tuple[int, int, Line]]) -> tuple[Cell, ...]:
    """Cells of the lines in a grid, merged cells with their spans."""
    split = _split_rows(grid, inside)
    by_row: dict[int, list[tuple[int, Line]]] = {}
    merged: dict[tuple[int, int], list[Line]] = {}
    for row, column, line in inside:
        first = grid.cell_at(line.x0 + 2, line.middle)
        start = first[1] if first is not None else column
        if row not in split:
            start = grid.columns_of(row, start)[0]
        top = grid.top_of(row, start)
        by_row.setdefault(top, [])
        if grid.bottom_of(row, start) > top:
            merged.setdefault((top, start), []).append(line)
        else:
            by_row[row].append((start, line))
    names: dict[int, int] = {}  # ruled row → its first row of text
    count = 0
    found: list[tuple[int, int, list[Line], float, float, int]] = []
    for row, of_row in sorted(by_row.items()):
        names[row] = count
        cuts = [grid.ys[row], *_text_rows(of_row), grid.ys[row + 1]]
        for top_y, bottom_y in itertools.pairwise(cuts):
            by_cell: dict[int, list[Line]] = {}
            for column, line in of_row:
                if len(cuts) == 2 or top_y <= line.base < bottom_y:
                    by_cell.setdefault(column, []).append(line)
            found += [(count, k, lines, top_y, bottom_y, 1) for k, lines in by_cell.items()]
            count += 1
    for (row, column), lines in merged.items():
        below = grid.bottom_of(row, column)
        after = min((names[r] for r in names if r > below), default=count)
        span = max(1, after - names[row])
        found.append((names[row], column, lines, grid.ys[row], grid.ys[below + 1], span))
    out: list[Cell] = []
    for row, column, lines, top_y, bottom_y, row_span in sorted(found, key=lambda x: x[:2]):
        lines.sort(key=lambda x: (round(x.base / max(x.size, 1.0)), x.x0))
        last = grid.cell_at(max(x.x1 for x in lines) - 2, lines[0].middle)
        end = last[1] if last is not None else column
        ruled = grid.cell_at(grid.xs[column] + 2, (top_y + bottom_y) / 2)
        if ruled is not None and ruled[0] not in split:
            end = max(end, grid.columns_of(ruled[0], column)[1])
        span = max(1, end - column + 1)
        box = BBox(grid.xs[column], top_y, grid.xs[column + span], bottom_y)
        text = join_lines(x.text for x in lines)
        out.append(Cell(row, column, text, row_span, span, False, box))
    heads = header_rows(out)
    return tuple(replace(c, header=c.row < heads) for c in out)


def _split_rows(grid: Grid, inside: list[tuple[int, int, Line]]) -> set[int]:
    """Rows where texts stand side by side in what would be one merged cell: rules are left out
    there for looks."""
    seen: dict[tuple[int, int], list[Line]] = {}
    out: set[int] = set()
    for row, column, line in inside:
        first, last = grid.columns_of(row, column)
        if first == last:
            continue
        others = seen.setdefault((row, first), [])
        if any(abs(line.base - x.base) < 0.5 * line.size for x in others):
            out.add(row)
        others.append(line)
    return out


def _text_rows(of_row: list[tuple[int, Line]]) -> list[float]:
    """Where rows of text part between two rules: many tables have rules around the header only.

    Wrapped cells differ in their number of lines; rows of cells stand on common baselines, with a
    line in nearly every column.
    """
    bases: list[list[tuple[int, Line]]] = []
    for column, line in sorted(of_row, key=lambda x: x[1].base):
        if bases and line.base - bases[-1][0][1].base < 0.35 * line.size:
            bases[-1].append((column, line))
        else:
            bases.append([(column, line)])
    columns = {column for column, _ in of_row}
    filled = [len({column for column, _ in line}) for line in bases]
    if len(bases) < 2 or len(columns) < 2 or sum(filled) < MIN_GRID * len(bases) * len(columns):
        return []
    numbers = sum(any(c.isdigit() for c in line.text) for _, line in of_row)
    if len(columns) < 3 and numbers * 3 < len(of_row):
        return []
    first = min(columns)
    starts = [line for line in bases if any(column == first for column, _ in line)]
    return [min(x.y0 for _, x in line) for line in starts[1:]]


def _holds_headings(lines: list[Line]) -> bool:
    """Larger type among the rest: a page laid out in boxes, not a table."""
    usual = median(line.size for line in lines)
    return any(line.size > 1.22 * usual and len(line.text) > 3 for line in lines)


def _is_table(grid: Grid, cells: tuple[Cell, ...]) -> bool:
    if len({c.row for c in cells}) < 2 or len({c.column for c in cells}) < 2:
        return False
    columns = len(grid.xs) - 1
    covered = sum(c.column_span * c.row_span for c in cells)
    size = len({c.row for c in cells}) * columns
    mean = sum(len(c.text) for c in cells) / len(cells)
    return covered >= MIN_FILLED * size and mean <= MAX_CELL_TEXT


def _stands_apart(grid: Grid, cells: tuple[Cell, ...]) -> bool:
    """Boxes of a drawing have gaps between them, in which nothing stands; cells share edges."""
    used = {column for c in cells for column in range(c.column, c.column + c.column_span)}
    return len(grid.xs) - 1 - len(used) > MAX_EMPTY * (len(grid.xs) - 1)


def _text_of(cells: tuple[Cell, ...]) -> str:
    rows: dict[int, list[str]] = {}
    for cell in cells:
        rows.setdefault(cell.row, []).append(cell.text)
    return "\n".join(" | ".join(texts) for _, texts in sorted(rows.items()))
