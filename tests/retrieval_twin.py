"""Retrieval in one book, operator by operator in NumPy: the slow twin of `core.Retriever`.

Follows the definitions with whole arrays and sorts, so that it can only agree with the fused core
by both being right. Takes plain arrays: a `Book` of them makes the core's structures, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bookrag_fast import core

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

CHAPTER_DEPTH = 2


@dataclass(frozen=True)
class Book:
    """What retrieval needs of a book, as arrays (see `core.Retriever` for shapes)."""

    parents: IntArray
    num_entities: int
    sources: IntArray
    targets: IntArray
    weights: FloatArray
    linked_entities: IntArray
    linked_nodes: IntArray
    neighbours: IntArray
    neighbour_cosines: FloatArray
    relation_cosines: FloatArray
    content: npt.NDArray[np.bool_]

    @cached_property
    def tree(self) -> core.Tree:
        nowhere = np.zeros(len(self.parents), np.int32)
        return core.Tree(self.parents, nowhere, nowhere, nowhere)

    @cached_property
    def graph(self) -> core.KnowledgeGraph:
        return core.KnowledgeGraph(self.num_entities, self.sources, self.targets, self.weights)

    @cached_property
    def links(self) -> core.GTLink:
        return core.GTLink(
            self.num_entities, len(self.parents), self.linked_entities, self.linked_nodes
        )

    @cached_property
    def retriever(self) -> core.Retriever:
        return core.Retriever(
            self.tree,
            self.graph,
            self.links,
            self.neighbours,
            self.neighbour_cosines,
            self.relation_cosines,
            self.content,
        )


@dataclass(frozen=True)
class Found:
    """As `core.Retrieval`."""

    nodes: IntArray
    relevance: FloatArray
    graph: FloatArray | None
    kept: int
    selected: int


def retrieve(
    book: Book,
    seeds: IntArray,
    seed_weights: FloatArray,
    text: FloatArray,
    *,
    named: IntArray | None = None,
    bonus: FloatArray | None = None,
    added_sections: int = 4,
    damping: float = 0.5,
    percentile: float = 85.0,
    minimum: int = 10,
    graph_weight: float = 0.15,
) -> Found:
    content_nodes = np.flatnonzero(book.content).astype(np.int32)
    selected = np.union1d(
        select_by_entity(book, seeds), select_by_section(book, text, at_most=added_sections)
    )
    added = np.zeros(len(book.parents), np.float32)
    if named is not None:
        np.add.at(added, named, np.zeros(len(named), np.float32) if bonus is None else bonus)
        selected = np.union1d(selected, named)
    graph = graph_reasoning(
        book, selected, seeds, seed_weights, damping=damping, percentile=percentile
    )
    content = np.intersect1d(selected, content_nodes).astype(np.int32)
    base = text + added
    relevance = base
    if graph is not None:
        top = float(graph.max(initial=0.0))
        relevance = base + np.float32(graph_weight) * (graph / top if top > 0 else graph)
    criteria = [base[content]] if graph is None else [base[content], graph[content]]
    kept = skyline_ranker(content, criteria, minimum=minimum)
    tier = np.full(len(book.parents), 2, np.int8)
    tier[content] = 1
    tier[kept] = 0
    order = content_nodes[
        np.lexsort((content_nodes, -relevance[content_nodes], tier[content_nodes]))
    ]
    return Found(
        order,
        relevance[order],
        None if graph is None else graph[order],
        len(kept),
        len(content),
    )


# --- selectors --------------------------------------------------------------------------------


def subtrees(book: Book, nodes: IntArray) -> IntArray:
    """N_s: the whole chapters (ancestors at depth 2) that hold these nodes."""
    tops = np.unique(book.tree.ancestors_at_depth(nodes, CHAPTER_DEPTH))
    return book.tree.subtree_union(tops[tops >= 0])


def select_by_entity(book: Book, seeds: IntArray) -> IntArray:
    """Linked entities → GT-Link → their ancestors at depth 2 → these sections' subtrees."""
    return subtrees(book, book.links.nodes_of_many(np.unique(seeds).astype(np.int32)))


