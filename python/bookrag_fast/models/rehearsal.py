"""The models of the settings as ones that only count what they are asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import numpy as np

from bookrag_fast.config import ChatModelSettings, EmbeddingsModelSettings, Settings
from bookrag_fast.errors import ModelError
from bookrag_fast.models.blank import BlankEmbedder
from bookrag_fast.models.counting import count_tokens
from bookrag_fast.models.estimate import Estimate, EstimatingModel
from bookrag_fast.models.ledger import Spent
from bookrag_fast.models.middleware.codecs import TextCodec
from bookrag_fast.models.middleware.keys import chat_key, model_key, text_keys
from bookrag_fast.models.middleware.usage import cost
from bookrag_fast.models.protocols import (
    ChatRequest,
    Completion,
    Embedder,
    EmbedderInfo,
    FloatMatrix,
    ModelInfo,
    TokenUsage,
)
from bookrag_fast.models.replies import CheckedModel
from bookrag_fast.models.reply_cache import ReplyCache
from bookrag_fast.models.roles import ModelSet, Role, RoleModel
from bookrag_fast.models.twins import LocalEmbedder

__all__ = ["EMBED", "rehearsal_models"]

EMBED = "embed"  # what embedding is booked on, in place of a role


def rehearsal_models(settings: Settings, cache: ReplyCache | None, estimate: Estimate) -> ModelSet:
    """Models that count into an estimate what they are asked beyond what the cache has.

    No reranker: nothing is ranked when a book is made. The embedder is a `BlankEmbedder` unless the
    settings name one behind an endpoint.
    """
    roles: dict[Role, RoleModel] = {}
    for role in Role:
        chosen = getattr(settings.roles, role.value)
        if chosen is None:
            continue
        model = settings.models[chosen.model]
        assert isinstance(model, ChatModelSettings)  # as the settings were checked
        info = ModelInfo(chosen.model, model.model, model.context_tokens)
        counting = EstimatingModel(info, model, cache, estimate)
        roles[role] = CheckedModel(
            role,
            counting if cache is None else _Remembering(counting, model, cache, estimate),
            max_images=model.max_images if model.vision else 0,
            temperature=model.temperature,
        )
    paid = settings.models.get(settings.embedder)
    embedder: Embedder = BlankEmbedder()
    if isinstance(paid, EmbeddingsModelSettings):
        embedder = _CountingEmbedder(settings.embedder, paid, cache, estimate)
    return ModelSet(embedder, None, roles)


class _Remembering:
    """A model that knows the replies of the cache, so that what follows from them is asked as it
    will be."""

    def __init__(
        self, model: EstimatingModel, settings: ChatModelSettings, cache: ReplyCache, into: Estimate
    ) -> None:
        self._model = model
        self._key = model_key(settings)
        self._cache = cache
        self._estimate = into

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    async def complete(self, request: ChatRequest) -> Completion:
        return self._kept(request) or await self._model.complete(request)

    async def complete_batch(
        self, requests: Sequence[ChatRequest]
    ) -> list[Completion | ModelError]:
        kept = [self._kept(request) for request in requests]
        return [
            known or (await self._model.complete_batch([request]))[0]
            for request, known in zip(requests, kept, strict=True)
        ]

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        known = await self.complete(request)
        yield known.text
        yield known

    def _kept(self, request: ChatRequest) -> Completion | None:
        if request.fresh:
            return None
        (found,) = self._cache.get((chat_key(self._key, request),)).values() or (None,)
        value = None if found is None else TextCodec().decode(found)
        if value is None:
            return None
        self._estimate.add(request.role, Spent(cached=1))
        return Completion(value[0], TokenUsage(cached=1), value[1])


class _CountingEmbedder(LocalEmbedder):
    """Counts texts that the cache does not have, in the calls that they will go out in; not the
    call of one word by which a process learns how long vectors are."""

    def __init__(
        self,
        name: str,
        settings: EmbeddingsModelSettings,
        cache: ReplyCache | None,
        estimate: Estimate,
    ) -> None:
        self.info = EmbedderInfo(name, 1)
        self._settings = settings
        self._cache = cache
        self._estimate = estimate
        self._key = model_key(settings)
        self._seen: set[bytes] = set()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        unique = list(dict.fromkeys(texts))
        size = self._settings.batch_size
        for start in range(0, len(unique), size):
            self._count(unique[start : start + size], query)
        return np.zeros((len(texts), 1), np.float32)

    def _count(self, texts: Sequence[str], query: bool) -> None:
        keys = text_keys(self._key, texts, query=query)
        known = set(self._cache.get(keys)) if self._cache is not None else set()
        known |= self._seen if self._cache is not None else set()
        self._seen.update(keys)
        longest = self._settings.max_tokens
        new = [
            min(count_tokens(text), longest)
            for text, key in zip(texts, keys, strict=True)
            if key not in known
        ]
        usage = TokenUsage(sum(new), 0, 1) if new else TokenUsage(cached=1)
        usd = cost(usage, self._settings.price)
        self._estimate.add(
            EMBED, Spent(usage.calls, usage.cached, prompt_tokens=usage.prompt_tokens, usd=usd)
        )
