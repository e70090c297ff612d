"""Values of replies as bytes for the cache, and back. Bytes that say nothing give None."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np

from bookrag_fast.models.protocols import FloatArray

__all__ = ["FloatsCodec", "TextCodec"]


class TextCodec:
    """A text and how it ended: JSON, compressed."""

    def encode(self, value: tuple[str, str]) -> bytes:
        return zlib.compress(json.dumps(value).encode(), 1)

    def decode(self, data: bytes) -> tuple[str, str] | None:
        try:
            found: Any = json.loads(zlib.decompress(data))
            text, finish = found
        except (ValueError, TypeError, zlib.error):
            return None
        return (text, finish) if isinstance(text, str) and isinstance(finish, str) else None


class FloatsCodec:
    """A vector, or scores: float32[n], little-endian. What is not finite is none."""

    def encode(self, value: FloatArray) -> bytes:
        return np.asarray(value, "<f4").tobytes()

    def decode(self, data: bytes) -> FloatArray | None:
        if not data or len(data) % 4:
            return None
        values = np.frombuffer(data, "<f4").astype(np.float32)
        return values if np.isfinite(values).all() else None
