"""Books without pages, and books that a layout parser read, from file to answer: in Python, on the
command line and over gRPC."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bookrag_fast import Library
from bookrag_fast import errors as e
from bookrag_fast.cli.main import app
from bookrag_fast.server import Client
from format_factory import docling_document, make_epub, write_json
from server_helpers import running

GUIDE = """\
---
title: The Orchard Guide
---
# Apples

An apple tree needs a frost of 800 hours before it blossoms in spring.

## Pruning

Prune the tree in February, when it is dormant. The saw must be clean.

| Month | Work |
|---|---|
| February | pruning |
| September | harvest |

# Pears

The Conference pear was introduced in 1894 by Thomas Rivers.

## Storage

Pears are stored at two degrees for up to three months.
"""


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("books")
    (folder / "guide.md").write_text(GUIDE)
    write_json(folder / "farm.json", docling_document())
    return folder


@pytest.fixture(scope="module")
def lib(books: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with Library.open(tmp_path_factory.mktemp("shelf")) as library:
        library.add(books / "guide.md")
        library.add(books / "farm.json")
        yield library


def test_a_markdown_book_on_the_shelf(lib: Library) -> None:
    book = lib.book("guide.md")
    assert (book.title, book.pages, book.toc_source) == ("The Orchard Guide", 0, "markup")
    root = lib.tree(book.id)
    chapters = root.children[0].children
    assert [c.title for c in chapters] == ["Apples", "Pears"]
    assert {(n.page, n.page_last, n.label) for n in (root, *chapters)} == {(0, 0, None)}
    stats = lib.stats(book.id)
    assert (stats["pages"], stats["nodes"]["table"], stats["nodes"]["section"]) == (0, 1, 5)
    assert lib.node(book.id, chapters[0].node_id)["pages"] == []


@pytest.mark.parametrize(("question", "answer", "section"), [
    ("When was the Conference pear introduced?", "1894", "Pears"),
    ("At how many degrees are pears stored?", "two degrees", "Storage"),
    ("How much frost does an apple tree need?", "800 hours", "Apples"),
])  # fmt: skip
def test_answers_cite_the_section_where_there_is_no_page(
    lib: Library, question: str, answer: str, section: str
) -> None:
    found = lib.ask(question, books=["guide.md"])
    assert answer in found.text
    cited = found.citations[0]
    assert (cited.pages, cited.labels, cited.boxes) == ((), (), ())
    assert cited.section[-1] == section
    hits = lib.search(question, books=["guide.md"])
    assert answer in " ".join(h.text for h in hits)
    assert all(h.pages == () and h.section for h in hits)


@pytest.mark.parametrize(("question", "answer"), [
    ("How many pages does the book have?", "0 pages"), ("How many tables are there?", "1 table"),
    ("How many chapters are there?", "2 chapters"), ("List the chapters", "Apples\nPears"),
])  # fmt: skip
def test_counts_and_lists_without_pages(lib: Library, question: str, answer: str) -> None:
    assert lib.ask(question, books=["guide.md"]).text == answer


@pytest.mark.parametrize("question", [
    "What is on page 3?", "What is on pages 2-5?", "How many tables are on page 1?",
    "Summarize pages 1 to 3", "What is said on page 2 about pears?",
])  # fmt: skip
def test_pages_that_a_book_cannot_have_are_said_to_be_none(lib: Library, question: str) -> None:
    found = lib.ask(question, books=["guide.md"])
    assert any("books of this format have none" in note for note in found.notes)


def test_a_docling_book_keeps_its_pages_and_boxes(lib: Library) -> None:
    book = lib.book("farm.json")
    assert (book.title, book.pages, book.toc_source) == ("The Dairy Farm", 2, "markup")
    found = lib.ask("How many litres of milk does Daisy give?", books=[book.id])
    assert "thirty litres" in found.text
    cited = found.citations[0]
    assert (cited.pages, cited.section) == ((1,), ("1 Cows",))
    assert cited.boxes[0].bbox[:2] == (72.0, 132.0)
    tables = [n for n in lib.index(book.id).nodes if n.kind.label == "table"]
    assert [(t.title, t.page_first) for t in tables] == [("Table 1: Eggs by month", 2)]
    images = [n for n in lib.index(book.id).nodes if n.kind.label == "image"]
    assert [(t.title, t.text) for t in images] == [("Figure 1: The hen house", "A red house.")]
    both = lib.search("pears and hens in winter")
    assert {h.book for h in both} == {b.id for b in lib.books()}


# --- the command line ----------------------------------------------------------------------------


@pytest.fixture
def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BOOKRAG_LIBRARY", str(tmp_path / "shelf"))
    return tmp_path


def run(*args: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in args])


def test_the_command_line_indexes_a_folder_and_cites_sections(on: Path, books: Path) -> None:
    folder = on / "folder"
    (folder / "more" / ".hidden").mkdir(parents=True)
    (folder / "guide.md").write_text(GUIDE)
    (folder / "more" / "FARM.JSON").write_text((books / "farm.json").read_text())
    make_epub(folder / "more" / "a.epub", {"a.xhtml": "<h1>Bees</h1><p>Bees make honey."})
    for name in ("package.json", "photo.gif", ".draft.md", "more/.hidden/x.md"):
        (folder / name).write_text("{}")
    (folder / "loop").symlink_to(folder)
    result = run("index", folder, folder / "guide.md")
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        "guide.md", "FARM.JSON", "a.epub",
    ]  # fmt: skip
    assert "(11 nodes" in result.stdout
    assert "(2 pages," in result.stdout
    listed = run("list").stdout.splitlines()
    assert any("no pages  The Orchard Guide" in line for line in listed)
    answer = run("ask", "When was the Conference pear introduced?", "--book", "guide.md").stdout
    assert "1894" in answer
    assert "[1] Pears · node" in answer
    assert "p. " not in answer
    hits = run("search", "Conference pear", "--book", "guide.md").stdout
    assert hits.startswith("1. text · Pears")
    shown = run("show", "guide.md").stdout
    assert "Pruning" in shown
    assert "p. " not in shown
    node = run("show", "guide.md", "node", "2").stdout
    assert node.splitlines()[0].startswith("node 2 · section")
    cited = json.loads(run("ask", "Daisy milk", "--book", "FARM.JSON", "--json").stdout)
    assert cited["citations"][0]["pages"] == [1]


def test_a_folder_without_books_is_an_error_and_the_rest_goes_on(on: Path) -> None:
    (on / "none").mkdir()
    (on / "b.md").write_text("# Head\n\ntext\n")
    result = run("index", on / "none", on / "b.md", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == e.DocumentError.exit_code
    assert [b["name"] for b in found["books"]] == ["b.md"]
    assert "none" in found["errors"][0]["error"]["message"]


def test_errors_of_formats_have_exit_codes(on: Path) -> None:
    (on / "b.md").write_bytes(bytes(50))
    (on / "b.epub").write_bytes(b"PK\x03\x04 and no more")
    for name, error in (("b.md", e.UnsupportedFormatError), ("b.epub", e.DamagedDocumentError)):
        result = run("index", on / name, "--json")
        assert result.exit_code == error.exit_code
        assert json.loads(result.stdout)["error"]["code"] == error.code
    codes = [c.exit_code for c in _classes(e.DocumentError) if c.__module__ == e.__name__]
    assert len(codes) == len(set(codes))


def _classes(base: type[e.BookragError]) -> Iterator[type[e.BookragError]]:
    yield base
    for derived in base.__subclasses__():
        yield from _classes(derived)


# --- gRPC ----------------------------------------------------------------------------------------


def test_the_service_takes_uploads_of_every_format(tmp_path: Path, books: Path) -> None:
    with (
        Library.open(tmp_path / "shelf") as library,
        running(library) as target,
        Client(target, timeout=60) as client,
    ):
        guide, farm = (client.add(books / name) for name in ("guide.md", "farm.json"))
        assert (guide.pages, guide.toc_source, farm.pages) == (0, "markup", 2)
        assert client.books() == library.books()
        assert client.tree(guide.id) == library.tree(guide.id)
        question = "When was the Conference pear introduced?"
        there, here = client.ask(question), library.ask(question)
        assert there.citations == here.citations
        assert there.citations[0].pages == ()
        bad = tmp_path / "bad.md"
        bad.write_bytes(bytes(50))
        with pytest.raises(e.UnsupportedFormatError) as caught:
            client.add(bad)
        assert str(tmp_path) not in caught.value.message
