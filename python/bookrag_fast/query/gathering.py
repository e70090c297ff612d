"""From a question to its plan and the evidence for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.models.roles import Role
from bookrag_fast.query.aggregation import select_nodes
from bookrag_fast.query.evidence import (
    MOST_EVIDENCE,
    evidence_of,
    interleave,
    merged,
    within_budget,
)
from bookrag_fast.query.inquiry import Inquiry
from bookrag_fast.query.look_ahead import LookAhead
from bookrag_fast.query.model_planner import decompose
from bookrag_fast.query.plan import Category, Evidence, FilterType, QueryPlan
from bookrag_fast.query.planner import single_hop
from bookrag_fast.query.question import Question
from bookrag_fast.query.ranges import pages_of
from bookrag_fast.query.retrieve import Ranked, rank

__all__ = ["Gathered", "gather"]

_DEEPEST = 200  # places of a sub-question's ranking that its share is taken from


@dataclass(frozen=True, slots=True)
class Gathered:
    """A planned question with its evidence.

    ``parts`` are the plans that make it up, each with its own share of the evidence: what the
    filters of a global question select (``aggregates`` says that all are such), or what each of
    several sub-questions ranks first, if a model is to answer them.
    """

    question: Question
    plan: QueryPlan
    evidence: list[Evidence]
    parts: tuple[tuple[QueryPlan, list[Evidence]], ...]
    aggregates: bool = False


async def gather(
    inquiry: Inquiry,
    budget: int,
    *,
    on_plan: Callable[[QueryPlan], None] = lambda plan: None,
    fill: bool = False,
) -> Gathered:
    """Plan a question and collect evidence within a budget.

    ``fill``: what the filters of a global question leave of the budget is filled with what speaks
    to its words, for a reader may want more than the aggregate.
    """
    async with LookAhead(inquiry, wanted=fill) as ahead:
        plan = await decompose(inquiry)
        if all(part.category is Category.GLOBAL for part in plan.sub_plans or (plan,)):
            found = await _filtered(inquiry, plan, on_plan)
            if found is not None:
                return await _filled(inquiry, found, budget, ahead) if fill else found
            # No book has the part that the question names: then it is an ordinary question.
            plan = single_hop(plan.question, "nothing matches the structural filter")
            inquiry.tracer.say("no book asked has the part that the question names")
        on_plan(plan)
        inquiry.tracer.notes += _missing_pages(inquiry.books, plan)
        return await _looked_up(inquiry, plan, budget, ahead)


async def _filtered(
    inquiry: Inquiry, plan: QueryPlan, on_plan: Callable[[QueryPlan], None]
) -> Gathered | None:
    """What the filters of a global plan select; None if some part of it is in no book."""
    parts = plan.sub_plans or (plan,)
    found = [await inquiry.work.run(_selected, inquiry, part) for part in parts]
    selected = [items for items in found if items is not None]
    if len(selected) < len(parts):
        return None
    on_plan(plan)
    for part in parts:
        inquiry.tracer.notes += _missing_pages(inquiry.books, part)
    (question,) = await inquiry.questions([inquiry.text])
    evidence = [item for items in selected for item in items]
    whole = tuple(zip(parts, selected, strict=True))
    return Gathered(question, plan, evidence, whole, aggregates=True)


async def _looked_up(inquiry: Inquiry, plan: QueryPlan, budget: int, ahead: LookAhead) -> Gathered:
    """What the look-ups of a plan rank first."""
    subs = list(plan.sub_plans) or [plan]
    # Of several, the whole question too: one place may compare the two.
    looked_up = [*subs, plan] if len(subs) > 1 else subs
    (question, *asked) = await inquiry.questions(
        [inquiry.text, *(sub.question for sub in looked_up)]
    )

    async def retrieve(pair: tuple[Question, QueryPlan]) -> list[Ranked]:
        return await rank(inquiry, *pair, await ahead.look_up(pair[0]))

    rankings = await inquiry.work.map(retrieve, list(zip(asked, looked_up, strict=True)))
    evidence = await inquiry.work.run(
        lambda: within_budget(interleave([merged(r) for r in rankings]), budget)
    )
    shares = [(subs[0], evidence)]
    if len(subs) > 1 and inquiry.models.role(Role.ANSWER) is not None:
        shares = await inquiry.work.run(_shares, subs, rankings, evidence, budget)
    return Gathered(question, plan, evidence, tuple(shares))


async def _filled(inquiry: Inquiry, found: Gathered, budget: int, ahead: LookAhead) -> Gathered:
    question = found.question
    looked = await ahead.look_up(question)
    ranking = merged(await rank(inquiry, question, single_hop(question.text), looked))
    chosen: dict[tuple[str, int], Evidence] = {}
    left = budget
    for item in (*found.evidence, *within_budget(ranking, budget)):
        if (item.book, item.node_id) not in chosen and item.tokens <= left:
            chosen[item.book, item.node_id] = item
            left -= item.tokens
    return replace(found, evidence=list(chosen.values()))


def _selected(inquiry: Inquiry, plan: QueryPlan) -> list[Evidence] | None:
    """What a plan's structural filters select, in document order; None if a part that the question
    names is in no book."""
    found: list[Evidence] = []
    met = False
    for book in inquiry.books:
        nodes = select_nodes(book, plan, inquiry.tracer)
        if nodes is not None:
            met = True
            found += [evidence_of(book, node, {}) for node in nodes]
    return found[:MOST_EVIDENCE] if met else None


def _shares(
    subs: Sequence[QueryPlan],
    rankings: Sequence[Sequence[Ranked]],
    evidence: Sequence[Evidence],
    budget: int,
) -> list[tuple[QueryPlan, list[Evidence]]]:
    """Each sub-question's share: of the evidence there is, what it ranks first."""
    there = {(item.book, item.node_id): item for item in evidence}
    shares = []
    for sub, ranking in zip(subs, rankings, strict=False):  # the whole question comes last
        share: list[Evidence] = []
        left = budget // len(subs)
        for ranked, i in islice(merged(ranking), _DEEPEST):
            item = there.get((ranked.index.meta.book_id, int(ranked.nodes[i])))
            if item is not None and (item.tokens <= left or not share):
                share.append(item)
                left -= item.tokens
                if left <= 0:
                    break
        shares.append((sub, share))
    return shares


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
