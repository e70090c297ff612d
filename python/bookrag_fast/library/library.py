"""The Library: a shelf of books to add to, search, ask and remove from.

Every operation is async at heart (`aadd`, `asearch`, …); the sync methods run the same coroutine
on a loop of the library's own, so they also work inside a running event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bookrag_fast.config import Settings, load_settings
from bookrag_fast.errors import ModelError, UnknownBookError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.library import crops, views
from bookrag_fast.library.adding import Adder
from bookrag_fast.library.arguments import (
    checked_books,
    checked_callback,
    checked_int,
    checked_pages,
    checked_password,
    checked_path,
    refuse,
)
from bookrag_fast.library.comparing import check_embedder
from bookrag_fast.library.files import book_id_of, sha256_of
from bookrag_fast.library.questions import Questions
from bookrag_fast.library.shelf import Shelf
from bookrag_fast.library.types import (
    Book,
    Estimate,
    Picture,
    Problem,
    ProgressCallback,
    TreeNode,
)
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.create import create_models
from bookrag_fast.models.protocols import Embedder
from bookrag_fast.models.roles import ModelSet
from bookrag_fast.query.executor import Executor

__all__ = ["Library"]


class Library(Questions):
    """Books on one shelf (a folder). Safe to share between threads, tasks and processes.

    Use `Library.open`; close it, or use it as a context manager, to release its files.

    Every method raises InvalidArgumentError for an argument of a wrong type.
    """

    def __init__(
        self, folder: Path, models: ModelSet, settings: Settings, runner: LoopRunner
    ) -> None:
        self._models = models
        self._settings = settings
        self._shelf = Shelf(folder, keep_open=settings.open_books)
        self._adder = Adder(self._shelf, models, settings)
        self._executor = Executor(models, settings.retrieval, crops.largest_picture)
        self._runner = runner

    @classmethod
    def open(
        cls,
        path: str | Path = "shelf",
        *,
        embedder: Embedder | None = None,
        settings: Settings | None = None,
    ) -> Library:
        """Open a shelf; an absent one is created.

        Args:
            path: the shelf's folder.
            embedder: instead of the one that the settings name.
            settings: instead of those from the environment and ``bookrag.toml``.

        Raises:
            LibraryError: the folder cannot be used. ConfigError: the settings are wrong.
        """
        folder = checked_path(path, "path")
        if settings is not None and not isinstance(settings, Settings):
            refuse("settings", settings, "Settings")
        if embedder is not None and not isinstance(embedder, Embedder):
            refuse("embedder", embedder, "an Embedder")
        chosen = settings if settings is not None else load_settings()
        runner = LoopRunner()
        models = create_models(chosen, folder=folder, runner=runner, embedder=embedder)
        return cls(folder, models, chosen, runner)

    def close(self) -> None:
        """Release files and threads. The library cannot be used afterwards."""
        self._runner.close(self._models.aclose if self._models.closers else None)
        self._adder.close()
        self._shelf.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def folder(self) -> Path:
        return self._shelf.folder

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def embedder(self) -> Embedder:
        return self._models.embedder

    # --- adding and removing ----------------------------------------------------------------

    def add(
        self,
        path: str | Path,
        *,
        password: str | None = None,
        pages: tuple[int, int | None] | None = None,
        progress: ProgressCallback | None = None,
    ) -> Book:
        """Index a file and put it on the shelf; a file of the same content that is already there
        is returned as it is, whichever models its `Book.models` says made it, unless it was made
        with another embedder. No model is called for it: the server of an embedder may be down. If
        that server has other vectors now under the name of its model, which only a question shows,
        the book is to be removed first.

        The book appears complete or not at all: an error, a kill or a full disk leaves the shelf
        as it was.

        Args:
            path: a file of any format that `document.read_document` reads.
            password: of an encrypted PDF.
            pages: of a PDF, the first and the last physical page to index, None for the file's
                last; each choice of pages is a book of its own. None indexes all.
            progress: called with each step, on a thread of its own, so that it may use the library.
                While it is busy pages are read on, and it is told of the latest. What it raises
                ends the work, and is raised.

        Raises:
            DocumentError: one of its kinds says what is wrong with the file.
            InvalidArgumentError: the file does not have those pages.
            TooLargeError: larger than the settings allow.
            SpendingLimitError: the budget is spent. What was paid for is kept: the next time goes
                on from there.
            ModelError: the embedder failed. No other model's failure fails the book.
            IndexStoreError, LibraryError: the shelf cannot be written.
        """
        return self._runner.run(self.aadd(path, password=password, pages=pages, progress=progress))

    async def aadd(
        self,
        path: str | Path,
        *,
        password: str | None = None,
        pages: tuple[int, int | None] | None = None,
        progress: ProgressCallback | None = None,
    ) -> Book:
        """`add`, awaited. Cancelling it ends calls of models at once, other work at the next page
        or stage, and the cancellation returns when it has stopped: nothing goes on behind the
        caller's back."""
        file, secret = checked_path(path, "path"), checked_password(password)
        chosen = checked_pages(pages)
        callback = checked_callback(progress, "progress")
        return await self._runner.arun(self._adder.add(file, secret, chosen, callback))

    def estimate(
        self,
        path: str | Path,
        *,
        password: str | None = None,
        pages: tuple[int, int | None] | None = None,
        progress: ProgressCallback | None = None,
    ) -> Estimate:
        """What models would be asked to `add` a file, and what that would cost, as far as it can
        be known without asking them: the file is read, nothing is written, no model is called.

        Args and Raises: as of `add`.
        """
        return self._runner.run(
            self.aestimate(path, password=password, pages=pages, progress=progress)
        )

    async def aestimate(
        self,
        path: str | Path,
        *,
        password: str | None = None,
        pages: tuple[int, int | None] | None = None,
        progress: ProgressCallback | None = None,
    ) -> Estimate:
        """`estimate`, awaited; cancelled as `aadd` is."""
        file, secret = checked_path(path, "path"), checked_password(password)
        chosen = checked_pages(pages)
        callback = checked_callback(progress, "progress")
        return await self._runner.arun(self._adder.estimate(file, secret, chosen, callback))

    def remove(self, ref: str) -> Book:
        """Take a book off the shelf. Questions that are reading it finish undisturbed."""
        return self._runner.run(self.aremove(ref))

    async def aremove(self, ref: str) -> Book:
        """`remove`, awaited."""
        return await asyncio.to_thread(self._remove, ref)

    # --- looking up -------------------------------------------------------------------------

    def books(self) -> list[Book]:
        """Every book on the shelf, oldest first."""
        return self._shelf.catalogue.books()

    def book(self, ref: str | Path) -> Book:
        """A book by id, unambiguous beginning of one (4 characters or more), title, file name, or
        path of a file whose content is on the shelf.

        Raises:
            UnknownBookError: there is none, or more than one.
        """
        checked_path(ref, "ref")
        found = self._shelf.catalogue.find(str(ref))
        if len(found) == 1:
            return found[0]
        if len(found) > 1:
            raise UnknownBookError(
                f"{str(ref)!r} names {len(found)} books",
                "use an id: " + ", ".join(f"{b.id} ({b.title})" for b in found[:5]),
            )
        book = self.find_file(ref)
        if book is None:
            raise UnknownBookError(
                f"no book {str(ref)!r} is on the shelf {self.folder}",
                "`bookrag list` shows the books, `bookrag index FILE` adds one",
            )
        return book

    def find_file(self, path: str | Path) -> Book | None:
        """The book made from this very content, all of it, if it is on the shelf; None also for a
        path that is no readable file."""
        file = checked_path(path, "path")
        try:
            if not file.is_file():
                return None
            known = self._shelf.catalogue.version(book_id_of(sha256_of(file)))
        except (OSError, ValueError):  # ValueError: a NUL in the path
            return None
        return None if known is None else known[0]

    def tree(self, ref: str) -> TreeNode:
        """The section tree T of a book, as nested nodes from the root."""
        return views.tree(self._index_of(ref))

    def node(self, ref: str, node_id: int) -> dict[str, Any]:
        """One node with its text, places, section path and entities; UnknownNodeError."""
        return views.node(self._index_of(ref), checked_int(node_id, "node_id"))

    def pictures(
        self,
        ref: str,
        node_id: int,
        *,
        dpi: int = crops.DEFAULT_DPI,
        pdf: str | Path | None = None,
        password: str | None = None,
    ) -> list[Picture]:
        """A figure, a table, an equation or any other node as it is printed, drawn from the PDF
        that the book was made from: a PNG for each place (page, column) where it stands, in
        reading order; a figure has its caption with it.

        Args:
            dpi: pixels an inch, 20 to 400; a picture has at most 36 million.
            pdf: where that PDF is, if it was moved.
            password: of an encrypted PDF; it is never remembered.

        Raises:
            UnknownNodeError: the book has no such node.
            InvalidArgumentError: the node stands on no page; the resolution is out of range.
            DocumentError: the file has gone, has changed, is no PDF, or its page does not load.
            TooLargeError: the picture would have too many pixels.
        """
        return self._runner.run(self.apictures(ref, node_id, dpi=dpi, pdf=pdf, password=password))

    async def apictures(
        self,
        ref: str,
        node_id: int,
        *,
        dpi: int = crops.DEFAULT_DPI,
        pdf: str | Path | None = None,
        password: str | None = None,
    ) -> list[Picture]:
        """`pictures`, awaited."""
        node, resolution = checked_int(node_id, "node_id"), checked_int(dpi, "dpi")
        file = None if pdf is None else checked_path(pdf, "pdf")
        secret = checked_password(password)
        return await asyncio.to_thread(
            lambda: crops.pictures_of(
                self._index_of(ref), node, dpi=resolution, pdf=file, password=secret
            )
        )

    def graph(self, ref: str, *, limit: int = 50) -> dict[str, Any]:
        """The best-connected entities of G, the relations among them, and the merges made."""
        return views.graph(self._index_of(ref), checked_int(limit, "limit"))

    def annotations(self, ref: str) -> dict[str, Any]:
        """What stands on a book's pages beside their text: notes, marks, web links, fields."""
        return views.page_annotations(self._index_of(ref))

    def stats(self, ref: str) -> dict[str, Any]:
        """Counts and measures of a book's T, G and M."""
        return views.stats(self._index_of(ref))

    def index(self, ref: str) -> BookIndex:
        """The opened BookIndex itself, for direct use with `bookrag_fast.core`."""
        return self._index_of(ref)

    # --- health -----------------------------------------------------------------------------

    def check(self) -> list[Problem]:
        """What is wrong with the shelf, each with what mends it; empty when all is well."""
        try:
            return self._shelf.check(self._models.embedder.info)
        except ModelError as error:  # the books are looked at all the same
            unknown = Problem("warning", "embedder", error.message, error.hint)
            return [unknown, *self._shelf.check(None)]

    # --- the work itself, on worker threads ---------------------------------------------------

    def _remove(self, ref: str) -> Book:
        book = self.book(ref)
        self._shelf.remove(book)
        return book

    def _chosen(self, books: Sequence[str] | None) -> list[BookIndex]:
        refs = checked_books(books)
        ids = [b.id for b in self.books()] if refs is None else [self.book(ref).id for ref in refs]
        if not ids:
            raise UnknownBookError(
                f"the shelf {self.folder} has no book" if refs is None else "no book was named",
                "add one with `bookrag index FILE`",
            )
        indexes = [self._shelf.load(book_id) for book_id in dict.fromkeys(ids)]
        check_embedder(indexes, self._models.embedder)
        return indexes

    def _index_of(self, ref: str) -> BookIndex:
        return self._shelf.load(self.book(ref).id)
