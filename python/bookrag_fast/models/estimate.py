"""What work would cost, from a run in which no model is called."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence

from bookrag_fast.config.models import EndpointSettings
from bookrag_fast.errors import ModelError
from bookrag_fast.models.counting import prompt_tokens
from bookrag_fast.models.ledger import Spent
from bookrag_fast.models.middleware.guarded import expected_tokens
from bookrag_fast.models.middleware.keys import chat_key, model_key
from bookrag_fast.models.middleware.usage import cost
from bookrag_fast.models.protocols import ChatRequest, Completion, ModelInfo, TokenUsage
from bookrag_fast.models.reply_cache import ReplyCache

__all__ = ["Estimate", "EstimatingModel"]


class Estimate:
    """Sums by role, of all models that count into it. Safe to share between threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._roles: dict[str, Spent] = {}
        self._asked: set[bytes] = set()

    def add(self, role: str, spent: Spent) -> None:
        with self._guard:
            self._roles[role] = self._roles.get(role, Spent()) + spent

    def first(self, key: bytes) -> bool:
        """Whether a call is the first of its kind: the next would come from the cache."""
        with self._guard:
            known = key in self._asked
            self._asked.add(key)
            return not known

    def by_role(self) -> dict[str, Spent]:
        with self._guard:
            return dict(self._roles)

    def total(self) -> Spent:
        return sum(self.by_role().values(), Spent())


class EstimatingModel:
    """A `LanguageModel` that counts what it is asked and never answers: every call ends in a
    ModelError, so that whoever asks goes on with the offline answer.

    A call whose reply ``cache`` has counts as cached. Tokens of prompts are counted by characters,
    those of replies are what the request expects, within what they may take. What calls would have
    been made of replies is not known and not counted.
    """

    def __init__(
        self,
        info: ModelInfo,
        settings: EndpointSettings,
        cache: ReplyCache | None,
        estimate: Estimate,
    ) -> None:
        self._info = info
        self._settings = settings
        self._cache = cache
        self._estimate = estimate
        self._key = model_key(settings)

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def complete(self, request: ChatRequest) -> Completion:
        raise self._counted(request)

    async def complete_batch(
        self, requests: Sequence[ChatRequest]
    ) -> list[Completion | ModelError]:
        return [self._counted(request) for request in requests]

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        yield await self.complete(request)

    def _counted(self, request: ChatRequest) -> ModelError:
        self._estimate.add(request.role, self._expected(request))
        return ModelError("estimated only", "run without --dry-run to have it done")

    def _expected(self, request: ChatRequest) -> Spent:
        if self._cache is not None and not request.fresh:
            key = chat_key(self._key, request)
            if self._cache.get((key,)) or not self._estimate.first(key):
                return Spent(cached=1)
        usage = TokenUsage(
            prompt_tokens(request.messages), expected_tokens(request, self._settings), 1
        )
        return Spent(
            calls=1,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            usd=cost(usage, self._settings.price),
        )
