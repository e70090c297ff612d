"""Text_Reasoning by a reranker, on the nodes that words and vectors put first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bookrag_fast.errors import ModelError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.models.booking import booked_on
from bookrag_fast.query.inquiry import Inquiry
from bookrag_fast.query.model_text import told
from bookrag_fast.query.question import Question

__all__ = ["rerank"]

FloatArray = npt.NDArray[np.float32]

_CANDIDATES = 50  # over all books: a reranker's scores compare within one call only
_LONGEST_TEXT = 4000  # characters shown of a node
_WEIGHT = 0.7  # of the reranker beside the words and vectors, both scaled to 0 … 1


async def rerank(
    inquiry: Inquiry, question: Question, texts: Sequence[FloatArray], note: dict[str, Any]
) -> Sequence[FloatArray]:
    """Relevance of each book's nodes, as `reasoners.text_reasoning` gives it, with the best
    candidates put in a new order.

    The candidates share the interval that they had: they stay ahead of the rest, and books stay
    comparable. Whatever is wrong with the reranker leaves the relevance as it was.
    """
    reranker = inquiry.models.reranker
    if reranker is None:
        return texts
    candidates, passages = await inquiry.work.run(_candidates, inquiry.books, texts)
    if len(candidates) < 2:
        return texts
    try:
        with booked_on(inquiry.book):
            made = await inquiry.in_time(reranker.arerank(question.text, passages))
        scores = np.asarray(made.scores, dtype=np.float32)
        if scores.shape != (len(passages),) or not np.isfinite(scores).all():
            raise ModelError("its scores are not one finite number a text")
    except ModelError as error:
        problem = told(error.message)
        inquiry.tracer.say(f"the reranker failed ({problem}): ranked by words and vectors")
        note.update(by="rules", problem=problem)
        return texts
    inquiry.tracer.usage += made.usage
    note.update(by="model", reranked=len(candidates))
    old = np.array([texts[b][node] for b, node in candidates], dtype=np.float32)
    low, high = float(old.min()), float(old.max())
    blend = _WEIGHT * _scaled(scores) + (1 - _WEIGHT) * _scaled(old)
    out = [text.copy() for text in texts]
    for (b, node), share in zip(candidates, blend.tolist(), strict=True):
        out[b][node] = low + (high - low) * share
    return out


def _candidates(
    books: Sequence[BookIndex], texts: Sequence[FloatArray]
) -> tuple[list[tuple[int, int]], list[str]]:
    """(place of the book, node) of the best content nodes, best first, and what they say."""
    ranked: list[tuple[float, int, int]] = []
    for place, (book, text) in enumerate(zip(books, texts, strict=True)):
        nodes = book.content_nodes
        best = nodes[np.argsort(-text[nodes], kind="stable")[:_CANDIDATES]]
        ranked += [(-float(text[node]), place, node) for node in best.tolist() if text[node] > 0]
    found = [(place, node) for _, place, node in sorted(ranked)[:_CANDIDATES]]
    return found, [_passage(books[place], node) for place, node in found]


def _passage(book: BookIndex, node: int) -> str:
    """A node as a reranker reads it: under its heading."""
    heading = " ".join(book.section_path(node)[-1:])
    return f"{heading}\n{book.evidence_text(node)}"[:_LONGEST_TEXT].strip()


def _scaled(values: FloatArray) -> FloatArray:
    """To 0 … 1; all 0.5 where all are alike."""
    low, high = values.min(), values.max()
    if high <= low:
        return np.full_like(values, 0.5)
    scaled: FloatArray = (values - low) / (high - low)
    return scaled
