"""Tokens of a text, where nobody states them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeGuard

from bookrag_fast.models.protocols import Message

__all__ = ["count_tokens", "is_count", "prompt_tokens"]

_WIDE = re.compile("[\u2e80-\uffef\U00020000-\U0003ffff]")
_MESSAGE_TOKENS = 4  # what frames a message
_MOST = 1 << 40  # more than anybody counts
_IMAGE_TOKENS = 1000  # of a page-sized picture, by the order of magnitude


def count_tokens(text: str) -> int:
    """A CJK character is one, other text characters / 4 (rounded up), as budgets count them."""
    if text.isascii():
        return (len(text) + 3) // 4
    wide = len(_WIDE.findall(text))
    return wide + (len(text) - wide + 3) // 4


def prompt_tokens(messages: Iterable[Message]) -> int:
    """Those of a prompt, its images included."""
    return sum(
        _MESSAGE_TOKENS + count_tokens(message.text) + _IMAGE_TOKENS * len(message.images)
        for message in messages
    )


def is_count(value: object) -> TypeGuard[int]:
    """Whether a server can have meant this as a number of tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST
