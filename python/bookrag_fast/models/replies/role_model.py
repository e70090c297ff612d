"""A language model in a role: what it says becomes what was asked for, or an offline answer is
due."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from bookrag_fast.errors import (
    ModelError,
    ModelReplyError,
    ModelTimeoutError,
    ModelUnavailableError,
    SpendingLimitError,
)
from bookrag_fast.models.protocols import (
    ChatRequest,
    Completion,
    LanguageModel,
    Message,
    ModelInfo,
    TokenUsage,
)
from bookrag_fast.models.replies.cleaning import ThoughtFilter, prose
from bookrag_fast.models.replies.reading import Reading, json_schema, read_reply
from bookrag_fast.models.roles import USUAL, Outcome, Role, Terms
from bookrag_fast.prompts import Language, RenderedPrompt, load_prompt

__all__ = ["CheckedModel"]

M = TypeVar("M", bound=BaseModel)

_SILENT = (ModelTimeoutError, ModelUnavailableError)

_SHOWN = 4000  # characters of its reply that a model is shown again


@dataclass(slots=True)
class _Account:
    """What one question took so far."""

    tell: Callable[[str], None]
    usage: TokenUsage = field(default_factory=TokenUsage)
    steps: list[str] = field(default_factory=list)

    def step(self, *steps: str) -> None:
        for step in steps:
            self.steps.append(step)
            self.tell(step)


class CheckedModel:
    """Implements `roles.RoleModel` over any language model.

    Args:
        role: what it is asked for; limits and the ledger go by it.
        model: usually one behind the middleware.
        max_images: most images of one question; 0 for a model that does not see.
        temperature: of every call.
        on_step: called with the role and each step that a reply took: "cleaned", "repaired",
            "asked again", "cut short", "images dropped", "offline".
    """

    def __init__(
        self,
        role: Role,
        model: LanguageModel,
        *,
        max_images: int = 0,
        temperature: float = 0.0,
        on_step: Callable[[Role, str], None] = lambda role, step: None,
    ) -> None:
        self._role = role
        self._model = model
        self._max_images = max_images
        self._temperature = temperature
        self._on_step = on_step

    @property
    def role(self) -> Role:
        return self._role

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    @property
    def max_images(self) -> int:
        return self._max_images

    async def ask(
        self,
        prompt: RenderedPrompt,
        schema: type[M],
        terms: Terms = USUAL,
    ) -> Outcome[M]:
        account = self._account()
        request = replace(
            self._request(account, prompt, terms),
            schema=json_schema(schema),
        )
        try:
            completion = await self._complete(request, account)
            reading = _read(completion, schema)
            account.step(*reading.steps)
            if reading.value is None:
                account.step("asked again")
                again = _corrected(request, completion, reading.problem)
                reading = _read(await self._complete(again, account), schema)
                account.step(*reading.steps)
        except SpendingLimitError:
            raise
        except ModelError as error:
            return _failed(account, error)
        if reading.value is None:
            return _offline(account, reading.problem)
        return Outcome(reading.value, account.usage, tuple(account.steps))

    async def write(
        self,
        prompt: RenderedPrompt,
        terms: Terms = USUAL,
    ) -> Outcome[str]:
        account = self._account()
        request = self._request(account, prompt, terms)
        try:
            return await self._checked(request, await self._complete(request, account), account)
        except SpendingLimitError:
            raise
        except ModelError as error:
            return _failed(account, error)

    async def stream(
        self,
        prompt: RenderedPrompt,
        terms: Terms = USUAL,
    ) -> AsyncIterator[str | Outcome[str]]:
        """The outcome's text is what counts: thoughts whose opening tag a server has swallowed
        are in the pieces, not in there."""
        account = self._account()
        request = self._request(account, prompt, terms)
        thoughts, shown = ThoughtFilter(), ""
        parts = self._model.stream(request)
        try:
            completion: Completion | None = None
            async for part in parts:
                if isinstance(part, Completion):
                    completion = part
                elif piece := thoughts.feed(part):
                    shown += piece
                    yield piece
            if completion is None:
                raise ModelReplyError(
                    f"model {self.info.name!r} ended a stream without a completion"
                )
            account.usage += completion.usage
            outcome = await self._checked(request, completion, account)
        except SpendingLimitError:
            raise
        except ModelError as error:
            outcome = _failed(account, error)
        finally:
            close = getattr(parts, "aclose", None)
            if close is not None:
                await close()
        # What was held back to the end, or came of asking again.
        if outcome.value and not shown.strip():
            yield outcome.value
        yield outcome

    def passed_over(self, problem: str) -> Outcome[Any]:
        return _offline(self._account(), problem)

    # --- calls ----------------------------------------------------------------------------------

    def _account(self) -> _Account:
        return _Account(lambda step: self._on_step(self._role, step))

    def _request(
        self,
        account: _Account,
        prompt: RenderedPrompt,
        terms: Terms,
    ) -> ChatRequest:
        if len(terms.images) > self._max_images:
            account.step("images dropped")
        user = Message("user", prompt.user, terms.images[: self._max_images])
        system = (Message("system", prompt.system),) if prompt.system else ()
        return ChatRequest(
            (*system, user),
            role=self._role.value,
            prompt=prompt.id,
            book=terms.book,
            max_tokens=terms.max_tokens,
            temperature=self._temperature,
            expected_tokens=terms.expected_tokens,
        )

    async def _complete(self, request: ChatRequest, account: _Account) -> Completion:
        completion = await self._model.complete(request)
        account.usage += completion.usage
        return completion

    async def _checked(
        self, request: ChatRequest, completion: Completion, account: _Account
    ) -> Outcome[str]:
        """A reply in prose; one that is thoughts alone is asked for once more."""
        text = prose(completion.text)
        if text != completion.text.strip():
            account.step("cleaned")
        if not text:
            account.step("asked again")
            completion = await self._complete(_urged(request), account)
            text = prose(completion.text)
        if completion.finish == "length":
            account.step("cut short")
        if not text:
            return _offline(account, _empty(completion))
        return Outcome(text, account.usage, tuple(account.steps))


def _read(completion: Completion, schema: type[M]) -> Reading[M]:
    cut_short = completion.finish == "length"
    reading = read_reply(completion.text, schema, cut_short=cut_short)
    if reading.value is None and not prose(completion.text):
        return Reading(None, reading.steps, _empty(completion))
    if reading.value is None and cut_short:
        problem = f"the reply was cut off at its most tokens, and {reading.problem}"
        return Reading(None, reading.steps, problem)
    return reading


def _empty(completion: Completion) -> str:
    why = "" if completion.finish == "stop" else f", and ended for {completion.finish!r}"
    return f"the reply is empty but for thoughts{why}"


def _failed(account: _Account, error: ModelError) -> Outcome[M]:
    """The message with its hint, fit to stand in brackets."""
    why = f"{error.message}; {error.hint}" if error.hint else error.message
    return _offline(account, why, silent=isinstance(error, _SILENT))


def _offline(account: _Account, problem: str, *, silent: bool = False) -> Outcome[M]:
    account.step("offline")
    return Outcome(None, account.usage, tuple(account.steps), problem, silent)


# --- asking again ---------------------------------------------------------------------------------


def _corrected(request: ChatRequest, completion: Completion, problem: str) -> ChatRequest:
    """The question once more, with the reply and what is wrong with it."""
    said = prose(completion.text)[:_SHOWN]
    if not said:
        return _urged(request)
    prompt = load_prompt("repair", _language(request))
    schema = json.dumps(request.schema, ensure_ascii=False)
    rendered = prompt.render({"problem": problem, "schema": schema})
    return replace(
        request,
        messages=(*request.messages, Message("assistant", said), Message("user", rendered.user)),
        prompt=f"{request.prompt}+{prompt.id}",
    )


def _urged(request: ChatRequest) -> ChatRequest:
    """The question once more, with the wish for a reply without thoughts. In the same message:
    not every model takes two in a row."""
    prompt = load_prompt("urge", _language(request))
    *before, last = request.messages
    urged = replace(last, text=f"{last.text}\n\n{prompt.user}")
    return replace(request, messages=(*before, urged), prompt=f"{request.prompt}+{prompt.id}")


def _language(request: ChatRequest) -> Language:
    return "ja" if request.prompt.endswith("/ja") else "en"
