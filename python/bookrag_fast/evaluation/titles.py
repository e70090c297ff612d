"""Titles as the scorer compares them: what is left when number, marks and spaces are dropped.

A rule of its own, not the one by which trees are built: a yardstick must not bend with what it
measures.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["title_key"]

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\ufeff]")
_WORD = "chapter|section|part|appendix|item|annex|article|глава|раздел|приложение|часть"
_STEP = "(?:[0-9]+|[ivxlc]+|[a-z])"
_NUMBER = re.compile(
    r"\s*(?:"
    + "|".join((
        rf"(?:{_WORD})\s+{_STEP}\b[\s.:)\-–—]*(?:[0-9]+[.・])*[0-9]*",  # Chapter 3: 3.1
        r"第\s*[0-9一二三四五六七八九十]+\s*[章節部編条]",
        rf"\(?\s*{_STEP}\s*[).・](?:\s*[0-9]+\s*[.・]?)*(?![a-z0-9])",  # (a)   4.2.   iv)
        r"[a-z]?[0-9]+(?:\s*[.・\-]\s*[0-9a-z]{1,3})*\s*[.:)]?(?=\s)",  # 12   A1-3   7:
        r"[a-z](?:\.[0-9]+)+\s*\.?",  # B.2
        r"[ivxlc]+\s*\.(?:\s*[0-9]+)*",  # IV. 1
    ))
    + r")\s*"
)  # fmt: skip
_NUMBERS = 2  # "Chapter 3  3.1 Title"


def title_key(title: str) -> str:
    """Letters, marks and digits of a title, NFKC and casefolded, without leading numbering; with
    it where nothing else is left."""
    whole = _INVISIBLE.sub("", unicodedata.normalize("NFKC", title).casefold())
    bare = whole
    for _ in range(_NUMBERS):
        number = _NUMBER.match(bare)
        if number is None:
            break
        bare = bare[number.end() :]
    return _signs(bare) or _signs(whole)


def _signs(text: str) -> str:
    return "".join(c for c in text if unicodedata.category(c)[0] in "LMN")
