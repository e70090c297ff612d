"""Texts as servers take them, and as the rest of the engine takes theirs."""

from __future__ import annotations

import re

from bookrag_fast.models.counting import count_tokens

__all__ = ["begun", "too_long", "well_formed"]

_CHARS = 3  # of a token: fewer than usual, so that a cut text is seldom still too long
_TOO_LONG = re.compile(
    r"too long|too large|too many tokens|maximum context|context length|context size"
    r"|max_?(?:model|seq|input)\w{0,20}len|less than \d{1,9} tokens",
    re.IGNORECASE,
)


def well_formed(text: str) -> str:
    """The text without halves of characters, which UTF-8 cannot hold: they come from broken files,
    and from servers that escape whatever they like."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def begun(text: str, tokens: int) -> str:
    """The beginning of a text that surely has no more tokens: a CJK character counts as one, three
    other characters as well."""
    most = _CHARS * tokens
    if len(text) <= tokens:
        return text
    text = text[:most]
    if text.isascii():
        return text
    # Each wide character takes the room of three others; count_tokens sees them as one token.
    wide = count_tokens(text)
    while text and wide > tokens:
        text = text[: max(1, len(text) * tokens // wide - 1)]
        wide = count_tokens(text)
    return text


def too_long(said: str) -> bool:
    """Whether a server's refusal is about the length of a text."""
    return bool(_TOO_LONG.search(said))
