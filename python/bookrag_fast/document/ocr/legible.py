"""Whether a text layer says what the page says.

Fonts without a mapping to Unicode, and OCR of long ago, leave layers that nobody can read. Two
kinds are told from text: characters without a meaning, and letters dealt as no language deals
them (a font's own numbering of its glyphs, taken for letters).
"""

from __future__ import annotations

import unicodedata
from collections import Counter

__all__ = ["fault_of"]

UNMAPPED = 0.3  # of the characters: private use, controls, unassigned, replacements
LETTERS = 150  # a judgement on letters needs so many
# Eight letters make up two thirds of English, and half or more of every European language; of a
# text with its letters exchanged, a third on the average. Columns of code and formulas are between.
COMMON = frozenset("etaoinsr")
LEAST_COMMON = 0.44

_BULLET = "•"  # stands for what a symbol font has, too


def fault_of(text: str) -> str:
    """What is wrong with a page's text layer; "" if it can be read."""
    counts = Counter(text)
    marks = sum(n for c, n in counts.items() if not c.isspace())
    odd = sum(n for c, n in counts.items() if _is_unmapped(c))
    if odd > UNMAPPED * marks or (marks > 40 and counts[_BULLET] > UNMAPPED * marks):
        return "its text layer has characters without a meaning"
    latin: Counter[str] = Counter()
    letters = 0
    for c, n in counts.items():
        if c.isalpha():
            letters += n
            plain = unicodedata.normalize("NFD", c.lower())[0]
            if plain.isascii():
                latin[plain] += n
    known = latin.total()
    if known >= LETTERS and 2 * known >= letters:
        common = sum(latin[c] for c in COMMON)
        if common < LEAST_COMMON * known:
            return "its text layer has no words"
    return ""


def _is_unmapped(c: str) -> bool:
    if c.isspace():
        return False
    return c == "\ufffd" or unicodedata.category(c) in ("Co", "Cn", "Cs", "Cc")
