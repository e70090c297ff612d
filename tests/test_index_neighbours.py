"""Nearest neighbours: exact against the obvious twin, HNSW against exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookrag_fast.index import neighbours


def unit_rows(n: int, dim: int, seed: int) -> np.ndarray:
    """Clustered unit vectors, as names are; some rows are zero, some are twins."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(1, n // 20), dim))
    rows = centres[rng.integers(len(centres), size=n)] + 0.3 * rng.standard_normal((n, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if n > 5:
        rows[1] = rows[2]
        rows[3] = 0
    return rows.astype(np.float32)


@given(st.integers(0, 40), st.integers(1, 12), st.integers(0, 5))
def test_exact_equals_sorting_everything(n: int, k: int, seed: int) -> None:
    rows = unit_rows(n, 8, seed)
    ids, cosines = neighbours.nearest(rows, k)
    assert ids.shape == cosines.shape == (n, k)
    for i in range(n):
        scores = {j: float(rows[i] @ rows[j]) for j in range(n) if j != i}
        best = sorted(scores.values(), reverse=True)[:k]
        mine = ids[i][ids[i] >= 0].tolist()
        assert len(mine) == len(set(mine)) == min(k, n - 1)
        assert i not in mine
        np.testing.assert_allclose(cosines[i][: len(mine)], best, atol=1e-5)
        np.testing.assert_allclose([scores[j] for j in mine], best, atol=1e-5)


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = unit_rows(300, 16, 1)
    whole = neighbours.nearest(rows, 5)
    monkeypatch.setattr(neighbours, "_BLOCK", 7)
    np.testing.assert_array_equal(neighbours.nearest(rows, 5)[0], whole[0])


def test_hnsw_finds_what_exact_search_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = unit_rows(2000, 32, 2)
    exact_ids, exact = neighbours.nearest(rows, 10)
    monkeypatch.setattr(neighbours, "EXACT_BELOW", 100)
    ids, cosines = neighbours.nearest(rows, 10)
    again, _ = neighbours.nearest(rows, 10)
    np.testing.assert_array_equal(ids, again)  # repeatable
    assert not (ids == np.arange(2000)[:, None]).any()
    assert (np.diff(cosines, axis=1) <= 1e-6).all()
    found = [len(set(a) & set(b)) / 10 for a, b in zip(ids, exact_ids, strict=True)]
    assert np.mean(found) > 0.95
    assert cosines[:, 0] == pytest.approx(exact[:, 0], abs=0.05)
