"""The fused retrieval of the core against its slow twin, and its boundary."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast import Library, core
from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.query import reasoners
from bookrag_fast.query.formulators import extract
from bookrag_fast.query.question import prepare
from factories import HashEmbedder, small_index
from retrieval_twin import Book, augmented_pagerank, graph_reasoning, retrieve

# --- against the twin -------------------------------------------------------------------------


def rounded(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Values with many ties."""
    return (rng.integers(0, 9, shape) / np.float32(8)).astype(np.float32)


def random_book(rng: np.random.Generator, nodes: int, entities: int, relations: int) -> Book:
    parents = np.array([-1, *(rng.integers(0, v) for v in range(1, nodes))], np.int32)
    width = int(rng.integers(0, 5))
    ids = np.full((entities, width), -1, np.int32)
    cosines = np.sort(rounded(rng, entities, width) - np.float32(0.125), axis=1)[:, ::-1].copy()
    for e in range(entities):
        others = rng.permutation(np.delete(np.arange(entities), e))
        take = min(width, len(others), int(rng.integers(0, width + 1)))
        ids[e, :take] = others[:take]
    links = int(rng.integers(0, 3 * entities + 1)) if entities else 0
    some = max(1, entities)
    relations = relations if entities else 0
    return Book(
        parents=parents,
        num_entities=entities,
        sources=rng.integers(0, some, relations).astype(np.int32),
        targets=rng.integers(0, some, relations).astype(np.int32),
        weights=(rounded(rng, relations) + np.float32(0.125)),
        linked_entities=rng.integers(0, some, links).astype(np.int32),
        linked_nodes=rng.integers(0, nodes, links).astype(np.int32),
        neighbours=ids,
        neighbour_cosines=cosines,
        relation_cosines=rounded(rng, relations) - np.float32(0.25),
        content=rng.random(nodes) < rng.random(),
    )


def check(book: Book, seeds: Any, weights: Any, text: Any, **options: Any) -> core.Retrieval:
    found = book.retriever.retrieve(seeds, weights, text, **options)
    wanted = retrieve(book, seeds, weights, text, **options)
    assert found.linked == (wanted.graph is not None)
    assert (found.kept, found.selected) == (wanted.kept, wanted.selected)
    assert sorted(found.nodes) == sorted(wanted.nodes)
    place = np.argsort(wanted.nodes, kind="stable")[
        np.searchsorted(np.sort(wanted.nodes), found.nodes)
    ]
    np.testing.assert_allclose(found.relevance, wanted.relevance[place], rtol=1e-5, atol=1e-5)
    if wanted.graph is None:
        assert found.nodes.tolist() == wanted.nodes.tolist()
        assert found.graph is None
    else:
        assert found.graph is not None
        np.testing.assert_allclose(found.graph, wanted.graph[place], rtol=1e-4, atol=2e-6)
    return found


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 3, 8, 40]),
    st.sampled_from([0, 1, 2, 7, 30]),
    st.sampled_from([0, 1, 5, 60]),
    st.sampled_from([0.0, 50.0, 85.0, 100.0, 33.3]),
    st.sampled_from([0, 1, 3, 10, 100]),
)
def test_retrieval_equals_its_twin(
    seed: int, nodes: int, entities: int, relations: int, percentile: float, minimum: int
) -> None:
    rng = np.random.default_rng(seed)
    book = random_book(rng, nodes, entities, relations)
    for _ in range(3):
        seeds = rng.integers(0, max(1, entities), rng.integers(0, 5) if entities else 0)
        weights = rounded(rng, len(seeds)) * np.float32(rng.choice([1.0, 1e-30, 1e38]))
        named = rng.integers(0, nodes, rng.integers(0, 3))
        found = check(
            book,
            seeds.astype(np.int32),
            weights,
            rounded(rng, nodes) - np.float32(0.25),
            named=named.astype(np.int32),
            bonus=rounded(rng, len(named)),
            added_sections=int(rng.integers(0, 4)),
            damping=float(rng.choice([0.0, 0.5, 0.85])),
            percentile=percentile,
            minimum=minimum,
        )
        assert len(found) == int(book.content.sum())


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 12, 60]), st.sampled_from([0, 4, 90]))
def test_graph_reasoning_and_its_walk_equal_their_twins(
    seed: int, entities: int, relations: int
) -> None:
    rng = np.random.default_rng(seed)
    book = random_book(rng, 20, entities, relations)
    seeds = rng.integers(0, entities, 3).astype(np.int32)
    weights = rounded(rng, 3)
    options = {"damping": 0.5, "percentile": float(rng.choice([0.0, 60.0, 85.0]))}
    within = rng.integers(0, entities, entities).astype(np.int32)
    for found, wanted in (
        (
            book.retriever.augmented_pagerank(within, seeds, weights, **options),
            augmented_pagerank(book, np.unique(within), seeds, weights, **options),
        ),
        (
            book.retriever.graph_reasoning(np.arange(9), seeds, weights, **options),
            graph_reasoning(book, np.arange(9), seeds, weights, **options),
        ),
    ):
        assert (found is None) == (wanted is None)
        if found is not None and wanted is not None:
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-6)


