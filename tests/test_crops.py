"""Nodes cut out of their pages: `Library.pictures` and `bookrag show BOOK node ID --out FILE`."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from reportlab.pdfgen.canvas import Canvas
from typer.testing import CliRunner

from bookrag_fast import errors as e
from bookrag_fast.cli.main import app
from bookrag_fast.document import BBox
from bookrag_fast.document.model import Region
from bookrag_fast.document.pdf.pdfium import open_pdf
from bookrag_fast.document.pictures import render as rendering
from bookrag_fast.document.pictures.render import render_page
from bookrag_fast.index.model import NodeKind
from bookrag_fast.library import Library, Picture, crops
from bookrag_fast.library.crops import places
from pdf_factory import HEIGHT, LOREM, WIDTH, heading, image, make_pdf, paragraph, text_lines


def figure_page(canvas: Canvas) -> None:
    """A blue figure at (150, 300) to (350, 420) with its caption."""
    top = heading(canvas, "1 Pumps", top=90)
    paragraph(canvas, LOREM * 2, top=top)
    canvas.drawImage(image(), 150, HEIGHT - 420, 200, 120)
    canvas.setFillColorRGB(0, 0, 1)
    canvas.rect(150, HEIGHT - 420, 200, 120, stroke=0, fill=1)
    canvas.setFillColorRGB(0, 0, 0)
    text_lines(canvas, ["Figure 1. A pump."], top=440, x=200)
    paragraph(canvas, LOREM * 2, top=500)


def running_on(canvas: Canvas) -> None:
    """A paragraph that goes on at the top of the next page."""
    top = heading(canvas, "2 Valves", top=90)
    while top < 690:
        top = paragraph(canvas, LOREM, top=top)
    text_lines(
        canvas, ["The valves are checked each year and then they are all brought to the"], top=740
    )


def ending(canvas: Canvas) -> None:
    top = text_lines(
        canvas, ["house of the keeper, who writes down what he has found in them."], top=80
    )
    paragraph(canvas, LOREM * 3, top=top + 40)


@pytest.fixture(scope="module")
def pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pdf(
        tmp_path_factory.mktemp("crops") / "book.pdf",
        [figure_page, running_on, ending],
        outline=[("1 Pumps", 0, 1), ("2 Valves", 0, 2)],
    )


@pytest.fixture
def mine(pdf: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(pdf, tmp_path / "mine.pdf"))


@pytest.fixture
def library(mine: Path, tmp_path: Path):  # type: ignore[no-untyped-def]
    with Library.open(tmp_path / "shelf") as opened:
        opened.add(mine)
        yield opened


def figure_of(library: Library) -> int:
    nodes = library.index("mine.pdf").nodes
    return next(n.node_id for n in nodes if n.kind is NodeKind.IMAGE)


def split_of(library: Library) -> int:
    nodes = library.index("mine.pdf").nodes
    return next(n.node_id for n in nodes if len({r.page for r in n.regions}) == 2)


def pixels_of(picture: Picture) -> np.ndarray:
    with Image.open(io.BytesIO(picture.png)) as opened:
        return np.asarray(opened.convert("RGB"))


# --- a part of a page ---


def test_a_part_is_the_same_as_in_the_whole(pdf: Path) -> None:
    with open_pdf(pdf, None) as opened:
        whole = render_page(opened, 0, 144)
        part = render_page(opened, 0, 144, BBox(100, 200, 300, 350))
    assert part.shape == (300, 400, 3)
    assert np.array_equal(part, whole[400:700, 200:600])


def test_a_part_is_cut_at_the_page(pdf: Path) -> None:
    with open_pdf(pdf, None) as opened:
        part = render_page(opened, 0, 72, BBox(-50, -50, 50, 1e9))
    assert part.shape == (int(np.ceil(HEIGHT)), 50, 3)


@pytest.mark.parametrize("box", [
    BBox(WIDTH + 10, 0, WIDTH + 20, 10), BBox(-20, 0, -10, 10),
    BBox(float("nan"), 0, 10, 10), BBox(0, 0, float("inf"), 10),
])  # fmt: skip
def test_a_part_beside_the_page_is_refused(pdf: Path, box: BBox) -> None:
    with open_pdf(pdf, None) as opened, pytest.raises(e.InvalidArgumentError, match="outside"):
        render_page(opened, 0, 72, box)


# --- Library.pictures ---


def test_a_figure_as_it_is_printed(library: Library) -> None:
    (picture,) = library.pictures("mine.pdf", figure_of(library), dpi=144)
    assert picture.page == 1
    assert picture.png.startswith(b"\x89PNG")
    pixels = pixels_of(picture)
    assert pixels.shape == (picture.height, picture.width, 3)
    assert abs(picture.width - 2 * (200 + 2 * crops.MARGIN)) <= 2
    assert picture.bbox[:3] == pytest.approx((150, 300, 350), abs=0.5)
    assert 435 < picture.bbox.y1 < 450  # the caption is part of it
    assert (pixels[20:240, 20:-20] == (0, 0, 255)).all()
    assert (pixels[:3] == 255).all()
    assert (pixels[250:] == 0).all(axis=2).any()


def test_the_async_twin(library: Library) -> None:
    node = figure_of(library)
    assert asyncio.run(library.apictures("mine.pdf", node)) == library.pictures("mine.pdf", node)


def test_a_node_over_two_pages_has_a_picture_of_each(library: Library) -> None:
    pictures = library.pictures("mine.pdf", split_of(library))
    assert [p.page for p in pictures] == [2, 3]
    assert pictures[1].height < pictures[0].height


def test_places_of_a_node() -> None:
    left, right = BBox(50, 600, 250, 700), BBox(300, 80, 500, 200)
    below = BBox(50, 710, 200, 740)
    far = BBox(50, 90, 250, 100)
    assert places([Region(1, left), Region(1, below)]) == [Region(1, BBox(50, 600, 250, 740))]
    apart = [Region(1, far), Region(1, left), Region(1, right), Region(2, right)]
    assert places(apart) == apart


def test_what_cannot_be_drawn_is_said(
    library: Library, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = figure_of(library)
    for dpi in (0, 5000):
        with pytest.raises(e.InvalidArgumentError, match="dpi"):
            library.pictures("mine.pdf", node, dpi=dpi)
    with pytest.raises(e.InvalidArgumentError, match="dpi"):
        library.pictures("mine.pdf", node, dpi="high")  # type: ignore[arg-type]
    with pytest.raises(e.UnknownNodeError):
        library.pictures("mine.pdf", 10_000)
    with pytest.raises(e.InvalidArgumentError, match="no page"):
        library.pictures("mine.pdf", 0)
    with monkeypatch.context() as patched:
        patched.setattr(rendering, "MAX_PIXELS", 1000)
        with pytest.raises(e.TooLargeError):
            library.pictures("mine.pdf", node)
    with monkeypatch.context() as patched:
        patched.setattr(crops, "MAX_BYTES", 100)
        with pytest.raises(e.TooLargeError, match="node"):
            library.pictures("mine.pdf", node)
    moved = mine.rename(mine.with_name("moved.pdf"))
    with pytest.raises(e.DocumentError, match="has gone"):
        library.pictures("mine.pdf", node)
    assert library.pictures("mine.pdf", node, pdf=moved)
    mine.write_bytes(moved.read_bytes() + b"\n")
    with pytest.raises(e.DocumentError, match="its content is another"):
        library.pictures("mine.pdf", node)


def test_a_book_without_pages_has_no_pictures(tmp_path: Path) -> None:
    file = tmp_path / "plain.md"
    file.write_text("# One\n\nA text that says something.\n")
    with Library.open(tmp_path / "shelf") as library:
        library.add(file)
        with pytest.raises(e.InvalidArgumentError, match="no page"):
            library.pictures("plain.md", 2)


def test_an_encrypted_file_needs_its_password_again(tmp_path: Path) -> None:
    file = make_pdf(tmp_path / "secret.pdf", [figure_page], password="pw")
    with Library.open(tmp_path / "shelf") as library:
        library.add(file, password="pw")
        node = next(n.node_id for n in library.index("secret.pdf").nodes if n.kind > 1)
        with pytest.raises(e.EncryptedPdfError):
            library.pictures("secret.pdf", node)
        assert library.pictures("secret.pdf", node, password="pw")


# --- the command ---


def show(shelf: Path, *args: object, code: int = 0) -> dict:  # type: ignore[type-arg]
    outcome = CliRunner().invoke(app, ["show", *map(str, args), "-L", str(shelf), "--json"])
    assert "Traceback" not in outcome.output
    assert outcome.exit_code == code, outcome.output
    return json.loads(outcome.stdout)  # type: ignore[no-any-return]


def test_show_node_out_writes_the_picture(library: Library, tmp_path: Path) -> None:
    out = tmp_path / "figure.png"
    args = ("mine.pdf", "node", figure_of(library), "--out", out)
    (picture,) = show(library.folder, *args, "--dpi", 72)["pictures"]
    assert picture["file"] == str(out)
    with Image.open(out) as opened:
        assert opened.size == (picture["width"], picture["height"])
    show(library.folder, *args)  # our own may be replaced
    out.write_bytes(b"mine")
    problem = show(library.folder, *args, code=e.InvalidArgumentError.exit_code)["error"]
    assert "not replaced" in problem["message"]
    assert out.read_bytes() == b"mine"


def test_show_node_out_numbers_several_pictures(library: Library, tmp_path: Path) -> None:
    found = show(library.folder, "mine.pdf", "node", split_of(library), "--out", tmp_path / "a.png")
    assert [Path(p["file"]).name for p in found["pictures"]] == ["a-1.png", "a-2.png"]
    assert sorted(p.name for p in tmp_path.glob("*.png")) == ["a-1.png", "a-2.png"]


@pytest.mark.parametrize("out", ["figure.jpg", "figure", "absent/figure.png"])
def test_show_node_out_refuses_what_it_cannot_write(
    library: Library, tmp_path: Path, out: str
) -> None:
    args = ("mine.pdf", "node", figure_of(library), "--out", tmp_path / out)
    problem = show(library.folder, *args, code=e.InvalidArgumentError.exit_code)["error"]
    assert problem["hint"]