def select_by_section(book: Book, relevance: FloatArray, *, at_most: int) -> IntArray:
    """The chapters that hold the most relevant content nodes; those at 0 or below add nothing."""
    chosen: list[int] = []
    content = np.flatnonzero(book.content).astype(np.int32)
    order = content[np.argsort(-relevance[content], kind="stable")]
    tops = book.tree.ancestors_at_depth(order, CHAPTER_DEPTH)
    for node, top in zip(order, tops, strict=True):
        if len(chosen) >= at_most or relevance[node] <= 0:
            break
        if top >= 0 and top not in chosen:
            chosen.append(int(top))
    return book.tree.subtree_union(np.array(sorted(chosen), dtype=np.int32))


# --- reasoners --------------------------------------------------------------------------------


def graph_reasoning(
    book: Book,
    selected: npt.NDArray[np.integer],
    seeds: IntArray,
    seed_weights: FloatArray,
    *,
    damping: float,
    percentile: float,
) -> FloatArray | None:
    """Importance of every node by the graph, or None if no seed of a weight lies in G'."""
    entities = book.links.entities_of_many(selected)
    rank = augmented_pagerank(
        book, entities, seeds, seed_weights, damping=damping, percentile=percentile
    )
    return None if rank is None else core.project(book.links, rank)


def augmented_pagerank(
    book: Book,
    entities: IntArray,
    seeds: IntArray,
    seed_weights: FloatArray,
    *,
    damping: float,
    percentile: float,
) -> FloatArray | None:
    local = np.full(book.num_entities, -1, dtype=np.int32)
    local[entities] = np.arange(len(entities), dtype=np.int32)
    inside = np.array([local[s] >= 0 and w > 0 for s, w in zip(seeds, seed_weights, strict=True)])
    if not inside.any():
        return None
    graph = augmented(book, entities, local, percentile)
    rank = core.personalized_pagerank(
        graph, local[seeds[inside]], seed_weights[inside], damping=damping
    )
    whole = np.zeros(book.num_entities, dtype=np.float32)
    whole[entities] = rank
    return whole


def augmented(
    book: Book, entities: IntArray, local: IntArray, percentile: float
) -> core.KnowledgeGraph:
    inside = (local[book.sources] >= 0) & (local[book.targets] >= 0)
    sources, targets = local[book.sources[inside]], local[book.targets[inside]]
    weights = book.weights[inside]
    if len(sources):
        within = book.relation_cosines[inside].astype(np.float64)
        threshold = max(float(np.percentile(within, percentile)), 1e-6)
        at_most = max(1, int(np.ceil(2 * len(sources) / len(entities))))
        joined = set(zip(sources.tolist(), targets.tolist(), strict=True))
        joined |= {(b, a) for a, b in joined}
        new: dict[tuple[int, int], np.float32] = {}
        for row, entity in enumerate(entities.tolist()):
            found = 0
            pairs = zip(book.neighbours[entity], book.neighbour_cosines[entity], strict=True)
            for near, cosine in pairs:
                other = -1 if near < 0 else int(local[near])
                if other < 0 or float(cosine) < threshold or (row, other) in joined:
                    continue
                found += 1
                if found <= at_most:  # a pair that is near both ways is one edge, not two
                    new.setdefault((min(row, other), max(row, other)), cosine)
        sources = np.concatenate([sources, np.array([a for a, _ in new], np.int32)])
        targets = np.concatenate([targets, np.array([b for _, b in new], np.int32)])
        weights = np.concatenate([weights, np.array(list(new.values()), np.float32)])
    return core.KnowledgeGraph(len(entities), sources, targets, weights)


def skyline_ranker(candidates: IntArray, scores: Sequence[FloatArray], *, minimum: int) -> IntArray:
    """Candidates that no other beats or equals on every score with one better; if fewer than
    ``minimum`` remain, the best by each score in turn fill up. In candidate order."""
    if not len(candidates):
        return candidates
    if len(scores) == 1:
        kept = np.flatnonzero(scores[0] == scores[0].max())
    else:
        kept = core.skyline(np.stack(scores, axis=1))
    chosen = dict.fromkeys(kept.tolist())
    orders = [np.argsort(-s, kind="stable").tolist() for s in scores]
    for best in zip(*orders, strict=True):
        for position in best:
            if len(chosen) >= minimum:
                break
            chosen.setdefault(position)
    return candidates[sorted(chosen)]
