"""Nearest neighbours among unit vectors, made once when a book is indexed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bookrag_fast.models.protocols import FloatMatrix

__all__ = ["EXACT_BELOW", "nearest"]

# Built once and asked once for every row, exact blocks of a matrix product are faster than
# building an HNSW graph up to about this many rows (and exact).
EXACT_BELOW = 30_000
_BLOCK = 1024  # rows scored together: bounds memory at _BLOCK * rows floats
_HNSW = {"M": 16, "ef_construction": 100}
_SEED = 2512


def nearest(vectors: FloatMatrix, k: int) -> tuple[npt.NDArray[np.int32], FloatMatrix]:
    """The k nearest other rows of every row, by cosine.

    Args:
        vectors: float32[n, d], unit rows (rows of zeros are near to nothing).
        k: at least 1.

    Returns:
        ids int32[n, k], -1 where there are fewer, and cosines float32[n, k], descending, ties by
        lower id. The result does not depend on the number of threads.
    """
    n = len(vectors)
    ids = np.full((n, k), -1, dtype=np.int32)
    cosines = np.zeros((n, k), dtype=np.float32)
    if n < 2:
        return ids, cosines
    if n >= EXACT_BELOW:
        return _nearest_hnsw(vectors, k)
    take = min(k, n - 1)
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        scores = vectors[start:stop] @ vectors.T
        rows = np.arange(stop - start)
        scores[rows, start + rows] = -np.inf  # not its own neighbour
        best = np.argpartition(scores, n - take, axis=1)[:, n - take :]
        value = np.take_along_axis(scores, best, axis=1)
        order = np.lexsort((best, -value), axis=1)
        ids[start:stop, :take] = np.take_along_axis(best, order, axis=1)
        cosines[start:stop, :take] = np.take_along_axis(value, order, axis=1)
    return ids, cosines


def _nearest_hnsw(vectors: FloatMatrix, k: int) -> tuple[npt.NDArray[np.int32], FloatMatrix]:
    import hnswlib

    n, dim = vectors.shape
    index = hnswlib.Index(space="ip", dim=dim)
    index.init_index(max_elements=n, random_seed=_SEED, **_HNSW)
    index.set_ef(max(64, 4 * k))
    index.add_items(vectors, np.arange(n), num_threads=1)  # one thread: the graph is repeatable
    found, distance = index.knn_query(vectors, k=min(k + 1, n), num_threads=1)
    ids = np.full((n, k), -1, dtype=np.int32)
    cosines = np.zeros((n, k), dtype=np.float32)
    for row in range(n):
        others = found[row] != row
        take = min(k, int(others.sum()))
        ids[row, :take] = found[row][others][:take]
        cosines[row, :take] = 1.0 - distance[row][others][:take]
    return ids, cosines
