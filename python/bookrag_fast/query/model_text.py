"""What a model wrote, made fit to be shown. It is hostile until then."""

from __future__ import annotations

import re

__all__ = ["clipped", "enclosed", "printable", "told"]

# Control characters (a terminal obeys them), lone surrogates, and marks that turn the direction of
# the text around them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_ATTRIBUTE = re.compile(r"\s+")
_QUOTES = str.maketrans({"<": "‹", ">": "›", '"': "”"})
_LONGEST_REASON = 200  # characters


def printable(text: str) -> str:
    """Without characters that command a terminal or break an encoding."""
    return _UNPRINTABLE.sub("", text)


def clipped(text: str, most: int) -> str:
    """In at most ``most`` characters, printable and stripped."""
    text = printable(text[: 4 * most]).strip()
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def told(reason: str) -> str:
    """Why a model failed, as a part of one line."""
    return clipped(" ".join(reason[:2000].split()), _LONGEST_REASON) or "no reason was given"


def enclosed(tag: str, text: str, **attributes: str) -> str:
    """Text as data between marks, which it cannot end or begin, whatever it says."""
    head = "".join(
        f' {name}="{_ATTRIBUTE.sub(" ", value).translate(_QUOTES)}"'
        for name, value in attributes.items()
        if value
    )
    data = re.sub(rf"<(?=[\s/]*{tag})", "‹", text, flags=re.I)
    return f"<{tag}{head}>\n{data}\n</{tag}>"
