"""What models did for a book, kept with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from bookrag_fast.models.protocols import ModelInfo, TokenUsage
from bookrag_fast.models.roles import Outcome

__all__ = ["ModelUse"]


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What one model did in one role.

    ``name`` is the model's in the configuration, ``model`` what its server calls it. ``fallbacks``
    are questions that it had no usable reply to, and that the rules answered instead.
    """

    name: str
    model: str
    usage: TokenUsage = field(default_factory=TokenUsage)
    fallbacks: int = 0

    @classmethod
    def of(cls, info: ModelInfo) -> ModelUse:
        """Of a model that has done nothing yet."""
        return cls(info.name, info.model)

    def with_outcome(self, outcome: Outcome[Any]) -> ModelUse:
        fallbacks = self.fallbacks + (outcome.value is None)
        return replace(self, usage=self.usage + outcome.usage, fallbacks=fallbacks)
