"""Models from settings. What no setting names is neither made nor imported."""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from bookrag_fast.config import (
    ChatModelSettings,
    EmbeddingsModelSettings,
    EndpointSettings,
    OnnxEmbedderSettings,
    OnnxRerankerSettings,
    RerankModelSettings,
    Settings,
)
from bookrag_fast.config.prices import unbounded
from bookrag_fast.config.references import check_references
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models import create_embedder
from bookrag_fast.models.protocols import Embedder, Reranker
from bookrag_fast.models.roles import Closer, ModelSet, Role, RoleModel

if TYPE_CHECKING:
    from bookrag_fast.models.middleware.guarded import GuardedLanguageModel
    from bookrag_fast.models.middleware.stack import Services

__all__ = ["CACHE_FILE", "LEDGER_FILE", "create_models"]

_log = logging.getLogger(__name__)

CACHE_FILE = "replies.sqlite"
LEDGER_FILE = "usage.sqlite"


def create_models(
    settings: Settings, *, folder: Path, runner: LoopRunner, embedder: Embedder | None = None
) -> ModelSet:
    """The models that the settings name.

    Args:
        folder: where the cache of replies and the ledger lie; made when they are needed.
        runner: the loop that calls run on.
        embedder: instead of the one that the settings name.

    Raises:
        ConfigError: a name that is no model's, or a model's key or address that is none.
        ModelError: a local model does not load.
    """
    if embedder is not None:
        settings = settings.model_copy(update={"embedder": "wordllama"})
    check_references(settings)
    if gaps := [f"{problem} ({remedy})" for problem, remedy in unbounded(settings)]:
        _log.warning("%s", "; ".join(gaps))
    maker = _Maker(settings, folder, runner)
    try:
        return ModelSet(
            embedder if embedder is not None else maker.embedder(settings.embedder),
            maker.reranker(settings.reranker) if settings.reranker else None,
            maker.roles(),
            tuple(maker.closers),
        )
    except BaseException:
        maker.abandon()
        raise


class _Maker:
    """Makes each model once, and notes what is to be closed, connections before files."""

    def __init__(self, settings: Settings, folder: Path, runner: LoopRunner) -> None:
        self._settings = settings
        self._folder = folder
        self._runner = runner
        self._chats: dict[str, GuardedLanguageModel] = {}
        self._made_services: Services | None = None
        self._endpoints: list[Closer] = []

    @property
    def closers(self) -> list[Closer]:
        services = self._made_services
        files = [] if services is None else [partial(asyncio.to_thread, services.close)]
        return [*self._endpoints, *files]

    def abandon(self) -> None:
        """Nothing was called yet: only files are open."""
        if self._made_services is not None:
            self._made_services.close()

    @cached_property
    def services(self) -> Services:
        """Made with the first endpoint: without one there are no files."""
        from bookrag_fast.models.ledger import UsageLedger
        from bookrag_fast.models.middleware.budget import Budget
        from bookrag_fast.models.middleware.stack import Services
        from bookrag_fast.models.reply_cache import ReplyCache

        kept = self._settings.cache
        ledger = UsageLedger(self._folder / LEDGER_FILE)
        self._made_services = Services(
            self._runner,
            ledger,
            ReplyCache(self._folder / CACHE_FILE, kept.max_mb) if kept.enabled else None,
            Budget(self._settings.budget, ledger),
        )
        return self._made_services

    def embedder(self, spec: str) -> Embedder:
        model = self._settings.models.get(spec)
        if isinstance(model, EmbeddingsModelSettings):
            from bookrag_fast.models.endpoints import EmbeddingsEndpoint
            from bookrag_fast.models.middleware.guarded import GuardedEmbedder
            from bookrag_fast.models.middleware.usage import Usage

            usage = Usage(spec, model.price, self.services.ledger)
            endpoint = EmbeddingsEndpoint(
                spec, model, self._runner, on_look=lambda took: usage.book(took, role="embed")
            )
            self._endpoints.append(endpoint.aclose)
            return GuardedEmbedder(endpoint, model, self.services, name=spec)
        if isinstance(model, OnnxEmbedderSettings):
            from bookrag_fast.models.onnx import open_embedder

            return open_embedder(model)
        return create_embedder(spec)

    def reranker(self, spec: str) -> Reranker:
        model = self._settings.models.get(spec)
        if isinstance(model, RerankModelSettings):
            from bookrag_fast.models.endpoints import RerankEndpoint
            from bookrag_fast.models.middleware.guarded import GuardedReranker

            endpoint = RerankEndpoint(spec, model, self._runner)
            self._endpoints.append(endpoint.aclose)
            return GuardedReranker(endpoint, model, self.services)
        from bookrag_fast.models.onnx import open_reranker

        if not isinstance(model, OnnxRerankerSettings):
            folder = spec.strip().removeprefix("onnx:")
            model = OnnxRerankerSettings(kind="onnx-reranker", source=folder)
        return open_reranker(model)

    def roles(self) -> dict[Role, RoleModel]:
        return {
            role: self._checked(role, chosen.model)
            for role in Role
            if (chosen := getattr(self._settings.roles, role.value)) is not None
        }

    def _checked(self, role: Role, name: str) -> RoleModel:
        from bookrag_fast.models.replies import CheckedModel

        model = self._settings.models[name]
        assert isinstance(model, ChatModelSettings)
        ledger = self.services.ledger
        return CheckedModel(
            role,
            self._chat(name, model),
            max_images=model.max_images if model.vision else 0,
            temperature=model.temperature,
            on_step=lambda role, step: ledger.step(role.value, step),
        )

    def _chat(self, name: str, model: ChatModelSettings) -> GuardedLanguageModel:
        """One for all roles, so that its limits hold over them together."""
        from bookrag_fast.models.endpoints import ChatEndpoint
        from bookrag_fast.models.middleware.guarded import GuardedLanguageModel, GuardedVisionModel

        if name in self._chats:
            return self._chats[name]
        endpoint = ChatEndpoint(name, model)
        self._endpoints.append(endpoint.aclose)
        guarded = GuardedVisionModel if model.vision else GuardedLanguageModel
        self._chats[name] = guarded(
            endpoint, model, self.services, role_limits=self._role_limits(name, model)
        )
        return self._chats[name]

    def _role_limits(self, name: str, model: EndpointSettings) -> dict[str, int]:
        """Of roles that have a limit of their own below the model's."""
        chosen = {role.value: getattr(self._settings.roles, role.value) for role in Role}
        return {
            role: use.concurrency
            for role, use in chosen.items()
            if use is not None
            and use.model == name
            and use.concurrency is not None
            and use.concurrency < model.concurrency
        }
