"""Displayed formulas: what marks a text, or rows that stand like a table's, as one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.analysis.rows import Row
from bookrag_fast.document.model import Style

__all__ = ["are_equations", "is_equation"]

_MATH_FONT = re.compile(
    r"^(?:cmmi|cmsy|cmex|msbm|msam|stix.*math|.*math|mt(?:mi|sy|ex)|eu[fsr]m)", re.I
)
_MATH_SIGNS = re.compile(r"[=≤≥±×÷∑∏∫√∞∂∇∈∉⊂⊆∪∩∀∃→⇒≈≠αβγδεθλμνπρστφχψωΓΔΘΛΞΠΣΦΨΩ]")
_NUMBERED = re.compile(r"[=<>≤≥≈∈].*\s\((?:[A-Z]\.?)?\d{1,3}(?:\.\d{1,3})?[a-z]?\)$")
_RELATION = re.compile(r"[=≤≥≈≠∈⊂⊆≡∝∼:]=?")
_BRACKET_PIECES = re.compile("[\uf8e5-\uf8fe⎛-⎳]")  # of tall brackets, in fonts for formulas
_WORD = re.compile(r"[^\W\d_]{4,}")
_NUMBER = re.compile(r"[-−+]?[\d.,]+%?")


def is_equation(text: str, lines: Sequence[Line], style: Style) -> bool:
    """Whether a block of lines is a displayed formula."""
    if _NUMBERED.search(text) and len(text) < 200:
        return True
    math = sum(bool(_MATH_FONT.match(x.family)) for x in lines)
    return math * 2 > len(lines) or (
        len(text) < 120
        and (style.centered or style.indent > 2 * style.size)
        and len(_MATH_SIGNS.findall(text)) * 8 > len(text)
    )


def are_equations(rows: Sequence[Row]) -> bool:
    """Whether rows are formulas set under each other at their signs, or pieces of a matrix."""
    like = pieces = total = 0
    for row in rows:
        texts = [cell.text for cell in row.cells]
        pieces += any(_BRACKET_PIECES.search(text) for text in texts)
        formula = any(_RELATION.search(text) for text in texts) or any(
            _MATH_FONT.match(cell.family) for cell in row.cells
        )
        words = sum(len(_WORD.findall(text)) for text in texts)
        numbers = sum(bool(_NUMBER.fullmatch(text)) for text in texts)
        total += words
        like += formula and words <= 2 and numbers == 0
    return like > 0.6 * len(rows) or (pieces > 1 and total <= 2 * len(rows))
