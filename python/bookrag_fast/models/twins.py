"""One form of a model's method from the other: awaited from blocking, blocking from awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.protocols import (
    Embeddings,
    FloatArray,
    FloatMatrix,
    Scores,
    TokenUsage,
)

__all__ = ["AwaitedEmbedder", "AwaitedReranker", "LocalEmbedder", "LocalReranker"]


class LocalEmbedder:
    """Base of embedders that compute in this process: they write ``embed``."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        raise NotImplementedError

    async def aembed(self, texts: Sequence[str], *, query: bool = False) -> Embeddings:
        return Embeddings(await asyncio.to_thread(self.embed, texts, query=query), TokenUsage())


class AwaitedEmbedder:
    """Base of embedders behind an endpoint: they write ``aembed``, which runs on ``runner``."""

    runner: LoopRunner

    async def aembed(self, texts: Sequence[str], *, query: bool = False) -> Embeddings:
        raise NotImplementedError

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        return self.runner.run(self.aembed(texts, query=query)).vectors


class LocalReranker:
    """Base of rerankers that compute in this process: they write ``rerank``."""

    def rerank(self, question: str, texts: Sequence[str]) -> FloatArray:
        raise NotImplementedError

    async def arerank(self, question: str, texts: Sequence[str]) -> Scores:
        return Scores(await asyncio.to_thread(self.rerank, question, texts), TokenUsage())


class AwaitedReranker:
    """Base of rerankers behind an endpoint: they write ``arerank``, which runs on ``runner``."""

    runner: LoopRunner

    async def arerank(self, question: str, texts: Sequence[str]) -> Scores:
        raise NotImplementedError

    def rerank(self, question: str, texts: Sequence[str]) -> FloatArray:
        return self.runner.run(self.arerank(question, texts)).scores
