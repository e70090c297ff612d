"""Texts through a tokenizer and a batcher: what blocking and awaited calls have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Generic, TypeVar

from bookrag_fast.models.onnx.batching import Batcher
from bookrag_fast.models.onnx.tokens import TextTokenizer, Tokens

__all__ = ["TextCalls"]

Result = TypeVar("Result")


class TextCalls(Generic[Result]):
    """Each text's result with its place. Texts of white space only, or without a token, have none.

    Args:
        window: texts tokenized at a time: many times any sensible run, so that sorting by length
            pays; bounds what is held of a call.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer,
        batcher: Batcher[Tokens, Result],
        *,
        query_prefix: str,
        passage_prefix: str,
        window: int,
    ) -> None:
        self._tokenizer = tokenizer
        self._batcher = batcher
        self._prefixes = {False: passage_prefix, True: query_prefix}
        self._window = window

    def map(self, texts: Sequence[str], *, query: bool) -> Iterator[tuple[int, Result]]:
        """Raises as `Batcher.map` does. The texts have been checked."""
        windows = self._windows(texts, query)
        chunks = (window.kept(self._tokenizer.encode(window.texts)) for window in windows)
        for window, results in zip(windows, self._batcher.map(chunks), strict=True):
            yield from zip(window.places, results, strict=True)

    async def amap(self, texts: Sequence[str], *, query: bool) -> AsyncIterator[tuple[int, Result]]:
        """`map`, awaited."""

        async def tokens(window: _Window) -> list[Tokens]:
            return window.kept(await self._tokenizer.aencode(window.texts))

        windows = self._windows(texts, query)
        following = iter(windows)
        async for results in self._batcher.amap(tokens(window) for window in windows):
            for pair in zip(next(following).places, results, strict=True):
                yield pair

    def _windows(self, texts: Sequence[str], query: bool) -> list[_Window]:
        said = [place for place, text in enumerate(texts) if text and not text.isspace()]
        starts = range(0, len(said), self._window)
        prefix = self._prefixes[query]
        return [_Window(texts, prefix, said[i : i + self._window]) for i in starts]


class _Window:
    """Some of a call's texts, and the places of those that have tokens."""

    def __init__(self, texts: Sequence[str], prefix: str, places: list[int]) -> None:
        self._all = texts
        self._prefix = prefix
        self.places = places

    @property
    def texts(self) -> list[str]:
        return [self._prefix + self._all[place] for place in self.places]

    def kept(self, rows: list[Tokens]) -> list[Tokens]:
        pairs = [(place, row) for place, row in zip(self.places, rows, strict=True) if row.ids]
        self.places = [place for place, _ in pairs]
        return [row for _, row in pairs]
