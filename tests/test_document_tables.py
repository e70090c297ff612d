"""What is a table and what only looks like one, on small PDFs made by code."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from bookrag_fast.document import BBox, Block, BlockKind, Document, read_document
from bookrag_fast.document.analysis.cells import cells_of
from bookrag_fast.document.analysis.characters import lines_of
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.analysis.rows import Row
from bookrag_fast.document.pdf.chars import Font, PageChars
from bookrag_fast.index.packing import contents_of
from pdf_factory import HEIGHT, LOREM, heading, make_pdf, paragraph, text_lines, wrapped


def _read(tmp_path: Path, *draw: Callable[[Canvas], object]) -> Document:
    return read_document(make_pdf(tmp_path / "t.pdf", list(draw)))  # type: ignore[arg-type]


def _tables(document: Document) -> list[Block]:
    return [b for b in document.blocks if b.kind is BlockKind.TABLE]


def _row(c: Canvas, xs: tuple[float, ...], cells: tuple[str, ...], top: float) -> None:
    for x, cell in zip(xs, cells, strict=True):
        if cell:
            text_lines(c, [cell], x=x, top=top)


# --- drawings ---------------------------------------------------------------------------------


def _flow_chart(c: Canvas, top: float) -> None:
    for row in range(2):
        for k in range(4):
            x, y = 80 + 115 * k, top + 80 * row
            c.rect(x, HEIGHT - y - 40, 90, 40)
            text_lines(c, [f"Step {row}{k}", "of the work"], x=x + 12, top=y + 18)
            if k:
                c.line(x - 25, HEIGHT - y - 20, x, HEIGHT - y - 20)
    c.line(300, HEIGHT - top - 40, 300, HEIGHT - top - 80)


def test_boxes_with_words_are_no_table(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        paragraph(c, LOREM * 3, top=90)
        _flow_chart(c, 200)
        text_lines(c, ["Figure 1. How the work goes on"], x=150, top=340)
        paragraph(c, LOREM * 3, top=400)

    document = _read(tmp_path, draw)
    assert _tables(document) == []
    (picture,) = [b for b in document.blocks if b.kind is BlockKind.IMAGE]
    assert "Step 13" in picture.text
    assert sum("Step 13" in b.text for b in document.blocks) == 1


def test_a_table_above_a_drawing(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        text_lines(c, ["Table 1. What there is"], top=80)
        for y in (90, 110, 130, 150):
            c.line(72, HEIGHT - y, 520, HEIGHT - y)
        for k, cells in enumerate((("Name", "Count"), ("apples", "12"), ("pears", "7"))):
            _row(c, (76, 300), cells, 104 + 20 * k)
        _flow_chart(c, 165)
        text_lines(c, ["Figure 1. How the work goes on"], x=150, top=305)

    document = _read(tmp_path, draw)
    (table,) = _tables(document)
    assert table.text == "Name | Count\napples | 12\npears | 7"
    nodes = [c for c in contents_of(document.blocks) if c.kind.name in ("TABLE", "IMAGE")]
    assert [n.title[:8] for n in nodes] == ["Table 1.", "Figure 1"]


# --- columns ----------------------------------------------------------------------------------


def test_a_wide_table_over_two_columns(tmp_path: Path) -> None:
    words = wrapped(LOREM * 6, 44)
    half = len(words) // 2

    def draw(c: Canvas) -> None:
        for y in (80, 100, 180):
            c.line(60, HEIGHT - y, 530, HEIGHT - y)
        for k in range(5):
            cells = ("Model", "Score", "Time") if k == 0 else (f"model {k}", f"{k}7.5", f"{k} s")
            _row(c, (64, 330, 440), cells, 94 + 18 * k)
        text_lines(c, ["Table 1: Scores and times of all the models in both of the columns of it."],
                   x=60, top=200)  # fmt: skip
        text_lines(c, words[half:], x=310, top=230)
        text_lines(c, words[:half], x=60, top=230)

    document = _read(tmp_path, draw)
    (table,) = _tables(document)
    assert table.text.split("\n")[1:3] == ["model 1 | 17.5 | 1 s", "model 2 | 27.5 | 2 s"]
    prose = " ".join(b.text for b in document.blocks if b.kind is BlockKind.TEXT)
    assert prose == " ".join(words)


def test_stretched_lines_are_text(tmp_path: Path) -> None:
    """A justified column with few words a line: its gaps are wide but do not stand in line."""
    lines = wrapped("A few comprehensive and long considerations. " + LOREM, 28)

    def draw(c: Canvas) -> None:
        c.setFont("Helvetica", 10)
        for k, line in enumerate(lines):
            words = line.split()
            free = 150 - sum(stringWidth(w, "Helvetica", 10) for w in words)
            x = 72.0
            last = k == len(lines) - 1
            for word in words:
                c.drawString(x, HEIGHT - 100 - 12 * k, word)
                gap = 3.0 if last else free / max(len(words) - 1, 1)
                x += stringWidth(word, "Helvetica", 10) + gap

    document = _read(tmp_path, draw)
    assert [b.kind for b in document.blocks] == [BlockKind.TEXT]
    assert document.blocks[0].text == " ".join(lines)


def test_a_note_in_the_margin_is_no_cell(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        paragraph(c, LOREM * 2, top=90, width=60)
        lines = ["When dispensing hot water, the hot", "liquid comes out of the spouts and",
                 "the surfaces become hot as well.", "Keep clear of them."]  # fmt: skip
        text_lines(c, lines, x=72, top=200)
        text_lines(c, ["Follow the chapter", "on safety from", "page 6"], x=400, top=202, size=7)

    assert _tables(_read(tmp_path, draw)) == []


# --- formulas and lists -------------------------------------------------------------------------


def test_formulas_under_each_other(tmp_path: Path) -> None:
    rows = [("c = f(H a)", "x ∈ R".replace("∈", "=")), ("h = H c", "y = S"), ("p = g(h)", "z = T")]

    def draw(c: Canvas) -> None:
        paragraph(c, LOREM * 2, top=90)
        for k, row in enumerate(rows):
            _row(c, (150, 300), row, 160 + 14 * k)
        paragraph(c, LOREM * 2, top=230)

    document = _read(tmp_path, draw)
    kinds = [b.kind for b in document.blocks]
    assert kinds == [BlockKind.TEXT, BlockKind.EQUATION, BlockKind.TEXT]


def test_contents_without_dots_are_a_list(tmp_path: Path) -> None:
    entries = [("Safety", 6), ("Intended use", 12), ("Conditions", 13), ("Parts", 14),
               ("Display", 14), ("Glossary", 17), ("Operation", 18)]  # fmt: skip

    def draw(c: Canvas) -> None:
        heading(c, "Contents", top=80)
        for k, (title, page) in enumerate(entries, start=1):
            _row(c, (72, 100), (f"{k}", title), 110 + 16 * k)
            c.drawRightString(500, HEIGHT - 110 - 16 * k, str(page))

    document = _read(tmp_path, draw, lambda c: paragraph(c, LOREM, top=100))
    assert _tables(document) == []
    listed = next(b for b in document.blocks if b.kind is BlockKind.LIST)
    assert listed.text.split("\n")[1] == "2 Intended use  12"
    assert len(listed.text.split("\n")) == len(entries)


# --- cells --------------------------------------------------------------------------------------


def test_wrapped_cells_stay_in_their_rows(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        xs = (72, 260, 380)
        _row(c, xs, ("Value", "Default", "Used by"), 100)
        _row(c, xs, ("Similarity for a relation", "at least 0.9", "Extraction"), 120)
        _row(c, xs, ("end", "", ""), 131)
        _row(c, xs, ("New edges", "mean degree,", "Reasoning"), 151)
        _row(c, xs, ("", "rounded up", ""), 162)
        _row(c, xs, ("Weight", "0.5", "Reasoning"), 182)
        _row(c, xs, ("Tolerance", "10", "Reasoning"), 202)
        c.setFont("Helvetica", 7)
        c.drawString(260 + stringWidth("10", "Helvetica", 10), HEIGHT - 198, "-6")

    (table,) = _tables(_read(tmp_path, draw))
    assert table.text.split("\n") == [
        "Value | Default | Used by",
        "Similarity for a relation end | at least 0.9 | Extraction",
        "New edges | mean degree, rounded up | Reasoning",
        "Weight | 0.5 | Reasoning",
        "Tolerance | 10-6 | Reasoning",
    ]
    assert {c.row for c in table.cells} == set(range(5))


def test_the_last_line_of_a_table_wraps(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        xs = (90, 200)
        _row(c, xs, ("substr(s, x)", "part of s from position x"), 100)
        _row(c, xs, ("substr(s, x, y)", "part of s from position x of length y"), 112)
        _row(c, xs, ("time2str(t, f)", "a calendar time as characters, see the section"), 124)
        _row(c, xs, ("", "on page 58"), 136)
        paragraph(c, LOREM * 3, top=170)

    (table,) = _tables(_read(tmp_path, draw))
    assert table.text.endswith("see the section on page 58")


def test_rules_around_the_header_only(tmp_path: Path) -> None:
    rows = [("Dataset", "Yes", "No"), ("Training", "1,284", "1,330"), ("Test", "164", "163")]

    def draw(c: Canvas) -> None:
        for y in (100, 116, 150):
            c.line(72, HEIGHT - y, 400, HEIGHT - y)
        for x in (72, 200, 300, 400):
            c.line(x, HEIGHT - 100, x, HEIGHT - 150)
        for k, row in enumerate(rows):
            _row(c, (76, 204, 304), row, 112 + 16 * k)

    (table,) = _tables(_read(tmp_path, draw))
    assert table.text == "\n".join(" | ".join(row) for row in rows)


def test_a_cell_over_several_rows(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        for y in (100, 120, 180):
            c.line(72, HEIGHT - y, 400, HEIGHT - y)
        for y in (140, 160):
            c.line(200, HEIGHT - y, 400, HEIGHT - y)  # not below the first column
        for x in (72, 200, 300, 400):
            c.line(x, HEIGHT - 100, x, HEIGHT - 180)
        _row(c, (76, 204, 304), ("Aim", "Type", "Date"), 114)
        text_lines(c, ["Reduce the", "number of", "accidents"], x=76, top=134, leading=16)
        for k, kind in enumerate(("Target", "Status", "Actual")):
            _row(c, (204, 304), (kind, f"2023-0{k + 1}"), 134 + 20 * k)

    (table,) = _tables(_read(tmp_path, draw))
    assert table.text == (
        "Aim | Type | Date\nReduce the number of accidents | Target | 2023-01\n"
        "Status | 2023-02\nActual | 2023-03"
    )
    tall = next(cell for cell in table.cells if cell.row_span > 1)
    assert (tall.row, tall.column, tall.row_span) == (1, 0, 3)


def test_captions_below_their_tables(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        for k in range(2):
            top = 100 + 120 * k
            for r in range(4):
                _row(c, (72, 200, 300), (f"item {r}", f"{r}{k}1", f"{r}{k}2"), top + 14 * r)
            text_lines(c, [f"Table {k + 1}: The numbers of part {k + 1}"], top=top + 66)
        paragraph(c, LOREM * 3, top=400)

    nodes = contents_of(_read(tmp_path, draw).blocks)
    tables = [n for n in nodes if n.kind.name == "TABLE"]
    assert [(t.title[:7], t.text.split(" | ")[1]) for t in tables] == [
        ("Table 1", "001"),
        ("Table 2", "011"),
    ]


def test_letters_of_a_ligature_stay_in_their_word() -> None:
    """Fonts that spell a ligature out give each letter the box of the whole."""
    word = "suffixes"
    x = [0, 5, 12, 12, 12, 22, 29, 35]
    width = [5, 7, 10, 10, 10, 7, 6, 5]
    box = np.array([[a, 90, a + w, 100] for a, w in zip(x, width, strict=True)], np.float32)
    n = len(word)
    chars = PageChars(
        code=np.array([ord(c) for c in word], np.uint32),
        box=box,
        ink=box,
        origin=np.array([[a, 98] for a in x], np.float32),
        generated=np.zeros(n, np.bool_),
        run=np.zeros(n, np.int32),
        run_size=np.array([10], np.float32),
        run_turn=np.zeros(1, np.int32),
        run_font=np.zeros(1, np.int32),
        run_color=np.array([0xFF000000], np.uint32),
        run_mode=np.zeros(1, np.int32),
        run_bold=np.zeros(1, np.bool_),
        fonts=[Font("Serif", bold=False, italic=False, mono=False)],
    )
    assert [line.text for line in lines_of(chars, 600, 800)] == [word]


def test_a_title_is_all_that_is_set_largest(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        text_lines(c, ["OFFICE OF RECORDS"], top=80, size=16)
        text_lines(c, ["Washington"], top=110)
        text_lines(c, ["ANNUAL REPORT"], top=150, size=16)
        paragraph(c, LOREM * 3, top=200)

    assert _read(tmp_path, draw).title == "OFFICE OF RECORDS – ANNUAL REPORT"


def test_a_title_may_begin_with_a_small_letter(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        text_lines(c, ["pioTools: Small Tools for Pioneers"], top=80, size=20)
        paragraph(c, LOREM * 3, top=200)

    assert _read(tmp_path, draw).title == "pioTools: Small Tools for Pioneers"


# --- negative amounts -------------------------------------------------------------------------


def test_a_negative_amount_in_the_last_column_is_no_equation_number(tmp_path: Path) -> None:
    rows = (
        ("", "2023", "2022", "2021"),
        ("Revenue", "46,298", "51,761", "47,262"),
        ("Interest expense", "(35)", "(25)", "(52)"),
        ("Restructuring charges", "147", "(34)", "254"),
        ("Other items, net", "", "", "(12)"),
        ("Net earnings", "1,419", "2,454", "1,798"),
    )

    def draw(c: Canvas) -> None:
        paragraph(c, LOREM * 3, top=90)
        for k, cells in enumerate(rows):
            _row(c, (72, 300, 380, 460), cells, 200 + 14 * k)

    (table,) = _tables(_read(tmp_path, draw))
    assert table.text.splitlines()[2] == "Interest expense | (35) | (25) | (52)"
    assert {c.column for c in table.cells} == {0, 1, 2, 3}
    (net,) = [c for c in table.cells if c.text == "(12)"]
    assert net.column == 3
    (label,) = [c for c in table.cells if c.text == "Other items, net"]
    assert label.row == net.row


def test_an_equation_keeps_its_number(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        top = paragraph(c, LOREM * 2, top=90)
        for k, formula in enumerate(("a = b + c", "d = e + f", "g = h + i")):
            text_lines(c, [formula], x=250, top=top + 20 * k)
            text_lines(c, [f"({k + 1})"], x=500, top=top + 20 * k)
        paragraph(c, LOREM * 2, top=top + 80)

    document = _read(tmp_path, draw)
    assert _tables(document) == []
    assert any("a = b + c (1)" in b.text for b in document.blocks)


def test_texts_that_share_a_cell_share_its_box() -> None:
    def line(text: str, x0: float, x1: float, base: float) -> Line:
        return Line(
            text, x0, base - 8, x1, base + 2, base, 10.0, False, False, False, "Helvetica", 0, 0
        )

    head = [("Name", 72, 100), ("from", 200, 222), ("to", 225, 240), ("by", 400, 420)]
    body = [("a", 72, 80), ("1 to 2", 200, 240), ("3", 400, 420)]
    rows = [Row([line(*x, 100.0) for x in head]), Row([line(*x, 114.0) for x in body])]
    (shared,) = [c for c in cells_of(rows) if c.text == "from to"]
    assert shared.bbox == BBox(200, 92, 240, 102)


# --- every second row shaded ------------------------------------------------------------------

_XS = (72, 300, 380, 460, 540)


def _shaded(c: Canvas, top: float, rows: list[tuple[str, ...]], white: set[int]) -> None:
    """Rows of 18 points, shaded cell by cell but for the white ones."""
    for k, cells in enumerate(rows):
        y = top + 18 * k
        if k not in white:
            c.setFillColorRGB(0.8, 0.9, 1.0)
            for a, b in itertools.pairwise(_XS):
                c.rect(a, HEIGHT - y - 18, b - a, 18, stroke=0, fill=1)
            c.setFillColorRGB(0, 0, 0)
        _row(c, tuple(x + 4 for x in _XS[:-1])[: len(cells)], cells, y + 13)


_AMOUNTS = [(f"Item {name}", f"{k}11", f"{k}22", f"{k}33") for k, name in enumerate("abcdefgh", 1)]


def test_white_rows_between_shaded_ones_belong_to_the_table(tmp_path: Path) -> None:
    document = _read(tmp_path, lambda c: _shaded(c, 100, _AMOUNTS, {2, 5}))
    (table,) = _tables(document)
    assert table.text.splitlines() == [" | ".join(cells) for cells in _AMOUNTS]


def test_a_heading_between_two_tables_parts_them(tmp_path: Path) -> None:
    rows = [*_AMOUNTS[:2], ("A heading of its own",), *_AMOUNTS[3:5]]
    document = _read(tmp_path, lambda c: _shaded(c, 100, rows, {2}))
    assert len(_tables(document)) == 2
    assert "A heading of its own" in [b.text for b in document.blocks]
