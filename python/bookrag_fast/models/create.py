"""Models from settings."""

from __future__ import annotations

from pathlib import Path

from bookrag_fast.config import Settings
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models import create_embedder
from bookrag_fast.models.protocols import Embedder
from bookrag_fast.models.roles import ModelSet

__all__ = ["create_models"]


def create_models(
    settings: Settings, *, folder: Path, runner: LoopRunner, embedder: Embedder | None = None
) -> ModelSet:
    """The models that the settings name.

    Args:
        folder: where the cache of replies and the ledger lie; made when they are needed.
        runner: the loop that calls run on.
        embedder: instead of the one that the settings name.

    Raises:
        ConfigError: a name that is no model's. ModelError: a local model does not load.
    """
    del folder, runner  # of endpoints
    return ModelSet(embedder if embedder is not None else create_embedder(settings.embedder))
