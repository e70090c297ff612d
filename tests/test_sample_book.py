"""The sample book: the committed PDF is what its sources build, and its truth file is true."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

DATA = Path(__file__).parent / "data"
PDF = DATA / "handbook.pdf"
TRUTH: dict[str, Any] = json.loads((DATA / "handbook.truth.json").read_text(encoding="utf-8"))


def flat(text: str) -> str:
    """One space between words, so that line breaks do not matter; a hyphen of pdfium's own."""
    return re.sub(r"\s+", " ", text.replace("\ufffe", "-")).strip()


def read_pages(pdf: Path) -> list[str]:
    """Text of each physical page, first page first."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return [flat(page.get_textpage().get_text_bounded()) for page in document]
    finally:
        document.close()


def producer(pdf: Path) -> str:
    """The typesetter and its release, as the file itself names them."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return str(document.get_metadata_dict()["Producer"])
    finally:
        document.close()


def build(out: Path) -> str:
    """Run the build script as a user would; what it printed."""
    command = [sys.executable, str(DATA / "build_handbook.py"), "--out", str(out)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return run.stdout


@pytest.fixture(scope="module")
def pages() -> list[str]:
    return read_pages(PDF)


@pytest.mark.skipif(find_spec("reportlab") is None, reason="reportlab, the typesetter, is absent")
def test_committed_files_are_what_the_sources_build(tmp_path: Path) -> None:
    assert build(tmp_path).startswith(f"{TRUTH['pages']} pages")
    stale = "is stale: run python tests/data/build_handbook.py and commit what it writes"
    truth = "handbook.truth.json"
    assert (tmp_path / truth).read_bytes() == (DATA / truth).read_bytes(), f"{truth} {stale}"
    built = tmp_path / "handbook.pdf"
    if producer(built) == producer(PDF):
        assert built.read_bytes() == PDF.read_bytes(), f"{PDF.name} {stale}"
    else:  # another release of reportlab writes other bytes, but the same book
        assert read_pages(built) == read_pages(PDF), f"{PDF.name} {stale}"


@pytest.mark.skipif(find_spec("reportlab") is None, reason="reportlab, the typesetter, is absent")
def test_two_builds_are_byte_identical(tmp_path: Path) -> None:
    builds = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        build(tmp_path / name)
        builds.append((tmp_path / name / "handbook.pdf").read_bytes())
    assert builds[0] == builds[1]


def test_size_and_shape(pages: list[str]) -> None:
    assert PDF.stat().st_size < 600_000
    assert len(pages) == TRUTH["pages"] >= 25
    assert {entry["level"] for entry in TRUTH["entries"]} == {1, 2, 3}
    assert len(TRUTH["tables"]) >= 8
    assert any(len(table["pages"]) > 1 for table in TRUTH["tables"]), "no table runs over a break"
    assert len(TRUTH["figures"]) >= 5
    assert len(TRUTH["acronyms"]) >= 25


def test_outline_and_labels_are_those_of_the_truth() -> None:
    document = pypdfium2.PdfDocument(PDF)
    try:
        outline = []
        for bookmark in document.get_toc(max_depth=5):
            target = bookmark.get_dest()
            assert target is not None
            outline.append((bookmark.level + 1, bookmark.get_title(), target.get_index() + 1))
        labels = [document.get_page_label(index) for index in range(len(document))]
    finally:
        document.close()
    assert outline == [(e["level"], e["title"], e["page"]) for e in TRUTH["entries"]]
    assert all(labels[e["page"] - 1] == e["label"] for e in TRUTH["entries"])
    front = TRUTH["front_pages"]
    assert labels[:4] == ["i", "ii", "iii", "iv"]
    assert labels[front:] == [str(n + 1) for n in range(len(labels) - front)]


def test_headings_and_captions_stand_on_their_pages(pages: list[str]) -> None:
    for entry in TRUTH["entries"]:
        assert flat(entry["title"]) in pages[entry["page"] - 1], entry
    for word, name in (("Table", "tables"), ("Figure", "figures"), ("Listing", "listings")):
        for entry in TRUTH[name]:
            caption = f"{word} {entry['number']}. {entry['title']}"
            assert flat(caption) in pages[entry["page"] - 1], entry


def test_printed_contents_name_the_labels(pages: list[str]) -> None:
    body = next(e["page"] for e in TRUTH["entries"] if e["title"].startswith("1 "))
    contents = re.sub(r"(?: ?\.){2,}", " ", " ".join(pages[: body - 1]))
    for entry in TRUTH["entries"]:
        if entry["title"] != "Contents":
            title = entry["title"].replace(": ", " ", 1) if "Appendix" in entry["title"] else None
            assert f"{flat(title or entry['title'])} {entry['label']}" in flat(contents), entry


@pytest.mark.parametrize("question", TRUTH["questions"], ids=lambda q: q["question"][:50])
def test_every_question_is_answered_on_its_pages(
    question: dict[str, Any], pages: list[str]
) -> None:
    text = [pages[page - 1] for page in question["pages"]]
    for key in question["keys"]:
        assert any(flat(key) in page for page in text), f"{key!r} not on {question['pages']}"


def test_there_are_enough_questions_of_every_kind() -> None:
    kinds = [question["kind"] for question in TRUTH["questions"]]
    assert len(kinds) >= 15
    wanted = {"fact", "table cell", "definition", "multi-section", "count", "list"}
    assert set(kinds) == wanted


def test_the_counts_are_true() -> None:
    answers = {q["question"]: q["answer"] for q in TRUTH["questions"] if q["kind"] == "count"}
    assert answers["How many tables are there?"] == str(len(TRUTH["tables"]))
    assert answers["How many figures does the book have?"] == str(len(TRUTH["figures"]))
