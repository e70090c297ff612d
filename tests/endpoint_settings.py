"""Endpoints of a fake server, as tests want them, and what becomes of calls to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from bookrag_fast.config import (
    ChatModelSettings,
    EmbeddingsModelSettings,
    RerankModelSettings,
)
from bookrag_fast.errors import ModelError
from bookrag_fast.models.endpoints import ChatEndpoint
from bookrag_fast.models.protocols import ChatRequest, Message

__all__ = [
    "PROMPT",
    "SCHEMA",
    "chat_settings",
    "embeddings_settings",
    "endpoint",
    "failure",
    "request",
    "rerank_settings",
    "streamed",
]

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


@asynccontextmanager
async def endpoint(base_url: str, **values: Any) -> AsyncIterator[ChatEndpoint]:
    """A chat endpoint, closed in the end."""
    model = ChatEndpoint("small", chat_settings(base_url, **values))
    try:
        yield model
    finally:
        await model.aclose()


async def failure(base_url: str, *, stream: bool = False, **values: Any) -> ModelError:
    """Of a call that has to fail."""
    async with endpoint(base_url, **values) as model:
        with pytest.raises(ModelError) as caught:
            await (streamed(model) if stream else model.complete(request()))
    return caught.value


async def streamed(model: ChatEndpoint, into: list[object] | None = None) -> None:
    async with aclosing(model.stream(request())) as parts:
        async for part in parts:
            if into is not None:
                into.append(part)
