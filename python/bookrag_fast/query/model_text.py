"""Words between the engine, its models and the reader."""

from __future__ import annotations

import re

from bookrag_fast.models.plain_text import one_line

__all__ = ["enclosed", "told"]

_ATTRIBUTE = re.compile(r"\s+")
_QUOTES = str.maketrans({"<": "‹", ">": "›", '"': "”"})
_LONGEST_REASON = 200  # characters


def told(reason: str) -> str:
    """Why a model failed, as a part of one line."""
    return one_line(reason, _LONGEST_REASON) or "no reason was given"


def enclosed(tag: str, text: str, **attributes: str) -> str:
    """Text as data between marks, which it cannot end or begin, whatever it says."""
    head = "".join(
        f' {name}="{_ATTRIBUTE.sub(" ", value).translate(_QUOTES)}"'
        for name, value in attributes.items()
        if value
    )
    data = re.sub(rf"<(?=[\s/]*{tag})", "‹", text, flags=re.I)
    return f"<{tag}{head}>\n{data}\n</{tag}>"
