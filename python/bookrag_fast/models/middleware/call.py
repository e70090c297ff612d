"""A call of any model on its way down the stack, and the reply on its way up."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal, Protocol

from bookrag_fast.models.interactive import is_interactive
from bookrag_fast.models.protocols import TokenUsage

__all__ = ["Call", "Next", "Place", "Reply", "Sink", "Stage"]


class Sink(Protocol):
    """Where the pieces of a streamed reply go."""

    @property
    def begun(self) -> bool:
        """Whether a piece was put, so that the call cannot be made again."""
        ...

    def put(self, piece: str) -> None: ...


class Place(Protocol):
    """A call's place among those that run at once."""

    def leave(self) -> None:
        """Let another one in for now."""
        ...

    async def enter(self) -> None:
        """Wait for a place again, before all calls that came later."""
        ...


@dataclass(slots=True)
class Call:
    """What is asked, in items that are cached one by one: the request of a chat, the texts of an
    embedding, a question with its texts. Used for one passage.

    ``keys`` are of the items, or empty when nothing is to be kept; ``prompt_tokens`` are the
    items' estimates, ``completion_tokens`` that of the whole reply. ``fresh`` asks anew even where
    a reply is kept. ``sink`` takes the pieces of a streamed reply. ``interactive``: somebody waits,
    and would rather have an answer without the model than wait for its server to come back.
    """

    kind: Literal["chat", "embed", "rerank"]
    items: tuple[Any, ...]
    keys: tuple[bytes, ...] = ()
    role: str = ""
    book: str = ""
    prompt_tokens: tuple[int, ...] = ()
    completion_tokens: int = 0
    fresh: bool = False
    sink: Sink | None = None
    interactive: bool = field(default_factory=is_interactive)
    # Lines are served by it, so that a call which comes back to one is before all later ones.
    came: int = field(default_factory=itertools.count().__next__, compare=False)
    # What stages tell the ones below, as the call passes.
    place: Place | None = field(default=None, compare=False)
    deadline: float = inf  # by the loop's clock
    taken_tokens: int = 0  # from the rate limit, over all attempts
    pace: int = 0  # which of the rate limit's it was let go at

    @property
    def tokens(self) -> int:
        """The estimate of all it takes."""
        return sum(self.prompt_tokens) + self.completion_tokens

    @property
    def expected(self) -> TokenUsage:
        return TokenUsage(sum(self.prompt_tokens), self.completion_tokens, calls=1)

    def part(self, which: list[int]) -> Call:
        """The call with some of its items only."""
        if len(which) == len(self.items):
            return self
        return replace(
            self,
            items=tuple(self.items[i] for i in which),
            keys=tuple(self.keys[i] for i in which),
            prompt_tokens=tuple(self.prompt_tokens[i] for i in which),
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """``values`` are one for each item of the call."""

    values: list[Any]
    usage: TokenUsage


Next = Callable[[Call], Awaitable[Reply]]


class Stage(Protocol):
    """A part of the stack. ``ahead`` is all that lies below it."""

    async def __call__(self, call: Call, ahead: Next) -> Reply: ...
