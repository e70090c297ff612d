"""Texts on their way to a model, and what one says on its way into a book."""

from __future__ import annotations

import re

__all__ = ["one_line", "shortened"]

# Control characters (a terminal obeys them), lone surrogates (no file takes them), and marks that
# turn the direction of the text around them.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]+")


def shortened(text: str, characters: int) -> str:
    """The text, or its beginning with "…" where it is longer."""
    return text if len(text) <= characters else text[: max(0, characters - 1)] + "…"


def one_line(text: str, characters: int) -> str:
    """A text from anywhere on one line, of characters that can be printed; `shortened`."""
    return shortened(" ".join(_UNPRINTABLE.sub(" ", text[: 8 * characters]).split()), characters)
