"""Token vectors to one vector a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from bookrag_fast.errors import ModelError
from bookrag_fast.models.onnx.network import Network, check_finite
from bookrag_fast.models.onnx.tokens import TextTokenizer, Tokens
from bookrag_fast.models.protocols import FloatMatrix

__all__ = ["Pooling", "SentenceVectors", "choose_output", "pool", "unit_rows"]

Pooling = Literal["mean", "cls", "last"]

_POOLED_OUTPUTS = ("sentence_embedding", "pooled_embeddings")
_TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings")


class SentenceVectors:
    """Tokens of texts to unit vectors.

    Args:
        dimension: the vectors are cut to their first so many numbers; None keeps all.

    ``dimension`` is that of the vectors.

    Raises:
        ModelError: the network is of another kind, gives what it does not declare, or has fewer
            dimensions than asked for.
    """

    def __init__(
        self,
        network: Network,
        tokenizer: TextTokenizer,
        *,
        pooling: Pooling,
        dimension: int | None,
    ) -> None:
        self._network = network
        self._tokenizer = tokenizer
        self._pooling = pooling
        self._width: int | None = None  # what the model gives: not known before it was tried
        self.dimension = dimension or 0
        (probe,) = self._pooled(tokenizer.encode(["probe"]))
        self._width = len(probe)
        if network.declared not in (None, self._width):
            raise ModelError(
                f"{network.model} declares {network.declared} dimensions and gives {self._width}"
            )
        if dimension is not None and dimension > self._width:
            raise ModelError(
                f"{network.model} gives {self._width} dimensions and cannot be cut to {dimension}",
                hint="set a lower dimension for this model, or none",
            )
        self.dimension = dimension or self._width

    def __call__(self, rows: Sequence[Tokens]) -> FloatMatrix:
        """float32[len(rows), dimension], rows of length 1. Raises ModelError."""
        return unit_rows(self._pooled(rows)[:, : self.dimension])

    def _pooled(self, rows: Sequence[Tokens]) -> FloatMatrix:
        batch = self._tokenizer.pad(rows)
        hidden = self._network.run(batch)
        vectors = hidden if self._network.rank == 2 else pool(hidden, batch.mask, self._pooling)
        if vectors.ndim != 2:
            raise ModelError(
                f"output {self._network.output} of {self._network.model} has shape {hidden.shape} "
                f"for {len(rows)} texts"
            )
        if self._width not in (None, vectors.shape[1]):
            raise ModelError(
                f"{self._network.model} gave {vectors.shape[1]} dimensions, {self._width} when it "
                "was loaded"
            )
        check_finite(vectors, self._network.model)
        return vectors


def choose_output(ranks: dict[str, int]) -> str | None:
    """An output of one vector a text, else of one a token, by name; else the first of that form."""
    for name in (*_POOLED_OUTPUTS, *_TOKEN_OUTPUTS):
        if name in ranks:
            return name
    return next((name for name, rank in ranks.items() if rank in (2, 3)), None)


def pool(hidden: FloatMatrix, mask: npt.NDArray[np.bool_], pooling: Pooling) -> FloatMatrix:
    """float32[b, t, d] and bool[b, t], true where a token is, to float32[b, d]. Padding may stand
    on either side; "cls" is the first token and "last" the last that is none."""
    if hidden.ndim != 3:
        return hidden
    if pooling == "mean":
        weights = mask.astype(np.float32)
        weights /= weights.sum(axis=1, keepdims=True)
        # A product a text: np.einsum does not use BLAS for this.
        return np.asarray((weights[:, None, :] @ hidden)[:, 0], dtype=np.float32)
    places = mask.argmax(axis=1)
    if pooling == "last":
        places = mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
    return np.asarray(hidden[np.arange(len(hidden)), places])


def unit_rows(vectors: FloatMatrix) -> FloatMatrix:
    """Vectors along the last axis brought to length 1; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0.0, norms, 1.0), dtype=np.float32)
