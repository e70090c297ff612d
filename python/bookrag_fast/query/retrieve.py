"""Single-hop retrieval: the operators from Extract to Skyline_Ranker, traced.

All that models are asked for is in `look_up`, which needs the question alone; `rank` has the plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bookrag_fast import core
from bookrag_fast.config import RetrievalSettings
from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.index.model import NodeKind
from bookrag_fast.query import reasoners, selectors
from bookrag_fast.query.extract import extract_entities
from bookrag_fast.query.formulators import LinkedEntity
from bookrag_fast.query.inquiry import Inquiry
from bookrag_fast.query.plan import OperatorTrace, QueryPlan
from bookrag_fast.query.question import Question
from bookrag_fast.query.reranking import rerank
from bookrag_fast.query.sections import select_sections
from bookrag_fast.query.tracing import Tracer

__all__ = ["Looked", "Ranked", "look_up", "rank"]

FloatArray = npt.NDArray[np.float32]

# The order in which evidence is handed out: text relevance, and the graph's share of it. What a
# question names outright (a page, a figure) goes before what merely matches.
_GRAPH_WEIGHT = 0.15
_NAMED_PAGE = 0.5
_NAMED_ITEM = 1.0
# Stands in a section that a model chose by its title; less than a heading that says the same as
# the question is worth (see `reasoners`).
_CHOSEN_SECTION = 0.2

_MOST_ITEMS = 16  # tables and figures looked up for one question
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


@dataclass(frozen=True, slots=True)
class Looked:
    """What the books say to a question, one item a book: entities that it names, relevance of the
    nodes (float32[nodes]), and sections that a model chose by their titles."""

    links: list[list[LinkedEntity]] = field(default_factory=list)
    texts: list[FloatArray] = field(default_factory=list)
    sections: list[list[int]] = field(default_factory=list)


async def look_up(inquiry: Inquiry, question: Question) -> Looked:
    """Extract and Text_Reasoning, with the models' part of Select_by_Section: all at once."""
    looked = Looked()

    async def extracting() -> None:
        looked.links.extend(await extract_entities(inquiry, question))

    async def reading() -> None:
        with inquiry.tracer.operator("Text_Reasoning") as note:
            found = await inquiry.work.run(
                lambda: [reasoners.text_reasoning(book, question) for book in inquiry.books]
            )
            note["nodes"] = sum(map(len, found))

            async def reranking() -> None:
                looked.texts.extend(await rerank(inquiry, question, found, note))

            async def selecting() -> None:
                looked.sections.extend(await select_sections(inquiry, question, found))

            await at_once(reranking, selecting)

    async def at_once(*operators: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await inquiry.work.map(lambda operator: operator(), operators)

    await at_once(extracting, reading)
    return looked


async def rank(
    inquiry: Inquiry, question: Question, plan: QueryPlan, looked: Looked
) -> list[Ranked]:
    """Rank the content nodes of each book for a single-hop question.

    The skyline's nodes come first, then the rest of the selection, then the rest of the book, so
    that any budget can be filled.
    """
    return await inquiry.work.run(
        lambda: [
            _rank(book, question, plan, linked, text, chosen, inquiry.settings, inquiry.tracer)
            for book, linked, text, chosen in zip(
                inquiry.books, looked.links, looked.texts, looked.sections, strict=True
            )
        ]
    )


def _rank(
    index: BookIndex,
    question: Question,
    plan: QueryPlan,
    linked: list[LinkedEntity],
    text: FloatArray,
    sections: list[int],
    settings: RetrievalSettings,
    tracer: Tracer,
) -> Ranked:
    """From Select_by_Entity to Skyline_Ranker, in one book."""
    named: list[int] = []
    bonus: list[float] = []

    def name(nodes: list[int], worth: float) -> None:
        named.extend(nodes)
        bonus.extend([worth] * len(nodes))

    for step in plan.steps:
        if step.operator == "Filter_Range":
            name(_named_pages(index, step.params["pages"], tracer), _NAMED_PAGE)
    name(_named_items(index, question), _NAMED_ITEM)
    if sections:
        name(index.tree.subtree_union(sections).tolist(), _CHOSEN_SECTION)
    seeds, weights = reasoners.seeds_of(linked)
    found = index.retriever.retrieve(
        seeds,
        weights,
        text,
        named=np.array(named, dtype=np.int32),
        bonus=np.array(bonus, dtype=np.float32),
        added_sections=settings.added_sections,
        damping=settings.damping,
        percentile=settings.augment_percentile,
        minimum=settings.skyline_minimum,
        graph_weight=_GRAPH_WEIGHT,
    )
    _trace(found, tracer)
    scores = {"relevance": found.relevance, "text": text[found.nodes]}
    if found.graph is not None:
        scores["graph"] = found.graph
    return Ranked(index, found.nodes, scores)


def _trace(found: core.Retrieval, tracer: Tracer) -> None:
    """The operators that ran as one, each with its own time."""
    micros = found.micros

    def say(operator: str, stages: Sequence[str], **detail: Any) -> None:
        ms = sum(micros[stage] for stage in stages) / 1e3
        tracer.operators.append(OperatorTrace(operator, ms, detail))

    say("Select_by_Entity", ["by_entity"], nodes=found.by_entity)
    say("Select_by_Section", ["by_section"], nodes=found.by_section)
    say(
        "Graph_Reasoning",
        ["augment", "pagerank", "project"],
        linked=found.linked,
        entities=found.entities,
        relations=found.relations,
        new_relations=found.new_relations,
    )
    say("Skyline_Ranker", ["skyline", "order"], candidates=found.selected, kept=found.kept)


def _named_pages(index: BookIndex, pages: list[str], tracer: Tracer) -> list[int]:
    """Nodes on pages that the question names; one on several of its ranges stands several times."""
    nodes: list[int] = []
    with tracer.operator("Filter_Range") as note:
        note["pages"] = pages
        for value in pages:
            try:
                nodes += selectors.filter_range(index, value).tolist()
            except InvalidArgumentError as error:
                note["refused"] = str(error)  # a question is never lost to a malformed range
        note["nodes"] = len(set(nodes))
    return nodes


def _named_items(index: BookIndex, question: Question) -> list[int]:
    """Tables and figures that the question names by number ("Table 3", 図1)."""
    named: dict[tuple[NodeKind, str], None] = {}
    for match in _ITEM.finditer(question.text):
        word = (match.group("kind") or match.group("ja")).lower()
        kind = NodeKind.TABLE if word in ("table", "表") else NodeKind.IMAGE
        named.setdefault((kind, match.group("n") or match.group("m")))
    nodes: list[int] = []
    for kind, number in list(named)[:_MOST_ITEMS]:
        caption = re.compile(
            rf"\s*(?:table|figure|fig\.?|表|図)\s*{re.escape(number)}(?![\d])(?!\.\d)", re.I
        )
        nodes += [
            n
            for n in index.tree.nodes_of_kind(kind).tolist()
            if caption.match(index.nodes[n].title or index.nodes[n].text)
        ]
    return nodes
