"""What models did for a book, kept with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from bookrag_fast.models.protocols import TokenUsage
from bookrag_fast.models.roles import Outcome, RoleModel

__all__ = ["EMBEDDER", "ModelUse"]

EMBEDDER = "embed"  # in place of a role


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What one model did in one role.

    ``name`` is the model's in the configuration, ``model`` what its server calls it. ``usd`` is by
    the prices of the configuration. ``fallbacks`` are questions that it had no usable reply to,
    and that the rules answered instead.
    """

    role: str
    name: str
    model: str
    usage: TokenUsage = field(default_factory=TokenUsage)
    usd: float = 0.0
    fallbacks: int = 0

    @classmethod
    def of(cls, model: RoleModel) -> ModelUse:
        """Of a model that has done nothing yet."""
        return cls(model.role.value, model.info.name, model.info.model)

    def with_outcome(self, outcome: Outcome[Any]) -> ModelUse:
        fallbacks = self.fallbacks + (outcome.value is None)
        return replace(self, usage=self.usage + outcome.usage, fallbacks=fallbacks)

    def to_json(self) -> dict[str, Any]:
        usage = self.usage
        return {
            "role": self.role,
            "name": self.name,
            "model": self.model,
            "calls": usage.calls,
            "cached": usage.cached,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "usd": round(self.usd, 6),
            "fallbacks": self.fallbacks,
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> ModelUse:
        """As `to_json` wrote it; KeyError or TypeError for what it did not write."""
        counts = ("prompt_tokens", "completion_tokens", "calls", "cached")
        return cls(
            found["role"],
            found["name"],
            found["model"],
            TokenUsage(*(int(found[name]) for name in counts)),
            float(found["usd"]),
            int(found["fallbacks"]),
        )
