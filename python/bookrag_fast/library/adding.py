"""Adding a file to a shelf: read, indexed, saved."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path

from bookrag_fast.config import Settings
from bookrag_fast.document import Document, IsolatedReader, read_document
from bookrag_fast.errors import IndexStoreError, UnknownBookError
from bookrag_fast.forks import begins_anew, keep
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.index.build import build_index
from bookrag_fast.index.rehearsal import rehearse
from bookrag_fast.library.files import book_id_of, checked_sha256, remembered
from bookrag_fast.library.progress import ProgressReporter
from bookrag_fast.library.shelf import Shelf
from bookrag_fast.library.types import Book, Estimate, ProgressCallback
from bookrag_fast.models.booking import booked_on
from bookrag_fast.models.roles import ModelSet
from bookrag_fast.models.twins import AwaitedEmbedder, info_unasked

__all__ = ["Adder"]

LOCAL_EMBEDDER = "wordllama"  # any that costs nothing


class Adder:
    """Puts files on a shelf. Safe to share between threads and loops.

    Reading and indexing have worker threads of their own: a question does not wait for a book.
    """

    def __init__(self, shelf: Shelf, models: ModelSet, settings: Settings) -> None:
        self._shelf = shelf
        self._models = models
        self._settings = settings
        self._reader = IsolatedReader(
            memory_mb=settings.reader_memory_mb,
            workers=settings.reader_workers,
            ocr=settings.ocr,
            layout=settings.layout,
        )
        self._workers = _workers()
        begins_anew(self)

    def forked(self) -> None:
        keep(self._workers)
        self._workers = _workers()

    def close(self) -> None:
        """When all adding was cancelled; returns when it has stopped."""
        self._workers.shutdown()
        self._reader.close()

    async def add(
        self,
        path: Path,
        password: str | None,
        pages: tuple[int, int | None] | None,
        progress: ProgressCallback | None,
    ) -> Book:
        """The book of a file, made if it is not there yet; errors as of `Library.add`. Cancelled,
        it returns when all work for it has stopped."""
        async with aclosing(ProgressReporter(progress, self._workers)) as reporter:
            known = await reporter.run(lambda: self._known(path, pages))
            if known is not None:
                return known
            document = await self._document(path, password, pages, reporter)
            book_id = book_id_of(document.sha256, document.span)
            with booked_on(book_id):
                index = await build_index(
                    document,
                    self._models,
                    self._settings,
                    book_id=book_id,
                    source=remembered(path),
                    stages=reporter,
                )
            await reporter.tell("save", 0, None, "files")
            book = await reporter.run(lambda: self._shelf.put(index, last_word=reporter.check))
            await reporter.tell("done", book.entities, book.entities, "entities")
            return book

    async def estimate(
        self,
        path: Path,
        password: str | None,
        pages: tuple[int, int | None] | None,
        progress: ProgressCallback | None,
    ) -> Estimate:
        """What models would be asked to add a file; none is called, and nothing is written."""
        # Here: who only asks must not pay for importing all of the middleware.
        from bookrag_fast.library.rehearsal import Rehearsal

        async with aclosing(ProgressReporter(progress, self._workers)) as reporter:
            known = await reporter.run(lambda: self._known(path, pages))
            if known is not None:
                return Estimate(known.name, known.pages, known.nodes, known=True)
            document = await self._document(path, password, pages, reporter)
            book_id = book_id_of(document.sha256, document.span)
            settings = self._settings
            if not isinstance(self._models.embedder, AwaitedEmbedder):  # whatever they name
                settings = settings.model_copy(update={"embedder": LOCAL_EMBEDDER})
            rehearsal = await reporter.run(lambda: Rehearsal(settings, self._shelf.folder))
            try:
                tree = await rehearse(
                    document, rehearsal.models, settings, book_id=book_id, stages=reporter
                )
            finally:
                await asyncio.to_thread(rehearsal.close)
            return Estimate(
                document.name, document.pages_read, len(tree.nodes), tuple(rehearsal.uses())
            )

    def _known(self, path: Path, pages: tuple[int, int | None] | None) -> Book | None:
        sha256 = checked_sha256(path, max_mb=self._settings.max_file_mb)
        known = self._shelf.catalogue.version(book_id_of(sha256, pages))
        index = None if known is None else self._intact(known[0].id)
        if known is None or index is None:
            return None
        used = info_unasked(self._models.embedder, index.meta.embedder.dimension)
        return known[0] if known[1] == used.fingerprint else None

    async def _document(
        self,
        path: Path,
        password: str | None,
        pages: tuple[int, int | None] | None,
        reporter: ProgressReporter,
    ) -> Document:
        def read() -> Document:
            if not self._settings.isolate_reader:
                return read_document(
                    path,
                    password=password,
                    progress=reporter.pages,
                    ocr=self._settings.ocr,
                    pages=pages,
                    layout=self._settings.layout,
                )
            return self._reader.read(
                path, password=password, pages=pages, progress=reporter.pages, check=reporter.check
            )

        document = await reporter.run(read)
        await reporter.all_pages()
        return document

    def _intact(self, book_id: str) -> BookIndex | None:
        try:
            return self._shelf.load(book_id)
        except (IndexStoreError, UnknownBookError):
            return None  # damaged, or removed just now: index it anew


def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="bookrag-indexing")
