"""Answers questions over opened books: plan, evidence, answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from time import monotonic
from typing import Any, TypeVar

from bookrag_fast.config import RetrievalSettings
from bookrag_fast.errors import BudgetError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.models.roles import ModelSet, Role
from bookrag_fast.models.twins import LocalEmbedder
from bookrag_fast.query.aggregation import aggregate
from bookrag_fast.query.answering import Part, Writer
from bookrag_fast.query.extractive import Draft, extract_answer
from bookrag_fast.query.gathering import Gathered, gather
from bookrag_fast.query.inquiry import Inquiry
from bookrag_fast.query.pictures import PictureOf
from bookrag_fast.query.plan import Answer, Evidence, QueryPlan, SearchResult
from bookrag_fast.query.question import checked
from bookrag_fast.query.tracing import Tracer
from bookrag_fast.query.work import Inline, Threads, Work, drive

__all__ = ["Executor", "OpenBooks"]

T = TypeVar("T")

OpenBooks = Callable[[], Sequence[BookIndex]]  # blocking: called on a worker thread

_LARGEST_BUDGET = 1_000_000
# Kept for the rules, of the time that a question has: a share of it, within bounds, in seconds.
_SHARE, _LEAST_S, _MOST_S = 0.15, 0.1, 2.0
_ROLES = frozenset({Role.PLAN, Role.EXTRACT, Role.ANSWER, Role.VISION})  # asked by questions


class Executor:
    """Plans and runs questions. Holds no book; safe to share between threads and loops.

    Args:
        models: what answers; a role without a model is played by rules.
        settings: of the operators.
        picture_of: a node's picture, for a model that sees; None: figures have their captions.
    """

    def __init__(
        self, models: ModelSet, settings: RetrievalSettings, picture_of: PictureOf | None = None
    ) -> None:
        self._models = models
        self._settings = settings
        self._picture_of = picture_of

    @property
    def waits(self) -> bool:
        """Whether questions wait for models. Those that do belong on the loop of the models."""
        models = self._models
        local = isinstance(models.embedder, LocalEmbedder)
        return not _ROLES.isdisjoint(models.roles) or models.reranker is not None or not local

    async def search(
        self, books: OpenBooks, question: str, budget: int, *, timeout_s: float | None = None
    ) -> SearchResult:
        """Evidence for a question, best first, within a token budget.

        Models that fail, or whose budget is spent, cost the question their part and a note, no
        more. Cancelling ends their calls. With ``timeout_s`` they are given up in time for the
        rules to answer within it.

        Raises:
            QueryError: the question is empty or too long.
            BudgetError: the budget is not between 1 and 1,000,000 tokens.
        """

        until = self._until(timeout_s)

        async def search(work: Work) -> SearchResult:
            inquiry = await self._begin(work, books, question, budget, until)
            gathered = await gather(inquiry, budget, fill=True)
            evidence = gathered.evidence
            tracer = inquiry.tracer
            usage = tracer.cost(sum(e.tokens for e in evidence))
            return SearchResult(
                tuple(evidence), gathered.plan, tracer.trace(), tuple(tracer.notes), usage
            )

        return await self._run(search)

    async def ask(
        self,
        books: OpenBooks,
        question: str,
        budget: int,
        *,
        timeout_s: float | None = None,
        on_plan: Callable[[QueryPlan], None] = lambda plan: None,
        on_evidence: Callable[[Sequence[Evidence]], None] = lambda evidence: None,
        on_text: Callable[[str], None] | None = None,
    ) -> Answer:
        """Answer a question with citations; as `search` otherwise.

        The callbacks are told of the plan and the evidence as soon as they are there, on whichever
        thread that is. With ``on_text`` a model's answer is streamed: the pieces are the beginning
        of the answer's text, perhaps none of it, unless they turn out to hold a model's thoughts.
        """

        until = self._until(timeout_s)

        async def ask(work: Work) -> Answer:
            inquiry = await self._begin(work, books, question, budget, until)
            gathered = await gather(inquiry, budget, on_plan=on_plan)
            on_evidence(gathered.evidence)
            writer = Writer(inquiry, budget, self._picture_of, on_text)
            draft = await _draft(gathered, writer)
            tracer = inquiry.tracer
            return Answer(
                draft.text,
                tuple(draft.citations),
                gathered.plan,
                tracer.trace(),
                tracer.cost(sum(e.tokens for e in gathered.evidence)),
                draft.enough,
                tuple(tracer.notes),
            )

        return await self._run(ask)

    def _until(self, timeout_s: float | None) -> float | None:
        """When models are given up, by `time.monotonic`, for an answer within so many seconds;
        None for never, and where there is nothing to wait for."""
        if timeout_s is None or not self.waits:
            return None
        return monotonic() + timeout_s - min(_MOST_S, max(_LEAST_S, _SHARE * timeout_s))

    async def _run(self, operator: Callable[[Work], Coroutine[Any, Any, T]]) -> T:
        if self.waits:
            return await operator(Threads())
        return await asyncio.to_thread(lambda: drive(operator(Inline())))

    async def _begin(
        self,
        work: Work,
        open_books: OpenBooks,
        question: str,
        budget: object,
        until: float | None,
    ) -> Inquiry:
        books = tuple(await work.run(open_books))
        if not isinstance(budget, int) or not 1 <= budget <= _LARGEST_BUDGET:
            raise BudgetError(
                f"a budget of {budget} tokens is out of range",
                f"choose between 1 and {_LARGEST_BUDGET}",
            )
        return Inquiry(
            checked(question), books, self._models, self._settings, work, Tracer(), until
        )


async def _draft(gathered: Gathered, writer: Writer) -> Draft:
    """The answer from what was gathered, by the writer's model or by the book's sentences."""
    inquiry, plan, question = writer.inquiry, gathered.plan, gathered.question
    if gathered.aggregates:
        drafts = [
            await aggregate(part, evidence, question, writer) for part, evidence in gathered.parts
        ]
        return Draft(
            ", ".join(draft.text for draft in drafts),
            [citation for draft in drafts for citation in draft.citations],
            all(draft.enough for draft in drafts),
        )

    async def offline() -> Draft:
        return await extract_answer(inquiry, question, gathered.evidence, writer.budget)

    if not writer.able or not gathered.evidence:
        return await offline()
    number_of = {(e.book, e.node_id): n for n, e in enumerate(gathered.evidence, 1)}
    asked = await inquiry.questions([sub.question for sub, _ in gathered.parts])
    parts = [
        Part(sub, [(number_of[e.book, e.node_id], e) for e in evidence])
        for sub, (_, evidence) in zip(asked, gathered.parts, strict=True)
    ]
    if len(parts) == 1:
        return await writer.answer(parts[0], offline)
    return await writer.synthesise(question, parts, plan.synthesis, offline)
