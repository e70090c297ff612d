"""A text as the pieces that an extractive answer can quote: sentences, rows and items."""

from __future__ import annotations

import re

__all__ = ["split_sentences"]

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
