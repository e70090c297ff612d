"""What language models are asked to do, and what the engine asks through: a model in a role.

A model in a role never fails the work that it serves: whatever goes wrong comes back as an
`Outcome` without a value, for which the caller puts its offline answer. Only a spent budget and a
cancellation pass through.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from bookrag_fast.models.protocols import Embedder, Image, ModelInfo, Reranker, TokenUsage
from bookrag_fast.prompts import RenderedPrompt

__all__ = ["USUAL", "Closer", "ModelSet", "Outcome", "Role", "RoleModel", "Terms"]

_log = logging.getLogger(__name__)
_CLOSING_S = 5.0  # for one connection or file

# Releases what a model holds.
Closer = Callable[[], Awaitable[None]]

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Role(str, Enum):
    SECTIONS = "sections"
    EXTRACT = "extract"
    RESOLVE = "resolve"
    PLAN = "plan"
    ANSWER = "answer"
    VISION = "vision"
    SUMMARISE = "summarise"


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What became of a question to a model.

    ``value`` is None when no reply could be used, and ``problem`` says why, in words. ``steps``
    are what it took: "cleaned", "repaired", "asked again", "offline". ``silent``: there was no
    reply at all, and asking for something else would be no use now.
    """

    value: T | None
    usage: TokenUsage = field(default_factory=TokenUsage)
    steps: tuple[str, ...] = ()
    problem: str = ""
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a model is asked.

    Args:
        book: whom for, in the ledger and in budgets.
        images: what it is shown, if it sees.
        max_tokens: the most that a reply may take.
        expected_tokens: what a usual one takes, for estimates; 0: half of the most.
    """

    book: str = ""
    images: tuple[Image, ...] = ()
    max_tokens: int = 1024
    expected_tokens: int = 0


USUAL = Terms()


class RoleModel(Protocol):
    """A language model in a role. Safe to share; calls may run at once on any number of loops.

    Every method raises SpendingLimitError when the budget is spent, and no other ModelError.
    """

    @property
    def role(self) -> Role: ...

    @property
    def info(self) -> ModelInfo: ...

    @property
    def max_images(self) -> int:
        """Most images of one question; 0 for a model that does not see."""
        ...

    async def ask(
        self,
        prompt: RenderedPrompt,
        schema: type[M],
        terms: Terms = USUAL,
    ) -> Outcome[M]:
        """A reply that follows a schema."""
        ...

    async def write(
        self,
        prompt: RenderedPrompt,
        terms: Terms = USUAL,
    ) -> Outcome[str]:
        """A reply in prose, without what the model thought before it."""
        ...

    def stream(
        self,
        prompt: RenderedPrompt,
        terms: Terms = USUAL,
    ) -> AsyncIterator[str | Outcome[str]]:
        """`write`, in pieces as they come, then the outcome with the whole text."""
        ...

    def passed_over(self, problem: str) -> Outcome[Any]:
        """The outcome of a question that was not put to it, or given up, for this problem. It
        counts as one that was answered offline, as those do that it failed at."""
        ...


@dataclass(frozen=True, slots=True)
class ModelSet:
    """The models of a library: an embedder, perhaps a reranker, and one for each role that is not
    played by rules. ``closers`` release what they hold, in this order."""

    embedder: Embedder
    reranker: Reranker | None = None
    roles: Mapping[Role, RoleModel] = field(default_factory=dict)
    closers: tuple[Closer, ...] = field(default=(), repr=False)

    def role(self, role: Role) -> RoleModel | None:
        return self.roles.get(role)

    async def aclose(self) -> None:
        """Close connections and files, on the loop that calls ran on. What does not close is told
        in the log, and keeps nothing else from it."""
        for close in self.closers:
            try:
                await asyncio.wait_for(close(), _CLOSING_S)
            except Exception as error:  # its text may hold an address or more
                _log.warning("what a model holds was not closed: %s", type(error).__name__)
