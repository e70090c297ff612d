"""What stands on pages beside their text: watermarks, notes, links, form fields."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from reportlab.lib.colors import Color
from reportlab.pdfgen.canvas import Canvas
from typer.testing import CliRunner

from bookrag_fast import Library
from bookrag_fast.cli.main import app
from bookrag_fast.document import Annotation, IsolatedReader, read_document
from bookrag_fast.document.transfer import from_json, to_json
from pdf_factory import HEIGHT, LOREM, heading, make_pdf, paragraph, text_lines

GREY = Color(0.8, 0.8, 0.8)


def _text(path: Path) -> str:
    return "\n".join(b.text for b in read_document(path).blocks)


def _page(k: int, over: Callable[[Canvas], None] | None = None) -> Callable[[Canvas], None]:
    def draw(c: Canvas) -> None:
        if over is not None:
            c.saveState()
            over(c)
            c.restoreState()
        top = heading(c, f"{k} Chapter", top=80)
        for _ in range(8):
            top = paragraph(c, LOREM * 2, top=top)

    return draw


# --- watermarks -------------------------------------------------------------------------------


def _tilted(text: str, color: Color = GREY) -> Callable[[Canvas], None]:
    def draw(c: Canvas) -> None:
        c.translate(120, 300)
        c.rotate(45)
        c.setFillColor(color)
        c.setFont("Helvetica-Bold", 80)
        c.drawString(0, 0, text)

    return draw


def _upright(text: str, color: Color) -> Callable[[Canvas], None]:
    def draw(c: Canvas) -> None:
        c.setFillColor(color)
        text_lines(c, [text], x=90, top=400, size=60, font="Helvetica-Bold")

    return draw


@pytest.mark.parametrize(
    ("over", "pages"),
    [
        (_tilted("DRAFT"), 1),
        (_tilted("DRAFT"), 5),
        (_tilted("NOT FOR SALE", Color(0, 0, 0)), 5),
        (_upright("CONFIDENTIAL", GREY), 5),
        (_upright("CONFIDENTIAL", Color(0.9, 0.2, 0.2)), 5),
    ],
    ids=["tilted, one page", "tilted", "tilted and black", "pale", "red across the text"],
)
def test_watermarks_are_no_content(
    tmp_path: Path, over: Callable[[Canvas], None], pages: int
) -> None:
    plain = make_pdf(tmp_path / "plain.pdf", [_page(k) for k in range(1, pages + 1)])
    marked = make_pdf(tmp_path / "marked.pdf", [_page(k, over) for k in range(1, pages + 1)])
    assert _text(marked) == _text(plain)


def test_white_titles_of_slides_are_kept(tmp_path: Path) -> None:
    def slide(k: int) -> Callable[[Canvas], None]:
        def draw(c: Canvas) -> None:
            text_lines(c, [f"Line {j}{k} of the talk of it." for j in range(6)], top=60)
            c.rect(60, HEIGHT - 220, 475, 60, fill=1)
            c.setFillColor(Color(1, 1, 1))
            text_lines(c, ["Oats and Rye"], top=200, size=32)
            c.setFillColor(Color(0, 0, 0))
            paragraph(c, LOREM * 2, top=300)

        return draw

    path = make_pdf(tmp_path / "slides.pdf", [slide(k) for k in range(6)])
    assert _text(path).count("Oats and Rye") == 6


def test_large_headings_at_one_place_are_kept(tmp_path: Path) -> None:
    def page(k: int) -> Callable[[Canvas], None]:
        def draw(c: Canvas) -> None:
            for j in range(6):
                paragraph(c, f"Page {k} and line {j}{k} of it.", top=60 + 20 * j)
            text_lines(c, ["Summary"], top=300, size=30)
            paragraph(c, LOREM * 3, top=360)

        return draw

    path = make_pdf(tmp_path / "s.pdf", [page(k) for k in range(4)])
    assert _text(path).count("Summary") == 4


def test_a_label_at_an_angle_is_one_text(tmp_path: Path) -> None:
    def label(c: Canvas) -> None:
        c.translate(400, 60)
        c.rotate(30)
        c.setFont("Helvetica", 9)
        c.drawString(0, 0, "Tons of oats")

    blocks = read_document(make_pdf(tmp_path / "l.pdf", [_page(1, label)])).blocks
    assert [b.text for b in blocks if "oats" in b.text] == ["Tons of oats"]


# --- annotations ------------------------------------------------------------------------------


def _annotated(c: Canvas) -> None:
    top = heading(c, "1 Notes", top=80)
    paragraph(c, LOREM, top=top)
    c.textAnnotation("Is this so?", Rect=(300, 700, 320, 720), addtopage=1)
    c.highlightAnnotation("Look at this", Rect=(72, 690, 200, 702))
    c.linkURL("https://example.org/oats?a=1", (72, 600, 200, 612))
    c.bookmarkPage("here")
    c.linkAbsolute("", "here", (72, 500, 200, 512))


def test_notes_marks_and_links_are_kept_with_their_places(tmp_path: Path) -> None:
    document = read_document(make_pdf(tmp_path / "a.pdf", [_page(1), _annotated]))
    found = {a.kind: a for a in document.annotations}
    assert set(found) == {"note", "highlight", "link"}
    assert (found["note"].page, found["note"].text) == (2, "Is this so?")
    assert found["highlight"].text == "Look at this"
    assert found["link"].target == "https://example.org/oats?a=1"
    assert found["note"].bbox == pytest.approx((300, HEIGHT - 720, 320, HEIGHT - 700), abs=0.5)
    assert "Is this so?" not in "\n".join(b.text for b in document.blocks)
    assert from_json(to_json(document)) == document


def test_a_book_on_the_shelf_keeps_them(tmp_path: Path) -> None:
    path = make_pdf(tmp_path / "a.pdf", [_page(1), _annotated])
    with Library.open(tmp_path / "shelf") as library:
        book = library.add(path)
    with Library.open(tmp_path / "shelf") as library:
        found = library.annotations(book.id)["annotations"]
    assert [(a["page"], a["kind"], a["text"] or a["target"]) for a in found] == [
        (2, "note", "Is this so?"),
        (2, "highlight", "Look at this"),
        (2, "link", "https://example.org/oats?a=1"),
    ]
    shown = CliRunner().invoke(
        app, ["show", book.id, "annotations", "--library", str(tmp_path / "shelf")]
    )
    assert shown.exit_code == 0, shown.output
    assert "p. 2  note  Is this so?" in shown.output


# --- forms ------------------------------------------------------------------------------------


def _form(c: Canvas) -> None:
    text_lines(c, ["Application for a Mill"], top=60, size=16, font="Helvetica-Bold")
    text_lines(c, ["Name of the miller"], top=120)
    text_lines(c, ["Has he a horse?"], top=160)
    text_lines(c, ["Kind of grain"], top=200)
    form = c.acroForm
    form.textfield(name="miller", value="Jan Kowalski", x=250, y=HEIGHT - 124, width=200, height=16)
    form.textfield(name="wife", value="", x=250, y=HEIGHT - 144, width=200, height=16)
    form.checkbox(name="horse", checked=True, x=250, y=HEIGHT - 164, size=14)
    form.checkbox(name="cart", checked=False, x=300, y=HEIGHT - 164, size=14)
    form.choice(name="grain", value="Barley", options=["Oats", "Barley"], x=250, y=HEIGHT - 204,
                width=100, height=16)  # fmt: skip


def test_values_of_form_fields_are_text_and_fields(tmp_path: Path) -> None:
    document = read_document(make_pdf(tmp_path / "form.pdf", [_form]))
    values = {a.name: a.text for a in document.annotations if a.kind == "field"}
    assert values == {
        "miller": "Jan Kowalski", "wife": "", "horse": "Yes", "cart": "", "grain": "Barley",
    }  # fmt: skip
    texts = [b.text for b in document.blocks]
    assert "miller: Jan Kowalski" in texts
    assert "grain: Barley" in texts
    assert not any("wife" in t or "cart" in t for t in texts)
    assert texts.index("Name of the miller") + 1 == texts.index("miller: Jan Kowalski")
    (block,) = [b for b in document.blocks if "Kowalski" in b.text]
    assert block.regions[0].bbox.x0 == pytest.approx(250, abs=1)


def test_a_form_without_any_other_text_is_read(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        c.acroForm.textfield(name="miller", value="Jan Kowalski", x=250, y=500)

    reader = IsolatedReader(memory_mb=1024)
    try:
        document = reader.read(make_pdf(tmp_path / "only.pdf", [draw]))
    finally:
        reader.close()
    assert [b.text for b in document.blocks] == ["miller: Jan Kowalski"]
    assert isinstance(document.annotations[0], Annotation)
