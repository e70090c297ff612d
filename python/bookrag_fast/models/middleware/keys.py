"""What makes two calls the same: keys of the cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from bookrag_fast.config.models import EndpointSettings
from bookrag_fast.models.protocols import ChatRequest

__all__ = ["chat_key", "model_key", "rerank_key", "text_keys"]

# All other settings may shape a reply.
_SHAPELESS = {
    "api_key",
    "api_key_env",
    "headers",
    "ca_file",
    "timeout_s",
    "retries",
    "concurrency",
    "requests_per_minute",
    "tokens_per_minute",
    "price",
    "batch_size",
}


def model_key(settings: EndpointSettings) -> bytes:
    """Of a model: its server, what that calls it, and all settings that shape its replies."""
    return _digest(_json(settings.model_dump(mode="json", exclude=_SHAPELESS)))


def chat_key(model: bytes, request: ChatRequest) -> bytes:
    """Of a request: the messages with their images, schema, parameters, prompt and version. Who
    asks, in which role and for which book, makes no difference."""
    parts: list[str | bytes] = [
        model,
        "chat",
        request.prompt,
        _json([request.max_tokens, request.temperature, request.schema]),
    ]
    for message in request.messages:
        parts += [message.role, message.text, str(len(message.images))]
        for image in message.images:
            parts += [image.media_type, image.data]
    return _digest(*parts)


def text_keys(model: bytes, texts: Sequence[str], *, query: bool) -> list[bytes]:
    """Of each text of an embedding."""
    kind = "query" if query else "passage"
    return [_digest(model, kind, text) for text in texts]


def rerank_key(model: bytes, question: str, texts: Sequence[str]) -> bytes:
    """Of a question with all its texts: scores compare within one call only."""
    return _digest(model, "rerank", question, *texts)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict)


def _digest(*parts: str | bytes) -> bytes:
    """Parts with their lengths, so that none runs into the next."""
    total = sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.digest()
