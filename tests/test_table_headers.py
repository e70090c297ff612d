"""Column headers over several rows: "2023" over "Q1 Q2 Q3 Q4", with rules and without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from bookrag_fast.document import Block, BlockKind, read_document
from bookrag_fast.index.model import NodeKind
from bookrag_fast.index.structure import headers_of
from bookrag_fast.index.tree import build_tree
from pdf_factory import HEIGHT, LOREM, make_pdf, paragraph, text_lines

LEFT, WIDTHS, ROW = 72.0, (120.0, 55.0, 55.0, 55.0, 55.0), 18.0
NAMES = ["Oats", "Barley", "Wheat", "Rye", "Maize", "Millet"]
QUARTERS = ["", "H1", "H2", "H1", "H2"]
Spans = Sequence[tuple[str, int, int]]  # text, first column, columns
YEARS: Spans = [("Crop", 0, 1), ("2023", 1, 2), ("2024", 3, 2)]
JOINED = ["Crop", "2023 / H1", "2023 / H2", "2024 / H1", "2024 / H2"]


def _x(column: int) -> float:
    return LEFT + sum(WIDTHS[:column])


def _body(names: Sequence[str]) -> list[Spans]:
    return [
        [(name, 0, 1), *((f"{k}{j}.{j}", j, 1) for j in range(1, 5))]
        for k, name in enumerate(names, 1)
    ]


def _table(c: Canvas, rows: Sequence[Spans], top: float, *, ruled: bool) -> float:
    """Draws rows of centred cells (the first column at its left edge); the y below."""
    c.setFont("Helvetica", 10)
    for k, row in enumerate(rows):
        y = top + k * ROW
        for text, column, span in row:
            x0, x1 = _x(column), _x(column + span)
            if column == 0:
                c.drawString(x0 + 4, HEIGHT - y - 12, text)
            else:
                c.drawCentredString((x0 + x1) / 2, HEIGHT - y - 12, text)
            if ruled:
                c.rect(x0, HEIGHT - y - ROW, x1 - x0, ROW)
    return top + len(rows) * ROW


def _second_row(ruled: bool) -> Spans:
    row = [(text, k, 1) for k, text in enumerate(QUARTERS)]
    return row if ruled else row[1:]


def _tables(path: Path) -> list[Block]:
    return [b for b in read_document(path).blocks if b.kind is BlockKind.TABLE]


def _headers(path: Path) -> list[str]:
    nodes = build_tree(read_document(path)).nodes
    (table,) = [n for n in nodes if n.kind is NodeKind.TABLE]
    return [h for h in headers_of(table) if h not in NAMES]


@pytest.mark.parametrize("ruled", [True, False], ids=["ruled", "plain"])
def test_a_header_over_several_columns_keeps_its_span(tmp_path: Path, ruled: bool) -> None:
    def draw(c: Canvas) -> None:
        top = paragraph(c, LOREM, top=80)
        top = _table(c, [YEARS, _second_row(ruled), *_body(NAMES)], top + 20, ruled=ruled)
        paragraph(c, LOREM, top=top + 40)

    path = make_pdf(tmp_path / "t.pdf", [draw])
    (table,) = _tables(path)
    spans = {(c.row, c.column, c.text): c.column_span for c in table.cells}
    assert spans[(0, 1, "2023")] == 2
    assert spans[(0, 3, "2024")] == 2
    assert [c.text for c in table.cells if c.row == 1 and c.text] == ["H1", "H2", "H1", "H2"]
    assert {c.row for c in table.cells if c.header} == {0, 1}
    assert _headers(path) == JOINED


@pytest.mark.parametrize("ruled", [True, False], ids=["ruled", "plain"])
@pytest.mark.parametrize("again", [True, False], ids=["repeated", "not repeated"])
def test_a_table_that_goes_on_keeps_one_header(tmp_path: Path, ruled: bool, again: bool) -> None:
    head = [YEARS, _second_row(ruled)]

    def first(c: Canvas) -> None:
        paragraph(c, LOREM * 3, top=80)
        _table(c, [*head, *_body(NAMES[:3])], 820 - 5 * ROW, ruled=ruled)

    def second(c: Canvas) -> None:
        rows = [*(head if again else []), *_body(NAMES[3:])]
        top = _table(c, rows, 50, ruled=ruled)
        paragraph(c, LOREM * 3, top=top + 40)

    path = make_pdf(tmp_path / "two.pdf", [first, second])
    (table,) = _tables(path)
    assert [r.page for r in table.regions] == [1, 2]
    assert [c.text for c in table.cells if c.column == 0 and c.row > 1] == NAMES
    assert {c.row for c in table.cells if c.header} == {0, 1}
    assert table.text.count("2023") == 1
    assert _headers(path) == JOINED


def test_headers_that_begin_with_the_first_of_their_columns(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        rows = [YEARS, _second_row(ruled=False), *_body(NAMES)]
        for k, row in enumerate(rows):
            for text, column, _ in row:
                text_lines(c, [text], x=_x(column), top=100 + k * ROW)

    path = make_pdf(tmp_path / "left.pdf", [draw])
    (table,) = _tables(path)
    assert {(c.text, c.column, c.column_span) for c in table.cells if c.row == 0} == {
        ("Crop", 0, 1), ("2023", 1, 2), ("2024", 3, 2),
    }  # fmt: skip
    assert _headers(path) == JOINED


def test_rows_of_numbers_and_names_of_groups_are_no_headers(tmp_path: Path) -> None:
    years: Spans = [("2023", 1, 1), ("2022", 2, 1), ("2021", 3, 1), ("2020", 4, 1)]
    rows = [years, [("Grain", 0, 1)], *_body(NAMES)]

    def draw(c: Canvas) -> None:
        top = _table(c, rows, 80, ruled=False)
        top = paragraph(c, LOREM, top=top + 40)
        _table(c, _body(NAMES), top + 40, ruled=True)

    grouped, bare = _tables(make_pdf(tmp_path / "t.pdf", [draw]))
    assert {c.row for c in grouped.cells if c.header} == {0}
    assert not any(c.header for c in bare.cells)


def test_a_tall_cell_beside_a_wide_one(tmp_path: Path) -> None:
    """ "Crop" over both header rows, "Yield" over two columns."""

    def draw(c: Canvas) -> None:
        paragraph(c, LOREM, top=60)
        _table(c, [[("Yield", 1, 2), ("Price", 3, 2)], [(t, k, 1) for k, t in
               enumerate(QUARTERS) if k]], 140, ruled=True)  # fmt: skip
        c.rect(LEFT, HEIGHT - 140 - 2 * ROW, WIDTHS[0], 2 * ROW)
        c.drawString(LEFT + 4, HEIGHT - 140 - 22, "Crop")
        _table(c, _body(NAMES), 140 + 2 * ROW, ruled=True)
        text_lines(c, ["After the table."], top=320)

    path = make_pdf(tmp_path / "tall.pdf", [draw])
    (table,) = _tables(path)
    crop = next(c for c in table.cells if c.text == "Crop")
    assert (crop.row, crop.column, crop.row_span) == (0, 0, 2)
    assert _headers(path) == ["Crop", "Yield / H1", "Yield / H2", "Price / H1", "Price / H2"]
