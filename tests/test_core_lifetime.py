"""What C++ hands to Python, and who holds it: ownership of arrays, threads, leaks."""

from __future__ import annotations

import contextlib
import gc
import math
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bookrag_fast import core
from bookrag_fast.errors import InvalidArgumentError
from core_examples import small_graph, small_link, small_tree


@pytest.fixture
def graph() -> core.KnowledgeGraph:
    return small_graph()


@pytest.fixture
def tree() -> core.Tree:
    return small_tree()


@pytest.fixture
def link() -> core.GTLink:
    return small_link()


# --- arrays out ---------------------------------------------------------------------------------


def views() -> list[tuple[str, Callable[[], tuple[object, np.ndarray]]]]:
    """(name, maker of (owner, array that is a view of it))."""

    def of(
        make: Callable[[], object], get: Callable[..., np.ndarray]
    ) -> Callable[[], tuple[object, np.ndarray]]:
        def build() -> tuple[object, np.ndarray]:
            owner = make()
            return owner, get(owner)

        return build

    tree_arrays = "parents kinds page_first page_last depths subtree_sizes positions document_order"
    graph_arrays = "offsets targets weights relation_ids weighted_degrees"
    found = [
        (f"Tree.{a}", of(small_tree, lambda t, a=a: getattr(t, a))) for a in tree_arrays.split()
    ]
    found += [
        (f"KnowledgeGraph.{a}", of(small_graph, lambda g, a=a: getattr(g, a)))
        for a in graph_arrays.split()
    ]
    found += [
        ("Tree.children", of(small_tree, lambda t: t.children(0))),
        ("Tree.subtree", of(small_tree, lambda t: t.subtree(1))),
        ("Tree.nodes_of_kind", of(small_tree, lambda t: t.nodes_of_kind(1))),
        ("KnowledgeGraph.neighbours", of(small_graph, lambda g: g.neighbours(1)[1])),
        ("GTLink.nodes_of", of(small_link, lambda k: k.nodes_of(0))),
        ("GTLink.entities_of", of(small_link, lambda k: k.entities_of(2))),
        ("GradientDrop.case", of(lambda: core.gradient_drop([[0.9, 0.1]]), lambda r: r.case)),
        ("GradientDrop.size", of(lambda: core.gradient_drop([[0.9, 0.1]]), lambda r: r.size)),
        ("GradientDrop.order", of(lambda: core.gradient_drop([[0.1, 0.9]]), lambda r: r.order)),
        (
            "MergePlan.representative",
            of(lambda: core.merge_plan(4, [1], [3]), lambda p: p.representative),
        ),
        (
            "MergePlan.skipped",
            of(lambda: core.merge_plan(4, [1], [3], [[1, 3]]), lambda p: p.skipped),
        ),
    ]
    return found


@pytest.mark.parametrize(("name", "build"), views(), ids=[name for name, _ in views()])
def test_views_are_read_only_and_keep_their_owner_alive(
    name: str, build: Callable[[], tuple[object, np.ndarray]]
) -> None:
    owner, array = build()
    assert array.size > 0, name
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0
    before = array.copy()
    alive = weakref.ref(owner)
    del owner
    gc.collect()
    assert alive() is not None, "a view does not keep its owner alive"
    junk = [np.full(64, 7, np.int64) for _ in range(200)]  # would land in freed memory
    np.testing.assert_array_equal(array, before)
    del array, junk
    gc.collect()
    assert alive() is None, "the owner outlives its last view"


def test_computed_arrays_are_owned_and_writable(
    graph: core.KnowledgeGraph, tree: core.Tree, link: core.GTLink
) -> None:
    part, ids = graph.induced([1, 2])
    arrays = {
        "pagerank": core.personalized_pagerank(graph, [0]),
        "project": core.project(link, np.ones(5)),
        "skyline": core.skyline([[1, 2], [2, 1]]),
        "induced": ids,
        "degrees": part.degrees,
        "subtree_union": tree.subtree_union([1]),
        "nodes_in_pages": tree.nodes_in_pages(1, 3),
        "nodes_of_many": link.nodes_of_many([0, 2]),
    }
    del part, graph, tree, link
    gc.collect()
    for name, array in arrays.items():
        assert array.flags.c_contiguous, name
        array[...] = 0
        assert not array.any(), name


def test_a_graph_outlives_the_graph_it_came_from() -> None:
    whole = small_graph()
    part, _ = whole.induced([0, 1, 2])
    alive = weakref.ref(whole)
    del whole
    gc.collect()
    assert alive() is None  # a copy, not a view
    assert part.neighbours(1)[0].tolist() == [0, 2]


# --- threads ------------------------------------------------------------------------------------


def test_threads_share_structures(graph: core.KnowledgeGraph) -> None:
    rng = np.random.default_rng(1)
    big = core.KnowledgeGraph(2000, *rng.integers(0, 2000, (2, 6000)), rng.uniform(0.1, 1, 6000))
    scores = rng.random((2000, 4), np.float32)
    expected = [core.personalized_pagerank(big, [seed]) for seed in range(8)]
    front = core.skyline(scores)

    def work(i: int) -> bool:
        same = np.array_equal(core.personalized_pagerank(big, [i % 8]), expected[i % 8])
        ids, weights, _ = big.neighbours(i)
        return same and np.array_equal(core.skyline(scores), front) and len(ids) == len(weights)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))


def test_the_gil_is_released_while_computing() -> None:
    rng = np.random.default_rng(2)
    points = rng.dirichlet(np.ones(4), 120_000).astype(np.float32)  # nearly all on the front
    span: list[float] = []

    def compute() -> None:
        start = time.perf_counter()
        core.skyline(points)
        span.extend((start, time.perf_counter()))

    thread = threading.Thread(target=compute)
    ticks = []
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    thread.join()
    start, end = span
    width = end - start
    middle = [t for t in ticks if start + 0.2 * width < t < end - 0.2 * width]
    assert width > 0.02, "too fast to tell: use more points"
    assert len(middle) >= 3, "no other thread ran meanwhile"


def test_arrays_written_to_by_another_thread_cannot_crash_a_call() -> None:
    """Ids are copied before they are checked: what was checked is what is used."""
    ids = np.zeros(20_000, np.int32)
    scores = np.zeros((20_000, 3), np.float32)
    stop = threading.Event()

    def scribble() -> None:
        rng = np.random.default_rng(3)
        while not stop.is_set():
            ids[:] = rng.integers(-(2**31), 2**31 - 1, ids.size) if rng.random() < 0.5 else 1
            scores[::7] = math.nan if rng.random() < 0.3 else rng.random()

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        for _ in range(150):
            for call in (
                lambda: core.KnowledgeGraph(10, ids, ids, np.ones(ids.size)),
                lambda: core.GTLink(10, 10, ids, ids),
                lambda: core.merge_plan(10, ids, ids),
                lambda: core.skyline(scores),
                lambda: core.gradient_drop(scores),
            ):
                with contextlib.suppress(InvalidArgumentError):
                    call()
    finally:
        stop.set()
        thread.join()


def test_an_index_shared_by_threads_answers_each_alike() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(3000, 200)).astype(np.float32) * np.arange(1, 201) ** -0.9
    index = core.VectorIndex(rows)
    expected = [index.search(row, 7)[0].tolist() for row in rows[:40]]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            found = pool.map(lambda row: index.search(row, 7)[0].tolist(), rows[:40])
            assert list(found) == expected
