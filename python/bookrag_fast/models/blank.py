"""An embedder for where vectors are not looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bookrag_fast.models.protocols import EmbedderInfo, FloatMatrix
from bookrag_fast.models.twins import LocalEmbedder

__all__ = ["BlankEmbedder"]


class BlankEmbedder(LocalEmbedder):
    """Makes nothing of texts: float32[texts, 1] of zeros."""

    info = EmbedderInfo("blank", 1)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        return np.zeros((len(texts), 1), np.float32)
