"""What the rest of the engine knows of models. `cli` and `server` choose the implementations.

A method that does work comes in two forms, as elsewhere in this package: ``embed`` blocks and is
meant for worker threads, ``aembed`` is awaited. Language models are only awaited. Every result says
what it cost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from bookrag_fast.errors import ModelError

__all__ = [
    "ChatRequest",
    "Completion",
    "Embedder",
    "EmbedderInfo",
    "Embeddings",
    "FloatArray",
    "FloatMatrix",
    "Image",
    "LanguageModel",
    "LayoutDetector",
    "LayoutRegion",
    "Message",
    "ModelInfo",
    "Reranker",
    "Scores",
    "TokenUsage",
    "VisionModel",
]

FloatMatrix = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What calls took. ``cached`` calls came from the cache and cost nothing; their tokens are not
    counted. Tokens are those that the server states, estimated where it states none."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cached: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
            self.cached + other.cached,
        )


# --- language models --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """``name`` is the model's in the configuration, ``model`` what its server calls it."""

    name: str
    model: str
    context_tokens: int = 8192


@dataclass(frozen=True, slots=True)
class Image:
    """An encoded picture; ``media_type`` is "image/png" or "image/jpeg"."""

    data: bytes = field(repr=False)
    media_type: str = "image/png"


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call of a language model.

    ``role``, ``book`` and ``prompt`` ("plan@1/en") say who asks for what: limits, the ledger and
    the cache go by them. ``schema`` is the JSON schema that the reply should follow, or None for
    prose. ``expected_tokens`` is what a usual reply takes, for estimates (0: half of
    ``max_tokens``). ``fresh`` asks the model even where a reply is kept, which it replaces.
    """

    messages: tuple[Message, ...]
    role: str = ""
    prompt: str = ""
    book: str = ""
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 1024
    temperature: float = 0.0
    expected_tokens: int = 0
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """``finish`` is "stop", "length" (cut off at ``max_tokens``) or what else the server says."""

    text: str
    usage: TokenUsage
    finish: str = "stop"


@runtime_checkable
class LanguageModel(Protocol):
    """Messages to text. Safe to share; calls may run at once on any number of loops."""

    @property
    def info(self) -> ModelInfo: ...

    async def complete(self, request: ChatRequest) -> Completion:
        """Raises ModelError, one of its kinds. Cancelling ends the call at the server too."""
        ...

    async def complete_batch(
        self, requests: Sequence[ChatRequest]
    ) -> list[Completion | ModelError]:
        """All at once, as far as limits allow; each fails alone. In the order of the requests."""
        ...

    def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        """Pieces of the text as they come, then the whole `Completion`, once. Raises as
        `complete` does, perhaps after some pieces."""
        ...


@runtime_checkable
class VisionModel(LanguageModel, Protocol):
    """A language model whose messages may hold images."""

    @property
    def max_images(self) -> int:
        """Most images of one request."""
        ...


# --- embedding and reranking ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EmbedderInfo:
    """Identity of an embedding model, recorded in every index it made.

    ``fingerprint`` distinguishes two models of one name (hash of the weights' identity).
    """

    name: str
    dimension: int
    fingerprint: str = ""
    provider: str = "cpu"


class Embeddings(NamedTuple):
    """``vectors`` is float32[texts, dimension], rows of Euclidean length 1 (a text without any
    known token gives a row of zeros)."""

    vectors: FloatMatrix
    usage: TokenUsage


@runtime_checkable
class Embedder(Protocol):
    """Texts to unit vectors. Safe to call from several threads and loops at once.

    A class that has one of the two methods gets the other from `models.twins`.
    """

    @property
    def info(self) -> EmbedderInfo: ...

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        """float32[len(texts), dimension], rows of Euclidean length 1 (a text without any known
        token gives a row of zeros). ``query`` selects the query prefix where the model has one.
        Blocking: call it from a worker thread in async code. Raises ModelError."""
        ...

    async def aembed(self, texts: Sequence[str], *, query: bool = False) -> Embeddings:
        """`embed`, awaited, with what it cost."""
        ...


class Scores(NamedTuple):
    """``scores`` is float32[texts], higher is more relevant; comparable within one call only."""

    scores: FloatArray
    usage: TokenUsage


@runtime_checkable
class Reranker(Protocol):
    """How well texts answer a question. Safe to call from several threads and loops at once."""

    @property
    def info(self) -> ModelInfo: ...

    def rerank(self, question: str, texts: Sequence[str]) -> FloatArray:
        """float32[len(texts)]. Blocking. Raises ModelError."""
        ...

    async def arerank(self, question: str, texts: Sequence[str]) -> Scores:
        """`rerank`, awaited, with what it cost."""
        ...


# --- layout -----------------------------------------------------------------------------------


class LayoutRegion(NamedTuple):
    """A part of a page's picture: its class in the model's words ("title", "figure" …), how sure
    the model is of it (0 to 1), and its box x0, y0, x1, y1 in pixels, top-left origin."""

    kind: str
    score: float
    box: tuple[float, float, float, float]


@runtime_checkable
class LayoutDetector(Protocol):
    """Pictures of pages to regions. Safe to call from several threads at once."""

    @property
    def classes(self) -> tuple[str, ...]: ...

    def detect(self, picture: npt.NDArray[np.uint8]) -> list[LayoutRegion]:
        """Regions of a picture, uint8[height, width] (grey) or uint8[height, width, 3], surest
        first. Blocking and CPU-bound. Raises ModelError."""
        ...
