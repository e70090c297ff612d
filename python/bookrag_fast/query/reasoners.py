"""Reasoners score nodes: by text, by the graph, and by both at once (the skyline)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bookrag_fast import core
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.query.formulators import LinkedEntity
from bookrag_fast.query.question import Question

__all__ = ["graph_reasoning", "skyline_ranker", "text_reasoning"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

# Weight of the meaning vector beside the words. Words alone miss paraphrase; a static embedder
# alone misses names and numbers.
_DENSE_WEIGHT = 0.25
_HEADING_WEIGHT = 0.3  # of a section whose heading says what the question says
_CONTENTS_WEIGHT = 0.3  # of a printed table of contents, which repeats the words of every heading


def text_reasoning(index: BookIndex, question: Question) -> FloatArray:
    """Relevance of every node to the question, float32[nodes]: BM25 as a share of what it could
    reach at most, plus a part of the cosine of the vectors and of the match of its section's
    heading. Comparable across books."""
    ceiling = index.lexicon.ceiling(question.terms)
    lexical = index.lexicon.scores(question.terms) / max(ceiling, 1e-6)
    dense: FloatArray = np.clip(index.node_vectors @ question.vector, 0.0, 1.0)
    heading = heading_match(index, question)[index.section_of]
    scores: FloatArray = lexical + _DENSE_WEIGHT * dense + _HEADING_WEIGHT * heading
    scores[index.is_contents] *= _CONTENTS_WEIGHT
    return scores.astype(np.float32, copy=False)


def heading_match(index: BookIndex, question: Question) -> FloatArray:
    """How far each section's heading and the question say the same, float32[nodes], 0 to 1: twice
    the weight of the terms they share over the weight of all terms of both."""
    match = np.zeros(len(index.nodes), dtype=np.float32)
    sections, words = index.headings
    weight = {t: index.lexicon.idf(t) for t in question.terms}
    shared = np.zeros(len(sections), dtype=np.float32)
    for term, idf in weight.items():
        row = words.vocabulary.get(term)
        if row is not None:
            shared[words.nodes[words.indptr[row] : words.indptr[row + 1]]] += idf
    both = sum(weight.values()) + index.heading_weights
    match[sections] = 2 * shared / np.maximum(both, 1e-6)
    return match


def graph_reasoning(
    index: BookIndex,
    selected: IntArray,
    linked: Sequence[LinkedEntity],
    *,
    damping: float,
    percentile: float,
) -> FloatArray | None:
    """Importance of every node by the graph, float32[nodes], or None if no linked entity lies in
    the selection (text alone ranks then).

    G' is induced by the entities of the selected nodes and augmented: entities whose names are
    near (cosine at or above the given percentile over the existing edges) are joined, at most
    ceil(mean degree) new edges a node. Personalized PageRank runs from the linked entities with
    weights (cos + 1) / 2; a node's score is the sum over its entities.
    """
    entities = index.links.entities_of_many(selected)
    if not len(entities):
        return None
    local = np.full(len(index.entities), -1, dtype=np.int32)
    local[entities] = np.arange(len(entities), dtype=np.int32)
    seeds = [link for link in linked if local[link.entity] >= 0]
    if not seeds:
        return None
    graph = _augmented(index, entities, local, percentile)
    rank = core.personalized_pagerank(
        graph,
        local[[s.entity for s in seeds]],
        np.array([s.weight for s in seeds], dtype=np.float32),
        damping=damping,
    )
    whole = np.zeros(len(index.entities), dtype=np.float32)
    whole[entities] = rank
    return core.project(index.links, whole)


def _augmented(
    index: BookIndex, entities: IntArray, local: IntArray, percentile: float
) -> core.KnowledgeGraph:
    edges = index.edges
    inside = (local[edges.sources] >= 0) & (local[edges.targets] >= 0)
    sources = local[edges.sources[inside]]
    targets = local[edges.targets[inside]]
    weights = edges.weights[inside]
    if len(sources):
        threshold = float(np.percentile(edges.cosines[inside], percentile))
        at_most = max(1, int(np.ceil(2 * len(sources) / len(entities))))
        near = local[index.neighbours.ids[entities]]
        near[index.neighbours.ids[entities] < 0] = -1
        cosines = index.neighbours.cosines[entities]
        fresh = (
            (near >= 0)
            & (cosines >= max(threshold, 1e-6))
            & ~index.edges.related_neighbours[entities]
        )
        fresh &= np.cumsum(fresh, axis=1) <= at_most
        row, column = np.nonzero(fresh)
        # A pair that is near both ways is one edge, not two.
        low = np.minimum(row, near[row, column]).astype(np.int64)
        high = np.maximum(row, near[row, column]).astype(np.int64)
        _, first = np.unique(low * len(entities) + high, return_index=True)
        sources = np.concatenate([sources, low[first].astype(np.int32)])
        targets = np.concatenate([targets, high[first].astype(np.int32)])
        weights = np.concatenate([weights, cosines[row, column][first]])
    return core.KnowledgeGraph(len(entities), sources, targets, weights)


def skyline_ranker(candidates: IntArray, scores: Sequence[FloatArray], *, minimum: int) -> IntArray:
    """Candidates that no other beats or equals on every score with one better; if fewer than
    ``minimum`` remain, the best by each score in turn fill up. In candidate order.

    Args:
        candidates: node ids.
        scores: one float32[len(candidates)] for each criterion.
    """
    if len(scores) == 1:
        kept = np.flatnonzero(scores[0] == scores[0].max()) if len(candidates) else np.zeros(0, int)
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
