"""Forms of personalized PageRank beyond the plain one: float64, top k, compact, batches; and the
same bits from every instruction set and thread."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from bookrag_fast import core
from bookrag_fast.errors import InvalidArgumentError

examples = settings(deadline=None, max_examples=100)
WEIGHT = st.one_of(st.floats(0.0078125, 1024, width=32), st.sampled_from([1e-38, 1e10, 3e38]))
DAMPING = st.sampled_from([0.0, 0.15, 0.5, 0.85, 0.97])
Case = tuple[int, list[oracles.Relation]]


@st.composite
def graphs(draw: st.DrawFn) -> Case:
    """Any small multigraph: loops, parallel relations, stars, entities without relations."""
    n = draw(st.integers(1, 14))
    entity = st.integers(0, n - 1)
    relations = draw(st.lists(st.tuples(entity, entity, WEIGHT), max_size=25))
    if draw(st.booleans()):
        relations += [(0, e, 1.0) for e in range(1, n)]
    return n, [(a, b, float(np.float32(w))) for a, b, w in relations]


def make_graph(n: int, relations: list[oracles.Relation]) -> core.KnowledgeGraph:
    sources, targets, weights = zip(*relations, strict=True) if relations else ((), (), ())
    return core.KnowledgeGraph(n, sources, targets, weights)


def l1(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(np.asarray(a, np.float64) - b).sum())


def clustered(n: int, seed: int = 3) -> core.KnowledgeGraph:
    """Clusters and a few hubs, large enough for every part of the layout."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, n, 3 * n)
    b = np.where(rng.random(3 * n) < 0.3, rng.integers(0, 6, 3 * n), (a + rng.integers(1, 9)) % n)
    return core.KnowledgeGraph(n, a, b, rng.uniform(0.1, 5, 3 * n))


@examples
@given(graphs(), DAMPING, st.sampled_from([1e-6, 1e-10, 1e-12]), st.data())
def test_float64_keeps_its_tolerance(
    case: Case, damping: float, tol: float, data: st.DataObject
) -> None:
    n, relations = case
    seeds = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=4))
    got = core.personalized_pagerank(
        make_graph(n, relations), seeds, damping=damping, tol=tol, dtype="float64"
    )
    assert got.dtype == np.float64
    assert (got >= 0).all()
    exact = oracles.personalized_pagerank(n, relations, seeds, None, damping)
    assert l1(got, exact) <= tol + 1e-13 / (1 - damping)  # the twin rounds as well


@examples
@given(graphs(), DAMPING, st.data())
def test_batch_agrees_with_the_twin(case: Case, damping: float, data: st.DataObject) -> None:
    n, relations = case
    seeds = data.draw(
        st.lists(st.lists(st.integers(0, n - 1), min_size=1, max_size=3), min_size=0, max_size=20)
    )
    weights = data.draw(
        st.none() | st.tuples(*(st.lists(WEIGHT, min_size=len(s), max_size=len(s)) for s in seeds))
    )
    graph = make_graph(n, relations)
    got = core.personalized_pagerank_batch(graph, seeds, weights, damping=damping)
    assert got.shape == (len(seeds), n)
    assert got.dtype == np.float32
    for i, walk in enumerate(seeds):
        mine = None if weights is None else [float(np.float32(w)) for w in weights[i]]
        exact = oracles.personalized_pagerank(n, relations, walk, mine, damping)
        assert l1(got[i], exact) <= 1e-6 + 1.2e-7
    flat = [s for walk in seeds for s in walk]
    offsets = np.cumsum([0, *map(len, seeds)])
    mass = None if weights is None else [w for walk in weights for w in walk]
    again = core.personalized_pagerank_batch(graph, flat, mass, damping=damping, offsets=offsets)
    np.testing.assert_array_equal(got, again)


@examples
@given(graphs(), DAMPING, st.integers(1, 16), st.data())
def test_top_k_is_the_head_of_the_order(
    case: Case, damping: float, k: int, data: st.DataObject
) -> None:
    n, relations = case
    seed = data.draw(st.integers(0, n - 1))
    within = data.draw(st.none() | st.lists(st.integers(0, n - 1), max_size=n))
    if within is not None:
        within.append(seed)
    ids, scores = core.personalized_pagerank(
        make_graph(n, relations), [seed], damping=damping, tol=1e-6, top_k=k, entities=within
    )
    kept = sorted(set(within)) if within is not None else list(range(n))
    exact = np.zeros(n)
    exact[kept] = oracles.personalized_pagerank(
        len(kept),
        [(kept.index(a), kept.index(b), w) for a, b, w in relations if a in kept and b in kept],
        [kept.index(seed)],
        None,
        damping,
    )
    assert len(set(ids.tolist())) == len(ids) <= k
    assert sorted(zip(-scores, ids, strict=True)) == list(zip(-scores, ids, strict=True))
    # Scores carry the error at which the order was proved, 1e-4 at most.
    np.testing.assert_allclose(scores, exact[ids], atol=1.1e-4)
    best = np.sort(exact)[::-1][: len(ids)]
    np.testing.assert_allclose(np.sort(exact[ids])[::-1], best, atol=2.2e-6)
    missing = np.delete(exact, ids)
    assert len(ids) == k or missing.max(initial=0.0) < 1e-6


