"""Global questions: structural filters select nodes, then COUNT, LIST or SUMMARIZE over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.models.protocols import Embedder
from bookrag_fast.query import selectors, synthesizers
from bookrag_fast.query.plan import Citation, Evidence, FilterType, Operation, QueryPlan, Step
from bookrag_fast.query.tracing import Tracer

__all__ = ["aggregate", "select_nodes"]

IntArray = npt.NDArray[np.int32]


def select_nodes(book: BookIndex, plan: QueryPlan, tracer: Tracer) -> list[int] | None:
    """What the plan's structural filters select, in document order; None if the book has no part
    that the question names."""
    nodes = np.arange(len(book.nodes), dtype=np.int32)
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
    if not filtered:  # "How many pages are there?" counts no nodes
        return []
    if plan.operation in (Operation.SUMMARIZE, Operation.ANALYZE):
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


def aggregate(
    books: Sequence[BookIndex],
    plan: QueryPlan,
    evidence: Sequence[Evidence],
    embedder: Embedder,
    budget: int,
    tracer: Tracer,
) -> tuple[str, list[Citation], bool]:
    """Text, citations, and whether the evidence carried the answer. COUNT needs no model."""
    thing = plan.filters[-1]
    with tracer.operator("Reduce") as note:
        note["operation"] = plan.operation.value if plan.operation else None
        if plan.operation is Operation.SUMMARIZE:
            text, citations = synthesizers.summarize(evidence, embedder, budget)
            return text, citations, bool(citations)
        citations = [synthesizers.cite(e, e.text.splitlines()[0]) for e in evidence if e.text]
        if plan.operation is Operation.LIST:
            return synthesizers.reduce_list(evidence), citations, bool(evidence)
        if thing.type is not FilterType.PAGE:
            count = len(evidence)
        elif len(plan.filters) == 1:  # of the whole book
            count = sum(len(book.pages) for book in books)
        else:
            count = len({(e.book, page) for e in evidence for page in e.pages})
        depths = [s.params["depth"] for s in plan.steps if s.params.get("depth")]
        text = synthesizers.reduce_count(thing.type.value, count, depths[0] if depths else None)
        return text, citations, True
