"""What Python hands to C++: dtypes, strides, ranges, refusals; and the public names."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import bookrag_fast
from bookrag_fast import _core, core
from bookrag_fast.errors import BookragError, InvalidArgumentError, TooLargeError
from core_examples import RELATIONS, small_graph, small_tree


@pytest.fixture
def graph() -> core.KnowledgeGraph:
    return small_graph()


@pytest.fixture
def tree() -> core.Tree:
    return small_tree()


# --- arrays in ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">u8"])
def test_ids_of_any_integer_dtype(dtype: str) -> None:
    sources, targets, weights = RELATIONS
    graph = core.KnowledgeGraph(5, np.array(sources, dtype), np.array(targets, dtype), weights)
    expected = core.KnowledgeGraph(5, *RELATIONS)
    assert graph.targets.tolist() == expected.targets.tolist()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "i4", "u8", ">f4", ">f8"])
def test_scores_of_any_real_dtype(dtype: str) -> None:
    scores = np.array([[1, 2], [2, 1], [0, 0]], dtype)
    assert core.skyline(scores).tolist() == [0, 1]


def test_any_layout_of_memory() -> None:
    rng = np.random.default_rng(0)
    wide = rng.random((40, 6), np.float32)
    expected = core.skyline(wide[::2, ::2].copy()).tolist()
    assert core.skyline(wide[::2, ::2]).tolist() == expected
    assert core.skyline(np.asfortranarray(wide[::2, ::2])).tolist() == expected
    backwards = core.skyline(wide[::2, ::2][::-1])
    assert sorted(19 - backwards) == expected
    unaligned = np.frombuffer(b"\0" + wide[::2, ::2].tobytes(), np.uint8)[1:].view(np.float32)
    assert core.skyline(unaligned.reshape(20, 3)).tolist() == expected
    for dtype in ("i4", "i8", "u8"):
        packed = b"\0" + np.arange(3, dtype=dtype).tobytes()
        shifted = np.frombuffer(packed, np.uint8)[1:].view(dtype)
        assert not shifted.flags.aligned
        assert core.KnowledgeGraph(3, shifted, shifted, np.ones(3)).degrees.tolist() == [1] * 3
    ids = np.arange(20, dtype=np.int32)[::-4]
    assert core.KnowledgeGraph(20, ids, ids, np.ones(5)).degrees[ids].tolist() == [1] * 5
    frozen = wide.copy()
    frozen.flags.writeable = False
    assert core.skyline(frozen[:, :3]).size > 0
    one_weight = np.broadcast_to(np.float32(2), (4,))
    assert core.KnowledgeGraph(5, *RELATIONS[:2], one_weight).weights.tolist() == [2.0] * 7


def test_vectors_of_any_layout_and_half_precision() -> None:
    rng = np.random.default_rng(5)
    wide = rng.normal(size=(60, 40)).astype(np.float16)
    rows = wide[::2, ::2]
    expected = core.cosine_topk(rows[:3].copy(), rows.copy(), 5)
    packed = np.frombuffer(b"\0" + rows.tobytes(), np.uint8)[1:].view(np.float16)
    frozen = rows.copy()
    frozen.flags.writeable = False
    layouts = (
        rows,
        np.asfortranarray(rows),
        packed.reshape(rows.shape),
        frozen,
        rows.astype(">f2"),
    )
    for same in layouts:
        found = core.cosine_topk(same[:3], same, 5)
        assert found[0].tolist() == expected[0].tolist()
        assert found[1].tolist() == expected[1].tolist()
        assert core.VectorIndex(same).search(same[1], 5)[0].tolist() == expected[0][1].tolist()
    assert expected[0].flags.writeable
    query = rows[0].copy()
    index = core.VectorIndex(rows)
    before = index.search(query, 3)[0].tolist()
    wide[:] = 0  # an index keeps its own copy
    assert index.search(query, 3)[0].tolist() == before


def test_the_callers_arrays_stay_as_they_were() -> None:
    scores = np.random.default_rng(0).random((50, 4), np.float32)
    before = scores.copy()
    core.skyline(scores)
    core.gradient_drop(scores)
    np.testing.assert_array_equal(scores, before)
    ids = np.array([0, 1], np.int32)
    graph = core.KnowledgeGraph(2, ids, ids[::-1], [1, 1])
    ids[:] = 7  # a structure keeps its own copy
    assert graph.targets.tolist() == [1, 1, 0, 0]


BAD_IDS = [
    (None, "is None"),
    ("ab", "dimensions"),
    ([0.0, 1.0, 2.0, 0.0], "must hold integers"),
    ([True, False, True, True], "must hold integers"),
    ([None, 1, 2, 3], "must hold integers"),
    (["0", "1", "2", "3"], "must hold integers"),
    (np.zeros(4, "M8[s]"), "must hold integers"),
    (np.zeros(4, "c8"), "must hold integers"),
    ([[0, 1], [2, 3]], "has 2 dimensions"),
    (0, "has 0 dimensions"),
    ([[0], [1, 2]], "cannot be turned into an array"),
    ([0, 1, 2, 2**31], "outside -2147483648 to 2147483647"),
    (np.array([0, 1, 2, 2**64 - 1], np.uint64), "18446744073709551615"),
    ([0, 1, 2, 2**80], "must hold integers"),
    ([0, 1, 2, -1], r"\[3\] is -1"),
    ({0, 1, 2, 3}, "dimensions"),
]


@pytest.mark.parametrize(("ids", "message"), BAD_IDS)
def test_bad_ids_are_named(ids: object, message: str, graph: core.KnowledgeGraph) -> None:
    calls: list[tuple[str, Callable[[], object]]] = [
        ("sources", lambda: core.KnowledgeGraph(5, ids, RELATIONS[1], RELATIONS[2])),  # type: ignore[arg-type]
        ("targets", lambda: core.KnowledgeGraph(5, RELATIONS[0], ids, RELATIONS[2])),  # type: ignore[arg-type]
        ("nodes", lambda: core.GTLink(5, 5, [0, 1, 2, 3], ids)),  # type: ignore[arg-type]
        ("seeds", lambda: core.personalized_pagerank(graph, ids)),  # type: ignore[arg-type]
        ("left", lambda: core.merge_plan(5, ids, [0, 1, 2, 3])),  # type: ignore[arg-type]
    ]
    for name, call in calls:
        with pytest.raises(InvalidArgumentError, match=f"^{name}.*{message}"):
            call()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (None, "is None"),
        (["a", "b", "c", "d"], "must hold real numbers"),
        ([1j, 1, 1, 1], "must hold real numbers"),
        ([True] * 4, "must hold real numbers"),
        ([1, 1, 1, 1e300], "float32 cannot hold"),
        ([[1.0]], "has 2 dimensions"),
    ],
)
def test_bad_floats_are_named(weights: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^weights.*{message}"):
        core.KnowledgeGraph(5, *RELATIONS[:2], weights)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "error"),
    [
        (1.0, InvalidArgumentError),
        ("5", InvalidArgumentError),
        (None, InvalidArgumentError),
        (-1, InvalidArgumentError),
        (2**70, InvalidArgumentError),
        (core.MAX_ENTITIES + 1, TooLargeError),
        (2**62, TooLargeError),
    ],
)
def test_bad_counts(count: object, error: type[BookragError]) -> None:
    for call in (
        lambda: core.KnowledgeGraph(count, [], [], []),  # type: ignore[arg-type]
        lambda: core.GTLink(count, 1, [], []),  # type: ignore[arg-type]
        lambda: core.merge_plan(count, [], []),  # type: ignore[arg-type]
    ):
        with pytest.raises(error, match="num_entities"):
            call()


def test_numpy_integers_are_integers(tree: core.Tree) -> None:
    assert tree.children(np.int64(1)).tolist() == [3]
    assert len(core.KnowledgeGraph(np.uint8(3), [], [], [])) == 3


def test_errors_are_of_the_package_and_value_errors() -> None:
    with pytest.raises(ValueError, match="no order") as caught:
        core.skyline([[math.nan, 1]])
    assert isinstance(caught.value, InvalidArgumentError)
    assert caught.value.code == "invalid_argument"
    assert caught.value.message == str(caught.value)
    with pytest.raises(TypeError):
        core.personalized_pagerank("graph", [0])  # type: ignore[arg-type]


def test_an_object_that_was_never_built_is_refused() -> None:
    """Not read as whatever lies in its memory."""
    kinds = [v for v in vars(core).values() if isinstance(v, type)]
    assert {core.Tree, core.VectorIndex, core.Retriever, core.Retrieval} < set(kinds)
    for kind in kinds:
        blank = kind.__new__(kind)
        names = [n for n, v in vars(kind).items() if isinstance(v, property)]
        assert names
        for name in names:
            with pytest.raises((TypeError, RuntimeError)):
                getattr(blank, name)
        with pytest.raises((TypeError, RuntimeError)):
            repr(blank)
    blank_graph = core.KnowledgeGraph.__new__(core.KnowledgeGraph)
    for call in (
        lambda: core.personalized_pagerank(blank_graph, [0]),
        lambda: core.project(core.GTLink.__new__(core.GTLink), [0]),
        lambda: core.Tree.__new__(core.Tree).children(0),
        lambda: core.Tree.children(blank_graph, 0),  # type: ignore[arg-type]
    ):
        with pytest.raises((TypeError, RuntimeError)):
            call()
    with pytest.raises(TypeError):
        core.GradientDrop()

    class Careless(core.Tree):
        def __init__(self) -> None:
            pass

    with pytest.raises(TypeError, match="__init__"):
        Careless()

    class Both(core.Tree, core.GTLink):
        pass

    half = Both.__new__(Both)
    core.Tree.__init__(half, [-1], [0], [0], [0])
    assert core.Tree.children(half, 0).size == 0
    with pytest.raises((TypeError, RuntimeError)):
        core.project(half, [])


# --- the public names ---------------------------------------------------------------------------


def test_core_exports_everything_of_the_module() -> None:
    internal = {"read_page_text", "read_page_objects"}  # take addresses; for `document` alone
    public = {n for n in dir(_core) if not n.startswith("_")} | {"__version__"}
    assert set(core.__all__) == public - internal
    assert core.__version__ == bookrag_fast.__version__
    assert bookrag_fast.core is core


def test_everything_public_is_documented() -> None:
    for name in core.__all__:
        value = getattr(core, name)
        if callable(value):
            assert value.__doc__, name
            assert "arXiv" in value.__doc__ or "->" in value.__doc__ or "Result of" in value.__doc__
