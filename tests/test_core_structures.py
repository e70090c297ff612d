"""Tree, KnowledgeGraph and GTLink against their slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from bookrag_fast import core
from bookrag_fast.errors import InvalidArgumentError, TooLargeError

settings.register_profile("core", deadline=None, max_examples=150)
examples = settings(settings.get_profile("core"))


def make_tree(parents: list[int]) -> core.Tree:
    zeros = [0] * len(parents)
    return core.Tree(parents, zeros, zeros, zeros)


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    """Parents of a random tree whose ids are in no particular order."""
    n = draw(st.integers(1, 25))
    names = draw(st.permutations(range(n)))
    parents = [-1] * n
    for i in range(1, n):
        parents[names[i]] = names[draw(st.integers(0, i - 1))]
    return parents


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[oracles.Relation]]:
    n = draw(st.integers(1, 10))
    entity = st.integers(0, n - 1)
    weight = st.floats(0.0625, 1024, width=32)
    return n, draw(st.lists(st.tuples(entity, entity, weight), max_size=25))


def make_graph(n: int, relations: list[oracles.Relation]) -> core.KnowledgeGraph:
    sources, targets, weights = zip(*relations, strict=True) if relations else ((), (), ())
    return core.KnowledgeGraph(n, sources, targets, weights)


@st.composite
def links(draw: st.DrawFn) -> tuple[int, int, list[tuple[int, int]]]:
    entities, nodes = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    pair = st.tuples(st.integers(0, entities - 1), st.integers(0, nodes - 1))
    return entities, nodes, draw(st.lists(pair, max_size=30))


def make_link(entities: int, nodes: int, pairs: list[tuple[int, int]]) -> core.GTLink:
    return core.GTLink(entities, nodes, [e for e, _ in pairs], [v for _, v in pairs])


# --- Tree ---------------------------------------------------------------------------------------


@examples
@given(trees(), st.data())
def test_tree_agrees_with_its_twin(parents: list[int], data: st.DataObject) -> None:
    tree = make_tree(parents)
    n = len(parents)
    assert len(tree) == tree.num_nodes == n
    assert tree.root == parents.index(-1)
    order = oracles.subtree(parents, tree.root)
    assert tree.document_order.tolist() == order
    assert tree.positions.tolist() == [order.index(v) for v in range(n)]
    assert tree.depths.tolist() == [oracles.depth(parents, v) for v in range(n)]
    assert tree.max_depth == max(tree.depths)
    assert tree.parents.tolist() == parents
    for v in range(n):
        assert tree.children(v).tolist() == oracles.children(parents, v)
        assert tree.subtree(v).tolist() == oracles.subtree(parents, v)
        assert tree.subtree_sizes[v] == len(oracles.subtree(parents, v))
        assert tree.ancestors(v).tolist() == oracles.ancestors(parents, v)
    asked = data.draw(st.lists(st.integers(0, n - 1), max_size=6))
    assert tree.subtree_union(asked).tolist() == oracles.subtree_union(parents, asked)
    for d in range(tree.max_depth + 2):
        expected = [oracles.ancestor_at_depth(parents, v, d) for v in asked]
        assert tree.ancestors_at_depth(asked, d).tolist() == expected
        assert [tree.ancestor_at_depth(v, d) for v in asked] == expected
    for a in asked:
        for v in range(n):
            assert tree.contains(a, v) == (v in oracles.subtree(parents, a))


@examples
@given(st.lists(st.integers(-2, 6), max_size=6))
def test_tree_takes_exactly_the_trees(parents: list[int]) -> None:
    if oracles.is_tree(parents):
        make_tree(parents)
    else:
        with pytest.raises(InvalidArgumentError):
            make_tree(parents)


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([], "at least one node"),
        ([-1, 0, -1], "nodes 0 and 2 are both roots"),
        ([-1, 1], "node 1 is its own parent"),
        ([-1, 9], "node 1 has parent 9, but there are 2 nodes"),
        ([1, 0], "no node is the root"),
        ([-1, 2, 1], r"node [12] is its own ancestor"),
    ],
)
def test_tree_names_the_node_at_fault(parents: list[int], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make_tree(parents)


@examples
@given(trees(), st.data())
def test_tree_kinds_and_pages(parents: list[int], data: st.DataObject) -> None:
    n = len(parents)
    kinds = data.draw(st.lists(st.sampled_from([0, 3, 255]), min_size=n, max_size=n))
    span = st.one_of(st.just((0, 0)), st.tuples(st.integers(1, 5), st.integers(0, 3)))
    spans = [(f, f + w if f else 0) for f, w in data.draw(st.lists(span, min_size=n, max_size=n))]
    tree = core.Tree(parents, kinds, [f for f, _ in spans], [t for _, t in spans])
    order = oracles.subtree(parents, tree.root)
    assert tree.kinds.tolist() == kinds
    for kind in (0, 3, 4, 255):
        assert tree.nodes_of_kind(kind).tolist() == [v for v in order if kinds[v] == kind]
    first = data.draw(st.integers(1, 9))
    last = data.draw(st.integers(first, 9))
    pages = set(range(first, last + 1))
    meets = [v for v in order if spans[v][0] and pages & set(range(spans[v][0], spans[v][1] + 1))]
    assert tree.nodes_in_pages(first, last).tolist() == meets


@pytest.mark.parametrize("span", [(0, 1), (1, 0), (2, 1), (-1, 1), (-1, -1)])
def test_tree_refuses_an_impossible_page_span(span: tuple[int, int]) -> None:
    with pytest.raises(InvalidArgumentError, match="node 1 has pages"):
        core.Tree([-1, 0], [0, 0], [1, span[0]], [1, span[1]])


def test_tree_takes_a_chain_of_a_million() -> None:
    n = 1_000_000
    zeros = np.zeros(n, np.int32)
    tree = core.Tree(np.arange(n) - 1, zeros, zeros, zeros)
    assert tree.max_depth == n - 1
    up = tree.ancestors_at_depth(tree.document_order, 1000)
    assert (up == 1000).sum() == n - 1000
    assert (up == -1).sum() == 1000
    assert len(tree.ancestors(n - 1)) == n - 1


def test_tree_queries_refuse_what_is_not_there() -> None:
    tree = make_tree([-1, 0])
    for query in (tree.children, tree.subtree, tree.ancestors):
        for node in (-1, 2, 2**31, -(2**70)):
            with pytest.raises(InvalidArgumentError, match="node is"):
                query(node)
    with pytest.raises(InvalidArgumentError, match=r"nodes\[1\] is 2"):
        tree.subtree_union([0, 2])
    with pytest.raises(InvalidArgumentError, match="depth is -1"):
        tree.ancestors_at_depth([0], -1)
    with pytest.raises(InvalidArgumentError, match="no range"):
        tree.nodes_in_pages(3, 2)
    with pytest.raises(InvalidArgumentError, match="kind is 256"):
        tree.nodes_of_kind(256)


# --- KnowledgeGraph -----------------------------------------------------------------------------


@examples
@given(graphs())
def test_graph_agrees_with_its_twin(case: tuple[int, list[oracles.Relation]]) -> None:
    n, relations = case
    graph = make_graph(n, relations)
    assert len(graph) == graph.num_entities == n
    assert graph.num_relations == len(relations)
    rows = [oracles.neighbours(relations, e) for e in range(n)]
    for e, row in enumerate(rows):
        ids, weights, relation_ids = graph.neighbours(e)
        triples = zip(ids.tolist(), weights.tolist(), relation_ids.tolist(), strict=True)
        assert list(triples) == row
    assert graph.degrees.tolist() == [len(row) for row in rows]
    assert graph.offsets.tolist() == [0, *np.cumsum([len(row) for row in rows])]
    assert graph.targets.tolist() == [f[0] for row in rows for f in row]
    assert graph.weights.tolist() == [f[1] for row in rows for f in row]
    assert graph.relation_ids.tolist() == [f[2] for row in rows for f in row]
    expected = oracles.adjacency(n, relations).sum(axis=1)
    np.testing.assert_allclose(graph.weighted_degrees, expected, rtol=1e-12)


@examples
@given(graphs(), st.data())
def test_induced_graph_agrees_with_its_twin(
    case: tuple[int, list[oracles.Relation]], data: st.DataObject
) -> None:
    n, relations = case
    asked = data.draw(st.lists(st.integers(0, n - 1), max_size=n + 2))
    part, ids = make_graph(n, relations).induced(asked)
    kept = sorted(set(asked))
    assert ids.tolist() == kept
    assert len(part) == len(kept)
    assert part.num_relations == sum(a in kept and b in kept for a, b, _ in relations)
    for i, e in enumerate(kept):
        found, weights, relation_ids = part.neighbours(i)
        triples = zip(ids[found].tolist(), weights.tolist(), relation_ids.tolist(), strict=True)
        whole = oracles.neighbours(relations, e)
        assert list(triples) == [f for f in whole if f[0] in kept]


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf, -np.inf, 1e-60])
def test_graph_refuses_a_bad_weight(weight: float) -> None:
    with pytest.raises(InvalidArgumentError, match=r"weights\[1\]"):
        core.KnowledgeGraph(2, [0, 0], [1, 1], [1.0, weight])


def test_graph_refuses_what_does_not_fit() -> None:
    with pytest.raises(InvalidArgumentError, match=r"targets\[0\] is 5, but there are 2 entities"):
        core.KnowledgeGraph(2, [0], [5], [1])
    with pytest.raises(InvalidArgumentError, match="sources has 1 values and targets has 2"):
        core.KnowledgeGraph(2, [0], [1, 1], [1])
    with pytest.raises(InvalidArgumentError, match="must not be negative"):
        core.KnowledgeGraph(-1, [], [], [])
    with pytest.raises(TooLargeError):
        core.KnowledgeGraph(core.MAX_ENTITIES + 1, [], [], [])


def test_an_empty_graph_is_a_graph() -> None:
    graph = core.KnowledgeGraph(0, [], [], [])
    assert (len(graph), graph.num_relations, graph.offsets.tolist()) == (0, 0, [0])


# --- GTLink -------------------------------------------------------------------------------------


@examples
@given(links(), st.data())
def test_link_agrees_with_a_set_of_pairs(
    case: tuple[int, int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    entities, nodes, pairs = case
    link = make_link(entities, nodes, pairs)
    distinct = set(pairs)
    assert len(link) == link.num_links == len(distinct)
    assert (link.num_entities, link.num_nodes) == (entities, nodes)
    for e in range(entities):
        assert link.nodes_of(e).tolist() == sorted(v for a, v in distinct if a == e)
    for v in range(nodes):
        assert link.entities_of(v).tolist() == sorted(e for e, b in distinct if b == v)
    asked = data.draw(st.lists(st.integers(0, entities - 1), max_size=10))
    expected = sorted({v for e, v in distinct if e in asked})
    assert link.nodes_of_many(asked).tolist() == expected
    asked = data.draw(st.lists(st.integers(0, nodes - 1), max_size=10))
    expected = sorted({e for e, v in distinct if v in asked})
    assert link.entities_of_many(asked).tolist() == expected


@examples
@given(links(), st.data())
def test_projection_agrees_with_its_twin(
    case: tuple[int, int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    entities, nodes, pairs = case
    score = st.floats(-1e6, 1e6, width=32)
    scores = data.draw(st.lists(score, min_size=entities, max_size=entities))
    link = make_link(entities, nodes, pairs)
    expected = oracles.project(pairs, nodes, scores)
    got = core.project(link, scores)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(got, link.project(scores))


def test_link_refuses_what_does_not_fit() -> None:
    with pytest.raises(InvalidArgumentError, match=r"nodes\[0\] is 3, but there are 2 nodes"):
        core.GTLink(1, 2, [0], [3])
    with pytest.raises(InvalidArgumentError, match="entities has 1 values and nodes has 0"):
        core.GTLink(1, 2, [0], [])
    with pytest.raises(TooLargeError):
        core.GTLink(1, core.MAX_NODES + 1, [], [])
    link = core.GTLink(2, 2, [0], [1])
    with pytest.raises(InvalidArgumentError, match="scores has 1 values, but there are 2 entities"):
        core.project(link, [1.0])
    with pytest.raises(InvalidArgumentError, match=r"scores\[1\] is nan"):
        core.project(link, [1.0, np.nan])
