"""Looking up a question while a model plans it.

What is looked up for a question does not depend on its plan: of a single-hop question it is all
there is, and of a multi-hop one it is wanted beside the sub-questions. So it is begun together with
the plan, and costs no more than if it were begun after it. Only of a global question nothing is
looked up; one that seems to be global is planned first.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import TracebackType

from bookrag_fast.query.inquiry import Inquiry
from bookrag_fast.query.model_planner import asks_model
from bookrag_fast.query.planner import seems_global
from bookrag_fast.query.question import Question
from bookrag_fast.query.retrieve import Looked, look_up
from bookrag_fast.query.tracing import Tracer

__all__ = ["LookAhead"]


class LookAhead:
    """Begins when it is entered, if a model is going to plan the question; what nobody has asked
    for by its end is ended.

    Args:
        wanted: the question is looked up whatever its plan.
    """

    def __init__(self, inquiry: Inquiry, *, wanted: bool) -> None:
        self._inquiry = inquiry
        # Traced apart: it stands in the trace where it was asked for, or as unused.
        self._apart = replace(inquiry, tracer=Tracer())
        self._wanted = wanted
        self._begun: asyncio.Task[Looked] | None = None

    async def __aenter__(self) -> LookAhead:
        inquiry = self._inquiry
        # Where a model is asked there is a loop.
        if asks_model(inquiry) and (self._wanted or not seems_global(inquiry.text)):
            self._begun = asyncio.ensure_future(self._look())
        return self

    async def look_up(self, question: Question) -> Looked:
        """As `retrieve.look_up`, for the whole question or a part of it."""
        if self._begun is None or question.text != self._inquiry.text:
            return await look_up(self._inquiry, question)
        begun, self._begun = self._begun, None
        looked = await begun  # which a cancellation reaches
        self._inquiry.tracer.join(self._apart.tracer)
        return looked

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._begun is None:
            return
        self._begun.cancel()
        await asyncio.gather(self._begun, return_exceptions=True)
        unused = self._apart.tracer
        unused.notes.clear()  # no answer rests on it
        for operator in unused.operators:
            operator.detail["unused"] = True
        self._inquiry.tracer.join(unused)

    async def _look(self) -> Looked:
        (question,) = await self._inquiry.questions([self._inquiry.text])
        return await look_up(self._apart, question)
