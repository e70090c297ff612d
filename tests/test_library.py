"""Books put on a shelf, and found there."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from reportlab.pdfgen import canvas

from bookrag_fast import Book, Library
from bookrag_fast.errors import (
    DocumentError,
    EmptyDocumentError,
    NotAPdfError,
    TooLargeError,
    UnknownBookError,
    UnknownNodeError,
)
from conftest import HANDBOOK


def test_books_are_found_by_id_prefix_title_name_and_file(shelf: Library, handbook: Book) -> None:
    for ref in (handbook.id, handbook.id[:4], handbook.title, handbook.name, str(HANDBOOK)):
        assert shelf.book(ref) == handbook
    for ref in (handbook.id[:3], "nothing", "/nowhere/at/all.pdf", "a\0b", ""):
        with pytest.raises(UnknownBookError) as caught:
            shelf.book(ref)
        assert "bookrag list" in str(caught.value)


def test_unknown_nodes_and_books(shelf: Library, handbook: Book) -> None:
    with pytest.raises(UnknownNodeError, match="numbered 0 to"):
        shelf.node(handbook.id, handbook.nodes)
    with pytest.raises(UnknownNodeError):
        shelf.node(handbook.id, -1)
    with pytest.raises(UnknownBookError):
        shelf.search("x", books=["nothing"])


def test_an_empty_shelf_says_so(tmp_path: Path) -> None:
    with Library.open(tmp_path / "new") as lib:
        assert lib.books() == []
        with pytest.raises(UnknownBookError, match="has no book"):
            lib.ask("What?")


def test_adding_twice_is_adding_once(own: Library, tmp_path: Path) -> None:
    before = own.books()
    copy = tmp_path / "other name.pdf"
    shutil.copy(HANDBOOK, copy)
    assert own.add(copy) == before[0]
    assert own.books() == before


def test_two_shelves_of_one_file_are_equal(tmp_path: Path, shelf: Library) -> None:
    with Library.open(tmp_path / "shelf") as lib:
        book = lib.add(HANDBOOK)
        question = "How is the gradient drop decided?"
        mine = [e.to_json() for e in lib.search(question)]
        assert mine == [e.to_json() for e in shelf.search(question)]
        assert lib.graph(book.id) == shelf.graph(book.id)


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"", EmptyDocumentError), (b"hello world, no pdf here", NotAPdfError)],
)
def test_a_bad_file_leaves_the_shelf_as_it_was(
    own: Library, tmp_path: Path, content: bytes, error: type[DocumentError]
) -> None:
    path = tmp_path / "bad.pdf"
    path.write_bytes(content)
    before = sorted(p.relative_to(own.folder) for p in own.folder.rglob("*.arrow"))
    with pytest.raises(error, match=r"bad\.pdf"):
        own.add(path)
    assert sorted(p.relative_to(own.folder) for p in own.folder.rglob("*.arrow")) == before
    assert len(own.books()) == 1


def test_a_missing_file_and_a_folder(own: Library, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="No such file"):
        own.add(tmp_path / "absent.pdf")
    with pytest.raises(DocumentError, match="is a folder"):
        own.add(tmp_path)


def test_files_beyond_the_limit_are_refused_unread(tmp_path: Path) -> None:
    from bookrag_fast.config import Settings

    huge = tmp_path / "huge.pdf"
    with huge.open("wb") as out:
        out.truncate(3 << 20)
    with (
        Library.open(tmp_path / "shelf", settings=Settings(max_file_mb=2)) as lib,
        pytest.raises(TooLargeError, match="max_file_mb"),
    ):
        lib.add(huge)


def test_a_cancelled_add_leaves_nothing(tmp_path: Path) -> None:
    async def run(lib: Library) -> None:
        started = asyncio.Event()
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(
            lib.aadd(HANDBOOK, progress=lambda p: loop.call_soon_threadsafe(started.set))
        )
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Library.open(tmp_path / "shelf") as lib:
        asyncio.run(run(lib))  # it waits for its worker threads
        assert lib.books() == []
        assert list((lib.folder / "books").iterdir()) == []


def test_all_books_are_asked_unless_some_are_named(own: Library, tmp_path: Path) -> None:
    path = tmp_path / "birds.pdf"
    page = canvas.Canvas(str(path))
    page.setFont("Helvetica", 11)
    page.drawString(72, 700, "The kestrel hovers over open ground before it strikes a vole.")
    page.save()
    birds = own.add(path)
    handbook = own.books()[0]
    assert [b.name for b in own.books()] == ["handbook.pdf", "birds.pdf"]
    assert own.search("What does the kestrel hover over?")[0].book == birds.id
    assert own.search("What is the gradient drop?")[0].book == handbook.id
    assert {e.book for e in own.search("kestrel", books=[handbook.id])} == {handbook.id}
    answer = own.ask("Where does the kestrel hover?")
    assert "open ground" in answer.text
    assert answer.citations[0].book == birds.id
    own.remove("birds.pdf")
    assert {e.book for e in own.search("kestrel")} == {handbook.id}
