"""Arrays of any dtype, shape, stride and value into everything of the core that takes arrays: a
result that holds together or the package's own error comes out, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bookrag_fast import core
from bookrag_fast.errors import BookragError, InvalidArgumentError
from core_examples import (
    retriever_arguments,
    small_graph,
    small_link,
    small_retriever,
    small_tree,
)

Array = np.ndarray[Any, Any]
examples = settings(deadline=None, max_examples=300)


def unaligned(array: Array) -> Array:
    packed = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:]
    return packed.view(array.dtype).reshape(array.shape)


LAYOUTS: list[Callable[[Array], Array]] = [
    lambda a: a,
    lambda a: a[..., ::-1] if a.ndim else a,
    lambda a: a[::2] if a.ndim else a,
    lambda a: a.T,
    np.asfortranarray,
    lambda a: np.broadcast_to(a, (2, *a.shape)),  # a stride of 0
    lambda a: unaligned(a) if a.size and not a.dtype.hasobject else a,
    lambda a: a.astype(object),
    lambda a: a.tolist(),  # type: ignore[return-value]  # lists are array-likes as well
]
ANY_DTYPE = (
    hnp.integer_dtypes(endianness="?")
    | hnp.floating_dtypes(endianness="?")
    | hnp.boolean_dtypes()
    | hnp.complex_number_dtypes()
    | hnp.datetime64_dtypes()
    | hnp.unicode_string_dtypes(max_len=3)
    | hnp.array_dtypes(hnp.integer_dtypes(), max_size=2)
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
SMALL_IDS = hnp.arrays(np.int32, st.integers(0, 6), elements=st.integers(-2, 6))
ANY_INPUT: st.SearchStrategy[Any] = st.builds(
    lambda layout, array: layout(array),
    st.sampled_from(LAYOUTS),
    hnp.arrays(dtype=ANY_DTYPE, shape=SHAPES)
    | SMALL_IDS
    | hnp.arrays(np.float32, st.integers(0, 6))
    | hnp.arrays(np.float32, st.tuples(st.integers(0, 5), st.integers(0, 5))),
)
ANY_COUNT = st.integers(-3, 1000) | st.integers(core.MAX_ENTITIES + 1, 2**70)
ANY_VALUE = st.none() | st.booleans() | st.floats() | st.text(max_size=2) | ANY_COUNT | ANY_INPUT


def answered_or_refused(*calls: Callable[[], object]) -> None:
    refusals = []
    for call in calls:
        try:
            call()
        except BookragError as error:
            refusals.append(str(error))
    assert all(refusals)


@examples
@given(ANY_COUNT, ANY_COUNT, ANY_INPUT, ANY_INPUT, ANY_INPUT, ANY_INPUT)
def test_any_arrays_make_a_structure_that_holds_together_or_none(
    n: int, k: int, a: Any, b: Any, c: Any, d: Any
) -> None:
    def graph(*arguments: Any) -> None:
        made = core.KnowledgeGraph(*arguments)
        assert made.offsets[-1] == len(made.targets) == len(made.weights)
        assert len(made) == 0 or 0 <= made.targets.min(initial=0) <= made.targets.max(initial=0) < n
        if len(made):
            walk = core.personalized_pagerank(made, [len(made) - 1])
            assert abs(walk.sum(dtype=np.float64) - 1) < 1e-4

    def link(*arguments: Any) -> None:
        made = core.GTLink(*arguments)
        assert made.project(np.ones(made.num_entities)).sum() == made.num_links

    def tree(*arguments: Any) -> None:
        made = core.Tree(*arguments)
        assert sorted(made.subtree(made.root)) == list(range(len(made)))

    def index(*arguments: Any) -> None:
        made = core.VectorIndex(*arguments)
        ids, cosines = made.search(np.ones(made.dimensions), 3)
        assert len(ids) == len(cosines) == min(3, len(made))
        assert np.isfinite(cosines).all()

    def plan(*arguments: Any) -> None:
        made = core.merge_plan(*arguments)
        assert len(np.unique(made.representative)) == made.num_sets

    shape = np.shape(np.asarray(a))
    answered_or_refused(
        lambda: graph(n, a, b, c),
        lambda: graph(n, a, a, np.ones(shape)),
        lambda: link(n, k, a, b),
        lambda: link(n, k, a, a),
        lambda: tree(a, b, c, d),
        lambda: tree(a, *[np.zeros(shape, np.int8)] * 3),
        lambda: index(a),
        lambda: plan(n, a, b, c),
        lambda: plan(n, a, a, d),
    )


@examples
@given(ANY_COUNT, ANY_COUNT, ANY_INPUT, ANY_INPUT, ANY_INPUT)
def test_any_arrays_are_computed_with_or_refused(n: int, k: int, a: Any, b: Any, c: Any) -> None:
    graph, tree, link = small_graph(), small_tree(), small_link()
    index = core.VectorIndex(np.ones((3, 2)))
    answered_or_refused(
        lambda: core.skyline(a),
        lambda: core.gradient_drop(a).order,
        lambda: core.cosine_topk(a, b, n),
        lambda: core.cosine_topk(a, a, k),
        lambda: index.search(a, n),
        lambda: index.candidates(a, n),
        lambda: core.maxsim(a, b, c),
        lambda: core.maxsim(a, a, [0, len(a)]) if np.ndim(np.asarray(a)) else None,
        lambda: core.personalized_pagerank(graph, a, b, entities=c),
        lambda: core.personalized_pagerank(graph, a),
        lambda: core.personalized_pagerank(graph, a, top_k=k),
        lambda: core.personalized_pagerank(graph, [0], entities=a, compact=True),
        lambda: core.personalized_pagerank(graph, [0], entities=a, dtype="float64"),
        lambda: core.personalized_pagerank_batch(graph, a, b, offsets=c),
        lambda: core.personalized_pagerank_batch(graph, [a, b, c]),
        lambda: core.personalized_pagerank_batch(graph, [a, a], [None, b]),
        lambda: core.project(link, a),
        lambda: graph.induced(a),
        lambda: graph.neighbours(n),
        lambda: tree.subtree_union(a),
        lambda: tree.ancestors_at_depth(a, n),
        lambda: tree.nodes_in_pages(n, k),
        lambda: tree.nodes_of_kind(n),
        lambda: link.nodes_of_many(a),
        lambda: link.entities_of_many(a),
    )


@examples
@given(st.sampled_from(sorted(retriever_arguments())), ANY_INPUT, ANY_INPUT, ANY_INPUT, ANY_COUNT)
def test_any_book_opens_or_is_refused(name: str, a: Any, b: Any, c: Any, n: int) -> None:
    """Neighbour lists, cosines and content: one of them anything, or all."""

    def ask(**changes: Any) -> None:
        found = small_retriever(**changes).retrieve([0, 1], [1.0, 0.5], np.ones(4))
        assert len(found) == len(set(found.nodes.tolist()))

    answered_or_refused(
        lambda: ask(**{name: a}),
        lambda: ask(neighbours=a, neighbour_cosines=a),
        lambda: ask(neighbours=a, neighbour_cosines=b, relation_cosines=c),
        lambda: ask(chapter_depth=n),
    )


@examples
@given(ANY_INPUT, ANY_INPUT, ANY_INPUT, ANY_VALUE, ANY_VALUE)
def test_any_question_is_answered_or_refused(a: Any, b: Any, c: Any, x: Any, y: Any) -> None:
    book = small_retriever()
    text = np.ones(4, np.float32)
    options = ("added_sections", "damping", "percentile", "minimum", "graph_weight", "limit", "tol")
    answered_or_refused(
        lambda: book.retrieve(a, b, c),
        lambda: book.retrieve(a, np.ones(np.shape(np.asarray(a))), text),
        lambda: book.retrieve([0], [1.0], a),
        lambda: book.retrieve([0], [1.0], text, named=a, bonus=b),
        lambda: book.retrieve([0], [1.0], text, named=a),
        *(lambda o=o: book.retrieve([0], [1.0], text, **{o: x}) for o in options),  # type: ignore[misc]
        lambda: book.graph_reasoning(a, b, c, damping=x),
        lambda: book.graph_reasoning(a, [0], [1.0], percentile=y),
        lambda: book.augmented_pagerank(a, b, c, tol=x),
        lambda: book.augmented_pagerank(a, [0], [1.0]),
    )


@examples
@given(ANY_VALUE, ANY_VALUE)
def test_any_option_is_taken_or_refused(x: Any, y: Any) -> None:
    graph, tree, link = small_graph(), small_tree(), small_link()
    rows = np.ones((3, 2), np.float32)
    answered_or_refused(
        lambda: core.gradient_drop(rows, g=x, min_score=y),
        lambda: core.personalized_pagerank(graph, [0], damping=x, tol=y),
        lambda: core.personalized_pagerank(graph, [0], dtype=x),
        lambda: core.personalized_pagerank(graph, [0], top_k=x),
        lambda: core.personalized_pagerank_batch(graph, [x], [y]),
        lambda: core.personalized_pagerank_batch(graph, [[0]], damping=x, tol=y),
        lambda: core.cosine_topk(rows, rows, x),
        lambda: core.VectorIndex(rows).search(rows[0], x),
        lambda: core.VectorIndex(rows).candidates(rows[0], x),
        lambda: tree.children(x),
        lambda: tree.subtree(x),
        lambda: tree.ancestors(x),
        lambda: tree.contains(x, y),
        lambda: tree.ancestor_at_depth(x, y),
        lambda: tree.nodes_in_pages(x, y),
        lambda: link.nodes_of(x),
        lambda: link.entities_of(x),
        lambda: graph.neighbours(x),
        lambda: core.KnowledgeGraph(x, [], [], []),
        lambda: core.GTLink(x, y, [], []),
    )


@pytest.mark.parametrize("error", [ValueError, MemoryError, RuntimeError])
def test_an_array_like_that_fails_is_refused(error: type[Exception]) -> None:
    class Broken:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
            raise error("on purpose")

    with pytest.raises(BookragError, match="cannot be turned into an array"):
        core.skyline(Broken())  # type: ignore[arg-type]


def test_flags_of_no_known_kind_are_refused() -> None:
    nothing = np.zeros(0, dtype=[("a", np.int32)])
    with pytest.raises(InvalidArgumentError, match="bools"):
        small_retriever(content=nothing)
