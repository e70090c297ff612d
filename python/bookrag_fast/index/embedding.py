"""Texts of a book as vectors, several batches under way at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bookrag_fast.index.stages import Stages, side_by_side
from bookrag_fast.models.protocols import Embedder, Embeddings, FloatMatrix, TokenUsage

__all__ = ["embedded"]

BATCH = 512  # texts
AT_ONCE = 4  # batches: an endpoint answers several at a time


async def embedded(
    texts: Sequence[str], embedder: Embedder, stages: Stages, *, stage: str, unit: str
) -> Embeddings:
    """float32[len(texts), d] and what it cost. Rows of texts without anything in them are zeros:
    servers refuse such texts.

    Raises:
        ModelError: the embedder failed.
    """
    vectors: FloatMatrix | None = None  # until the first batch says how long vectors are
    places = [i for i, text in enumerate(texts) if text.strip()]
    done, usage = 0, TokenUsage()

    async def embed(start: int) -> None:
        nonlocal vectors, done, usage
        await stages.mention(stage, done, len(texts), unit)
        batch = places[start : start + BATCH]
        made = await embedder.aembed([texts[i] for i in batch])
        if vectors is None:
            vectors = np.zeros((len(texts), made.vectors.shape[1]), dtype=np.float32)
        vectors[batch] = made.vectors
        done, usage = done + len(batch), usage + made.usage

    await side_by_side(range(0, len(places), BATCH), embed, limit=AT_ONCE)
    await stages.tell(stage, len(texts), len(texts), unit)
    if vectors is None:  # on a thread, since an endpoint may have to be asked on this very loop
        dimension = await stages.run(lambda: embedder.info.dimension)
        vectors = np.zeros((len(texts), dimension), dtype=np.float32)
    return Embeddings(vectors, usage)
