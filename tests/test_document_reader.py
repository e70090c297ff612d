"""`read_document` on small PDFs made by code."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from bookrag_fast.document import BlockKind, Document, read_document
from bookrag_fast.document.pdf.chars import geometry_of, read_chars, read_chars_slowly
from bookrag_fast.document.pdf.pdfium import open_pdf
from pdf_factory import (
    HEIGHT,
    LOREM,
    WIDTH,
    heading,
    image,
    make_pdf,
    paragraph,
    text_lines,
    wrapped,
)


def _text(document: Document) -> str:
    return "\n".join(block.text for block in document.blocks)


def _one_page(tmp_path: Path, draw: object, **options: object) -> Document:
    return read_document(make_pdf(tmp_path / "one.pdf", [draw], **options))  # type: ignore[list-item, arg-type]


# --- layout ---------------------------------------------------------------------------------


def test_paragraphs_and_boxes(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        top = heading(c, "1 Introduction", top=100)
        top = paragraph(c, LOREM * 2, top=top)
        paragraph(c, "A second paragraph stands apart. " * 3, top=top + 4)

    blocks = _one_page(tmp_path, draw).blocks
    assert [b.kind for b in blocks] == [BlockKind.TITLE, BlockKind.TEXT, BlockKind.TEXT]
    assert blocks[0].text == "1 Introduction"
    assert blocks[0].numbering == "1"
    assert blocks[0].style.bold
    assert blocks[0].style.size == pytest.approx(14, abs=0.1)
    box = blocks[0].regions[0].bbox
    assert box.x0 == pytest.approx(72, abs=3)
    assert box.y1 == pytest.approx(103, abs=4)  # the baseline is at 100, the origin at the top
    assert blocks[1].text == " ".join((LOREM * 2).split())


def test_two_columns_and_a_sentence_over_the_break(tmp_path: Path) -> None:
    words = wrapped(LOREM * 6, 44)
    half = len(words) // 2

    def draw(c: Canvas) -> None:
        text_lines(c, words[half:], x=310, top=100)  # the right one is drawn first
        text_lines(c, words[:half], x=60, top=100)

    document = _one_page(tmp_path, draw)
    assert _text(document).replace("\n", " ") == " ".join(words)
    assert len(document.blocks[0].regions) == 2


def test_paragraph_over_a_page_break_keeps_both_regions(tmp_path: Path) -> None:
    lines = wrapped(LOREM * 4, 90)

    def first(c: Canvas) -> None:
        paragraph(c, "An earlier paragraph, complete in itself. " * 4, top=300)
        text_lines(c, lines[:4], top=700)

    def second(c: Canvas) -> None:
        text_lines(c, lines[4:], top=80)

    document = read_document(make_pdf(tmp_path / "p.pdf", [first, second]))
    joined = document.blocks[-1]
    assert [r.page for r in joined.regions] == [1, 2]
    assert joined.text == " ".join(lines)


def test_hyphenation_at_line_ends(tmp_path: Path) -> None:
    lines = ["This is a very long and compli-", "cated sentence that is hyphen-", "ated twice."]
    document = _one_page(tmp_path, lambda c: text_lines(c, lines))
    assert document.blocks[0].text == (
        "This is a very long and complicated sentence that is hyphenated twice."
    )


def test_running_heads_and_page_numbers_go_and_become_labels(tmp_path: Path) -> None:
    def page(number: int):  # type: ignore[no-untyped-def]
        def draw(c: Canvas) -> None:
            text_lines(c, ["Handbook of Everything"], top=40, size=8)
            words = "alpha beta gamma delta epsilon zeta eta theta iota".split()
            paragraph(c, f"Of {words[number]} is told here. " + LOREM * (1 + number % 3), top=100)
            text_lines(c, [f"{number + 4}"], x=290, top=810, size=8)

        return draw

    document = read_document(make_pdf(tmp_path / "r.pdf", [page(k) for k in range(1, 9)]))
    assert "Handbook" not in _text(document)
    assert [p.label for p in document.pages] == [str(k + 4) for k in range(1, 9)]
    assert _text(document).count("is told here") == 8


def test_numbered_headings_at_one_height_are_kept(tmp_path: Path) -> None:
    def page(number: int):  # type: ignore[no-untyped-def]
        def draw(c: Canvas) -> None:
            heading(c, f"7.{3 * number} Version 4.{17 - 2 * number}", top=60)
            paragraph(c, LOREM * 3, top=90)

        return draw

    document = read_document(make_pdf(tmp_path / "v.pdf", [page(k) for k in range(1, 7)]))
    titles = [b.text for b in document.blocks if b.kind is BlockKind.TITLE]
    assert titles == [f"7.{3 * k} Version 4.{17 - 2 * k}" for k in range(1, 7)]


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_rotated_pages_read_as_displayed(tmp_path: Path, turn: int) -> None:
    def draw(c: Canvas) -> None:
        c.setPageRotation(turn)
        # Draws upright text for a reader of the turned page.
        c.saveState()
        c.rotate(turn)
        x, y = {0: (72, 700), 90: (72, -100), 180: (-523, -100), 270: (-523, 742)}[turn]
        c.setFont("Helvetica", 12)
        c.drawString(x, y, "First line of the page")
        c.drawString(x, y - 16, "second line of it")
        c.restoreState()

    document = _one_page(tmp_path, draw)
    assert _text(document).replace("\n", " ") == "First line of the page second line of it"
    page, box = document.pages[0], document.blocks[0].regions[0].bbox
    assert (page.width, page.height) == (WIDTH, HEIGHT)  # reportlab turns the media box itself
    assert box.x0 == pytest.approx(72, abs=2)
    assert 0 <= box.x0 < box.x1 <= page.width
    assert 0 <= box.y0 < box.y1 <= page.height
    assert box.width > box.height


def test_sideways_text_on_an_upright_page(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        paragraph(c, LOREM * 2, top=100)
        c.saveState()
        c.rotate(90)
        c.setFont("Helvetica", 12)
        c.drawString(200, -30, "a stamp at the margin")
        c.restoreState()

    document = _one_page(tmp_path, draw)
    stamp = next(b for b in document.blocks if "stamp" in b.text)
    assert stamp.text == "a stamp at the margin"
    assert stamp.regions[0].bbox.height > stamp.regions[0].bbox.width


def test_hidden_and_off_page_and_doubled_text(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        paragraph(c, LOREM, top=100)
        c.saveState()
        hidden = c.beginText(72, 500)
        hidden.setFont("Helvetica", 10)
        hidden.setTextRenderMode(3)
        hidden.textLine("invisible words")
        c.drawText(hidden)
        c.restoreState()
        text_lines(c, ["visible again"], top=362)
        c.drawString(72, -40, "below the page")
        c.drawString(72, 300, "Doubled for weight")
        c.drawString(72.3, 300, "Doubled for weight")

    text = _text(_one_page(tmp_path, draw))
    assert "invisible" not in text
    assert "below" not in text
    assert "visible again" in text
    assert text.count("Doubled for weight") == 1
    assert "DDoo" not in text


def test_tables_are_grids(tmp_path: Path) -> None:
    rows = [("Item", "2022", "2021"), ("Revenue", "17,606", "15,785"), ("Income", "4,756", "4,822")]

    def draw(c: Canvas) -> None:
        paragraph(c, LOREM, top=80)
        text_lines(c, ["Table 1: Results of the year"], top=150)
        for k, row in enumerate(rows):
            for x, cell in zip((72, 300, 400), row, strict=True):
                text_lines(c, [cell], x=x, top=175 + 14 * k)
        paragraph(c, LOREM, top=260)

    document = _one_page(tmp_path, draw)
    table = next(b for b in document.blocks if b.kind is BlockKind.TABLE)
    assert table.text == "\n".join(" | ".join(row) for row in rows)
    grid = {(c.row, c.column): c for c in table.cells}
    assert [grid[r, c].text for r in range(3) for c in range(3)] == [x for row in rows for x in row]
    assert grid[0, 0].header
    assert not grid[1, 0].header
    assert all(c.bbox is not None for c in table.cells)
    captions = [b.text for b in document.blocks if b.kind is BlockKind.CAPTION]
    assert captions == ["Table 1: Results of the year"]


def test_a_table_over_two_pages_is_one(tmp_path: Path) -> None:
    def rows(c: Canvas, first: int, count: int, top: float) -> None:
        for k in range(count):
            for x, cell in ((72, f"row {first + k}"), (300, f"{first + k},000"), (420, f"{k}.5")):
                text_lines(c, [cell], x=x, top=top + 14 * k)

    def first(c: Canvas) -> None:
        paragraph(c, LOREM * 3, top=80)
        rows(c, 1, 10, 640)

    def second(c: Canvas) -> None:
        rows(c, 11, 6, 90)
        paragraph(c, LOREM * 3, top=300)

    document = read_document(make_pdf(tmp_path / "t.pdf", [first, second]))
    tables = [b for b in document.blocks if b.kind is BlockKind.TABLE]
    assert len(tables) == 1
    assert [r.page for r in tables[0].regions] == [1, 2]
    assert 1 + max(c.row for c in tables[0].cells) == 16


def test_lists_code_and_footnotes(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        paragraph(c, LOREM * 3, top=80)
        text_lines(c, ["\u2022 first item of the list", "\u2022 second item of it"], top=200)
        text_lines(c, ["def f(x):", "    return x"], top=260, font="Courier", size=9)
        paragraph(c, LOREM * 3, top=320)
        text_lines(c, ["1 A note at the foot of the page."], top=760, size=7)

    kinds = {b.kind: b for b in _one_page(tmp_path, draw).blocks}
    assert kinds[BlockKind.LIST].text.count("\n") == 1
    assert kinds[BlockKind.CODE].text.startswith("def f(x):\n")
    assert kinds[BlockKind.FOOTNOTE].text.startswith("1 A note")


def test_images_with_captions(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        paragraph(c, LOREM * 2, top=80)
        c.drawImage(image(), 100, HEIGHT - 400, 200, 150)
        c.drawImage(image(), 500, HEIGHT - 60, 10, 10)  # a bullet, no figure
        text_lines(c, ["Figure 1: A red square"], x=100, top=420)

    blocks = _one_page(tmp_path, draw).blocks
    pictures = [b for b in blocks if b.kind is BlockKind.IMAGE]
    assert len(pictures) == 1
    assert tuple(pictures[0].regions[0].bbox) == pytest.approx((100, 250, 300, 400), abs=1)
    at = blocks.index(pictures[0])
    assert blocks[at + 1].text == "Figure 1: A red square"


def test_title_from_metadata_or_the_first_page(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        text_lines(c, ["The Great Handbook"], top=120, size=24)
        paragraph(c, LOREM, top=200)

    assert _one_page(tmp_path, draw, title="A Proper Title").title == "A Proper Title"
    assert _one_page(tmp_path, draw, title="Microsoft Word - a.doc").title == "The Great Handbook"
    plain = _one_page(tmp_path, draw)
    assert plain.title == "The Great Handbook"
    assert plain.name == "one.pdf"
    assert len(plain.sha256) == 64


def test_outline_with_pages_and_places(tmp_path: Path) -> None:
    pages = [lambda c: paragraph(c, LOREM, top=100) for _ in range(3)]
    outline = [("One", 0, 1), ("One A", 1, 2), ("Two", 0, 3)]
    document = read_document(make_pdf(tmp_path / "o.pdf", pages, outline=outline))
    assert [(e.title, e.level, e.page) for e in document.outline] == [
        ("One", 1, 1),
        ("One A", 2, 2),
        ("Two", 1, 3),
    ]


# --- rules and drawings ------------------------------------------------------------------------


def test_ruled_table_keeps_wrapped_cells_together(tmp_path: Path) -> None:
    xs, ys = (72, 180, 320, 480), (150, 180, 220, 260)
    texts = [["Name", "Meaning", "Value"], ["alpha", "first of the", "1"], ["beta", "second", "2"]]

    def draw(c: Canvas) -> None:
        paragraph(c, LOREM, top=90)
        for y in ys:
            c.line(xs[0], HEIGHT - y, xs[-1], HEIGHT - y)
        for x in xs:
            c.line(x, HEIGHT - ys[0], x, HEIGHT - ys[-1])
        for r, row in enumerate(texts):
            for k, text in enumerate(row):
                text_lines(c, [text], x=xs[k] + 4, top=ys[r] + 14)
        text_lines(c, ["Greek letters"], x=xs[1] + 4, top=ys[1] + 26)
        paragraph(c, LOREM, top=300)

    blocks = _one_page(tmp_path, draw).blocks
    assert [b.kind for b in blocks] == [BlockKind.TEXT, BlockKind.TABLE, BlockKind.TEXT]
    table = blocks[1]
    assert table.text == (
        "Name | Meaning | Value\nalpha | first of the Greek letters | 1\nbeta | second | 2"
    )
    assert tuple(table.regions[0].bbox) == pytest.approx((72, 150, 480, 260), abs=1.5)
    assert [c.header for c in table.cells] == [True] * 3 + [False] * 6


def test_drawn_figure_takes_its_labels(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        paragraph(c, LOREM * 3, top=90)
        for k, label in enumerate(("Parse", "Index", "Answer")):
            c.rect(90 + 120 * k, HEIGHT - 260, 90, 50)
            text_lines(c, [label], x=110 + 120 * k, top=238)
            if k:
                c.line(60 + 120 * k, HEIGHT - 235, 90 + 120 * k, HEIGHT - 235)
        text_lines(c, ["Figure 2. The three stages of the work"], x=150, top=285)
        paragraph(c, LOREM * 3, top=330)

    blocks = _one_page(tmp_path, draw).blocks
    assert [b.kind for b in blocks] == [
        BlockKind.TEXT,
        BlockKind.IMAGE,
        BlockKind.CAPTION,
        BlockKind.TEXT,
    ]
    assert blocks[1].text.split("\n") == ["Parse", "Index", "Answer"]


def test_addresses_in_the_gutter_above_two_columns_do_not_hide_them(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        heading(c, "A Title That Goes Over Both of the Columns of This Paper", top=80)
        text_lines(c, ["anna@example.org"], x=130, top=120)
        # The second address begins in the gutter, close to the left column's edge.
        widest = max(stringWidth(t, "Helvetica", 10) for t in wrapped("Left 0. " + LOREM, 44))
        text_lines(c, ["boris@example.org"], x=72 + widest + 3, top=120)
        for x, word in ((72, "Left"), (315, "Right")):
            top = 170.0
            for k in range(3):
                top = paragraph(c, f"{word} {k}. " + LOREM, top=top, x=x, width=44)

    document = read_document(make_pdf(tmp_path / "paper.pdf", [draw]))
    texts = [b.text for b in document.blocks if b.text.startswith(("Left", "Right"))]
    assert [t[:7].strip() for t in texts] == [
        "Left 0.", "Left 1.", "Left 2.", "Right 0", "Right 1", "Right 2",
    ]  # fmt: skip


# --- the two readers of characters -----------------------------------------------------------


def test_core_and_slow_twin_agree(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        heading(c, "Characters", top=90)
        paragraph(c, LOREM, top=120)
        c.setFillColorRGB(1, 0, 0)
        text_lines(c, ["coloured italics"], top=300, font="Times-Italic", size=13)

    path = make_pdf(tmp_path / "c.pdf", [draw])
    with open_pdf(path, None) as pdf, pdf.page(0) as page:
        geometry = geometry_of(page)
        fast, slow = read_chars(page, geometry), read_chars_slowly(page, geometry)
    for name in fast.__slots__:
        one, other = getattr(fast, name), getattr(slow, name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=name)
        else:
            assert one == other, name
    assert any(font.italic for font in fast.fonts)


# --- progress and threads ---------------------------------------------------------------------


def test_progress_and_threads(tmp_path: Path) -> None:
    path = make_pdf(tmp_path / "p.pdf", [lambda c: paragraph(c, LOREM * 5, top=100)] * 3)
    seen: list[tuple[int, int]] = []
    wanted = read_document(path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    results: list[Document] = []
    threads = [
        threading.Thread(target=lambda: results.append(read_document(path))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [wanted] * 4
