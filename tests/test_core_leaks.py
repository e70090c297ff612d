"""Nothing that the core binds leaks: neither memory nor references, answered or refused."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bookrag_fast import core
from bookrag_fast.errors import BookragError
from core_examples import RELATIONS, small_graph, small_link, small_retriever, small_tree

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

TREE, GRAPH, LINK, BOOK = small_tree(), small_graph(), small_link(), small_retriever()
SEEDS = np.array([0, 2], np.int32)
SCORES = np.array([[0.9, 0.8, 0.1], [0.1, 0.2, 0.3]], np.float32)
TEXT = np.ones(4, np.float32)
INDEX = core.VectorIndex(SCORES)
DROP = core.gradient_drop(SCORES)
PLAN = core.merge_plan(50, [1], [2], [[3, 4]])
FOUND = BOOK.retrieve([0, 1], [1.0, 0.5], TEXT)

# Arguments for what takes any; properties need none.
CALLS: dict[str, Callable[[], object]] = {
    "GTLink": small_link,
    "GTLink.entities_of": lambda: LINK.entities_of(2),
    "GTLink.entities_of_many": lambda: LINK.entities_of_many([1, 2]),
    "GTLink.nodes_of": lambda: LINK.nodes_of(0),
    "GTLink.nodes_of_many": lambda: LINK.nodes_of_many(SEEDS),
    "GTLink.project": lambda: LINK.project(np.ones(5)),
    "KnowledgeGraph": lambda: core.KnowledgeGraph(50, *RELATIONS),
    "KnowledgeGraph.induced": lambda: GRAPH.induced([0, 1]),
    "KnowledgeGraph.neighbours": lambda: GRAPH.neighbours(1),
    "Retriever": small_retriever,
    "Retriever.augmented_pagerank": lambda: BOOK.augmented_pagerank([0, 1], [0], [1.0]),
    "Retriever.graph_reasoning": lambda: BOOK.graph_reasoning([1, 2], [0], [1.0]),
    "Retriever.retrieve": lambda: BOOK.retrieve(SEEDS, [1.0, 0.5], TEXT, named=[1], bonus=[1.0]),
    "Tree": small_tree,
    "Tree.ancestor_at_depth": lambda: TREE.ancestor_at_depth(3, 1),
    "Tree.ancestors": lambda: TREE.ancestors(3),
    "Tree.ancestors_at_depth": lambda: TREE.ancestors_at_depth([3], 1),
    "Tree.children": lambda: TREE.children(0),
    "Tree.contains": lambda: TREE.contains(0, 3),
    "Tree.nodes_in_pages": lambda: TREE.nodes_in_pages(1, 2),
    "Tree.nodes_of_kind": lambda: TREE.nodes_of_kind(1),
    "Tree.subtree": lambda: TREE.subtree(1),
    "Tree.subtree_union": lambda: TREE.subtree_union([1]),
    "VectorIndex": lambda: core.VectorIndex(SCORES),
    "VectorIndex.candidates": lambda: INDEX.candidates(SCORES[0], 1),
    "VectorIndex.search": lambda: INDEX.search(SCORES[0], 1),
    "cosine_topk": lambda: core.cosine_topk(SCORES, SCORES.astype(np.float16), 2),
    "gradient_drop": lambda: core.gradient_drop(SCORES),
    "isa": core.isa,
    "maxsim": lambda: core.maxsim(SCORES, SCORES, [0, 1, 2]),
    "merge_plan": lambda: core.merge_plan(50, [1], [2], [[3, 4]]),
    "personalized_pagerank": lambda: core.personalized_pagerank(GRAPH, SEEDS, [1, 2]),
    "personalized_pagerank_batch": lambda: core.personalized_pagerank_batch(GRAPH, [[0], [2]]),
    "project": lambda: core.project(LINK, np.ones(5)),
    "skyline": lambda: core.skyline(SCORES),
}
OWNERS = {
    "GTLink": LINK,
    "GradientDrop": DROP,
    "KnowledgeGraph": GRAPH,
    "MergePlan": PLAN,
    "Retrieval": FOUND,
    "Retriever": BOOK,
    "Tree": TREE,
    "VectorIndex": INDEX,
}
PROPERTIES: dict[str, Callable[[], object]] = {
    f"{name}.{member}": lambda owner=owner, member=member: getattr(owner, member)  # type: ignore[misc]
    for name, owner in OWNERS.items()
    for member, value in vars(type(owner)).items()
    if isinstance(value, property)
}


def refusing(call: Callable[[], object]) -> Callable[[], object]:
    def refused() -> None:
        with contextlib.suppress(BookragError):
            call()
            pytest.fail("was not refused")

    return refused


REFUSALS: dict[str, Callable[[], object]] = {
    "refused array": refusing(lambda: core.skyline([["a"]])),
    "refused id": refusing(lambda: core.personalized_pagerank(GRAPH, [99])),
    "refused book": refusing(lambda: small_retriever(content=[1.5])),
    "refused tree": refusing(lambda: core.Tree([0], [0], [0], [0])),
}
ALL = CALLS | PROPERTIES | REFUSALS


def test_the_table_has_everything_that_is_bound() -> None:
    bound = set()
    for name in core.__all__:
        value: Any = getattr(core, name)
        if not callable(value):
            continue
        if not isinstance(value, type) or name not in OWNERS or name in CALLS:
            bound.add(name)  # a result's class is made by a call only
        if isinstance(value, type):
            bound |= {f"{name}.{member}" for member in vars(value) if not member.startswith("_")}
    assert bound == set(CALLS) | set(PROPERTIES)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def growth(calls: list[Callable[[], object]], times: int) -> int:
    """Bytes that `times` rounds take and keep, and a check that no reference is kept."""
    held = [*OWNERS.values(), SEEDS, SCORES, TEXT]

    def run(rounds: int) -> None:
        for _ in range(rounds):
            for call in calls:
                call()

    run(max(200, times // 50))
    gc.collect()
    counts = [sys.getrefcount(o) for o in held]
    before = resident_bytes()
    run(times)
    gc.collect()
    after = resident_bytes()
    assert [sys.getrefcount(o) for o in held] == counts
    return after - before


def test_nothing_leaks_over_a_hundred_thousand_calls() -> None:
    # 100,000 leaks of the smallest array object alone would be 9 MB.
    assert growth(list(ALL.values()), 100_000 // len(ALL)) < 3_000_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_hundred_thousand_calls_of_each_leak_nothing(name: str) -> None:
    # A leak shows every time, what a heap once takes to settle in only once. 100,000 times the
    # smallest block of glibc, 32 bytes, are 3.2 MB.
    assert min(growth([ALL[name]], 100_000) for _ in range(2)) < 1_500_000
