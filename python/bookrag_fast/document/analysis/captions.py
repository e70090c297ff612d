"""Captions: "Figure 3", "Table 2.1:", 図1, 表2, "Fig. 4", "Рис. 5"."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["caption_kind", "caption_label"]

_CAPTION = re.compile(
    r"(?P<table>table|tbl\.?|tab\.|tabelle|tableau|таблица|табл\.|表)"
    r"|(?P<figure>figure|fig\.?|exhibit|chart|graph|abbildung|abb\.|рисунок|рис\.|図|写真|illustration)",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"[\s\-‐]*(?P<number>(?:[A-Z]{1,2}[.\-]?)?[0-9]{1,3}(?:[.\-‐–][0-9]{1,3}){0,3}[a-z]?|[IVXL]{1,6}\b|[A-Z]\b)"
    r"(?P<end>\s*[.:：|)\-–—]|\s*$|\s+|(?=[\u3040-\u9fff（(「]))"
)


def caption_kind(text: str) -> str | None:
    """ "table" or "figure" when the text reads like a caption's beginning, else None.

    A sentence that begins with a reference ("Table 2 shows …") is not a caption.
    """
    plain = unicodedata.normalize("NFKC", text[:100]).lstrip()
    word = _CAPTION.match(plain)
    if word is None or word.group()[0].islower():
        return None
    number = _NUMBER.match(plain, word.end())
    if number is None:
        return None
    kind = "table" if word.group("table") else "figure"
    if word.group()[0] in "CGcg" and not any(c.isdigit() for c in number.group("number")):
        return None  # "Graph G", "Chart C": these words also stand in running text and in labels
    rest = plain[number.end() :]
    marked = number.group("end").strip() != ""
    if marked or not rest.strip():
        return kind
    first = rest.split()[0]
    if word.group()[0] in "図表写":
        return None if first[0] in "にはでのをがとに、" else kind
    # Unmarked: a title starts with a capital, a sentence goes on in lower case.
    return kind if first[0].isupper() or not first[0].isalpha() else None


def caption_label(text: str) -> str:
    """The name of the table or figure ("Table 2.1"), "" when the text is no caption."""
    plain = unicodedata.normalize("NFKC", text[:100]).lstrip()
    word = _CAPTION.match(plain)
    number = _NUMBER.match(plain, word.end()) if word else None
    if word is None or number is None:
        return ""
    return plain[: number.end("number")].strip()
