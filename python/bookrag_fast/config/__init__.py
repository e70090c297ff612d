"""Settings: what can be set (`settings`), and where it comes from (`loading`)."""

from __future__ import annotations

from bookrag_fast.config.areas import (
    LayoutSettings,
    OcrSettings,
    ResolutionSettings,
    RetrievalSettings,
)
from bookrag_fast.config.loading import load_settings
from bookrag_fast.config.models import (
    BudgetSettings,
    CacheSettings,
    ChatModelSettings,
    EmbeddingsModelSettings,
    EndpointSettings,
    ModelSettings,
    OnnxEmbedderSettings,
    OnnxRerankerSettings,
    PriceSettings,
    RerankModelSettings,
    RoleSettings,
    RolesSettings,
)
from bookrag_fast.config.settings import Settings

__all__ = [
    "BudgetSettings",
    "CacheSettings",
    "ChatModelSettings",
    "EmbeddingsModelSettings",
    "EndpointSettings",
    "LayoutSettings",
    "ModelSettings",
    "OcrSettings",
    "OnnxEmbedderSettings",
    "OnnxRerankerSettings",
    "PriceSettings",
    "RerankModelSettings",
    "ResolutionSettings",
    "RetrievalSettings",
    "RoleSettings",
    "RolesSettings",
    "Settings",
    "load_settings",
]
