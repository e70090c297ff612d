"""Decompose by model: classification and decomposition, checked against the question and the books.

What structure alone decides stays with the rules: "How many tables are in Chapter 3?" is read
without remainder, and counting needs no model. Everything else goes to the planning model, whose
known fault is to take apart what one place answers: sub-questions that repeat the question, come to
one, or are all answered best by the same node make it a single-hop question again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field

from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.index.book_index import BookIndex, count_tokens
from bookrag_fast.index.lexicon import tokenize
from bookrag_fast.models.plain_text import clipped
from bookrag_fast.models.roles import Role
from bookrag_fast.prompts import language_of
from bookrag_fast.query.inquiry import Call, Inquiry
from bookrag_fast.query.model_text import told
from bookrag_fast.query.plan import Category, Filter, FilterType, Operation, QueryPlan
from bookrag_fast.query.planner import (
    digest_plan,
    multi_hop,
    plan_question,
    single_hop,
    structural_plan,
)
from bookrag_fast.query.question import worded
from bookrag_fast.query.ranges import pages_of
from bookrag_fast.query.reasoners import text_reasoning
from bookrag_fast.query.selectors import CHAPTER_DEPTH, find_sections

__all__ = ["PlanReply", "asks_model", "decompose"]

_MOST_SUBS = 5  # retrieval sub-questions
_MOST_SYNTHESIS = 3
_MOST_FILTERS = 8
_LONGEST_SUB = 500  # characters of a sub-question
_LONGEST_VALUE = 200  # of a filter
_ALIKE = 0.8  # share of all words of two questions that both have: they ask the same
_MOST_CHAPTERS = 60  # shown to the model
_OUTLINE_TOKENS = 800
_PROMPT_TOKENS = 1000  # the prompt's own words, at most
_REPLY_TOKENS = 768
_CHAPTERS = re.compile(r"\bchapters?\b|章", re.I)
_BY_MODEL = "the planning model: "


def _word(value: object) -> object:
    return re.sub(r"[\s_]+", "-", value.strip().lower()) if isinstance(value, str) else value


def _capitals(value: object) -> object:
    if not isinstance(value, str):
        return value
    return None if value.strip().lower() in ("", "none", "null") else value.strip().upper()


class SubQuestionReply(BaseModel):
    question: str = Field(description="complete in itself, answerable without the others")
    kind: Annotated[Literal["retrieval", "synthesis"], BeforeValidator(_word)] = Field(
        "retrieval",
        description="retrieval looks something up; synthesis only combines what was looked up",
    )


class FilterReply(BaseModel):
    type: Annotated[Literal["section", "image", "table", "page"], BeforeValidator(_word)]
    value: str | None = Field(
        None, description='a section\'s number or title, or pages like "3-10"; else null'
    )


class PlanReply(BaseModel):
    """How a question is to be answered."""

    category: Annotated[Literal["single-hop", "multi-hop", "global"], BeforeValidator(_word)] = (
        Field(description="single-hop unless the others clearly fit")
    )
    sub_questions: list[SubQuestionReply] = Field(default=[], description="of multi-hop only")
    filters: list[FilterReply] = Field(default=[], description="of global only")
    operation: Annotated[
        Literal["COUNT", "LIST", "SUMMARIZE", "ANALYZE"] | None, BeforeValidator(_capitals)
    ] = Field(None, description="of global only")
    condition: str = Field(
        "", description="of global: what must hold of the things beside type and place, or empty"
    )


class _RefusedError(Exception):
    """Why a model's plan is not followed."""


def asks_model(inquiry: Inquiry) -> bool:
    """Whether `decompose` will ask a model: there is one, and the rules leave something open."""
    return inquiry.models.role(Role.PLAN) is not None and not _certain(plan_question(inquiry.text))


async def decompose(inquiry: Inquiry) -> QueryPlan:
    """The plan of a question, by its words alone. Never fails: what the model says amiss is
    repaired, or the rules' plan stands, which in the end is single-hop."""
    with inquiry.tracer.operator("Decompose") as note:
        plan = plan_question(inquiry.text)
        if inquiry.models.role(Role.PLAN) is not None:
            plan = replace(plan, reason=f"rules: {plan.reason}")
            if not _certain(plan):
                plan = await _by_model(inquiry, plan, note)
        note["category"], note["reason"] = plan.category.value, plan.reason
    return plan


def _certain(plan: QueryPlan) -> bool:
    """Whether a rule has read the question without remainder. The Japanese patterns search within
    the sentence, and what stands around a match may ask for more."""
    parts = plan.sub_plans or (plan,)
    structural = all(part.category is Category.GLOBAL for part in parts)
    return structural and language_of(plan.question) == "en"


async def _by_model(inquiry: Inquiry, ruled: QueryPlan, note: dict[str, Any]) -> QueryPlan:
    room = inquiry.room(Role.PLAN, inquiry.text, _REPLY_TOKENS) - _PROMPT_TOKENS
    call = Call(
        Role.PLAN,
        "plan",
        {"question": inquiry.text, "outline": _outline(inquiry.books, room)},
        "planned by rules",
        max_tokens=_REPLY_TOKENS,
        expected_tokens=100,
    )
    reply = await inquiry.ask(call, PlanReply, note)
    if reply is None:
        return ruled
    try:
        if reply.category == "global":
            return _global(inquiry, reply)
        if reply.category == "multi-hop":
            return await _multi_hop(inquiry, reply)
    except _RefusedError as error:
        why = told(str(error))
        note.update(by="rules", refused=why)
        inquiry.tracer.say(f"the plan of the planning model was not followed ({why})")
        return ruled
    return single_hop(inquiry.text, _BY_MODEL + "one place may answer it")


