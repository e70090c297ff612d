"""Single-hop retrieval in one book: the operators from Extract to Skyline_Ranker, traced."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bookrag_fast.config import RetrievalSettings
from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.index.model import NodeKind
from bookrag_fast.models.protocols import Embedder
from bookrag_fast.query import reasoners, selectors
from bookrag_fast.query.formulators import extract
from bookrag_fast.query.plan import QueryPlan
from bookrag_fast.query.question import Question
from bookrag_fast.query.tracing import Tracer

__all__ = ["Ranked", "retrieve"]

FloatArray = npt.NDArray[np.float32]

# The order in which evidence is handed out: text relevance, and the graph's share of it. What a
# question names outright (a page, a figure) goes before what merely matches.
_GRAPH_WEIGHT = 0.15
_NAMED_PAGE = 0.5
_NAMED_ITEM = 1.0

_ITEM = re.compile(
    r"\b(?P<kind>table|figure|fig\.?)\s*(?P<n>\d+(?:[.-]\d+)*|[A-Z]\.?\d+)|(?P<ja>[表図])\s*(?P<m>\d+)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Content nodes of one book, best first. ``scores`` by name, aligned with ``nodes``."""

    index: BookIndex
    nodes: npt.NDArray[np.int32]
    scores: dict[str, FloatArray]

    @property
    def order(self) -> FloatArray:
        return self.scores["relevance"]


def retrieve(
    index: BookIndex,
    question: Question,
    plan: QueryPlan,
    embedder: Embedder,
    settings: RetrievalSettings,
    tracer: Tracer,
) -> Ranked:
    """Rank the book's content nodes for a single-hop question.

    The skyline's nodes come first, then the rest of the selection, then the rest of the book, so
    that any budget can be filled.
    """
    with tracer.operator("Extract") as note:
        linked = extract(index, question, embedder, link_distance=settings.link_distance)
        note["entities"] = [
            {"name": index.entities[e.entity].name, "mention": e.mention, "cosine": e.cosine}
            for e in linked[:20]
        ]
    with tracer.operator("Text_Reasoning") as note:
        text = reasoners.text_reasoning(index, question)
        note["nodes"] = len(text)
    with tracer.operator("Select_by_Entity") as note:
        by_entity = selectors.select_by_entity(index, linked)
        note["nodes"] = len(by_entity)
    with tracer.operator("Select_by_Section") as note:
        by_section = selectors.select_by_section(index, text, at_most=settings.added_sections)
        note["nodes"] = len(by_section)
    selected = np.union1d(by_entity, by_section)
    bonus = np.zeros(len(index.nodes), dtype=np.float32)
    for step in plan.steps:
        if step.operator == "Filter_Range":
            selected = _add_named_pages(index, step.params["pages"], selected, bonus, tracer)
    selected = _add_named_items(index, question, selected, bonus)
    with tracer.operator("Graph_Reasoning") as note:
        graph = reasoners.graph_reasoning(
            index,
            selected.astype(np.int32),
            linked,
            damping=settings.damping,
            percentile=settings.augment_percentile,
        )
        note["linked"] = graph is not None
    with tracer.operator("Skyline_Ranker") as note:
        content = np.intersect1d(selected, index.content_nodes).astype(np.int32)
        relevance = text + bonus
        if graph is not None:
            relevance = relevance + _GRAPH_WEIGHT * _to_unit(graph)
        criteria = [relevance[content] if graph is None else (text + bonus)[content]]
        if graph is not None:
            criteria.append(graph[content])
        skyline = reasoners.skyline_ranker(content, criteria, minimum=settings.skyline_minimum)
        note["candidates"], note["kept"] = len(content), len(skyline)
    tier = np.full(len(index.nodes), 2, dtype=np.int8)
    tier[content] = 1
    tier[skyline] = 0
    everything = index.content_nodes
    order = everything[np.lexsort((everything, -relevance[everything], tier[everything]))]
    scores = {"relevance": relevance[order], "text": text[order]}
    if graph is not None:
        scores["graph"] = graph[order]
    return Ranked(index, order, scores)


def _to_unit(values: FloatArray) -> FloatArray:
    top = float(values.max(initial=0.0))
    return values / top if top > 0 else values


def _add_named_pages(
    index: BookIndex,
    pages: list[str],
    selected: npt.NDArray[Any],
    bonus: FloatArray,
    tracer: Tracer,
) -> npt.NDArray[Any]:
    with tracer.operator("Filter_Range") as note:
        note["pages"] = pages
        for value in pages:
            try:
                found = selectors.filter_range(index, value)
            except InvalidArgumentError as error:
                note["refused"] = str(error)  # a question is never lost to a malformed range
                continue
            bonus[found] += _NAMED_PAGE
            selected = np.union1d(selected, found)
        note["nodes"] = int((bonus > 0).sum())
    return selected


def _add_named_items(
    index: BookIndex, question: Question, selected: npt.NDArray[Any], bonus: FloatArray
) -> npt.NDArray[Any]:
    """Tables and figures that the question names by number ("Table 3", 図1)."""
    for match in _ITEM.finditer(question.text):
        word = (match.group("kind") or match.group("ja")).lower()
        number = match.group("n") or match.group("m")
        kind = NodeKind.TABLE if word in ("table", "表") else NodeKind.IMAGE
        caption = re.compile(
            rf"\s*(?:table|figure|fig\.?|表|図)\s*{re.escape(number)}(?![\d])(?!\.\d)", re.I
        )
        found = [
            n.node_id for n in index.nodes if n.kind is kind and caption.match(n.title or n.text)
        ]
        bonus[found] += _NAMED_ITEM
        selected = np.union1d(selected, np.array(found, dtype=np.int32))
    return selected
