"""A text as the pieces that an extractive answer can quote: sentences, rows and items."""

from __future__ import annotations

import re

__all__ = ["clipped_at_word", "split_sentences"]

_END = re.compile(
    r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\s\W_a-zа-я])"  # a lower-case letter goes on
    r"|(?<=[。！？])(?!\s*[」』）])"
)
# A full stop after these does not end a sentence.
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|cf|vs|fig|figs|eq|eqs|sec|no|nos|vol|pp|ch|approx|dr|mr|mrs|ms|prof|st"
    r"|inc|ltd|corp|al|u\.s|jr|sr|рис|гл|стр|т\.е|т\.к)|(?:^|\s)[A-ZА-Я])\.$",
    re.I,
)
_SHORTEST = 2


def split_sentences(text: str, *, by_line: bool = False) -> list[str]:
    """Pieces in order, stripped, none empty. ``by_line`` for tables, lists and code, where a line
    is the unit of meaning."""
    lines = text.splitlines() if by_line else [" ".join(text.split())]
    pieces: list[str] = []
    for line in lines:
        start = 0
        for match in () if by_line else _END.finditer(line):
            head = line[start : match.start()]
            if _ABBREVIATION.search(head):
                continue
            pieces.append(line[start : match.end()].strip())
            start = match.end()
        pieces.append(line[start:].strip())
    return [p for p in pieces if len(p) >= _SHORTEST]


def clipped_at_word(text: str, characters: int) -> str:
    """The text, or of a longer one its beginning up to the end of a word, with "…" in place of the
    rest; at most so many characters. Where no space is near (Japanese) any character ends it."""
    if len(text) <= characters:
        return text
    beginning = text[:characters]  # its last character is only to show where the one before ends
    head = beginning[:-1].rstrip()
    if not beginning[-1].isspace():
        parted = re.match(r".*\S(?=\s)", beginning, re.DOTALL)
        if parted is not None and parted.end() >= characters // 2:
            head = parted.group()
    return f"{head}…"
