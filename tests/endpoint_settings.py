"""Endpoints of a fake server, as tests want them."""

from __future__ import annotations

from typing import Any

from bookrag_fast.config import (
    ChatModelSettings,
    EmbeddingsModelSettings,
    RerankModelSettings,
)
from bookrag_fast.models.protocols import ChatRequest, Message

__all__ = ["PROMPT", "SCHEMA", "chat_settings", "embeddings_settings", "request", "rerank_settings"]

PROMPT = "What is the secret recipe of the Zanzibar bakery?"
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


def chat_settings(base_url: str, **values: Any) -> ChatModelSettings:
    return ChatModelSettings(base_url=base_url, model="fake-1", timeout_s=5.0, **values)


def embeddings_settings(base_url: str, **values: Any) -> EmbeddingsModelSettings:
    return EmbeddingsModelSettings(
        kind="embeddings", base_url=base_url, model="fake-e", timeout_s=5.0, **values
    )


def rerank_settings(base_url: str, **values: Any) -> RerankModelSettings:
    return RerankModelSettings(
        kind="rerank", base_url=base_url, model="fake-r", timeout_s=5.0, **values
    )


def request(text: str = PROMPT, **values: Any) -> ChatRequest:
    return ChatRequest((Message("system", "Be brief."), Message("user", text)), **values)
