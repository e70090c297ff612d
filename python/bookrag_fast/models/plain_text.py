"""Texts on their way to a model, and what one wrote made fit to be stored and shown. It is hostile
until then."""

from __future__ import annotations

import re

__all__ = ["clipped", "one_line", "printable", "shortened"]

# Control characters (a terminal obeys them), lone surrogates (no file takes them), and marks that
# turn the direction of the text around them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Without characters that command a terminal or break an encoding."""
    return _UNPRINTABLE.sub("", text)


def shortened(text: str, characters: int) -> str:
    """The text, or its beginning with "…" where it is longer."""
    return text if len(text) <= characters else text[: max(0, characters - 1)].rstrip() + "…"


def clipped(text: str, characters: int) -> str:
    """Printable, stripped and `shortened`."""
    return shortened(printable(text[: 4 * characters]).strip(), characters)


def one_line(text: str, characters: int) -> str:
    """`clipped`, on one line."""
    return clipped(" ".join(text[: 8 * characters].split()), characters)
