"""Pieces of a streamed reply on their way to whoever reads them, perhaps on another loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

__all__ = ["Pieces"]


class Pieces:
    """A call's sink, which is iterated where it was made. It holds what is not read yet: a whole
    reply at most."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._closed = False
        self.begun = False

    def put(self, piece: str) -> None:
        """From any thread. What comes after the end, of a call that does not heed its
        cancellation, is dropped."""
        if self._closed or not piece:
            return
        self.begun = True
        self._hand_over(piece)

    def end(self, _: asyncio.Future[Any]) -> None:
        """There is no more. On the reader's loop, where all pieces have been handed over before."""
        self._closed = True
        self._queue.put_nowait(None)

    def close(self) -> None:
        """Nobody reads any more."""
        self._closed = True

    def __aiter__(self) -> Pieces:
        return self

    async def __anext__(self) -> str:
        piece = await self._queue.get()
        if piece is None:
            raise StopAsyncIteration
        return piece

    def _hand_over(self, piece: str) -> None:
        if asyncio.get_running_loop() is self._loop:
            self._queue.put_nowait(piece)
        else:
            with suppress(RuntimeError):  # the reader's loop has ended
                self._loop.call_soon_threadsafe(self._queue.put_nowait, piece)
