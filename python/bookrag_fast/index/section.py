"""Section candidates and the small text rules that all ways of finding headings share."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from bookrag_fast.document.model import Region
from bookrag_fast.document.numbering import parse_numbering

__all__ = ["ClosedLevels", "Heading", "close_levels", "match_key", "plain_key"]

_NO_LETTER = re.compile(r"[\W_]+")


@dataclass(slots=True)
class Heading:
    """A section's heading. ``level`` is 1 for chapters.

    ``at`` is the block before which the section starts; ``blocks`` are those that the heading
    itself takes up (none when the outline names a section that is not printed), and ``rest`` is
    text of the last of them that is not heading but content.
    """

    title: str
    level: int
    page: int
    at: int
    blocks: tuple[int, ...] = ()
    regions: tuple[Region, ...] = ()
    numbering: str = ""
    evidence: tuple[str, ...] = ()
    rest: str = ""


@lru_cache(maxsize=2048)  # every entry of an outline is compared with the same few pages
def plain_key(text: str) -> str:
    """Letters and digits only, NFKC and casefolded: what titles are compared by."""
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", text).casefold())


@lru_cache(maxsize=2048)
def match_key(text: str) -> str:
    """:func:`plain_key` without the numbering, unless nothing else is there."""
    numbering = parse_numbering(text)
    if numbering is not None and numbering.rest:
        return plain_key(numbering.rest) or plain_key(text)
    return plain_key(text)


class ClosedLevels:
    """Levels without jumps (1 → 4 becomes 1 → 2), siblings staying siblings; what a level becomes
    depends on those before it alone."""

    def __init__(self) -> None:
        self._open: list[int] = []  # levels as found: of the latest heading and of those over it

    def close(self, level: int) -> int:
        """The level, 1 or more, of the next heading in document order. Amortized O(1)."""
        while self._open and self._open[-1] >= level:
            self._open.pop()
        self._open.append(level)
        return len(self._open)


def close_levels(headings: list[Heading]) -> None:
    """Closes up jumps, as `ClosedLevels` does."""
    levels = ClosedLevels()
    for heading in headings:
        heading.level = levels.close(heading.level)
