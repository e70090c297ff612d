"""Typed clients of the BookRAG service: the same values and the same exceptions as a Library.

>>> with Client("127.0.0.1:50051") as client:
...     book = client.add("handbook.pdf")
...     client.ask("What is the default damping?", books=[book.id]).text

Methods are named as those of Library, so that code can take the one or the other. ``timeout`` is
in seconds and travels with the call: the server cancels the work when it has passed. None takes
the client's ``timeout``, and where that is None too, there is no deadline.

Connections are not encrypted: for now the service is meant for loopback or a private network.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

import grpc
import grpc.aio

from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.library.arguments import (
    checked_books,
    checked_int,
    checked_password,
    checked_path,
    checked_text,
)
from bookrag_fast.library.types import AnswerEvent, Book, ProgressCallback, TreeNode
from bookrag_fast.query.plan import Answer, Evidence, SearchResult
from bookrag_fast.server import wire
from bookrag_fast.server.errors import RemoteError, from_rpc_error
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2_grpc as rpc

__all__ = ["AsyncClient", "Client"]

_T = TypeVar("_T")
_CHUNK = 1 << 20
_OPTIONS = (
    ("grpc.max_receive_message_length", -1),  # the tree of a large book is one message
    ("grpc.max_send_message_length", -1),
)


# --- requests, common to both clients -----------------------------------------------------------


def _upload(path: str | Path, password: str | None) -> Iterator[pb.IndexBookRequest]:
    file, secret = checked_path(path, "path"), checked_password(password)
    if not file.is_file():
        # Here rather than from the request iterator, whose errors gRPC hides.
        raise InvalidArgumentError(f"no file {file}")
    return _sent(file, secret)


def _sent(path: Path, password: str | None) -> Iterator[pb.IndexBookRequest]:
    with path.open("rb") as file:
        size = path.stat().st_size
        upload = pb.Upload(name=path.name, size=size)
        yield pb.IndexBookRequest(header=pb.IndexBookHeader(upload=upload, password=password))
        while chunk := file.read(_CHUNK):
            yield pb.IndexBookRequest(chunk=chunk)


def _by_path(path: str, password: str | None) -> Iterator[pb.IndexBookRequest]:
    server_path, secret = checked_text(path, "path"), checked_password(password)
    header = pb.IndexBookHeader(server_path=server_path, password=secret)
    return iter([pb.IndexBookRequest(header=header)])


def _indexed(response: pb.IndexBookResponse, progress: ProgressCallback | None) -> Book | None:
    """Reports a progress message; returns the book when it is the last message."""
    kind = response.WhichOneof("event")
    if kind == "book":
        return wire.book_from(response.book)
    if kind == "progress" and progress is not None:
        progress(wire.progress_from(response.progress))
    return None


@dataclass(frozen=True, slots=True)
class _Call(Generic[_T]):
    """A unary call: the stub's method, what to send, what to make of the reply."""

    method: str
    request: Any
    decode: Callable[[Any], _T]


def _int32(value: int) -> int:
    """The nearest that a message can hold: far out of range there as well."""
    return max(-(2**31), min(value, 2**31 - 1))


def _question(question: str, books: Sequence[str] | None, budget: int | None) -> dict[str, Any]:
    return {
        "question": checked_text(question, "question"),
        "books": checked_books(books) or (),
        "budget_tokens": None if budget is None else _int32(checked_int(budget, "budget_tokens")),
    }


def _remove(ref: str) -> _Call[Book]:
    return _Call(
        "DeleteBook",
        pb.DeleteBookRequest(book=checked_text(ref, "ref")),
        lambda r: wire.book_from(r.book),
    )


def _books() -> _Call[list[Book]]:
    return _Call("ListBooks", pb.ListBooksRequest(), lambda r: [wire.book_from(b) for b in r.books])


def _tree(ref: str, omit_text: bool) -> _Call[TreeNode]:
    request = pb.GetTreeRequest(book=checked_text(ref, "ref"), omit_text=omit_text)
    return _Call("GetTree", request, lambda r: wire.tree_from(r.nodes))


def _search(question: str, books: Sequence[str] | None, budget: int | None) -> _Call[SearchResult]:
    request = pb.SearchRequest(**_question(question, books, budget))
    return _Call("Search", request, wire.search_result_from)


def _ask(question: str, books: Sequence[str] | None, budget: int | None) -> _Call[Answer]:
    request = pb.AskRequest(**_question(question, books, budget))
    return _Call("Ask", request, lambda r: wire.answer_from(r.answer))


_NO_BOOK = "the server ended the call without a book"


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (grpc.RpcError, grpc.aio.AioRpcError) as error:
        raise from_rpc_error(error) from None


# --- the clients --------------------------------------------------------------------------------


