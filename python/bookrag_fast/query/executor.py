"""Runs a plan over one or more opened books. CPU-bound; async callers use a worker thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import repeat

from bookrag_fast.config import RetrievalSettings
from bookrag_fast.errors import BudgetError, InvalidArgumentError
from bookrag_fast.index.book_index import BookIndex, count_tokens
from bookrag_fast.index.model import NodeKind
from bookrag_fast.models.roles import ModelSet
from bookrag_fast.query import synthesizers
from bookrag_fast.query.aggregation import aggregate, select_nodes
from bookrag_fast.query.plan import (
    Answer,
    Category,
    Citation,
    Evidence,
    FilterType,
    QueryPlan,
    SearchResult,
    Usage,
)
from bookrag_fast.query.planner import plan_question, single_hop
from bookrag_fast.query.question import Question, prepare
from bookrag_fast.query.ranges import pages_of
from bookrag_fast.query.retrieve import Ranked, retrieve
from bookrag_fast.query.tracing import Tracer

__all__ = ["Executor"]

_MOST_EVIDENCE = 10_000  # nodes handed out for one question, whatever the budget
_LARGEST_BUDGET = 1_000_000
_SENTENCE_END = re.compile(r"[.!?。！？][\"'”’)]*(?=\s|$)|\n|(?<=[。！？])")


class Executor:
    """Plans and runs questions. Holds no book; safe to share between threads."""

    def __init__(self, models: ModelSet, settings: RetrievalSettings) -> None:
        self._models = models
        self._embedder = models.embedder
        self._settings = settings

    def search(self, books: Sequence[BookIndex], question: str, budget: int) -> SearchResult:
        """Evidence for a question, best first, within a token budget.

        Raises:
            QueryError: the question is empty or too long.
            BudgetError: the budget is not between 1 and 1,000,000 tokens.
        """
        tracer = Tracer()
        prepared, plan, evidence = self._collect(books, question, budget, tracer)
        if _aggregates(plan):
            evidence = self._fill_up(books, prepared, evidence, budget, tracer)
        return SearchResult(tuple(evidence), plan, tracer.trace(), tuple(tracer.notes))

    def ask(
        self,
        books: Sequence[BookIndex],
        question: str,
        budget: int,
        *,
        on_plan: Callable[[QueryPlan], None] = lambda plan: None,
        on_evidence: Callable[[Sequence[Evidence]], None] = lambda evidence: None,
    ) -> Answer:
        """Answer a question with citations; same errors as `search`. The callbacks are told of
        the plan and the evidence as soon as they are there."""
        tracer = Tracer()
        prepared, plan, evidence = self._collect(books, question, budget, tracer, on_plan=on_plan)
        on_evidence(evidence)
        by_id = {b.meta.book_id: b for b in books}
        if _aggregates(plan):
            text, citations, enough = self._aggregate(books, plan, budget, tracer)
        else:
            with tracer.operator("Map") as note:
                passages = synthesizers.map_evidence(evidence, prepared, by_id, self._embedder)
                note["passages"] = len(passages)
            with tracer.operator("Reduce") as note:
                text, citations, enough = synthesizers.reduce_extract(
                    passages, prepared, by_id, budget
                )
                note["quoted"] = len(citations)
        usage = Usage(evidence_tokens=sum(e.tokens for e in evidence))
        trace = tracer.trace()
        return Answer(text, tuple(citations), plan, trace, usage, enough, tuple(tracer.notes))

    # --- evidence ---------------------------------------------------------------------------

    def _collect(
        self,
        books: Sequence[BookIndex],
        text: str,
        budget: object,
        tracer: Tracer,
        *,
        on_plan: Callable[[QueryPlan], None] = lambda plan: None,
    ) -> tuple[Question, QueryPlan, list[Evidence]]:
        if not isinstance(budget, int) or not 1 <= budget <= _LARGEST_BUDGET:
            raise BudgetError(
                f"a budget of {budget} tokens is out of range",
                f"choose between 1 and {_LARGEST_BUDGET}",
            )
        question = prepare(text, self._embedder)
        with tracer.operator("Decompose") as note:
            plan = plan_question(question.text)
            note["category"], note["reason"] = plan.category.value, plan.reason
        if _aggregates(plan):
            found = [self._filtered(books, part, tracer) for part in plan.sub_plans or (plan,)]
            if None not in found:
                on_plan(plan)
                for part in plan.sub_plans or (plan,):
                    tracer.notes += _missing_pages(books, part)
                return question, plan, [e for part in found for e in part or ()]
            # No book has the part that the question names: then it is an ordinary question.
            plan = single_hop(plan.question, "nothing matches the structural filter")
            tracer.notes.append("no book asked has the part that the question names")
        on_plan(plan)
        tracer.notes += _missing_pages(books, plan)
        plans = [plan] if plan.category is Category.SINGLE_HOP else list(plan.sub_plans)
        rankings = []
        for sub in plans:
            asked = question if sub is plan else prepare(sub.question, self._embedder)
            rankings.append(self._rank(books, asked, sub, tracer))
        if len(rankings) > 1:  # the whole question too: one place may compare the two
            rankings.append(self._rank(books, question, plan, tracer))
        return question, plan, _within_budget(_interleave(rankings), budget)

    def _aggregate(
        self, books: Sequence[BookIndex], plan: QueryPlan, budget: int, tracer: Tracer
    ) -> tuple[str, list[Citation], bool]:
        texts: list[str] = []
        citations: list[Citation] = []
        enough = True
        for part in plan.sub_plans or (plan,):
            found = self._filtered(books, part, tracer) or []
            text, cited, carried = aggregate(books, part, found, self._embedder, budget, tracer)
            texts.append(text)
            citations += cited
            enough = enough and carried
        return ", ".join(texts), citations, enough

    def _fill_up(
        self,
        books: Sequence[BookIndex],
        question: Question,
        evidence: list[Evidence],
        budget: int,
        tracer: Tracer,
    ) -> list[Evidence]:
        """What the filters selected, and with the rest of the budget what speaks to the words of
        the question: a reader may want more than the aggregate."""
        chosen: dict[tuple[str, int], Evidence] = {}
        left = budget
        ranked = self._rank(books, question, single_hop(question.text), tracer)
        for item in (*evidence, *_within_budget(ranked, budget)):
            if (item.book, item.node_id) not in chosen and item.tokens <= left:
                chosen[item.book, item.node_id] = item
                left -= item.tokens
        return list(chosen.values())

    def _rank(
        self, books: Sequence[BookIndex], question: Question, plan: QueryPlan, tracer: Tracer
    ) -> list[tuple[Ranked, int]]:
        """(ranking, position) over all books, best first."""
        ranked = [
            retrieve(book, question, plan, self._embedder, self._settings, tracer) for book in books
        ]
        if len(ranked) == 1:
            return list(zip(repeat(ranked[0]), range(min(_MOST_EVIDENCE, len(ranked[0].nodes)))))
        # Each book's own order holds within it; between books relevance decides.
        merged = [
            (float(r.order[i]), b, i, r)
            for b, r in enumerate(ranked)
            for i in range(min(_MOST_EVIDENCE, len(r.nodes)))
        ]
        merged.sort(key=lambda entry: (-entry[0], entry[1], entry[2]))
        return [(r, i) for _, _, i, r in merged[:_MOST_EVIDENCE]]

    # --- global -----------------------------------------------------------------------------

    def _filtered(
        self, books: Sequence[BookIndex], plan: QueryPlan, tracer: Tracer
    ) -> list[Evidence] | None:
        """What the plan's structural filters select, in document order; None if a book part that
        the question names is in no book."""
        found: list[Evidence] = []
        met = False
        for book in books:
            nodes = select_nodes(book, plan, tracer)
            if nodes is None:
                continue
            met = True
            found += [evidence_of(book, node, {}) for node in nodes]
        return found[:_MOST_EVIDENCE] if met else None


def _aggregates(plan: QueryPlan) -> bool:
    """Whether a plan is nothing but aggregations over structure."""
    return plan.category is Category.GLOBAL or (
        bool(plan.sub_plans) and all(p.category is Category.GLOBAL for p in plan.sub_plans)
    )


def _missing_pages(books: Sequence[BookIndex], plan: QueryPlan) -> list[str]:
    """What to tell a reader who names pages that no book asked has."""
    notes = []
    for item in plan.filters:
        if item.type is not FilterType.PAGE or item.value is None:
            continue
        try:
            if any(pages_of(book, item.value) for book in books):
                continue
            longest = max(len(book.pages) for book in books)
            why = f"the last one is {longest}" if longest else "books of this format have none"
            notes.append(f"there is no page {item.value}: {why}")
        except InvalidArgumentError as error:
            notes.append(f"{error.message}, so the whole book was searched")
    return notes


def evidence_of(index: BookIndex, node_id: int, scores: dict[str, float]) -> Evidence:
    """A tree node as evidence, with everything needed to cite it."""
    node = index.nodes[node_id]
    text = index.evidence_text(node_id)
    pages = tuple(dict.fromkeys(r.page for r in node.regions)) or (
        (node.page_first,) if node.page_first else ()
    )
    path = index.section_path(node_id)
    return Evidence(
        book=index.meta.book_id,
        node_id=node_id,
        kind=node.kind.label,
        text=text,
        pages=pages,
        labels=tuple(index.label(p) for p in pages),
        boxes=node.regions,
        section=path[:-1] if node.kind is NodeKind.SECTION else path,
        scores=scores,
        tokens=int(index.node_tokens[node_id]),
    )


def _interleave(rankings: list[list[tuple[Ranked, int]]]) -> list[tuple[Ranked, int]]:
    """Rankings of several questions, taken in turn, each node once."""
    if len(rankings) == 1:
        return rankings[0]
    merged: dict[tuple[str, int], tuple[Ranked, int]] = {}
    for place in range(max(map(len, rankings), default=0)):
        for ranking in rankings:
            if place < len(ranking):
                ranked, i = ranking[place]
                key = (ranked.index.meta.book_id, int(ranked.nodes[i]))
                merged.setdefault(key, (ranked, i))
    return list(merged.values())


def _within_budget(ranked: list[tuple[Ranked, int]], budget: int) -> list[Evidence]:
    """Evidence until the budget is spent. A node that no longer fits is passed over for smaller
    ones behind it; the very first one is shortened to fit, so that no budget returns nothing."""
    chosen: list[Evidence] = []
    left = budget
    for ranking, i in ranked:
        node = int(ranking.nodes[i])
        tokens = int(ranking.index.node_tokens[node])
        if tokens > left and chosen:
            if left < budget * 0.05:
                break
            continue
        scores = {name: float(values[i]) for name, values in ranking.scores.items()}
        item = evidence_of(ranking.index, node, scores)
        if item.tokens > left:
            item = _cut(item, left)
        chosen.append(item)
        left -= item.tokens
        if left <= 0:
            break
    return chosen


def _cut(item: Evidence, tokens: int) -> Evidence:
    """The beginning of a node that fits: whole sentences if one fits, else whole words and "…"."""
    low, high = 0, len(item.text)
    while low < high:  # the longest beginning that costs no more
        middle = (low + high + 1) // 2
        if count_tokens(item.text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    fits = item.text[:low]
    ends = [m.end() for m in _SENTENCE_END.finditer(fits)]
    if ends:
        text = fits[: ends[-1]]
    else:
        room = low - 1  # for the mark
        whole = item.text[room : room + 1].isspace() or item.text[max(room - 1, 0)].isspace()
        head = item.text[:room]
        text = (head if whole else head.rsplit(None, 1)[0] if " " in head else head).rstrip() + "…"
    return replace(item, text=text, tokens=count_tokens(text))
