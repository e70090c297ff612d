"""Global questions: structural filters select nodes, then an operation over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.query import selectors, synthesizers
from bookrag_fast.query.answering import Part, Writer
from bookrag_fast.query.extractive import Draft, extract_answer, extract_summary
from bookrag_fast.query.plan import Evidence, FilterType, Operation, QueryPlan, Step
from bookrag_fast.query.question import Question
from bookrag_fast.query.tracing import Tracer

__all__ = ["aggregate", "select_nodes"]

IntArray = npt.NDArray[np.int32]


def select_nodes(book: BookIndex, plan: QueryPlan, tracer: Tracer) -> list[int] | None:
    """What the plan's structural filters select, in document order; None if the book has no part
    that the question names."""
    nodes = np.arange(len(book.nodes), dtype=np.int32)
    digested = plan.operation in (Operation.SUMMARIZE, Operation.ANALYZE)
    filtered = False
    for step in plan.steps:
        if step.operator in ("Map", "Reduce"):
            break
        with tracer.operator(step.operator) as note:
            note.update(step.params)
            kept = _apply(book, step, nodes)
            if kept is None:
                return None
            nodes, filtered = kept, True
            note["nodes"] = len(nodes)
    if not filtered and not digested:  # "How many pages are there?" counts no nodes
        return []
    if digested:
        nodes = np.intersect1d(nodes, book.content_nodes)
    return [int(n) for n in nodes]


def _apply(book: BookIndex, step: Step, nodes: IntArray) -> IntArray | None:
    """The nodes that one filter keeps; None if it names what the book does not have."""
    if step.operator == "Filter_Range":
        try:
            return selectors.filter_range(book, step.params["pages"], nodes)
        except InvalidArgumentError:
            return None
    if step.operator == "Filter_Modal":
        return selectors.filter_modal(book, step.params["kind"], nodes)
    value = step.params["section"]
    heads = selectors.find_sections(book, value, depth=step.params.get("depth"))
    if value is None:
        return np.intersect1d(nodes, heads)
    if not len(heads):
        return None
    inside = np.setdiff1d(book.tree.subtree_union(heads), heads)  # a part is not inside itself
    return np.intersect1d(nodes, inside)


async def aggregate(
    plan: QueryPlan, evidence: Sequence[Evidence], question: Question, writer: Writer
) -> Draft:
    """What a global plan's operation makes of the nodes that its filters selected. COUNT and LIST
    need no model."""
    inquiry, operation = writer.inquiry, plan.operation
    if operation in (Operation.SUMMARIZE, Operation.ANALYZE):
        return await _digest(plan, evidence, question, writer)
    with inquiry.tracer.operator("Reduce") as note:
        note["operation"] = operation.value if operation else None
        citations = [synthesizers.cite(e, e.text.splitlines()[0]) for e in evidence if e.text]
        if operation is Operation.LIST:
            return Draft(synthesizers.reduce_list(evidence), citations, bool(evidence))
        thing = plan.filters[-1]
        if thing.type is not FilterType.PAGE:
            count = len(evidence)
        elif len(plan.filters) == 1:  # of the whole book
            count = sum(len(book.pages) for book in inquiry.books)
        else:
            count = len({(e.book, page) for e in evidence for page in e.pages})
        depths = [s.params["depth"] for s in plan.steps if s.params.get("depth")]
        text = synthesizers.reduce_count(thing.type.value, count, depths[0] if depths else None)
        return Draft(text, citations, True)


async def _digest(
    plan: QueryPlan, evidence: Sequence[Evidence], question: Question, writer: Writer
) -> Draft:
    """SUMMARIZE or ANALYZE of everything selected."""
    inquiry = writer.inquiry

    async def offline() -> Draft:
        if plan.operation is Operation.ANALYZE:
            return await extract_answer(inquiry, question, evidence, writer.budget)
        with inquiry.tracer.operator("Reduce") as note:
            note["operation"] = Operation.SUMMARIZE.value
            return await extract_summary(inquiry, evidence, writer.budget)

    if not writer.able or not evidence:
        return await offline()
    part = Part(question, tuple(enumerate(evidence, 1)))
    # What is to be found everywhere may be what a summary leaves out.
    summaries = plan.operation is Operation.SUMMARIZE
    return await writer.digest(part, offline, summaries=summaries)
