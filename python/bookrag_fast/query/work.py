"""Where the work of a question is done.

Operators are coroutines. What they compute goes through a `Work`: with models, computation leaves
the loop for worker threads while calls are awaited; without any, nothing ever waits, and a question
is driven through on one worker thread, without a loop and without a hop between its operators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from bookrag_fast.models.protocols import Embedder, Embeddings, TokenUsage

__all__ = ["Inline", "Threads", "Work", "drive"]

A = TypeVar("A")
B = TypeVar("B")


class Work(Protocol):
    async def run(self, function: Callable[..., A], *args: Any) -> A:
        """A function that computes."""
        ...

    async def map(
        self, operator: Callable[[B], Coroutine[Any, Any, A]], items: Iterable[B]
    ) -> list[A]:
        """An operator on several things, at once where that helps; in the order of the things.
        The first error ends the others and is raised."""
        ...

    async def embed(
        self, embedder: Embedder, texts: Sequence[str], *, query: bool
    ) -> Embeddings: ...


class Inline:
    """On the thread that drives the coroutine. Nothing waits."""

    async def run(self, function: Callable[..., A], *args: Any) -> A:
        return function(*args)

    async def map(
        self, operator: Callable[[B], Coroutine[Any, Any, A]], items: Iterable[B]
    ) -> list[A]:
        return [await operator(item) for item in items]

    async def embed(self, embedder: Embedder, texts: Sequence[str], *, query: bool) -> Embeddings:
        return Embeddings(embedder.embed(texts, query=query), TokenUsage())


class Threads:
    """On worker threads of the running loop."""

    async def run(self, function: Callable[..., A], *args: Any) -> A:
        return await asyncio.to_thread(function, *args)

    async def map(
        self, operator: Callable[[B], Coroutine[Any, Any, A]], items: Iterable[B]
    ) -> list[A]:
        tasks = [asyncio.ensure_future(operator(item)) for item in items]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)  # none goes on unseen
            raise

    async def embed(self, embedder: Embedder, texts: Sequence[str], *, query: bool) -> Embeddings:
        return await embedder.aembed(texts, query=query)


def drive(work: Awaitable[A]) -> A:
    """Run a coroutine that waits for nothing (see `Inline`) to its end."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise RuntimeError("work that was to wait for nothing has waited")
