"""What a Library answers: searching its books and asking them, at once, awaited or streamed."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from bookrag_fast.config import Settings
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.library import views
from bookrag_fast.library.arguments import checked_int, checked_seconds
from bookrag_fast.library.types import AnswerEvent
from bookrag_fast.loops import LoopRunner, settled
from bookrag_fast.query.executor import Executor
from bookrag_fast.query.plan import Answer, Evidence, SearchResult

__all__ = ["Questions"]

T = TypeVar("T")

ASK_BUDGET = 4000  # evidence tokens that an answer may draw on


class Questions(ABC):
    """Base of Library, which has these and knows the books."""

    _settings: Settings
    _executor: Executor
    _runner: LoopRunner

    @abstractmethod
    def _chosen(self, books: Sequence[str] | None) -> list[BookIndex]:
        """The books of these references, opened; all for None. Blocking."""

    def search(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> list[Evidence]:
        """Evidence for a question, best first.

        Args:
            books: ids (or titles, files); None asks every book.
            budget_tokens: of all evidence texts together; a CJK character is one token, other
                text characters / 4. None takes the settings' (2,000).
            timeout_s: when an answer is wanted at the latest: models are given up in time for the
                rules. None: as long as models take.

        Raises:
            QueryError: empty question, budget out of range. UnknownBookError.
            ModelMismatchError: a book was made with another embedding model.
        """
        return self._runner.run(
            self.asearch(question, books=books, budget_tokens=budget_tokens, timeout_s=timeout_s)
        )

    async def asearch(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> list[Evidence]:
        """`search`, awaited."""
        result = await self.asearch_result(
            question, books=books, budget_tokens=budget_tokens, timeout_s=timeout_s
        )
        return list(result.evidence)

    def search_result(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> SearchResult:
        """`search` with the plan and the trace."""
        return self._runner.run(
            self.asearch_result(
                question, books=books, budget_tokens=budget_tokens, timeout_s=timeout_s
            )
        )

    async def asearch_result(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> SearchResult:
        """`search_result`, awaited."""
        if budget_tokens is None:
            budget_tokens = self._settings.retrieval.budget_tokens
        budget = checked_int(budget_tokens, "budget_tokens")
        return await self._questioned(
            self._executor.search(
                lambda: self._chosen(books),
                question,
                budget,
                timeout_s=checked_seconds(timeout_s, "timeout_s"),
            )
        )

    def ask(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int = ASK_BUDGET,
        timeout_s: float | None = None,
    ) -> Answer:
        """Answer a question with citations, plan, trace and usage; errors as for `search`.

        With language models in the settings, those plan and answer. One that fails, or whose
        budget is spent, costs the question its part: rules and the book's own sentences stand in,
        and the answer's ``notes`` say so.
        """
        return self._runner.run(
            self.aask(question, books=books, budget_tokens=budget_tokens, timeout_s=timeout_s)
        )

    async def aask(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int = ASK_BUDGET,
        timeout_s: float | None = None,
    ) -> Answer:
        """`ask`, awaited. Cancelling it ends the calls of its models."""
        budget = checked_int(budget_tokens, "budget_tokens")
        return await self._questioned(
            self._executor.ask(
                lambda: self._chosen(books),
                question,
                budget,
                timeout_s=checked_seconds(timeout_s, "timeout_s"),
            )
        )

    async def aask_stream(
        self,
        question: str,
        *,
        books: Sequence[str] | None = None,
        budget_tokens: int = ASK_BUDGET,
        timeout_s: float | None = None,
    ) -> AsyncIterator[AnswerEvent]:
        """`aask` step by step: the plan, the evidence, the answer's text in pieces, the answer.
        The pieces make up the text. A model's come as it writes them; where it turns out that
        some were no part of the answer but thoughts, the text of the answer counts. Ending the
        iteration ends the model's call."""
        budget = checked_int(budget_tokens, "budget_tokens")
        seconds = checked_seconds(timeout_s, "timeout_s")
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[AnswerEvent | None] = asyncio.Queue()  # None: the work has ended
        said = ""

        def say(event: AnswerEvent) -> None:
            with suppress(RuntimeError):  # the loop is gone: so is the reader
                loop.call_soon_threadsafe(events.put_nowait, event)

        work = asyncio.create_task(
            self._questioned(
                self._executor.ask(
                    lambda: self._chosen(books),
                    question,
                    budget,
                    timeout_s=seconds,
                    on_plan=lambda plan: say(AnswerEvent("plan", plan=plan)),
                    on_evidence=lambda found: say(AnswerEvent("evidence", evidence=tuple(found))),
                    on_text=lambda text: say(AnswerEvent("text", text=text)),
                )
            )
        )
        work.add_done_callback(lambda _: events.put_nowait(None))  # after all that it said
        try:
            while (event := await events.get()) is not None:
                said += event.text
                yield event
            answer = await work
        finally:
            work.cancel()
            await settled(work)  # nothing goes on unseen
        rest = answer.text[len(said) :] if answer.text.startswith(said) else ""
        for piece in views.pieces(rest):
            yield AnswerEvent("text", text=piece)
        yield AnswerEvent("answer", answer=answer)

    async def _questioned(self, work: Coroutine[Any, Any, T]) -> T:
        """A question's work, on the loop of the models if it waits for them."""
        return await (self._runner.arun(work) if self._executor.waits else work)
