"""Pages drawn with what was read from them: `bookrag show BOOK pages`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from bookrag_fast import errors as e
from bookrag_fast.cli.main import app
from bookrag_fast.document import BBox, read_document
from bookrag_fast.document.pdf.pdfium import open_pdf
from bookrag_fast.document.pictures import render as rendering
from bookrag_fast.document.pictures.overlay import Mark, draw_marks
from bookrag_fast.document.pictures.render import MAX_DPI, MIN_DPI, render_page
from bookrag_fast.index.tree import build_tree
from bookrag_fast.library import Library
from bookrag_fast.library.pictures import marks_of_book, marks_of_document, page_range
from pdf_factory import HEIGHT, LOREM, WIDTH, heading, make_pdf, paragraph

RED = (215, 0, 0)  # of headings of level 1


def chapter(title: str):  # type: ignore[no-untyped-def]
    def draw(canvas) -> None:  # type: ignore[no-untyped-def]
        top = heading(canvas, title, top=90)
        for _ in range(2):
            top = paragraph(canvas, LOREM * 2, top=top)
        canvas.setFillColorRGB(0, 0, 1)
        canvas.rect(100, HEIGHT - 700, 50, 20, stroke=0, fill=1)  # top left at (100, 680)
        canvas.setFillColorRGB(0, 0, 0)

    return draw


@pytest.fixture(scope="module")
def pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    titles = ("1 Pumps", "2 Valves", "3 Pipes")
    return make_pdf(
        tmp_path_factory.mktemp("pictures") / "book.pdf",
        [chapter(t) for t in titles],
        outline=[(t, 0, k) for k, t in enumerate(titles, 1)],
    )


# --- the picture of a page ---


@pytest.mark.parametrize("dpi", [72, 100])
def test_a_page_is_drawn_as_displayed_at_its_resolution(pdf: Path, dpi: int) -> None:
    with open_pdf(pdf, None) as opened:
        pixels = render_page(opened, 0, dpi)
    scale = dpi / 72
    assert pixels.dtype == np.uint8
    assert pixels.shape == (int(np.ceil(HEIGHT * scale)), int(np.ceil(WIDTH * scale)), 3)
    assert tuple(pixels[round(690 * scale), round(125 * scale)]) == (0, 0, 255)
    assert tuple(pixels[5, 5]) == (255, 255, 255)


@pytest.mark.parametrize("dpi", [0, -1, MIN_DPI - 1, MAX_DPI + 1, 10**9])
def test_an_absurd_resolution_is_refused(pdf: Path, dpi: int) -> None:
    with open_pdf(pdf, None) as opened, pytest.raises(e.InvalidArgumentError, match="dpi"):
        render_page(opened, 0, dpi)


def test_a_page_of_too_many_pixels_is_refused_with_what_would_do(
    pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "MAX_PIXELS", 500_000)
    with open_pdf(pdf, None) as opened:
        with pytest.raises(e.TooLargeError) as caught:
            render_page(opened, 0, 100)
        allowed = int(caught.value.hint.split()[-1])
        assert render_page(opened, 0, allowed).size // 3 <= 500_000


# --- the marks ---


def test_marks_are_boxes_with_a_tag_and_a_legend() -> None:
    page = np.full((400, 300, 3), 255, np.uint8)
    marks = [
        Mark("heading", BBox(72, 36, 180, 54), "1", 1),
        Mark("table", BBox(72, 100, 180, 200), "2", 0, (BBox(80, 110, 120, 130),)),
    ]
    picture = draw_marks(page, marks, dpi=72, caption="page 1 (印)")
    assert picture.width == 300
    assert picture.height > 400
    pixels = np.asarray(picture)
    assert tuple(pixels[54, 100]) == RED  # an edge
    assert tuple(pixels[40, 65]) != (255, 255, 255)  # the tag beside the box
    assert tuple(pixels[45, 150]) not in (RED, (255, 255, 255))  # the inside lets the page through
    assert tuple(pixels[110, 100]) != tuple(pixels[105, 100])  # the cell's edge
    assert (pixels[401:] != 255).any()
    bare = np.asarray(draw_marks(page, [], dpi=72, caption=""))
    assert (bare[:400] == 255).all()


def test_marks_of_a_document_number_its_blocks_and_know_its_headings(pdf: Path) -> None:
    document = read_document(pdf)
    marks = marks_of_document(document, build_tree(document))
    assert [m.label for m in marks[2]] == [str(k + 1) for k in range(len(marks[2]))]
    assert [(m.kind, m.level) for m in marks[2]][:2] == [("heading", 1), ("text", 0)]


def test_marks_of_a_book_carry_the_numbers_of_its_nodes(shelf: Library) -> None:
    index = shelf.index(shelf.books()[0].id)
    marks = marks_of_book(index)
    assert sum(len(of_page) for of_page in marks.values()) == sum(
        len(n.regions) for n in index.nodes
    )
    number = {m.label for of_page in marks.values() for m in of_page}
    assert number <= {f"#{n.node_id}" for n in index.nodes}
    assert any(m.cells for of_page in marks.values() for m in of_page)


@pytest.mark.parametrize(("text", "pages"), [
    (None, [1, 2, 3, 4, 5]), ("3", [3]), ("2-4", [2, 3, 4]), ("4-", [4, 5]), ("-2", [1, 2]),
    (" 1 , 3 - 4 ", [1, 3, 4]), ("2,2", [2]),
])  # fmt: skip
def test_page_ranges(text: str | None, pages: list[int]) -> None:
    assert page_range(text, 5) == pages


@pytest.mark.parametrize("text", ["", "x", "0", "6", "3-2", "1-6", "-", "1 2", "1--2", "9" * 5000])
def test_what_is_no_page_range_is_refused(text: str) -> None:
    with pytest.raises(e.InvalidArgumentError):
        page_range(text, 5)


# --- the command ---


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOOKRAG_LIBRARY", str(tmp_path / "shelf"))


def show(*args: object, code: int = 0) -> dict:
    outcome = CliRunner().invoke(app, ["show", *map(str, args), "--json"])
    assert "Traceback" not in outcome.output
    assert outcome.exit_code == code, outcome.output
    return json.loads(outcome.stdout)


def test_pages_of_a_file_are_drawn_without_a_shelf(pdf: Path, tmp_path: Path) -> None:
    found = show(pdf, "pages", "--out", "png", "--pages", "2-")
    assert [p["page"] for p in found["pages"]] == [2, 3]
    assert [Path(p["file"]).name for p in found["pages"]] == ["book-p0002.png", "book-p0003.png"]
    with Image.open(found["pages"][0]["file"]) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    assert (pixels == RED).all(axis=2).any()  # the heading's box
    assert not (tmp_path / "shelf").exists()
    assert sorted(p.name for p in (tmp_path / "png").iterdir()) == [
        "book-p0002.png", "book-p0003.png",
    ]  # fmt: skip


def test_pages_of_a_book_come_from_the_file_it_was_made_from(pdf: Path, tmp_path: Path) -> None:
    mine = shutil.copy(pdf, tmp_path / "mine.pdf")
    with Library.open(tmp_path / "shelf") as lib:
        book = lib.add(mine)
    args = (book.id, "pages", "--out", "png", "--pages", "1")
    assert show(*args)["pages"][0]["boxes"] >= 2
    moved = Path(mine).rename(tmp_path / "moved.pdf")
    gone = show(*args, code=e.DocumentError.exit_code)
    assert "has gone" in gone["error"]["message"]
    assert "--pdf" in gone["error"]["hint"]
    assert len(show(*args, "--pdf", moved)["pages"]) == 1
    other = make_pdf(Path(mine), [chapter("Another")])
    changed = show(*args, code=e.DocumentError.exit_code)
    assert "its content is another" in changed["error"]["message"]
    assert str(other) in changed["error"]["message"]


def test_foreign_files_are_never_replaced(pdf: Path, tmp_path: Path) -> None:
    args = (pdf, "pages", "--out", "png")
    show(*args)
    show(*args)  # our own are
    foreign = tmp_path / "png" / "book-p0002.png"
    for content in (b"mine", b""):
        foreign.write_bytes(content)
        first = (tmp_path / "png" / "book-p0001.png").stat().st_mtime_ns
        problem = show(*args, code=e.InvalidArgumentError.exit_code)["error"]
        assert "not replaced" in problem["message"]
        assert foreign.read_bytes() == content
        assert (tmp_path / "png" / "book-p0001.png").stat().st_mtime_ns == first
    Image.new("RGB", (4, 4)).save(foreign)
    show(*args, code=e.InvalidArgumentError.exit_code)
    foreign.unlink()
    foreign.symlink_to(tmp_path / "nowhere")
    show(*args, code=e.InvalidArgumentError.exit_code)
    assert foreign.is_symlink()


@pytest.mark.parametrize("args", [
    (), ("--out", "png", "--dpi", "5000"), ("--out", "png", "--dpi", "1"),
    ("--out", "png", "--pages", "4"), ("--out", "png", "--pages", "x"), ("--out", "afile"),
])  # fmt: skip
def test_what_cannot_be_done_is_said_before_anything_is_drawn(
    pdf: Path, tmp_path: Path, args: tuple[str, ...]
) -> None:
    (tmp_path / "afile").write_text("in the way")
    problem = show(pdf, "pages", *args, code=e.InvalidArgumentError.exit_code)["error"]
    assert problem["hint"]
    assert not (tmp_path / "png").exists() or not list((tmp_path / "png").iterdir())


def test_a_page_that_cannot_be_drawn_fails_alone(
    pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = rendering.render_page

    def render(opened, index: int, dpi: int):  # type: ignore[no-untyped-def]
        if index == 1:
            raise OSError("PDFium cannot load the page")
        return real(opened, index, dpi)

    monkeypatch.setattr("bookrag_fast.library.pictures.render_page", render)
    found = show(pdf, "pages", "--out", "png", code=e.DocumentError.exit_code)
    assert [p["page"] for p in found["pages"]] == [1, 3]
    assert [p["page"] for p in found["errors"]] == [2]
    assert "page 2" in found["error"]["message"]


def test_an_encrypted_file_is_drawn_with_its_password(tmp_path: Path) -> None:
    file = make_pdf(tmp_path / "secret.pdf", [chapter("1 Pumps")], password="pw")
    show(file, "pages", "--out", "png", code=e.EncryptedPdfError.exit_code)
    assert len(show(file, "pages", "--out", "png", "--password", "pw")["pages"]) == 1
