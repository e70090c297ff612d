"""Books that leave the shelf or are replaced, and shelves that are damaged or cannot be."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bookrag_fast import Book, Library
from bookrag_fast.errors import (
    CorruptIndexError,
    LibraryError,
    ModelMismatchError,
    NewerIndexError,
    UnknownBookError,
)
from bookrag_fast.library.catalogue import Catalogue
from conftest import HANDBOOK
from factories import HashEmbedder


def test_removing_takes_the_book_but_not_the_file(own: Library) -> None:
    book = own.books()[0]
    index = own.index(book.id)
    assert own.remove(book.id) == book
    assert own.books() == []
    assert list((own.folder / "books").iterdir()) == []
    assert HANDBOOK.exists()
    assert float(index.node_vectors.sum()) != 0  # whoever reads it goes on reading
    with pytest.raises(UnknownBookError):
        own.remove(book.id)


def test_a_book_removed_while_it_is_added_again_is_made_anew(
    own: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    (book,) = own.books()
    look = Catalogue.version

    def version(catalogue: Catalogue, book_id: str) -> tuple[Book, str] | None:
        found = look(catalogue, book_id)
        monkeypatch.undo()
        own.remove(book.id)
        return found

    monkeypatch.setattr(Catalogue, "version", version)
    assert own.add(HANDBOOK).id == book.id
    assert [b.id for b in own.books()] == [book.id]


def test_another_embedder_is_refused_and_converted_by_indexing_again(own: Library) -> None:
    other = Library.open(own.folder, embedder=HashEmbedder())
    with pytest.raises(ModelMismatchError, match="wordllama") as caught:
        other.search("damping")
    assert "again" in caught.value.hint
    assert [p.level for p in other.check()] == ["warning"]
    book = other.add(HANDBOOK)
    assert book.embedder == "hash"
    assert other.search("damping")
    assert len(other.books()) == 1
    assert len(list((own.folder / "books").iterdir())) == 1
    with pytest.raises(ModelMismatchError):
        own.search("damping")


def test_a_damaged_book_is_named_and_mended_by_indexing_again(own: Library) -> None:
    nodes = next((own.folder / "books").glob("*/nodes.arrow"))
    nodes.write_bytes(nodes.read_bytes()[:-100])
    with pytest.raises(CorruptIndexError, match=r"nodes\.arrow"):
        own.search("damping")
    assert [p.level for p in own.check()] == ["error"]
    own.add(HANDBOOK)
    assert own.check() == []
    assert own.search("damping")


def test_a_shelf_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(LibraryError):
        Library.open(tmp_path / "file" / "shelf")


def test_a_catalogue_from_the_future_is_refused(own: Library) -> None:
    own.close()
    with sqlite3.connect(own.folder / "catalogue.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerIndexError):
        Library.open(own.folder)


def test_a_catalogue_that_is_no_database(own: Library) -> None:
    own.close()
    for file in own.folder.glob("catalogue.sqlite*"):
        file.unlink()
    (own.folder / "catalogue.sqlite").write_bytes(b"garbage " * 1000)
    with pytest.raises(LibraryError, match="catalogue"):
        Library.open(own.folder)


@pytest.mark.parametrize("summary", ["{", "[]", '{"id": 1}'])
def test_a_damaged_entry_of_the_catalogue_is_named(own: Library, summary: str) -> None:
    with sqlite3.connect(own.folder / "catalogue.sqlite") as db:
        db.execute("UPDATE books SET summary = ?", (summary,))
    with pytest.raises(LibraryError, match="damaged entry"):
        own.books()


def test_a_catalogue_cannot_have_other_folders_removed(own: Library, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    with sqlite3.connect(own.folder / "catalogue.sqlite") as db:
        db.execute("UPDATE books SET folder = '../../precious'")
    with pytest.raises(LibraryError):
        own.remove("handbook.pdf")
    assert (tmp_path / "precious").is_dir()
