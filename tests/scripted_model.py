"""A language model that says what a test wants it to, for all that asks through a `RoleModel`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bookrag_fast.models.protocols import Image, ModelInfo, TokenUsage
from bookrag_fast.models.roles import Outcome, Role
from bookrag_fast.prompts import RenderedPrompt

M = TypeVar("M", bound=BaseModel)

# What the reply is, by the prompt: text, or None for a model that fails.
Script = Callable[[RenderedPrompt], str | None]


class ScriptedModel:
    """Implements `models.roles.RoleModel`; ``asked`` are the prompts it was given, in order."""

    def __init__(self, role: Role, script: Script, *, max_images: int = 0) -> None:
        self.role = role
        self.info = ModelInfo("scripted", "scripted")
        self.max_images = max_images
        self.asked: list[RenderedPrompt] = []
        self.images: list[tuple[Image, ...]] = []
        self._script = script

    async def ask(
        self, prompt: RenderedPrompt, schema: type[M], *, images: Sequence[Image] = (), **_: Any
    ) -> Outcome[M]:
        written = await self.write(prompt, images=images)
        if written.value is None:
            return Outcome(None, written.usage, ("offline",), written.problem)
        try:
            return Outcome(schema.model_validate_json(written.value), written.usage)
        except ValidationError as error:
            return Outcome(None, written.usage, ("offline",), str(error))

    async def write(
        self, prompt: RenderedPrompt, *, images: Sequence[Image] = (), **_: Any
    ) -> Outcome[str]:
        self.asked.append(prompt)
        self.images.append(tuple(images))
        text = self._script(prompt)
        if text is None:
            return Outcome(None, TokenUsage(calls=1), ("offline",), "the model is down")
        return Outcome(text, TokenUsage(len(prompt.user) // 4, len(text) // 4, 1))

    async def stream(
        self, prompt: RenderedPrompt, *, images: Sequence[Image] = (), **_: Any
    ) -> AsyncIterator[str | Outcome[str]]:
        outcome = await self.write(prompt, images=images)
        for word in (outcome.value or "").split(" "):
            yield word + " "
        yield outcome