# --- multi-hop --------------------------------------------------------------------------------


async def _multi_hop(inquiry: Inquiry, reply: PlanReply) -> QueryPlan:
    question, whole = inquiry.text, set(worded(inquiry.text))
    asked = [
        (sub.kind, clipped(sub.question, _LONGEST_SUB))
        for sub in reply.sub_questions[: 4 * (_MOST_SUBS + _MOST_SYNTHESIS)]
    ]
    look_ups = [text for kind, text in asked if kind == "retrieval" and text]
    subs = _distinct([text for text in look_ups if _speaks(text, whole, inquiry.books)])
    one = single_hop(question, _BY_MODEL + "its sub-questions come to one")
    if len(subs) < 2 or any(whole <= set(worded(s)) or _same(s, question) for s in subs):
        return one
    subs = subs[:_MOST_SUBS]
    if await _one_place(inquiry, subs):
        return single_hop(question, _BY_MODEL + "one place answers all its sub-questions")
    synthesis = [text for kind, text in asked if kind == "synthesis" and text][:_MOST_SYNTHESIS]
    return multi_hop(
        question,
        [single_hop(sub, _BY_MODEL + "a sub-question") for sub in subs],
        synthesis or [question],
        _BY_MODEL + f"{len(subs)} independent look-ups",
    )


def _distinct(questions: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for text in questions:
        if not any(_same(text, other) for other in kept):
            kept.append(text)
    return kept


def _same(a: str, b: str) -> bool:
    """Whether two questions ask the same in other words or another order."""
    ours, theirs = set(worded(a)), set(worded(b))
    return len(ours & theirs) >= _ALIKE * len(ours | theirs)


def _speaks(text: str, whole: set[str], books: Sequence[BookIndex]) -> bool:
    """Whether a sub-question has a word of the question or of a book; else it is nonsense."""
    terms = set(tokenize(text))
    return bool(terms & whole) or any(
        term in book.lexicon.vocabulary for term in worded(text) for book in books
    )


async def _one_place(inquiry: Inquiry, subs: Sequence[str]) -> bool:
    """Whether the same node answers every sub-question best."""
    questions = await inquiry.questions(subs)

    def best() -> set[tuple[int, int]]:
        places = set()
        for question in questions:
            scores = [text_reasoning(book, question) for book in inquiry.books]
            book = max(range(len(scores)), key=lambda b: float(scores[b].max()))
            places.add((book, int(np.argmax(scores[book]))))
        return places

    return len(await inquiry.work.run(best)) == 1


# --- global -----------------------------------------------------------------------------------


def _global(inquiry: Inquiry, reply: PlanReply) -> QueryPlan:
    if reply.operation is None:
        raise _RefusedError("it names no operation")
    operation = Operation(reply.operation)
    filters = list(dict.fromkeys(_real(inquiry.books, f) for f in reply.filters[:_MOST_FILTERS]))
    inside = [f for f in filters if f.value is not None]
    things = [f for f in filters if f.value is None]
    # A condition is for a reader: what structure cannot tell is not counted but read through.
    if operation in (Operation.COUNT, Operation.LIST) and reply.condition.strip():
        operation = Operation.ANALYZE
    if operation is Operation.ANALYZE and inquiry.models.role(Role.ANSWER) is None:
        raise _RefusedError("there is no model to analyse with")
    reason = f"{_BY_MODEL}{operation.value} of everything that a structural filter selects"
    if operation in (Operation.SUMMARIZE, Operation.ANALYZE):
        modal = [f for f in things if f.type in (FilterType.TABLE, FilterType.IMAGE)][:1]
        return digest_plan(inquiry.text, [*inside, *modal], operation, reason)
    if len(things) != 1:
        raise _RefusedError(f"it does not say what to {operation.value.lower()}")
    kind = things[0].type
    chapters = kind is FilterType.SECTION and _CHAPTERS.search(inquiry.text)
    depth = CHAPTER_DEPTH if chapters else None
    return structural_plan(inquiry.text, kind, depth, inside, operation, reason)


def _real(books: Sequence[BookIndex], reply: FilterReply) -> Filter:
    """The filter, if it names something that a book has."""
    kind = FilterType(reply.type)
    value = clipped(reply.value or "", _LONGEST_VALUE)
    if not value or kind in (FilterType.TABLE, FilterType.IMAGE):
        return Filter(kind)
    if kind is FilterType.SECTION:
        found = any(len(find_sections(book, value)) for book in books)
    else:
        try:
            found = any(pages_of(book, value) for book in books)
        except InvalidArgumentError:
            found = False
    if not found:
        raise _RefusedError(f"no book has the {kind.value} {value!r}")
    return Filter(kind, value)


def _outline(books: Sequence[BookIndex], room: int) -> str:
    """Titles of the books and their chapters, as far as there is room."""
    lines: list[str] = []
    left = min(room, _OUTLINE_TOKENS)
    for book in books:
        chapters = [s for s in book.headings[0].tolist() if book.nodes[s].level == CHAPTER_DEPTH]
        titles = [f"  {clipped(book.nodes[s].title, 80)}" for s in chapters[:_MOST_CHAPTERS]]
        for line in (clipped(book.meta.title, 120), *titles):
            left -= count_tokens(line) + 1
            if left < 0:
                return "\n".join(lines)
            lines.append(line)
    return "\n".join(lines)
