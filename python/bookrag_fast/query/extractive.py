"""Map and Reduce without a language model: the book's own sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bookrag_fast.models.protocols import FloatMatrix
from bookrag_fast.query import synthesizers
from bookrag_fast.query.inquiry import Inquiry
from bookrag_fast.query.plan import Citation, Evidence
from bookrag_fast.query.question import Question
from bookrag_fast.query.synthesizers import Piece

__all__ = ["Draft", "extract_answer", "extract_summary"]


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer in the making; ``enough`` says whether the evidence carries it."""

    text: str
    citations: list[Citation]
    enough: bool


async def extract_answer(
    inquiry: Inquiry, question: Question, evidence: Sequence[Evidence], budget: int
) -> Draft:
    """The sentences that answer best, quoted."""
    books = inquiry.by_id()
    with inquiry.tracer.operator("Map") as note:
        pieces = await inquiry.work.run(synthesizers.pieces_of, evidence)
        vectors = await _vectors(inquiry, pieces)
        passages = await inquiry.work.run(
            lambda: (
                []
                if vectors is None
                else synthesizers.map_evidence(evidence, pieces, vectors, question, books)
            )
        )
        note["passages"] = len(passages)
    with inquiry.tracer.operator("Reduce") as note:
        draft = Draft(
            *await inquiry.work.run(synthesizers.reduce_extract, passages, question, books, budget)
        )
        note["quoted"] = len(draft.citations)
    return draft


async def extract_summary(inquiry: Inquiry, evidence: Sequence[Evidence], budget: int) -> Draft:
    """The sentences nearest to the centre of what is to be summarised."""
    pieces = await inquiry.work.run(synthesizers.summary_pieces, evidence)
    vectors = await _vectors(inquiry, pieces)
    if vectors is None:
        return Draft("", [], False)
    text, citations = await inquiry.work.run(synthesizers.summarize, pieces, vectors, budget)
    return Draft(text, citations, bool(citations))


async def _vectors(inquiry: Inquiry, pieces: Sequence[Piece]) -> FloatMatrix | None:
    return await inquiry.embed([piece.text for piece in pieces]) if pieces else None
