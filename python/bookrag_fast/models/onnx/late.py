"""Late interaction (ColBERT: Khattab and Zaharia, SIGIR 2020): a vector a token, and MaxSim."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bookrag_fast import core
from bookrag_fast.errors import ModelError
from bookrag_fast.models.checks import check_question, check_texts
from bookrag_fast.models.onnx.batching import Batcher
from bookrag_fast.models.onnx.calls import TextCalls
from bookrag_fast.models.onnx.network import Network, check_finite
from bookrag_fast.models.onnx.opening import open_parts
from bookrag_fast.models.onnx.pooling import unit_rows
from bookrag_fast.models.onnx.tokens import TextTokenizer, Tokens
from bookrag_fast.models.protocols import FloatArray, FloatMatrix, Scores, TokenUsage

if TYPE_CHECKING:  # the settings bring pydantic along, which a reading process spares itself
    from bookrag_fast.config import OnnxRerankerSettings

__all__ = ["LateInteractionReranker", "OnnxTokenEmbedder"]

_OUTPUTS = ("contextual", "token_embeddings", "last_hidden_state")
# Texts at a time: 128 of 256 tokens of 128 dimensions are 16 MiB.
_WINDOW = 128


class OnnxTokenEmbedder:
    """Texts to a unit vector a token. Safe from several threads and loops; what they ask for at
    the same time is run together.

    Of passages, tokens of nothing but punctuation are left out, as in ColBERT; the special tokens
    stay. Questions keep all of theirs, and are not filled up with mask tokens. The prefixes are
    the markers that the model was trained with ("[Q] ", "[D] ").

    Raises:
        ModelNotFoundError: there is no such model, or one of its files is missing.
        ModelError: a file is broken, or the model does not give token vectors.
        ConfigError: a provider is unknown.
    """

    def __init__(self, settings: OnnxRerankerSettings) -> None:
        self.info, tokenizer, network = open_parts(
            settings, TextTokenizer, "token vectors", _choose_output
        )
        self.placement = network.placement
        self._punctuation = tokenizer.punctuation()
        vectors = _TokenVectors(network, tokenizer)
        (probe,) = vectors(tokenizer.encode(["probe"]))
        self.dimension = probe.vectors.shape[1]
        self._batcher: Batcher[Tokens, _TextVectors] = Batcher(
            vectors,
            lambda tokens: len(tokens.ids),
            limits=network.limits(settings.batch_size, settings.max_tokens),
            workers=network.workers,
            name=self.info.name,
        )
        self._calls = TextCalls(
            tokenizer,
            self._batcher,
            query_prefix=settings.query_prefix,
            passage_prefix=settings.passage_prefix,
            window=_WINDOW,
        )

    def embed_tokens(self, texts: Sequence[str], *, query: bool = False) -> list[FloatMatrix]:
        """float32[tokens, dimension] for each text, rows of length 1; no rows for a text of white
        space only.

        Raises:
            InvalidArgumentError: not a sequence of texts.
            ModelError: the run failed, or the model gave NaN or infinite values; or it is closed.
        """
        out = self._empty(texts)
        for place, found in self._calls.map(texts, query=query):
            out[place] = self._kept(found, query)
        return out

    async def aembed_tokens(
        self, texts: Sequence[str], *, query: bool = False
    ) -> list[FloatMatrix]:
        """`embed_tokens`, awaited. Waiting takes no thread."""
        out = self._empty(texts)
        async for place, found in self._calls.amap(texts, query=query):
            out[place] = self._kept(found, query)
        return out

    def close(self) -> None:
        """Ends the workers. Calls that wait, and later ones, get a ModelError."""
        self._batcher.close()

    def _empty(self, texts: Sequence[str]) -> list[FloatMatrix]:
        check_texts(texts)
        return [np.zeros((0, self.dimension), np.float32) for _ in texts]

    def _kept(self, found: _TextVectors, query: bool) -> FloatMatrix:
        return found.vectors if query else found.vectors[~self._punctuation[found.ids]]


class LateInteractionReranker:
    """Implements `models.protocols.Reranker`: of each token of the question, the cosine to the
    nearest token of the text, summed. A text without tokens scores -inf."""

    def __init__(self, embedder: OnnxTokenEmbedder) -> None:
        self._embedder = embedder
        self.info = embedder.info
        self.placement = embedder.placement

    def rerank(self, question: str, texts: Sequence[str]) -> FloatArray:
        """float32[len(texts)], at most the number of the question's tokens. Raises ModelError,
        and InvalidArgumentError for what is no text."""
        windows = _windows(question, texts)
        (asked,) = self._embedder.embed_tokens([question], query=True)
        return _joined(_maxsim(asked, self._embedder.embed_tokens(w)) for w in windows)

    async def arerank(self, question: str, texts: Sequence[str]) -> Scores:
        """`rerank`, awaited."""
        windows = _windows(question, texts)
        (asked,) = await self._embedder.aembed_tokens([question], query=True)
        scores = []
        for window in windows:
            vectors = await self._embedder.aembed_tokens(window)
            scores.append(await asyncio.to_thread(_maxsim, asked, vectors))
        return Scores(_joined(scores), TokenUsage())

    def close(self) -> None:
        """Closes the embedder."""
        self._embedder.close()


class _TextVectors:
    __slots__ = ("ids", "vectors")

    def __init__(self, ids: list[int], vectors: FloatMatrix) -> None:
        self.ids = ids
        self.vectors = vectors


class _TokenVectors:
    """Tokens of texts to the unit vectors of each."""

    def __init__(self, network: Network, tokenizer: TextTokenizer) -> None:
        self._network = network
        self._tokenizer = tokenizer

    def __call__(self, rows: Sequence[Tokens]) -> list[_TextVectors]:
        """Raises ModelError."""
        batch = self._tokenizer.pad(rows)
        hidden = self._network.run(batch)
        if hidden.ndim != 3 or hidden.shape[:2] != batch.mask.shape:
            raise ModelError(
                f"output {self._network.output} of {self._network.model} has shape {hidden.shape} "
                f"for {len(rows)} texts of {batch.mask.shape[1]} tokens",
                hint="a late-interaction model gives a vector a token",
            )
        found = []
        for row, one, mask in zip(rows, hidden, batch.mask, strict=True):
            vectors = one[mask]  # a copy: it does not keep the neighbours alive
            check_finite(vectors, self._network.model)
            found.append(_TextVectors(row.ids, unit_rows(vectors)))
        return found


def _maxsim(question: FloatMatrix, texts: list[FloatMatrix]) -> FloatArray:
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return core.maxsim(question, np.concatenate(texts), offsets)


def _windows(question: str, texts: Sequence[str]) -> Iterator[Sequence[str]]:
    check_question(question)
    check_texts(texts)
    listed = list(texts)  # not all sequences have slices
    return (listed[start : start + _WINDOW] for start in range(0, len(listed), _WINDOW))


def _joined(scores: Sequence[FloatArray] | Iterator[FloatArray]) -> FloatArray:
    return np.concatenate([np.zeros(0, np.float32), *scores])


def _choose_output(ranks: dict[str, int]) -> str | None:
    named = next((name for name in _OUTPUTS if ranks.get(name) == 3), None)
    return named or next((name for name, rank in ranks.items() if rank == 3), None)
