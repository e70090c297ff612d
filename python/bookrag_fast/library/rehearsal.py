"""The models of a shelf as ones that count, and what they counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bookrag_fast.config import Settings
from bookrag_fast.index.model_use import EMBEDDER, ModelUse
from bookrag_fast.models.create import CACHE_FILE
from bookrag_fast.models.estimate import Estimate
from bookrag_fast.models.protocols import TokenUsage
from bookrag_fast.models.rehearsal import rehearsal_models
from bookrag_fast.models.reply_cache import ReplyCache

__all__ = ["Rehearsal"]


class Rehearsal:
    """Models that count what they are asked beyond what the shelf's cache has. Close it."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._settings = settings
        self._counted = Estimate()
        cache = folder / CACHE_FILE
        wanted = settings.cache.enabled and cache.is_file()  # looking must not make one
        self._cache = ReplyCache(cache, marking=False) if wanted else None
        self.models = rehearsal_models(settings, self._cache, self._counted)

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()

    def uses(self) -> Iterator[ModelUse]:
        """What was counted, by role."""
        for role, spent in self._counted.by_role().items():
            name = self._name(role)
            usage = TokenUsage(
                spent.prompt_tokens, spent.completion_tokens, spent.calls, spent.cached
            )
            yield ModelUse(role, name, self._served(name), usage, spent.usd)

    def _name(self, role: str) -> str:
        """Of the role's model in the configuration."""
        if role == EMBEDDER:
            return self._settings.embedder
        return str(getattr(self._settings.roles, role).model)

    def _served(self, name: str) -> str:
        return str(getattr(self._settings.models[name], "model", name))
