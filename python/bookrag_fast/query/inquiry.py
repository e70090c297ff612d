"""One question under way: what its operators share, and how they ask models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel

from bookrag_fast.config import RetrievalSettings
from bookrag_fast.errors import ModelError, ModelReplyError, ModelTimeoutError
from bookrag_fast.index.book_index import BookIndex, count_tokens
from bookrag_fast.models.booking import booked_on
from bookrag_fast.models.interactive import interactively
from bookrag_fast.models.protocols import FloatMatrix, Image
from bookrag_fast.models.roles import ModelSet, Outcome, Role, RoleModel, Terms
from bookrag_fast.models.twins import LocalEmbedder
from bookrag_fast.prompts import RenderedPrompt, language_of, load_prompt
from bookrag_fast.query.model_text import enclosed, told
from bookrag_fast.query.question import Question, worded
from bookrag_fast.query.tracing import Tracer
from bookrag_fast.query.work import Work

__all__ = ["Call", "Inquiry"]

M = TypeVar("M", bound=BaseModel)
V = TypeVar("V")

# Tokens are estimated, and other tokenizers cut finer: so much of a context is relied on.
_SURE_SHARE = 0.8
_NAMES = {
    Role.PLAN: "planning model",
    Role.EXTRACT: "extracting model",
    Role.ANSWER: "answering model",
    Role.VISION: "model that sees",
}
_REPLY_SHARE = 4  # a reply may take one part in so many of a context


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked of a model.

    ``data`` and ``values`` fill the prompt: data as text that is only to be read, between marks of
    its name; values as they are. ``instead`` says what is done when the model fails ("planned by
    rules"), for the reader of the answer. ``max_tokens`` bounds the reply, which usually takes
    ``expected_tokens``; of a small context a reply has a quarter.
    """

    role: Role
    prompt: str
    data: Mapping[str, str]
    instead: str
    max_tokens: int
    expected_tokens: int
    values: Mapping[str, object] = field(default_factory=dict)
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question's books, models and trace. ``text`` is the question as it was asked.

    ``until`` is when models are given up (`time.monotonic`), so that the rules have time left to
    answer; None: never.
    """

    text: str
    books: tuple[BookIndex, ...]
    models: ModelSet
    settings: RetrievalSettings
    work: Work
    tracer: Tracer
    until: float | None = None
    _asked: dict[str, Question] = field(default_factory=dict)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)  # what is on its way is waited for
    _silent: set[str] = field(default_factory=set)  # models that will not be waited for again

    @property
    def book(self) -> str:
        """The book that the calls are booked on; "" for several."""
        return self.books[0].meta.book_id if len(self.books) == 1 else ""

    def by_id(self) -> dict[str, BookIndex]:
        return {book.meta.book_id: book for book in self.books}

    async def questions(self, texts: Sequence[str]) -> list[Question]:
        """Checked texts as questions, with their terms and vectors; each is embedded once."""
        async with self._asking:
            new = [text for text in dict.fromkeys(texts) if text not in self._asked]
            if new:
                vectors = await self.embed(new, query=True)
                for text, vector in zip(new, vectors, strict=True):
                    self._asked[text] = Question(text, worded(text), vector)
        return [self._asked[text] for text in texts]

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        """Unit rows. Words alone carry a question whose embedder fails: its rows are zeros."""
        dimension = self.books[0].meta.embedder.dimension
        try:
            with booked_on(self.book):
                vectors = self.work.embed(self.models.embedder, texts, query=query)
                local = isinstance(self.models.embedder, LocalEmbedder)  # part of the rules
                made = await (vectors if local else self.in_time(vectors))
            if made.vectors.shape[1] != dimension:  # it did not answer when the books were opened
                raise ModelReplyError(
                    f"it gives {made.vectors.shape[1]} dimensions, the books have {dimension}"
                )
        except ModelError as error:
            self.tracer.say(
                f"the embedding model failed ({told(error.message)}): ranked by words alone"
            )
            return np.zeros((len(texts), dimension), dtype=np.float32)
        self.tracer.usage += made.usage
        return made.vectors

    async def ask(self, call: Call, schema: type[M], note: dict[str, Any]) -> M | None:
        """A model's reply by a schema, or None where the offline answer is to be taken: there is
        no model, the prompt does not fit, the budget is spent, or the model failed. All but the
        first are told to the reader and noted in the operator's trace."""
        model = self.models.role(call.role)
        prompt = None if model is None else self._prompt(model, call, note)
        if model is None or prompt is None:
            return None
        try:
            outcome = await self.in_time(model.ask(prompt, schema, self._terms(model, call)))
        except ModelError as error:  # the budget is spent, or the time
            outcome = model.passed_over(error.message)
        return self._value(call, outcome, note)

    async def stream(self, call: Call, note: dict[str, Any]) -> AsyncIterator[str | Outcome[str]]:
        """A model's prose in pieces, then its outcome, whose text counts; without a value where
        the model failed, as in `ask`."""
        model = self.models.role(call.role)
        prompt = None if model is None else self._prompt(model, call, note)
        if model is None or prompt is None:
            yield Outcome(None)
            return
        outcome: Outcome[str] = Outcome(None, problem="it ended without a word")
        pieces = model.stream(prompt, self._terms(model, call))
        try:
            while True:
                piece = await self.in_time(anext(pieces))
                if isinstance(piece, str):
                    yield piece
                else:
                    outcome = piece
        except StopAsyncIteration:
            pass
        except ModelError as error:
            outcome = model.passed_over(error.message)
        self._value(call, outcome, note)
        yield outcome

    async def in_time(self, reply: Awaitable[V]) -> V:
        """A model's reply, if it comes while the question has time. ModelTimeoutError else."""
        with interactively():
            if self.until is None:
                return await reply
            try:
                return await asyncio.wait_for(reply, max(0.0, self.until - monotonic()))
            except asyncio.TimeoutError:
                raise ModelTimeoutError("the question had no time left for it") from None

    def _terms(self, model: RoleModel, call: Call) -> Terms:
        most = _reply_tokens(model, call.max_tokens)
        return Terms(self.book, call.images, most, call.expected_tokens)

    def room(self, role: Role, used: str, max_tokens: int) -> int:
        """Tokens of a role's context that a prompt may still take, beside a text and the reply."""
        model = self.models.role(role)
        if model is None:
            return 0
        left = model.info.context_tokens - _reply_tokens(model, max_tokens)
        return int(_SURE_SHARE * left) - count_tokens(used)

    def _prompt(self, model: RoleModel, call: Call, note: dict[str, Any]) -> RenderedPrompt | None:
        if model.info.name in self._silent:
            self._value(call, model.passed_over("it was not to be had just now"), note)
            return None
        data = {name: enclosed(name, text) for name, text in call.data.items()}
        prompt = load_prompt(call.prompt, language_of(self.text)).render({**data, **call.values})
        if self.room(call.role, prompt.system + prompt.user, call.max_tokens) >= 0:
            return prompt
        problem = f"its context of {model.info.context_tokens} tokens is too small"
        self._value(call, model.passed_over(problem), note)
        return None

    def _value(self, call: Call, outcome: Outcome[V], note: dict[str, Any]) -> V | None:
        self.tracer.usage += outcome.usage
        if outcome.silent and (model := self.models.role(call.role)) is not None:
            self._silent.add(model.info.name)
        note["by"] = "rules" if outcome.value is None else "model"
        note["prompt"] = call.prompt
        if outcome.steps:
            note["steps"] = list(outcome.steps)
        note["tokens"] = {
            "prompt": outcome.usage.prompt_tokens,
            "completion": outcome.usage.completion_tokens,
        }
        if outcome.value is None:
            note["problem"] = told(outcome.problem)
            self.tracer.say(f"the {_NAMES[call.role]} failed ({note['problem']}): {call.instead}")
        return outcome.value


def _reply_tokens(model: RoleModel, most: int) -> int:
    return min(most, model.info.context_tokens // _REPLY_SHARE)