class Client:
    """A blocking client; safe to use from several threads.

    Args:
        target: "host:port" of the server.
        timeout: default seconds for each call; None for no deadline. Indexing has none unless
            it is given with the call.
    """

    def __init__(self, target: str, *, timeout: float | None = 60.0) -> None:
        self._timeout = timeout
        self._channel = grpc.insecure_channel(target, options=_OPTIONS)
        self._stub: Any = rpc.BookRAGStub(self._channel)  # type: ignore[no-untyped-call]

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; calls in flight are cancelled."""
        self._channel.close()

    def _seconds(self, timeout: float | None) -> float | None:
        return self._timeout if timeout is None else timeout

    def _run(self, call: _Call[_T], timeout: float | None) -> _T:
        with _translated():
            send = getattr(self._stub, call.method)
            response = send(call.request, timeout=self._seconds(timeout))
        return call.decode(response)

    def add(
        self,
        path: str | Path,
        *,
        password: str | None = None,
        progress: ProgressCallback | None = None,
        timeout: float | None = None,
    ) -> Book:
        """Sends a file of this machine and has it indexed."""
        return self._index(_upload(path, password), progress, timeout)

    def add_server_path(
        self,
        path: str,
        *,
        password: str | None = None,
        progress: ProgressCallback | None = None,
        timeout: float | None = None,
    ) -> Book:
        """Has a file of the server's machine indexed, where the server allows its folder."""
        return self._index(_by_path(path, password), progress, timeout)

    def _index(
        self,
        requests: Iterator[pb.IndexBookRequest],
        progress: ProgressCallback | None,
        timeout: float | None,
    ) -> Book:
        with _translated():
            call = self._stub.IndexBook(requests, timeout=timeout)
            try:
                book = None
                for response in call:
                    book = _indexed(response, progress) or book
            finally:
                call.cancel()  # when progress() raised; without effect on a finished call
        if book is None:
            raise RemoteError(_NO_BOOK)
        return book

    def remove(self, ref: str, *, timeout: float | None = None) -> Book:
        """Takes a book off the shelf."""
        return self._run(_remove(ref), timeout)

    def books(self, *, timeout: float | None = None) -> list[Book]:
        """All books of the shelf."""
        return self._run(_books(), timeout)

    def tree(self, ref: str, *, omit_text: bool = False, timeout: float | None = None) -> TreeNode:
        """The section tree of a book; ``omit_text`` leaves out the contents."""
        return self._run(_tree(ref, omit_text), timeout)

    def search(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout: float | None = None,
    ) -> list[Evidence]:
        """The evidence for a question, best first."""
        result = self._run(_search(question, books, budget_tokens), timeout)
        return list(result.evidence)

    def search_result(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout: float | None = None,
    ) -> SearchResult:
        """The evidence with the plan and the trace."""
        return self._run(_search(question, books, budget_tokens), timeout)

    def ask(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """An answer with citations."""
        return self._run(_ask(question, books, budget_tokens), timeout)

    def ask_stream(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[AnswerEvent]:
        """The answer as it comes about. Closing the iterator cancels the work."""
        request = pb.AskStreamRequest(**_question(question, books, budget_tokens))
        with _translated():
            call = self._stub.AskStream(request, timeout=self._seconds(timeout))
            try:
                for response in call:
                    event = wire.answer_event_from(response)
                    if event is not None:
                        yield event
            finally:
                call.cancel()


class AsyncClient:
    """The same as Client for asyncio. Cancelling a task cancels the work on the server.

    To be made inside the running event loop.
    """

    def __init__(self, target: str, *, timeout: float | None = 60.0) -> None:
        self._timeout = timeout
        self._channel = grpc.aio.insecure_channel(target, options=_OPTIONS)
        self._stub: Any = rpc.BookRAGStub(self._channel)  # type: ignore[no-untyped-call]

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection; calls in flight are cancelled."""
        await self._channel.close()

    def _seconds(self, timeout: float | None) -> float | None:
        return self._timeout if timeout is None else timeout

    async def _run(self, call: _Call[_T], timeout: float | None) -> _T:
        with _translated():
            send = getattr(self._stub, call.method)
            response = await send(call.request, timeout=self._seconds(timeout))
        return call.decode(response)

    async def add(
        self,
        path: str | Path,
        *,
        password: str | None = None,
        progress: ProgressCallback | None = None,
        timeout: float | None = None,
    ) -> Book:
        """Sends a file of this machine and has it indexed."""
        return await self._index(_upload(path, password), progress, timeout)

    async def add_server_path(
        self,
        path: str,
        *,
        password: str | None = None,
        progress: ProgressCallback | None = None,
        timeout: float | None = None,
    ) -> Book:
        """Has a file of the server's machine indexed, where the server allows its folder."""
        return await self._index(_by_path(path, password), progress, timeout)

    async def _index(
        self,
        requests: Iterator[pb.IndexBookRequest],
        progress: ProgressCallback | None,
        timeout: float | None,
    ) -> Book:
        with _translated():
            call = self._stub.IndexBook(requests, timeout=timeout)
            try:
                book = None
                async for response in call:
                    book = _indexed(response, progress) or book
            finally:
                call.cancel()
        if book is None:
            raise RemoteError(_NO_BOOK)
        return book

    async def remove(self, ref: str, *, timeout: float | None = None) -> Book:
        """Takes a book off the shelf."""
        return await self._run(_remove(ref), timeout)

    async def books(self, *, timeout: float | None = None) -> list[Book]:
        """All books of the shelf."""
        return await self._run(_books(), timeout)

    async def tree(
        self, ref: str, *, omit_text: bool = False, timeout: float | None = None
    ) -> TreeNode:
        """The section tree of a book; ``omit_text`` leaves out the contents."""
        return await self._run(_tree(ref, omit_text), timeout)

    async def search(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout: float | None = None,
    ) -> list[Evidence]:
        """The evidence for a question, best first."""
        result = await self._run(_search(question, books, budget_tokens), timeout)
        return list(result.evidence)

    async def search_result(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout: float | None = None,
    ) -> SearchResult:
        """The evidence with the plan and the trace."""
        return await self._run(_search(question, books, budget_tokens), timeout)

    async def ask(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """An answer with citations."""
        return await self._run(_ask(question, books, budget_tokens), timeout)

    async def ask_stream(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[AnswerEvent]:
        """The answer as it comes about. Closing the iterator cancels the work."""
        request = pb.AskStreamRequest(**_question(question, books, budget_tokens))
        with _translated():
            call = self._stub.AskStream(request, timeout=self._seconds(timeout))
            try:
                async for response in call:
                    event = wire.answer_event_from(response)
                    if event is not None:
                        yield event
            finally:
                call.cancel()
