"""Reasoners score nodes: by text, and by the graph. (Both at once: see `retrieve`.)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.query.formulators import LinkedEntity
from bookrag_fast.query.question import Question

__all__ = ["graph_reasoning", "seeds_of", "text_reasoning"]

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
    seeds, weights = seeds_of(linked)
    return index.retriever.graph_reasoning(
        selected, seeds, weights, damping=damping, percentile=percentile
    )


def seeds_of(linked: Sequence[LinkedEntity]) -> tuple[IntArray, FloatArray]:
    """Where the personalized PageRank starts: entities and their weights."""
    return (
        np.array([link.entity for link in linked], dtype=np.int32),
        np.array([link.weight for link in linked], dtype=np.float32),
    )
