"""Inner models for the middleware: no wire, but calls that take time and fail as told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from bookrag_fast.config.models import BudgetSettings, ChatModelSettings, EmbeddingsModelSettings
from bookrag_fast.errors import ModelError
from bookrag_fast.models.ledger import Spent, UsageLedger
from bookrag_fast.models.middleware.budget import Budget
from bookrag_fast.models.middleware.guarded import GuardedLanguageModel
from bookrag_fast.models.middleware.stack import Services
from bookrag_fast.models.protocols import (
    ChatRequest,
    Completion,
    EmbedderInfo,
    Embeddings,
    Message,
    ModelInfo,
    TokenUsage,
)
from bookrag_fast.models.reply_cache import ReplyCache
from virtual_time import Here

# What the n-th call does: a text, an error, or a coroutine that ends in a text.
Does = Callable[[int, ChatRequest], Any]


def request(text: str = "hello", **more: Any) -> ChatRequest:
    return ChatRequest((Message("user", text),), **{"max_tokens": 20, "role": "extract", **more})


def settings(**more: Any) -> ChatModelSettings:
    values = {"base_url": "http://localhost:1/v1", "model": "served", **more}
    return ChatModelSettings.model_validate(values)


def embeddings_settings(**more: Any) -> EmbeddingsModelSettings:
    values = {"kind": "embeddings", "base_url": "http://localhost:1/v1", "model": "e5", **more}
    return EmbeddingsModelSettings.model_validate(values)


def services(
    folder: Path, *, cache: bool = False, budget: BudgetSettings | None = None, day: str = "day"
) -> Services:
    ledger = UsageLedger(folder / "usage.sqlite3", today=lambda: day)
    return Services(
        Here(),
        ledger,
        ReplyCache(folder / "replies.sqlite3", 16) if cache else None,
        None if budget is None else Budget(budget, ledger),
        Random(1),
    )


class Inner:
    """A language model. ``started`` are the loop's times at which calls came."""

    def __init__(self, does: Does = lambda n, request: f"reply {n}") -> None:
        self.info = ModelInfo("small", "served")
        self.does = does
        self.calls = 0
        self.started: list[float] = []
        self.at_once = 0
        self.most_at_once = 0
        self.cancelled = 0

    async def complete(self, request: ChatRequest) -> Completion:
        turn, self.calls = self.calls, self.calls + 1
        self.started.append(asyncio.get_running_loop().time())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            done = self.does(turn, request)
            if asyncio.iscoroutine(done):
                done = await done
            if isinstance(done, BaseException):
                raise done
            return Completion(done, TokenUsage(10, 5, 1))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.at_once -= 1

    async def complete_batch(
        self, requests: Sequence[ChatRequest]
    ) -> list[Completion | ModelError]:
        raise AssertionError("the middleware makes the calls one by one")

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        completion = await self.complete(request)
        for word in completion.text.split():
            await asyncio.sleep(0.1)
            yield word
        yield completion


class InnerEmbedder:
    """A text's vector is drawn by the text. ``texts`` are those that were asked for, by call."""

    def __init__(self, dimension: int = 4) -> None:
        self.info = EmbedderInfo("e5", dimension)
        self.texts: list[list[str]] = []

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Any:
        raise AssertionError("the middleware awaits")

    async def aembed(self, texts: Sequence[str], *, query: bool = False) -> Embeddings:
        if not texts:
            return Embeddings(np.zeros((0, self.info.dimension), np.float32), TokenUsage())
        self.texts.append(list(texts))
        await asyncio.sleep(0.01)
        rows = [vector(text, self.info.dimension, query=query) for text in texts]
        return Embeddings(np.stack(rows), TokenUsage(len(texts), 0, 1))


def vector(text: str, dimension: int = 4, *, query: bool = False) -> np.ndarray:
    row = np.random.default_rng([query, *text.encode()]).normal(size=dimension)
    return (row / np.linalg.norm(row)).astype(np.float32)


def guarded(
    inner: Inner, folder: Path, *, cache: bool = False, **more: Any
) -> tuple[GuardedLanguageModel, Services]:
    roles = more.pop("roles", None)
    shared = services(folder, cache=cache)
    return GuardedLanguageModel(inner, settings(**more), shared, role_limits=roles), shared


def spent(shared: Services) -> Spent:
    return sum(shared.ledger.totals("role").values(), Spent())


async def took(work: Coroutine[Any, Any, Any]) -> tuple[Any, float]:
    """What it returned or raised, and how long it took by the loop's clock."""
    now = asyncio.get_running_loop().time
    start = now()
    try:
        return await work, now() - start
    except ModelError as error:
        return error, now() - start


async def later(seconds: float, text: str = "late") -> str:
    await asyncio.sleep(seconds)
    return text
