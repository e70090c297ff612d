"""Extractive summaries: the sentences that say most of what all of them say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bookrag_fast.index.book_index import count_tokens
from bookrag_fast.models.protocols import FloatMatrix

__all__ = ["central"]

MOST = 5  # sentences
ALIKE = 0.9  # cosine from which one sentence says another in other words


def central(texts: Sequence[str], vectors: FloatMatrix, budget: int) -> list[int]:
    """Which of the texts lie nearest to the centre of all, none twice in other words, in their
    order.

    Args:
        vectors: float32[len(texts), d], unit rows.
        budget: tokens of the chosen ones together.
    """
    if not len(texts):
        return []
    centre = vectors.mean(axis=0)
    chosen: list[int] = []
    spent = 0
    for i in np.argsort(-(vectors @ centre), kind="stable").tolist():
        cost = count_tokens(texts[i])
        if len(chosen) == MOST or spent + cost > budget:
            break
        if all(float(vectors[i] @ vectors[j]) < ALIKE for j in chosen):
            chosen.append(i)
            spent += cost
    return sorted(chosen)