def test_the_sample_book_is_ranked_as_its_twin_does(shelf: Library, handbook: Any) -> None:
    index = shelf.index(handbook.id)
    relations = index.relations
    counts = [len(e.nodes) for e in index.entities]
    content = np.zeros(len(index.nodes), np.bool_)
    content[index.content_nodes] = True
    book = Book(
        parents=index.tree.parents,
        num_entities=len(index.entities),
        sources=np.array([r.source for r in relations], np.int32),
        targets=np.array([r.target for r in relations], np.int32),
        weights=np.array([r.weight for r in relations], np.float32),
        linked_entities=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        linked_nodes=np.array([n for e in index.entities for n in e.nodes], np.int32),
        neighbours=index.neighbours.ids,
        neighbour_cosines=index.neighbours.cosines,
        relation_cosines=index.relation_cosines,
        content=content,
    )
    for text in (
        "What is the default damping of Personalized PageRank?",
        "How does the gradient test decide?",
        "What is a GT-Link and who makes it?",
        "How is the token budget spent?",
        "zzz",
    ):
        question = prepare(text, shelf.embedder)
        links = extract(index, question, shelf.embedder, link_distance=0.3)
        scores = reasoners.text_reasoning(index, question)
        found = check(book, *reasoners.seeds_of(links), scores)
        assert (
            found.nodes.tolist()
            == retrieve(book, *reasoners.seeds_of(links), scores).nodes.tolist()
        )


# --- the boundary -----------------------------------------------------------------------------

INDEX = small_index(HashEmbedder())
TEXT = np.linspace(0, 1, 11, dtype=np.float32)


def small(**changes: Any) -> core.Retriever:
    content = np.zeros(11, np.bool_)
    content[INDEX.content_nodes] = True
    arguments: dict[str, Any] = {
        "tree": INDEX.tree,
        "graph": INDEX.graph,
        "link": INDEX.links,
        "neighbours": INDEX.neighbours.ids,
        "neighbour_cosines": INDEX.neighbours.cosines,
        "relation_cosines": INDEX.relation_cosines,
        "content": content,
    }
    return core.Retriever(**(arguments | changes))


def test_limit_takes_the_first() -> None:
    whole = small().retrieve([0, 1], [1.0, 0.9], TEXT)
    for limit in range(12):
        part = small().retrieve([0, 1], [1.0, 0.9], TEXT, limit=limit)
        assert part.nodes.tolist() == whole.nodes.tolist()[:limit]
        assert part.graph is not None
        assert (part.kept, part.selected) == (whole.kept, whole.selected)


@pytest.mark.parametrize(
    "arguments",
    [
        ([0], [1.0], TEXT[:-1]),
        ([0], [1.0], np.where(TEXT > 0.5, np.nan, TEXT)),
        ([0], [1.0], np.where(TEXT > 0.5, np.inf, TEXT)),
        ([0], [1.0], TEXT.reshape(1, -1)),
        ([0], [1.0], TEXT.astype("U")),
        ([5], [1.0], TEXT),
        ([-1], [1.0], TEXT),
        ([0.0], [1.0], TEXT),
        ([0], [], TEXT),
        ([0], [-1.0], TEXT),
        ([0], [np.nan], TEXT),
        (None, [1.0], TEXT),
    ],
)
def test_wrong_questions_are_refused(arguments: tuple[Any, Any, Any]) -> None:
    retriever = small()
    with pytest.raises(InvalidArgumentError):
        retriever.retrieve(*arguments)
    assert len(retriever.retrieve([0], [1.0], TEXT)) == len(INDEX.content_nodes)