@examples
@given(graphs(), DAMPING, st.data())
def test_compact_is_the_induced_walk_without_zeros(
    case: Case, damping: float, data: st.DataObject
) -> None:
    n, relations = case
    graph = make_graph(n, relations)
    within = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=2 * n))
    seed = within[0]
    ids, scores = core.personalized_pagerank(
        graph, [seed], damping=damping, entities=within, compact=True
    )
    assert ids.tolist() == sorted(set(within))
    whole = core.personalized_pagerank(graph, [seed], damping=damping, entities=within)
    np.testing.assert_array_equal(whole[ids], scores)
    assert np.delete(whole, ids).sum() == 0
    ids64, fine = core.personalized_pagerank(
        graph, [seed], damping=damping, entities=within, compact=True, dtype="float64", tol=1e-10
    )
    np.testing.assert_array_equal(ids64, ids)
    assert fine.dtype == np.float64
    assert l1(scores, fine) <= 1e-6 + 1.2e-7


def test_induced_walks_put_the_rows_of_hubs_together() -> None:
    """Rows of more than 128 relations are read from their other ends: hub to hub, parallel
    relations and loops too."""
    rng = np.random.default_rng(4)
    n, hubs = 1200, 70
    a = np.concatenate([rng.integers(0, hubs, 20_000), [0, 0, 0, 1, 1]])
    b = np.concatenate([rng.integers(0, n, 20_000), [1, 1, 0, 1, 2]])
    graph = core.KnowledgeGraph(n, a, b, rng.uniform(0.1, 3, len(a)))
    assert (graph.degrees[:hubs] > 128).all()
    for size in (2, 75, 600, n):
        entities = np.sort(rng.permutation(n)[:size])
        entities[:2] = 0, 1
        part, ids = graph.induced(entities)
        got_ids, got = core.personalized_pagerank(graph, [1], entities=entities, compact=True)
        np.testing.assert_array_equal(got_ids, ids)
        assert l1(got, core.personalized_pagerank(part, [1], tol=1e-10, dtype="float64")) < 1.2e-6


def test_refusals() -> None:
    graph = core.KnowledgeGraph(2, [0], [1], [1.0])
    for options, message in (
        ({"dtype": "int32"}, "dtype is 'int32'"),
        ({"dtype": object()}, "dtype is"),
        ({"top_k": 0}, "top_k is 0"),
        ({"top_k": 1, "dtype": "float64"}, "top_k works in float32"),
        ({"compact": True}, "only entities"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            core.personalized_pagerank(graph, [0], **options)  # type: ignore[call-overload]
    for arguments, options, message in (
        (([[0], []],), {}, "of walk 1 is empty"),
        (([[0], [5]],), {}, r"walk 1: seeds\[0\] is 5"),
        (([[0], [1]], [[1.0]]), {}, "as long as seeds"),
        (([[0]], [[0.0]]), {}, "weights are all 0"),
        ((7,), {}, "sequence of arrays"),
        (([0, 1],), {"offsets": [0, 1]}, "end with the number of seeds"),
        (([0, 1],), {"offsets": [0, 0, 2]}, r"offsets\[1\] is 0"),
        (([0, 1],), {"offsets": []}, "begin with 0"),
        (([[0]],), {"damping": 1.0}, "damping is 1"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            core.personalized_pagerank_batch(graph, *arguments, **options)  # type: ignore[arg-type]


def digest() -> str:
    """Of results that between them use every kernel of PageRank."""
    graph = clustered(4000)
    parts: list[np.ndarray] = [
        core.personalized_pagerank(graph, [5, 900]),
        core.personalized_pagerank(graph, [5], damping=0.85, tol=1e-11, dtype="float64"),
        core.personalized_pagerank_batch(graph, [[i] for i in range(5)]),
        core.personalized_pagerank(graph, [9], entities=np.arange(0, 4000, 3)),
    ]
    return hashlib.sha256(b"".join(p.tobytes() for p in parts)).hexdigest()


@pytest.mark.parametrize("isa", ["sse42", "avx2", "avx512"])
def test_every_instruction_set_gives_the_same_bits(isa: str) -> None:
    code = "import test_core_pagerank as t; print(t.core.isa(), t.digest())"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "BOOKRAG_ISA": isa, "PYTHONPATH": os.pathsep.join(["tests", *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    if "but this machine offers" in ran.stderr:
        pytest.skip(f"this machine has no {isa}")
    assert ran.stdout.split() == [isa, digest()], ran.stderr


def test_an_unknown_instruction_set_is_refused() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import bookrag_fast._core"],
        env={**os.environ, "BOOKRAG_ISA": "mmx", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    assert "BOOKRAG_ISA is 'mmx'" in ran.stderr


def test_threads_that_meet_at_a_new_graph_agree() -> None:
    """The layout is made once, by whoever comes first."""
    with ThreadPoolExecutor(8) as pool:
        for round_ in range(5):
            graph = clustered(3000, round_)
            results = list(pool.map(lambda _: core.personalized_pagerank(graph, [1]), range(16)))  # noqa: B023
            alone = core.personalized_pagerank(clustered(3000, round_), [1])
            for result in results:
                np.testing.assert_array_equal(result, alone)


@pytest.mark.parametrize("seeds", [np.array(0), "ab", 3])
def test_a_batch_without_a_length_is_refused(seeds: object) -> None:
    graph = core.KnowledgeGraph(2, [0], [1], np.ones(1, np.float32))
    with pytest.raises(InvalidArgumentError, match="seeds"):
        core.personalized_pagerank_batch(graph, seeds)
