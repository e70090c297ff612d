"""Cosine top-k, VectorIndex and late interaction against their slow twins."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import oracles
from bookrag_fast import core
from bookrag_fast.errors import InvalidArgumentError

settings.register_profile("similarity", deadline=None, max_examples=100)
examples = settings(settings.get_profile("similarity"))

VALUE = st.floats(-4, 4, width=16) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 6e-8])


@st.composite
def matrices(draw: st.DrawFn, rows: int = 40) -> tuple[np.ndarray, np.ndarray, int]:
    """(queries, rows, k): few distinct rows, so that ties and zeros are common."""
    d = draw(st.sampled_from([1, 2, 3, 8, 15, 16, 17, 33, 64, 70]))
    some = draw(hnp.arrays(np.float16, (draw(st.integers(1, 6)), d), elements=VALUE))
    which = draw(st.lists(st.integers(0, len(some) - 1), max_size=rows))
    queries = draw(hnp.arrays(np.float16, (draw(st.integers(0, 3)), d), elements=VALUE))
    return queries, some[which], draw(st.integers(1, rows + 2))


def check(ids: np.ndarray, cosines: np.ndarray, exact: np.ndarray, k: int) -> None:
    """The k largest within float32 rounding, best first, equals by id; each with its own cosine."""
    assert (ids.dtype, cosines.dtype) == (np.int32, np.float32)
    assert len(ids) == len(cosines) == min(k, len(exact))
    assert len(set(ids.tolist())) == len(ids)
    np.testing.assert_allclose(cosines, exact[ids], atol=2e-6)
    pairs = list(zip(-cosines, ids, strict=True))
    assert pairs == sorted(pairs)
    best = np.sort(exact)[::-1][: len(ids)]
    np.testing.assert_allclose(cosines, best, atol=2e-6)


@examples
@given(matrices())
def test_top_k_agrees_with_its_twin(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    queries, rows, k = case
    exact = oracles.cosines(queries, rows)
    ids, cosines = core.cosine_topk(queries, rows.astype(np.float32), k)
    assert ids.shape == cosines.shape == (len(queries), min(k, len(rows)))
    for row in range(len(queries)):
        check(ids[row], cosines[row], exact[row], k)
    half = core.cosine_topk(queries, rows, k)  # float16 as it is
    index = core.VectorIndex(rows)
    for row in range(len(queries)):
        found = index.search(queries[row], k)
        for a, b, c in zip(
            (ids[row], cosines[row]), (half[0][row], half[1][row]), found, strict=True
        ):
            assert a.tolist() == b.tolist() == c.tolist()


@pytest.mark.parametrize("kind", ["falling", "random", "clustered", "nearly alike", "spiky"])
@pytest.mark.parametrize("d", [5, 100, 384])
def test_an_index_finds_what_the_scan_finds(kind: str, d: int) -> None:
    """Whatever rounding to int8 loses: the bound decides what is computed in full."""
    rng = np.random.default_rng(d)
    n = 3000
    centres = rng.normal(size=(20, d))
    falling = np.arange(1, d + 1) ** -0.8  # as an embedding's spectrum: the projection pays
    rows = {
        "falling": lambda: (
            (centres[rng.integers(0, 20, n)] + 0.5 * rng.normal(size=(n, d))) * falling
        ),
        "random": lambda: rng.normal(size=(n, d)),
        "clustered": lambda: centres[rng.integers(0, 20, n)] + rng.normal(0, 0.1, (n, d)),
        "nearly alike": lambda: centres[0] + rng.normal(0, 1e-4, (n, d)),
        "spiky": lambda: rng.standard_cauchy((n, d)),
    }[kind]().astype(np.float32)
    rows[rng.integers(0, n, 50)] = 0
    rows[100:110] = rows[200:210]
    rows *= rng.choice([1e-25, 1.0, 1e25], (n, 1)).astype(np.float32)
    index = core.VectorIndex(rows)
    queries = np.concatenate([rows[:20], rng.normal(size=(20, d))]).astype(np.float32)
    for k in (1, 10, 200, n + 5):
        ids, cosines = core.cosine_topk(queries, rows, k)
        for query, a, b in zip(queries, ids, cosines, strict=True):
            found = index.search(query, k)
            assert found[0].tolist() == a.tolist()
            assert found[1].tolist() == b.tolist()
            assert min(k, n) <= index.candidates(query, k) <= n
    check(ids[-1], cosines[-1], oracles.cosines(queries[-1:], rows)[0], n + 5)


def test_more_equal_rows_than_asked_for() -> None:
    """Ties go to lower ids, however many rows look alike to every bound."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(3000, 384)).astype(np.float32) * np.arange(1, 385) ** np.float32(-0.8)
    rows[500:2500] = rows[500]
    query = rows[500] + rows[7] * np.float32(0.05)
    ids, cosines = core.VectorIndex(rows).search(query, 12)
    assert ids.tolist() == list(range(500, 512))
    assert len(set(cosines.tolist())) == 1