@pytest.mark.parametrize(
    "options",
    [
        {"damping": 1.0},
        {"damping": "x"},
        {"tol": 0.0},
        {"percentile": 100.1},
        {"percentile": np.nan},
        {"minimum": -1},
        {"added_sections": -1},
        {"added_sections": 1.5},
        {"graph_weight": np.inf},
        {"limit": -1},
        {"named": [11]},
        {"named": [1], "bonus": [np.nan]},
        {"named": [1], "bonus": [1.0, 2.0]},
        {"bonus": [1.0]},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        small().retrieve([0], [1.0], TEXT, **options)


@pytest.mark.parametrize(
    "changes",
    [
        {"neighbours": INDEX.neighbours.ids[:, :5]},
        {"neighbours": INDEX.neighbours.ids[0]},
        {"neighbours": np.where(INDEX.neighbours.ids < 0, 5, INDEX.neighbours.ids)},
        {"neighbour_cosines": INDEX.neighbours.cosines * np.float32(np.nan)},
        {"neighbour_cosines": -INDEX.neighbours.cosines},
        {"relation_cosines": INDEX.relation_cosines[1:]},
        {"relation_cosines": INDEX.relation_cosines + np.float32(np.inf)},
        {"content": np.zeros(10, np.bool_)},
        {"content": np.zeros(11, np.int32)},
        {"chapter_depth": -1},
        {"link": core.GTLink(5, 10, [], [])},
        {"link": core.GTLink(4, 11, [], [])},
    ],
)
def test_wrong_books_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        small(**changes)


def test_types_are_checked() -> None:
    for wrong in (None, INDEX.graph, core.Tree.__new__(core.Tree)):
        with pytest.raises(TypeError):
            small(tree=wrong)
    with pytest.raises(TypeError):
        core.Retriever.__new__(core.Retriever).retrieve([0], [1.0], TEXT)


def test_any_layout_of_numbers_will_do() -> None:
    wanted = small().retrieve([0, 1], [1.0, 0.9], TEXT).nodes.tolist()
    wide = np.repeat(TEXT.astype(np.float64), 2)[::2]
    fixed = TEXT.copy()
    fixed.flags.writeable = False
    for text in (wide, fixed, TEXT.tolist(), TEXT.astype(">f4")):
        assert small().retrieve(np.array([0, 1], np.uint8), [1, 0.9], text).nodes.tolist() == wanted


def test_a_retriever_keeps_what_it_needs_and_views_keep_their_result() -> None:
    index = small_index(HashEmbedder())
    retriever = replace(index).retriever
    del index
    gc.collect()
    nodes = retriever.retrieve([0, 1], [1.0, 0.9], TEXT).nodes
    relevance = retriever.retrieve([0, 1], [1.0, 0.9], TEXT).relevance
    del retriever
    gc.collect()
    again = small().retrieve([0, 1], [1.0, 0.9], TEXT)
    assert nodes.tolist() == again.nodes.tolist()
    assert relevance.tolist() == again.relevance.tolist()
    with pytest.raises(ValueError, match="read-only"):
        nodes[0] = 1


def test_threads_share_a_retriever() -> None:
    retriever = small()
    questions = [([i % 5, (i + 2) % 5], [1.0, 0.5], np.roll(TEXT, i)) for i in range(6)]
    wanted = [retriever.retrieve(*q).nodes.tolist() for q in questions]
    wrong: list[int] = []

    def work(first: int) -> None:
        wrong.extend(
            i
            for i in range(first, first + 200)
            if retriever.retrieve(*questions[i % 6]).nodes.tolist() != wanted[i % 6]
        )

    threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
