"""A language model that says what a test wants it to, for all that asks through a `RoleModel`."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bookrag_fast.models.protocols import Image, ModelInfo, TokenUsage
from bookrag_fast.models.roles import USUAL, Outcome, Role, Terms
from bookrag_fast.prompts import RenderedPrompt

M = TypeVar("M", bound=BaseModel)

# What the reply is, by the prompt: text, or None for a model that fails; perhaps awaited. What it
# raises comes through.
Script = Callable[[RenderedPrompt], str | Awaitable[str | None] | None]


class ScriptedModel:
    """Implements `models.roles.RoleModel`; ``asked`` are the prompts it was given, in order. A
    stream breaks off after so many words."""

    def __init__(
        self,
        role: Role,
        script: Script,
        *,
        max_images: int = 0,
        context_tokens: int = 8192,
        breaks_after: int | None = None,
    ) -> None:
        self.role = role
        self.info = ModelInfo("scripted", "scripted", context_tokens)
        self.breaks_after = breaks_after
        self.max_images = max_images
        self.asked: list[RenderedPrompt] = []
        self.images: list[tuple[Image, ...]] = []
        self._script = script

    async def ask(
        self, prompt: RenderedPrompt, schema: type[M], terms: Terms = USUAL
    ) -> Outcome[M]:
        written = await self.write(prompt, terms)
        if written.value is None:
            return Outcome(None, written.usage, ("offline",), written.problem)
        try:
            return Outcome(schema.model_validate_json(written.value), written.usage)
        except ValidationError as error:
            return Outcome(None, written.usage, ("offline",), str(error))

    async def write(self, prompt: RenderedPrompt, terms: Terms = USUAL) -> Outcome[str]:
        self.asked.append(prompt)
        self.images.append(terms.images)
        reply = self._script(prompt)
        text = await reply if inspect.isawaitable(reply) else reply
        if text is None:
            return Outcome(None, TokenUsage(calls=1), ("offline",), "the model is down")
        return Outcome(text, TokenUsage(len(prompt.user) // 4, len(text) // 4, 1))

    def passed_over(self, problem: str) -> Outcome[Any]:
        return Outcome(None, steps=("offline",), problem=problem)

    async def stream(
        self, prompt: RenderedPrompt, terms: Terms = USUAL
    ) -> AsyncIterator[str | Outcome[str]]:
        outcome = await self.write(prompt, terms)
        words = (outcome.value or "").split(" ")
        for word in words[: self.breaks_after]:
            yield word + " "
        if self.breaks_after is not None:
            outcome = Outcome(None, outcome.usage, ("offline",), "the stream broke off")
        yield outcome