def test_rows_of_the_most_dimensions() -> None:
    """The widest sums of bytes: all of one sign, and of both."""
    d = 65_536
    rows = np.ones((70, d), np.float32)
    rows[1::3, ::2] = -1
    rows[2::3] = np.random.default_rng(1).normal(size=(23, d))
    index = core.VectorIndex(rows)
    for query in (rows[0], -rows[0], rows[1], rows[2]):
        for k in (1, 5, 70):
            ids, cosines = core.cosine_topk(query[None], rows, k)
            found = index.search(query, k)
            assert found[0].tolist() == ids[0].tolist()
            assert found[1].tolist() == cosines[0].tolist()


def test_an_index_stays_small() -> None:
    spread = np.arange(1, 385) ** np.float32(-0.8)  # with a projection
    rows = np.random.default_rng(2).normal(size=(3000, 384)).astype(np.float32) * spread
    assert core.VectorIndex(rows).memory_bytes <= 1.35 * rows.nbytes


def test_every_half_widens_exactly() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)].reshape(-1, 1)
    _, cosines = core.cosine_topk([[1.0]], halves, 1)
    assert cosines.tolist() == [[1.0]]
    wide = halves.astype(np.float32)
    ids = core.cosine_topk([[1.0, 1.0]], np.hstack([halves, halves[::-1]]), len(halves))
    expected = core.cosine_topk([[1.0, 1.0]], np.hstack([wide, wide[::-1]]), len(halves))
    np.testing.assert_array_equal(ids[0], expected[0])
    np.testing.assert_array_equal(ids[1], expected[1])


