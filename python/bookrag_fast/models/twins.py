"""One form of a model's method from the other: awaited from blocking, blocking from awaited."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence

from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.protocols import (
    Embedder,
    EmbedderInfo,
    Embeddings,
    FloatArray,
    FloatMatrix,
    Scores,
    TokenUsage,
)

__all__ = ["AwaitedEmbedder", "AwaitedReranker", "LocalEmbedder", "info_unasked"]


class LocalEmbedder(ABC):
    """Base of embedders that compute in this process: they write ``embed``."""

    @abstractmethod
    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix: ...

    async def aembed(self, texts: Sequence[str], *, query: bool = False) -> Embeddings:
        return Embeddings(await asyncio.to_thread(self.embed, texts, query=query), TokenUsage())


class AwaitedEmbedder(ABC):
    """Base of embedders behind an endpoint: they write ``aembed``, which runs on ``runner``."""

    runner: LoopRunner

    @property
    @abstractmethod
    def info(self) -> EmbedderInfo: ...

    def info_of(self, dimension: int) -> EmbedderInfo:
        """``info`` without a call: if only the server could tell how long its vectors are, and has
        not yet, they are taken to have this dimension. To be written where ``info`` may call."""
        return self.info

    @abstractmethod
    async def aembed(self, texts: Sequence[str], *, query: bool = False) -> Embeddings: ...

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        return self.runner.run(self.aembed(texts, query=query)).vectors


class AwaitedReranker(ABC):
    """Base of rerankers behind an endpoint: they write ``arerank``, which runs on ``runner``."""

    runner: LoopRunner

    @abstractmethod
    async def arerank(self, question: str, texts: Sequence[str]) -> Scores: ...

    def rerank(self, question: str, texts: Sequence[str]) -> FloatArray:
        return self.runner.run(self.arerank(question, texts)).scores


def info_unasked(embedder: Embedder, dimension: int) -> EmbedderInfo:
    """What an embedder is, by `AwaitedEmbedder.info_of` where a server would have to be asked."""
    return embedder.info_of(dimension) if isinstance(embedder, AwaitedEmbedder) else embedder.info
