"""HTTP with bounds: only the headers that are meant go out, only so many bytes come in."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping

import httpx2

__all__ = ["BoundedTransport", "ReplyTooLongError", "UnreadableReplyError"]

# What a request needs; the rest tells of this machine, or comes from its environment.
_SENT = {b"host", b"content-length", b"content-type", b"accept", b"connection"}
_PIECE = 1 << 16  # bytes that are unpacked at once


class ReplyTooLongError(Exception):
    """A reply has more bytes than it may."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit:,} bytes")


class UnreadableReplyError(Exception):
    """A reply is packed in a way that cannot be undone."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Around the transport that has the connections.

    ``headers`` are added to every request. A reply of more than ``reply_limit`` bytes, unpacked,
    ends in ReplyTooLongError before it is read whole; a stream of events may have ``events_limit``.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        *,
        headers: Mapping[str, str],
        reply_limit: int,
        events_limit: int,
    ) -> None:
        self.reply_limit = reply_limit
        self._events_limit = events_limit
        self._inner = inner
        self.headers = headers

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(self._sent(request))
        headers = response.headers
        events = headers.get("content-type", "").startswith("text/event-stream")
        limit = self._events_limit if events else self.reply_limit
        encoding = headers.pop("content-encoding", "identity").strip().lower()
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        bounded = _BoundedStream(stream, limit, encoding)
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            await bounded.aclose()
            raise ReplyTooLongError(limit)
        if encoding not in ("", "identity"):
            headers.pop("content-length", None)  # of the packed body
        response.stream = bounded
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _sent(self, request: httpx2.Request) -> httpx2.Request:
        """A request of its own: the client's, which its errors refer to, never has the key."""
        kept = [(name, value) for name, value in request.headers.raw if name.lower() in _SENT]
        headers = httpx2.Headers(kept)
        headers.update({"Accept-Encoding": "identity", **self.headers})
        return httpx2.Request(
            request.method,
            request.url,
            headers=headers,
            stream=request.stream,
            extensions=request.extensions,
        )


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit: int, encoding: str) -> None:
        self._stream = stream
        self._limit = limit
        self._encoding = encoding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        unpack = _unpacking(self._encoding)
        taken = 0
        async for part in self._stream:
            for piece in unpack(part):
                taken += len(piece)
                if taken > self._limit:
                    raise ReplyTooLongError(self._limit)
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


Unpack = Callable[[bytes], Iterable[bytes]]


def _unpacking(encoding: str) -> Unpack:
    """Nothing packed is asked for; what servers and proxies pack all the same is unpacked."""
    if encoding in ("", "identity"):
        return lambda part: (part,)
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _unzipping()
    raise UnreadableReplyError("it is packed in a way that was not asked for")


def _unzipping() -> Unpack:
    """Piece by piece: a small part may unpack to very much."""
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def unpack(part: bytes) -> Iterator[bytes]:
        while part:
            try:
                yield unpacker.decompress(part, _PIECE)
            except zlib.error as error:
                raise UnreadableReplyError(f"it is packed wrongly ({error})") from None
            part = unpacker.unconsumed_tail

    return unpack
