"""A shelf on disk: the catalogue, the folders of its books, and the books opened from them.

Knows nothing of models or questions. Safe to share between threads, and a folder between processes.
"""

from __future__ import annotations

import shlex
import shutil
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from bookrag_fast.errors import (
    BookragError,
    CorruptIndexError,
    LibraryError,
    UnknownBookError,
)
from bookrag_fast.forks import begins_anew
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.index.store import load_book, remove_leftovers, save_book
from bookrag_fast.library.catalogue import Catalogue
from bookrag_fast.library.comparing import remedy
from bookrag_fast.library.types import Book, Problem
from bookrag_fast.models.protocols import EmbedderInfo

__all__ = ["Shelf"]


class Shelf:
    """Books in a folder, which is created if absent.

    Args:
        keep_open: how many of the most recently used indexes stay open.

    Raises:
        LibraryError: the folder cannot be used.
    """

    def __init__(self, folder: Path, *, keep_open: int) -> None:
        self.folder = folder
        self._books_folder = folder / "books"
        try:
            self._books_folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise LibraryError(
                f"cannot use {folder} as a library: {why}",
                "choose another folder with --library",
            ) from error
        self.catalogue = Catalogue(folder / "catalogue.sqlite")
        remove_leftovers(self._books_folder)
        self._keep_open = keep_open
        self._opened: OrderedDict[str, BookIndex] = OrderedDict()  # by folder name
        self._guard = threading.Lock()
        begins_anew(self)

    def forked(self) -> None:
        self._guard = threading.Lock()

    def close(self) -> None:
        self.catalogue.close()
        with self._guard:
            self._opened.clear()

    def put(self, index: BookIndex, *, last_word: Callable[[], None]) -> Book:
        """Save a book and publish it, in place of an earlier version of it.

        Args:
            last_word: called between the two; whatever it raises undoes the saving.
        """
        folder = f"{index.meta.book_id}-{uuid.uuid4().hex[:8]}"
        save_book(index, self._books_folder / folder)
        book = _book_of(index)
        try:
            last_word()
            replaced = self.catalogue.put(book, folder, index.meta.embedder.fingerprint)
        except BaseException:
            shutil.rmtree(self._books_folder / folder, ignore_errors=True)
            raise
        if replaced is not None:
            self._drop(replaced)
        return book

    def remove(self, book: Book) -> None:
        """Take a book off the shelf; UnknownBookError if someone else was faster."""
        folder = self.catalogue.delete(book.id)
        if folder is None:
            raise UnknownBookError(f"book {book.id} was removed by someone else")
        self._drop(folder)

    def load(self, book_id: str) -> BookIndex:
        """The opened index, from the cache of the most recently used ones.

        Raises:
            UnknownBookError, CorruptIndexError, NewerIndexError.
        """
        for _ in range(3):
            folder = self.catalogue.folders().get(book_id)
            if folder is None:
                raise UnknownBookError(
                    f"book {book_id} was removed meanwhile", "`bookrag list` shows the books"
                )
            with self._guard:
                if folder in self._opened:
                    self._opened.move_to_end(folder)
                    return self._opened[folder]
            try:
                index = load_book(self._books_folder / folder)
            except CorruptIndexError:
                if self.catalogue.folders().get(book_id) != folder:
                    continue  # replaced or removed while it was being read
                raise
            with self._guard:
                index = self._opened.setdefault(folder, index)
                self._opened.move_to_end(folder)
                while len(self._opened) > self._keep_open:
                    self._opened.popitem(last=False)
            return index
        raise LibraryError(f"book {book_id} keeps changing while it is opened", "try again")

    def _drop(self, folder: str) -> None:
        with self._guard:
            self._opened.pop(folder, None)
        # Mapped files stay readable for whoever has them open.
        shutil.rmtree(self._books_folder / folder, ignore_errors=True)

    def check(self, embedder: EmbedderInfo | None) -> list[Problem]:
        """What is wrong with the shelf, each with what mends it; empty when all is well. Books are
        not compared with an embedder that is None."""
        problems: list[Problem] = []
        verdict = self.catalogue.check()
        if verdict != "ok":
            problems.append(
                Problem("error", str(self.folder / "catalogue.sqlite"), verdict,
                        "move the file away and index the books again")
            )  # fmt: skip
        folders = self.catalogue.folders()
        names = {b.id: b for b in self.catalogue.books()}
        for book_id, folder in folders.items():
            try:
                index = load_book(self._books_folder / folder)
            except BookragError as error:
                title = names[book_id].title if book_id in names else book_id
                problems.append(
                    Problem("error", title, error.message,
                            error.hint or f"bookrag rm {book_id}, then index the file again")
                )  # fmt: skip
                continue
            made = index.meta.embedder
            if embedder and made.fingerprint != embedder.fingerprint:
                problems.append(
                    Problem(
                        "warning",
                        index.meta.title,
                        f"indexed with {made.name} ({made.dimension} dimensions), not with "
                        f"{embedder.name} ({embedder.dimension}), which is configured",
                        remedy(index.meta.name, made, embedder),
                    )
                )
        known = set(folders.values())
        return problems + [
            Problem(
                "warning",
                str(entry),
                "belongs to no book (a leftover)",
                f"rm -r {shlex.quote(str(entry))}",
            )
            for entry in sorted(self._books_folder.glob("*"))
            if entry.name not in known and not entry.name.startswith(".")
        ]


def _book_of(index: BookIndex) -> Book:
    meta = index.meta
    return Book(
        id=meta.book_id,
        title=meta.title,
        name=meta.name,
        pages=index.pages_read,
        nodes=len(index.nodes),
        entities=len(index.entities),
        relations=len(index.relations),
        sha256=meta.sha256,
        embedder=meta.embedder.name,
        created=meta.created,
        toc_source=meta.toc_source,
        warnings=meta.warnings,
        confidence=None if meta.confidence is None else round(meta.confidence, 4),
        models=meta.models,
    )
