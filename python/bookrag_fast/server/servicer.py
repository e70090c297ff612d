"""The methods of bookrag.v1.BookRAG over a Library. Errors, deadlines and limits: see guards."""

# ruff: noqa: N802  (methods are named as in the proto)

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bookrag_fast.errors import BookragError, InvalidArgumentError, UnknownBookError
from bookrag_fast.library import Library
from bookrag_fast.library.types import Book, Progress
from bookrag_fast.loops import settled
from bookrag_fast.server import upload, wire
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2_grpc as rpc

__all__ = ["BookragServicer", "ServicerLimits"]

_MOST_BOOKS = 1000  # named in one question
_NO_DEADLINE_S = 1e7  # what gRPC calls time remaining without one
_PREFIX = 4  # shortest id prefix that names a book, as in Library.book


@dataclass(frozen=True, slots=True)
class ServicerLimits:
    """What a caller may ask of the servicer.

    ``allow_paths`` are the folders that IndexBook may read by path; none by default.
    """

    allow_paths: tuple[Path, ...] = ()
    max_upload_bytes: int = 1 << 30
    upload_idle_s: float = 60.0
    index_slots: int = 2  # books indexed at once; others wait, within their deadlines


class BookragServicer(rpc.BookRAGServicer):
    def __init__(self, library: Library, limits: ServicerLimits | None = None) -> None:
        self._library = library
        self._limits = limits or ServicerLimits()
        self._roots = tuple(p.resolve() for p in self._limits.allow_paths)
        self._indexing = asyncio.Semaphore(self._limits.index_slots)

    # --- books ---

    async def IndexBook(
        self, requests: AsyncIterator[pb.IndexBookRequest], context: Any
    ) -> AsyncIterator[pb.IndexBookResponse]:
        first = await upload.next_part(requests, self._limits.upload_idle_s)
        if first is None or first.WhichOneof("part") != "header":
            raise InvalidArgumentError("the first message must be the header")
        header = first.header
        password = header.password if header.HasField("password") else None
        source = header.WhichOneof("source")
        if source == "server_path":
            path = await asyncio.to_thread(upload.allowed_file, header.server_path, self._roots)
            async with aclosing(self._index(path, password)) as events:
                async for event in events:
                    yield event
        elif source == "upload":
            with tempfile.TemporaryDirectory(prefix="bookrag-upload-") as folder:
                path = await upload.receive(
                    header.upload,
                    requests,
                    Path(folder),
                    limit=self._limits.max_upload_bytes,
                    idle_s=self._limits.upload_idle_s,
                )
                try:
                    async with aclosing(self._index(path, password)) as events:
                        async for event in events:
                            yield event
                except BookragError as error:
                    # The caller sent a name, not a path of ours.
                    error.message = error.message.replace(f"{folder}/", "")
                    error.hint = error.hint.replace(f"{folder}/", "")
                    raise
        else:
            raise InvalidArgumentError("the header names neither a server_path nor an upload")

    async def _index(
        self, path: Path, password: str | None
    ) -> AsyncGenerator[pb.IndexBookResponse, None]:
        """Progress, then the book. Closing this generator cancels the work and waits for it."""
        loop = asyncio.get_running_loop()
        # The latest of each stage only: a slow reader gets fewer messages, not a longer queue.
        news: dict[str, Progress] = {}
        wake = asyncio.Event()

        def note(progress: Progress) -> None:
            news[progress.stage] = progress
            wake.set()

        def progress(step: Progress) -> None:  # called on a thread of its own
            with suppress(RuntimeError):  # the loop is gone: so is the reader
                loop.call_soon_threadsafe(note, step)

        async with self._indexing:
            work = asyncio.ensure_future(
                self._library.aadd(path, password=password, progress=progress)
            )
            work.add_done_callback(lambda _: wake.set())
            try:
                while not work.done():
                    await wake.wait()
                    wake.clear()
                    batch = list(news.values())
                    news.clear()
                    for step in batch:
                        yield pb.IndexBookResponse(progress=wire.progress_to(step))
                yield pb.IndexBookResponse(book=wire.book_to(work.result()))
            finally:
                if not work.done():
                    work.cancel()
                    await settled(work)

    async def ListBooks(self, request: pb.ListBooksRequest, context: Any) -> pb.ListBooksResponse:
        books = await asyncio.to_thread(self._library.books)
        return pb.ListBooksResponse(books=[wire.book_to(b) for b in books])

    async def DeleteBook(
        self, request: pb.DeleteBookRequest, context: Any
    ) -> pb.DeleteBookResponse:
        book = await self._library.aremove(await self._id(request.book))
        return pb.DeleteBookResponse(book=wire.book_to(book))

    async def GetTree(self, request: pb.GetTreeRequest, context: Any) -> pb.GetTreeResponse:
        book = await self._id(request.book)
        root = await asyncio.to_thread(self._library.tree, book)
        nodes = await asyncio.to_thread(wire.tree_to, root, omit_text=request.omit_text)
        return pb.GetTreeResponse(book_id=book, nodes=nodes)

    # --- questions ---

    async def Search(self, request: pb.SearchRequest, context: Any) -> pb.SearchResponse:
        result = await self._library.asearch_result(
            request.question, **await self._options(request, context)
        )
        return wire.search_result_to(result)

    async def Ask(self, request: pb.AskRequest, context: Any) -> pb.AskResponse:
        answer = await self._library.aask(request.question, **await self._options(request, context))
        return pb.AskResponse(answer=wire.answer_to(answer))

    async def AskStream(
        self, request: pb.AskStreamRequest, context: Any
    ) -> AsyncIterator[pb.AskStreamResponse]:
        options = await self._options(request, context)
        events: Any = self._library.aask_stream(request.question, **options)
        async with aclosing(events):
            async for event in events:
                yield wire.answer_event_to(event)

    async def _options(
        self, request: pb.SearchRequest | pb.AskRequest | pb.AskStreamRequest, context: Any
    ) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if len(request.books) > _MOST_BOOKS:
            raise InvalidArgumentError(
                f"{len(request.books)} books are named, at most {_MOST_BOOKS} can be",
                "name none to ask every book",
            )
        if request.books:
            books = await asyncio.to_thread(self._library.books)
            options["books"] = [match(books, ref).id for ref in request.books]
        if request.HasField("budget_tokens"):
            options["budget_tokens"] = request.budget_tokens
        left = context.time_remaining()
        if left is not None and 0 < left < _NO_DEADLINE_S:
            options["timeout_s"] = left  # models leave the rules time to answer before it
        return options

    async def _id(self, reference: str) -> str:
        return match(await asyncio.to_thread(self._library.books), reference).id


def match(books: Sequence[Book], reference: str) -> Book:
    """The book of a reference, among the catalogue only.

    ``Library.book`` takes paths too and hashes the file behind them. A caller over the network
    must not make the server read files, nor learn from the answer which exist.
    """
    for book in books:
        if book.id == reference:
            return book
    named = [b for b in books if reference in (b.title, b.name)]
    if not named and len(reference) >= _PREFIX:
        named = [b for b in books if b.id.startswith(reference)]
    if len(named) > 1:
        raise InvalidArgumentError(
            f"{len(named)} books are called {reference!r}: {', '.join(b.id for b in named)}",
            "use the id",
        )
    if not named:
        raise UnknownBookError(f"no book {reference!r} is on the shelf", "list the books")
    return named[0]
