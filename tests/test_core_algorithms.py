"""PageRank, skyline, gradient drop and merge plan against their slow twins and other libraries."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from bookrag_fast import core
from bookrag_fast.errors import InvalidArgumentError, TooLargeError

os.environ.setdefault("OMP_NUM_THREADS", "1")  # igraph's idle threads would only slow it down
import igraph
import networkx

settings.register_profile("core", deadline=None, max_examples=150)
examples = settings(settings.get_profile("core"))

ORDINARY = st.floats(0.0078125, 1024, width=32)
EXTREME = st.sampled_from([1e-45, 1e-38, 1.0, 1e10, 3.4e38])
Case = tuple[int, list[oracles.Relation], list[int], "list[float] | None"]


@st.composite
def walks(draw: st.DrawFn, weight: st.SearchStrategy[float] = ORDINARY, loops: bool = True) -> Case:
    """A graph with a start. Few relations, so that isolated and cut-off seeds are common."""
    n = draw(st.integers(1, 12))
    entity = st.integers(0, n - 1)
    relation = st.tuples(entity, entity, weight)
    if not loops:
        relation = relation.filter(lambda r: r[0] != r[1])
    relations = draw(st.lists(relation, max_size=20 if n > 1 or loops else 0))
    seeds = draw(st.lists(entity, min_size=1, max_size=4))
    weights = None
    if draw(st.booleans()):
        weights = draw(st.lists(weight, min_size=len(seeds), max_size=len(seeds)))
    return n, relations, seeds, weights


def make_graph(n: int, relations: list[oracles.Relation]) -> core.KnowledgeGraph:
    sources, targets, weights = zip(*relations, strict=True) if relations else ((), (), ())
    return core.KnowledgeGraph(n, sources, targets, weights)


def restart(n: int, seeds: list[int], weights: list[float] | None) -> np.ndarray:
    mass = np.zeros(n)
    np.add.at(
        mass, seeds, 1.0 if weights is None else np.asarray(weights, np.float32).astype(np.float64)
    )
    return mass / mass.sum()


def l1(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(np.asarray(a, np.float64) - b).sum())


# --- personalized PageRank ----------------------------------------------------------------------


@examples
@given(walks(), st.sampled_from([0.0, 0.15, 0.5, 0.85, 0.95]), st.sampled_from([1e-2, 1e-6, 1e-10]))
def test_pagerank_keeps_its_tolerance(case: Case, damping: float, tol: float) -> None:
    n, relations, seeds, weights = case
    got = core.personalized_pagerank(
        make_graph(n, relations), seeds, weights, damping=damping, tol=tol
    )
    assert got.dtype == np.float32
    assert got.shape == (n,)
    assert (got >= 0).all()
    assert abs(got.sum(dtype=np.float64) - 1) < 1e-6
    exact = oracles.personalized_pagerank(n, relations, seeds, weights, damping)
    assert l1(got, exact) <= tol + 1.2e-7  # what rounding to float32 may add


@examples
@given(walks(weight=EXTREME))
def test_pagerank_survives_extreme_weights(case: Case) -> None:
    n, relations, seeds, weights = case
    relations = [(a, b, float(np.float32(w))) for a, b, w in relations]
    if weights is not None:
        weights = [float(np.float32(w)) for w in weights]
    got = core.personalized_pagerank(make_graph(n, relations), seeds, weights, tol=1e-9)
    exact = oracles.personalized_pagerank(n, relations, seeds, weights)
    assert l1(got, exact) <= 2e-7


@examples
@given(walks(loops=False), st.sampled_from([0.15, 0.5, 0.85]))
def test_pagerank_agrees_with_igraph(case: Case, damping: float) -> None:
    """Isolated seeds included: igraph too lets a stuck walk restart at the seeds."""
    n, relations, seeds, weights = case
    other = igraph.Graph(n, [(a, b) for a, b, _ in relations])
    expected = other.personalized_pagerank(
        damping=damping,
        reset=restart(n, seeds, weights).tolist(),
        weights=[w for _, _, w in relations],
        implementation="prpack",
    )
    got = core.personalized_pagerank(
        make_graph(n, relations), seeds, weights, damping=damping, tol=1e-9
    )
    assert l1(got, np.array(expected)) <= 2e-7


@examples
@given(walks(), st.sampled_from([0.15, 0.5, 0.85]))
def test_pagerank_agrees_with_networkx(case: Case, damping: float) -> None:
    """Self-loops and parallel relations included."""
    n, relations, seeds, weights = case
    other = networkx.MultiGraph()
    other.add_nodes_from(range(n))
    other.add_weighted_edges_from(relations)
    mass = restart(n, seeds, weights)
    expected = networkx.pagerank(
        other, alpha=damping, personalization=dict(enumerate(mass)), tol=1e-12, max_iter=10_000
    )
    got = core.personalized_pagerank(
        make_graph(n, relations), seeds, weights, damping=damping, tol=1e-9
    )
    assert l1(got, np.array([expected[e] for e in range(n)])) <= 2e-7


def test_pagerank_of_a_larger_graph_agrees_with_igraph() -> None:
    rng = np.random.default_rng(8)
    n, m = 20_000, 60_000
    sources, targets = rng.integers(0, n, (2, m))
    targets = np.where(sources == targets, (targets + 1) % n, targets)
    weights = rng.uniform(0.1, 5, m).astype(np.float32)
    graph = core.KnowledgeGraph(n, sources, targets, weights)
    other = igraph.Graph(n, list(zip(sources.tolist(), targets.tolist(), strict=True)))
    seeds = [5, 77, 12_345]
    for damping in (0.5, 0.85):
        expected = other.personalized_pagerank(
            damping=damping, reset_vertices=seeds, weights=weights.tolist(), implementation="prpack"
        )
        for tol in (1e-3, 1e-6):
            got = core.personalized_pagerank(graph, seeds, damping=damping, tol=tol)
            assert l1(got, np.array(expected)) <= tol + 1.2e-7


@examples
@given(walks(), st.data())
def test_pagerank_within_entities_is_that_of_the_induced_graph(
    case: Case, data: st.DataObject
) -> None:
    n, relations, seeds, weights = case
    graph = make_graph(n, relations)
    within = data.draw(st.lists(st.integers(0, n - 1), max_size=n))
    inside = [i for i, seed in enumerate(seeds) if seed in within]
    if not inside:
        with pytest.raises(InvalidArgumentError, match="no seed"):
            core.personalized_pagerank(graph, seeds, weights, entities=within)
        return
    kept = sorted(set(within))
    expected = np.zeros(n)
    expected[kept] = oracles.personalized_pagerank(
        len(kept),
        [(kept.index(a), kept.index(b), w) for a, b, w in relations if a in kept and b in kept],
        [kept.index(seeds[i]) for i in inside],
        None if weights is None else [weights[i] for i in inside],
    )
    got = core.personalized_pagerank(graph, seeds, weights, entities=within, tol=1e-9)
    assert l1(got, expected) <= 2e-7


def test_pagerank_by_hand() -> None:
    pair = core.KnowledgeGraph(2, [0], [1], [3.0])
    np.testing.assert_allclose(core.personalized_pagerank(pair, [0]), [2 / 3, 1 / 3], atol=1e-6)
    alone = core.KnowledgeGraph(3, [], [], [])
    assert core.personalized_pagerank(alone, [2]).tolist() == [0, 0, 1]
    assert core.personalized_pagerank(alone, [2, 0, 2, 2]).tolist() == [0.25, 0, 0.75]
    apart = core.KnowledgeGraph(4, [0, 2], [1, 3], [1, 1])
    assert core.personalized_pagerank(apart, [0])[2:].tolist() == [0, 0]
    loop = core.KnowledgeGraph(2, [0], [0], [1])
    assert core.personalized_pagerank(loop, [0]).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("seeds", "weights", "options", "message"),
    [
        ([], None, {}, "seeds is empty"),
        ([2], None, {}, r"seeds\[0\] is 2, but there are 2 entities"),
        ([0], [1.0, 2.0], {}, "weights has 2 values, but seeds has 1"),
        ([0], [], {}, "weights has 0 values, but seeds has 1"),
        ([0], [math.nan], {}, r"weights\[0\] is nan"),
        ([0], [math.inf], {}, r"weights\[0\] is inf"),
        ([0, 1], [1.0, -1.0], {}, r"weights\[1\] is -1"),
        ([0], [0.0], {}, "weights are all 0"),
        ([0], None, {"damping": 1.0}, "damping is 1"),
        ([0], None, {"damping": -0.1}, "damping is -0.1"),
        ([0], None, {"damping": math.nan}, "damping is nan"),
        ([0], None, {"damping": 1 - 1e-12}, "so near 1"),
        ([0], None, {"damping": "half"}, "damping is 'half'"),
        ([0], None, {"tol": 0.0}, "tol is 0"),
        ([0], None, {"tol": math.nan}, "tol is nan"),
        ([0], None, {"entities": [7]}, r"entities\[0\] is 7"),
    ],
)
def test_pagerank_refuses(
    seeds: list[int], weights: list[float] | None, options: dict[str, object], message: str
) -> None:
    graph = core.KnowledgeGraph(2, [0], [1], [1.0])
    with pytest.raises(InvalidArgumentError, match=message):
        core.personalized_pagerank(graph, seeds, weights, **options)  # type: ignore[arg-type]


# --- skyline ------------------------------------------------------------------------------------

MANY_TIES = st.integers(-1, 2).map(float)
ANY_FLOAT = st.floats(allow_nan=False, width=32)


@examples
@given(st.data(), st.sampled_from([2, 3, 4]), st.sampled_from([MANY_TIES, ANY_FLOAT]))
def test_skyline_agrees_with_all_pairs(
    data: st.DataObject, d: int, value: st.SearchStrategy[float]
) -> None:
    rows = data.draw(st.lists(st.lists(value, min_size=d, max_size=d), max_size=30))
    scores = np.array(rows, np.float32).reshape(-1, d)
    got = core.skyline(scores)
    assert got.dtype == np.int64
    assert got.tolist() == oracles.skyline(scores)


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("kind", ["independent", "anti-correlated", "correlated", "few values"])
def test_skyline_of_many_points(d: int, kind: str) -> None:
    rng = np.random.default_rng(d)
    n = 1500
    scores = {
        "independent": lambda: rng.random((n, d)),
        "anti-correlated": lambda: rng.dirichlet(np.ones(d), n) + rng.normal(0, 0.01, (n, d)),
        "correlated": lambda: rng.random((n, 1)) + rng.normal(0, 0.05, (n, d)),
        "few values": lambda: rng.integers(0, 5, (n, d)),
    }[kind]().astype(np.float32)
    assert core.skyline(scores).tolist() == oracles.skyline(scores)


def test_skyline_edges() -> None:
    assert core.skyline(np.empty((0, 3))).tolist() == []
    assert core.skyline([[5, 5]]).tolist() == [0]
    assert core.skyline([[0.0, 1], [-0.0, 1]]).tolist() == [0, 1]
    assert core.skyline([[math.inf, -math.inf], [0, 0], [-math.inf, math.inf]]).tolist() == [
        0,
        1,
        2,
    ]
    with pytest.raises(InvalidArgumentError, match=r"scores\[1, 0\] is NaN"):
        core.skyline([[0, 0], [math.nan, 0]])
    for d in (0, 1, 5):
        with pytest.raises(InvalidArgumentError, match=f"scores has {d} columns"):
            core.skyline(np.zeros((3, d)))


# --- gradient drop ------------------------------------------------------------------------------

SCORE = st.one_of(
    st.sampled_from([-math.inf, -0.5, 0.0, 0.18, 0.3, 0.36, 0.5, 0.6, 1.0]),
    st.floats(0, 1, width=32),
)


@examples
@given(
    st.integers(0, 20).flatmap(  # 4 to 64 columns take the sorting network
        lambda k: st.lists(st.lists(SCORE, min_size=k, max_size=k), min_size=1)
    ),
    st.sampled_from([0.1, 0.5, 0.6, 1.0]),
    st.sampled_from([0.0, 0.3, 0.5]),
)
def test_gradient_drop_agrees_with_its_twin(
    rows: list[list[float]], g: float, min_score: float
) -> None:
    got = core.gradient_drop(np.array(rows, np.float32), g=g, min_score=min_score)
    expected = [oracles.gradient_drop_row(row, g, min_score) for row in rows]
    assert got.case.tolist() == [case for case, _, _ in expected]
    assert got.size.tolist() == [size for _, size, _ in expected]
    assert got.order.tolist() == [order for _, _, order in expected]
    assert got.order.shape == np.shape(rows)
    assert (got.case.dtype, got.size.dtype) == (np.uint8, np.int32)
    assert len(got) == len(rows)


@pytest.mark.parametrize("k", range(1, 67))
def test_gradient_drop_of_many_rows(k: int) -> None:
    """Blocks of 16 rows, the rest after them, and ties that the order must break by column."""
    rng = np.random.default_rng(k)
    scores = rng.choice([-math.inf, -1.0, -0.0, 0.0, 0.5, 0.7, 1.0], (37, k)).astype(np.float32)
    scores[::2] = rng.random((19, k), np.float32)
    got = core.gradient_drop(scores)
    expected = [oracles.gradient_drop_row(row) for row in scores]
    assert got.case.tolist() == [case for case, _, _ in expected]
    assert got.size.tolist() == [size for _, size, _ in expected]
    assert got.order.tolist() == [order for _, _, order in expected]
    for bad in (math.nan, math.inf):
        for row in (0, 20, 36):
            broken = scores.copy()
            broken[row, k // 2] = bad
            with pytest.raises(InvalidArgumentError, match=rf"scores\[{row}, {k // 2}\] is"):
                core.gradient_drop(broken)


NONE = -math.inf


@pytest.mark.parametrize(
    ("row", "case", "size"),
    [
        ([0.9, 0.1, 0.1], core.MERGE, 1),
        ([0.1, 0.9, 0.1], core.MERGE, 1),
        ([0.9, 0.8, 0.1], core.AMBIGUOUS, 2),
        ([0.9, 0.8, 0.7], core.NEW, 3),  # every candidate alike
        ([1.0, 0.6, 0.36], core.NEW, 3),  # exactly g is no drop
        ([0.49, 0.1, 0.1], core.NEW, 0),
        ([0.5, 0.1, 0.1], core.MERGE, 1),
        ([0.9, NONE, NONE], core.MERGE, 1),  # running out is a drop
        ([0.9, 0.8, NONE], core.AMBIGUOUS, 2),
        ([NONE, NONE, NONE], core.NEW, 0),
        ([0.9], core.MERGE, 1),
        ([0.4], core.NEW, 0),
        ([], core.NEW, 0),
    ],
)
def test_gradient_drop_by_hand(row: list[float], case: int, size: int) -> None:
    got = core.gradient_drop(np.array([row], np.float64))
    assert (got.case[0], got.size[0]) == (case, size)


def test_gradient_drop_gate_is_met_by_its_own_value() -> None:
    """0.7 as float32 is below 0.7 as float64; a score written 0.7 must still pass a gate of 0.7."""
    got = core.gradient_drop(np.array([[0.7, 0.1]], np.float32), min_score=0.7)
    assert got.case.tolist() == [core.MERGE]


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([[0.1, math.nan]], {}, r"scores\[0, 1\] is nan"),
        ([[0.1], [math.inf]], {}, r"scores\[1, 0\] is inf"),
        ([0.1], {}, "scores has 1 dimensions"),
        ([[0.1]], {"g": 0}, "g is 0"),
        ([[0.1]], {"g": 1.1}, "g is 1.1"),
        ([[0.1]], {"min_score": -1}, "min_score is -1"),
        ([[0.1]], {"min_score": math.nan}, "min_score is nan"),
        ([[0.1]], {"g": None}, "g is None"),
    ],
)
def test_gradient_drop_refuses(scores: object, options: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        core.gradient_drop(scores, **options)  # type: ignore[arg-type]


# --- merge plan ---------------------------------------------------------------------------------


@st.composite
def merges(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[tuple[int, int]]]:
    n = draw(st.integers(1, 10))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    apart = pair.filter(lambda p: p[0] != p[1]) if n > 1 else st.nothing()
    return n, draw(st.lists(pair, max_size=15)), draw(st.lists(apart, max_size=4 if n > 1 else 0))


@examples
@given(merges())
def test_merge_plan_agrees_with_its_twin(
    case: tuple[int, list[tuple[int, int]], list[tuple[int, int]]],
) -> None:
    n, pairs, apart = case
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    got = core.merge_plan(n, left, right, np.array(apart, int).reshape(-1, 2))
    representative, skipped = oracles.merge_plan(n, pairs, apart)
    assert got.representative.tolist() == representative
    assert got.skipped.tolist() == skipped
    assert got.num_sets == len(set(representative))


@examples
@given(merges(), st.randoms())
def test_merge_plan_does_not_depend_on_order(
    case: tuple[int, list[tuple[int, int]], object], random: object
) -> None:
    n, pairs, _ = case
    shuffled = [p[::-1] for p in pairs]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    plans = [core.merge_plan(n, [a for a, _ in p], [b for _, b in p]) for p in (pairs, shuffled)]
    assert plans[0].representative.tolist() == plans[1].representative.tolist()
    assert plans[0].skipped.size == 0


def test_merge_plan_of_long_chains() -> None:
    n = 200_000
    ids = np.arange(n - 1)
    for order in (ids, ids[::-1]):
        plan = core.merge_plan(n, order, order + 1)
        assert (plan.representative == 0).all()
    plan = core.merge_plan(n, ids, ids + 1, [[0, n - 1]])
    assert plan.skipped.tolist() == [n - 2]


def test_merge_plan_refuses() -> None:
    with pytest.raises(InvalidArgumentError, match=r"right\[0\] is 2"):
        core.merge_plan(2, [0], [2])
    with pytest.raises(
        InvalidArgumentError, match="incompatible pair 1 joins entity 1 with itself"
    ):
        core.merge_plan(2, [], [], [[0, 1], [1, 1]])
    with pytest.raises(InvalidArgumentError, match="incompatible has 3 columns"):
        core.merge_plan(2, [], [], [[0, 1, 1]])
    with pytest.raises(TooLargeError):
        core.merge_plan(core.MAX_ENTITIES + 1, [], [])