@pytest.mark.parametrize(
    ("queries", "rows", "k", "message"),
    [
        ([[1.0]], [[math.nan]], 1, "rows row 0 holds NaN"),
        ([[1.0]], [[1.0], [math.inf]], 1, "rows row 1 holds NaN or an infinity"),
        ([[1.0]], np.array([[1], [np.inf]], np.float16), 1, "rows row 1 holds"),
        ([[1.0], [math.nan]], [[1.0]], 1, "queries row 1 holds NaN"),
        ([[1.0, 2.0]], [[1.0]], 1, "queries has 2 columns, but rows has 1"),
        ([[1.0]], [[1.0]], 0, "k is 0"),
        ([1.0], [[1.0]], 1, "queries has 1 dimensions"),
        ([[1.0]], [1.0], 1, "rows has 1 dimensions"),
        (np.empty((1, 0)), np.empty((2, 0)), 1, "rows of 0 values"),
    ],
)
def test_top_k_refuses(queries: object, rows: object, k: int, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        core.cosine_topk(queries, rows, k)  # type: ignore[arg-type]


def test_index_edges() -> None:
    empty = core.VectorIndex(np.empty((0, 3), np.float32))
    assert len(empty) == 0
    assert empty.search([1, 2, 3])[0].tolist() == []
    index = core.VectorIndex([[3.0, 4.0], [0.0, 0.0], [-3.0, -4.0]])
    assert (len(index), index.dimensions, repr(index)) == (
        3,
        2,
        "VectorIndex(rows=3, dimensions=2)",
    )
    assert index.memory_bytes > 3 * 2 * 5
    ids, cosines = index.search(np.array([3, 4]), 3)
    assert ids.tolist() == [0, 1, 2]
    np.testing.assert_allclose(cosines, [1, 0, -1], atol=1e-6)
    assert index.search([0, 0], 2)[1].tolist() == [0, 0]
    for query, k, message in (
        ([1.0], 1, "query has 1 values"),
        ([1.0, math.nan], 1, "holds NaN"),
        ([1.0, 1.0], 0, "k is 0"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            index.search(query, k)
    with pytest.raises(InvalidArgumentError, match="rows row 0 holds"):
        core.VectorIndex([[math.inf]])
    with pytest.raises(InvalidArgumentError, match="rows row 1 has a norm beyond 1e38"):
        core.VectorIndex([[1.0, 1.0], [3e38, 3e38]])
    assert core.cosine_topk([[1.0]], [[1e-35]], 1)[1].tolist() == [[0.0]]  # counts as zeros
    with pytest.raises((TypeError, RuntimeError)):
        core.VectorIndex.__new__(core.VectorIndex).search([1.0])


# --- late interaction ---------------------------------------------------------------------------


@st.composite
def conversations(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, list[int]]:
    d = draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(0, 20), max_size=6))
    query = rng.normal(size=(draw(st.integers(0, 70)), d)).astype(np.float32)
    tokens = rng.normal(size=(sum(sizes), d)).astype(np.float32)
    return query, tokens, [0, *np.cumsum(sizes).tolist()]


@examples
@given(conversations())
def test_maxsim_agrees_with_its_twin(case: tuple[np.ndarray, np.ndarray, list[int]]) -> None:
    query, tokens, offsets = case
    got = core.maxsim(query, tokens, offsets)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, oracles.maxsim(query, tokens, offsets), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("query", "tokens", "offsets", "message"),
    [
        ([[1.0]], [[1.0, 2.0]], [0, 1], "query has 1 columns, but tokens has 2"),
        ([[math.nan]], [[1.0]], [0, 1], "query holds NaN"),
        ([[1.0]], [[1.0], [math.inf]], [0, 2], "tokens holds NaN"),
        ([[1.0]], [[1.0]], [], "offsets must begin with 0"),
        ([[1.0]], [[1.0]], [0], "end with the number of tokens, 1"),
        ([[1.0]], [[1.0]], [1, 1], "offsets must begin with 0"),
        ([[1.0]], [[1.0]], [0, 2, 1], r"offsets\[2\] is 1, below the one before"),
        ([[1.0]], [[1.0]], [0, -1, 1], r"offsets\[1\] is -1"),
        (np.empty((1, 0)), np.empty((0, 0)), [0, 0], "do not fill rows of 0"),
    ],
)
def test_maxsim_refuses(query: object, tokens: object, offsets: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        core.maxsim(query, tokens, offsets)  # type: ignore[arg-type]


# --- instruction sets ---------------------------------------------------------------------------


def test_every_instruction_set_gives_the_same_bits() -> None:
    """In processes of their own: the choice is made once."""
    script = """
import zlib, numpy as np
from bookrag_fast import core
rng = np.random.default_rng(5)
got = []
for d in (2, 3, 4):
    few = rng.integers(0, 5, (99, d))
    for points in (rng.random((9000, d)), rng.dirichlet(np.ones(d), 9000), few):
        got.append(core.skyline(points))
for k in range(1, 18):
    drop = core.gradient_drop(rng.random((101, k)))
    got += [drop.case, drop.size, drop.order]
for d in (3, 70, 384):
    rows = rng.normal(size=(500, d)).astype(np.float32)
    index = core.VectorIndex(rows)
    got += core.cosine_topk(rows[:9], rows.astype(np.float16), 7)
    got += index.search(rows[3], 20)
    got.append(np.int64(index.candidates(rows[3], 20)))
    got.append(core.maxsim(rows[:40], rows, [0, 5, 5, 100, 500]))
near = (rng.normal(size=(2500, 384)) * np.arange(1, 385) ** -0.8).astype(np.float32)
for rows in (near, rng.normal(size=(2500, 384)).astype(np.float32)):  # with a projection; without
    index = core.VectorIndex(rows)
    for query in rows[:20]:
        got += index.search(query, 10)
        got.append(np.int64(index.candidates(query, 10)))
print(zlib.crc32(b"".join(np.ascontiguousarray(a).tobytes() for a in got)))
"""
    sums = {}
    for name in ("baseline", "sse42", "avx2", "avx512"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "BOOKRAG_ISA": name},
            capture_output=True,
            text=True,
            timeout=200,
        )
        if done.returncode != 0 and "but this machine offers" in done.stderr:
            continue
        assert done.returncode == 0, done.stderr
        sums[name] = done.stdout.strip()
    assert sums
    assert len(set(sums.values())) == 1, sums
