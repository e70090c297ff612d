"""Cross-references in text ("see Section 3.2", "Table 4", 第3章, 図1) and what they point at."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bookrag_fast.index.model import Node, SectionTree

__all__ = [
    "Reference",
    "TargetIndex",
    "announces_reference",
    "canonical",
    "caption_number",
    "find_references",
    "section_numbers",
]

_WORDS = {
    "section": ("section", "sections", "sect", "sec", "secs", "§", "§§", "subsection", "раздел",
                "разделе", "раздела", "節", "项", "項"),
    "chapter": ("chapter", "chapters", "ch", "глава", "главе", "главы", "章"),
    "part": ("part",),
    "item": ("item", "items"),
    "note": ("note", "notes"),
    "appendix": ("appendix", "appendices", "annex", "приложение", "приложении", "付録", "附録"),
    "table": ("table", "tables", "tab", "таблица", "таблице", "таблицы", "табл", "表"),
    "image": ("figure", "figures", "fig", "figs", "рисунок", "рисунке", "рис", "図"),
    "equation": ("equation", "equations", "eq", "eqs", "式"),
}  # fmt: skip
_PLACES = frozenset({"section", "chapter", "part", "item"})
_KIND = {word: kind for kind, words in _WORDS.items() for word in words}
_NUMBER = r"(?:[A-Z](?:[.\-]?\d+)+|\d+(?:[.\-]\d+)*[a-z]?(?![\w%])|[A-Z](?![\w'’])|[IVXLC]+(?!\w))"
_LATIN = re.compile(
    r"(?<!\w)(?P<word>sections?|sect?s?\.|subsection|chapters?|ch\.|part|items?|notes?|appendix|appendices|annex|"
    r"tables?|tab\.|figures?|figs?\.?|equations?|eqs?\.|раздел[еа]?|глав[аеы]|приложени[еи]|"
    r"таблиц[аеы]|табл\.|рисунк?о?[ек]|рис\.|§§?)\s*\(?(?P<first>" + _NUMBER + r")\)?"
    r"(?P<more>(?:\s*(?:,|and|or|&|to|–|-|и)\s*\(?" + _NUMBER + r"\)?)*)",
    re.IGNORECASE,
)
_CJK = re.compile(
    r"第\s*(?P<number>[0-9]+(?:[.\-][0-9]+)*|[一二三四五六七八九十]+)\s*(?P<unit>章|節|項)"
    r"|(?<!代)(?P<word>図|表|付録|附録|式)\s*[\(（]?(?P<label>[A-Z]?[0-9]+(?:[.\-][0-9]+)*|[A-Z])"
    r"|(?<![\d.])(?P<bare>\d+(?:\.\d+)+)\s*[節項]|[節項]\s*(?P<after>\d+(?:\.\d+)+)"
)
_KANJI = {c: i for i, c in enumerate("一二三四五六七八九", 1)}
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_TITLE_NUMBER = re.compile(
    r"(?:(?:appendix|annex|приложение|付録)\s*(?:[A-Z]|\d{1,3}|[IVX]+)(?!\w)"
    r"|(?:(?:chapter|section|part|item|глава|раздел)\s+)?"
    r"(?:[A-Z]?\d{1,3}(?:\.\d+)*[A-Z]?|[A-Z](?:\.\d+)+|[A-Z](?=[.:]\s)|[IVX]+(?=[.:]\s)))[.:)]?(?:\s|$)"
    r"|(?:chapter|part)\s+[IVXLC]+[.:)]?(?:\s|$)"
    r"|第\s*(?:\d+|[一二三四五六七八九十]+)\s*[章節項部編]",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"^(?:第|chapter|section|sec\.?|part|appendix|annex|item|глава|раздел|приложение|付録|附録|§)\s*"
    r"|\s*(?:章|節|項|部|編)$",
    re.IGNORECASE,
)
_STARTS = {
    "appendix": ("appendix", "annex", "приложение", "付録", "附録"),
    "chapter": ("chapter", "глава"),
    "part": ("part",),
    "item": ("item",),
}
# "Section 13 of the Exchange Act", "Section 4(a) of Regulation S-K": not a part of this book.
_ELSEWHERE = re.compile(
    r"(?:\([a-z0-9]+\))*(?:\s*(?:or|and|,)\s*[\w().-]+){0,3}\s+(?:of|under|to)\s+"
    r"(?!this\b)(?:the\s+|such\s+)?[A-Z]"
)
_CAPTION = re.compile(
    r"\W*(?:table|tab\.|figure|fig\.|equation|exhibit|chart|таблица|табл\.|рисунок|рис\.|図|表|式)"
    r"\s*[:#№]?\s*(?P<number>[A-Z]?[.\-]?\d+(?:[.\-]\d+)*[a-z]?|[IVX]+\b|[A-Z]\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A mention of a numbered part of the book: kind, number in `_canonical` form, the words."""

    kind: str
    number: str
    text: str


def find_references(text: str) -> Iterator[Reference]:
    """References in a text, in order. Each number of "Tables 3 and 4" is one."""
    for match in _LATIN.finditer(text):
        kind = _KIND[match["word"].casefold().rstrip(".")]
        first = match["first"]
        if kind in _PLACES and _ELSEWHERE.match(text, match.end()):
            continue
        worded = match["word"].islower() and not any(c.isdigit() for c in first)
        if worded and (kind != "appendix" or not first.isupper()):
            continue  # "part I took", "section a": words, not numbers
        yield Reference(kind, canonical(first), match.group().strip())
        for number in re.findall(_NUMBER, match["more"]):
            if any(c.isdigit() for c in number) == any(c.isdigit() for c in first):
                yield Reference(kind, canonical(number), match.group().strip())
    for match in _CJK.finditer(text):
        number = match["number"] or match["label"] or match["bare"] or match["after"]
        kind = _KIND[match["unit"] or match["word"] or "節"]
        yield Reference(kind, canonical(number), match.group())


def announces_reference(word: str) -> bool:
    """Whether a reference can begin with this word: a cheap test before `find_references`."""
    return word.casefold().rstrip(".") in _KIND or word[-1] in "第図表式録節項§"


def canonical(number: str) -> str:
    """One spelling of a number: "III" and 三 are "3", "a.1" is "A.1", "2-1" is "2.1"."""
    text = unicodedata.normalize("NFKC", number).strip(" .:()").upper().replace("-", ".")
    if text and all(c in _ROMAN for c in text) and (len(text) > 1 or text in "IVX"):
        values = [_ROMAN[c] for c in text]
        following = [*values[1:], 0]
        pairs = zip(values, following, strict=True)
        return str(sum(-v if v < n else v for v, n in pairs))
    if text and all(c in _KANJI or c == "十" for c in text):
        tens, ten, ones = text.partition("十")
        return str((_KANJI.get(tens, 1) if ten else 0) * 10 + _KANJI.get(ones if ten else tens, 0))
    return text


def section_numbers(node: Node) -> list[tuple[str, str]]:
    """(kind, number) that a section answers to, from its numbering or else its title."""
    source = node.numbering or ""
    if not source:
        title = unicodedata.normalize("NFKC", node.title).strip()
        match = _TITLE_NUMBER.match(title)
        source = match.group() if match and title[match.end() :].strip() else ""
    if not source:
        return []
    text = unicodedata.normalize("NFKC", source).strip(" .:)")
    number = _UNIT.sub("", text)
    found = canonical(number)
    if not found or " " in found:
        return []
    folded = text.casefold()
    for kind, starts in _STARTS.items():
        if folded.startswith(starts) or (kind == "chapter" and text.endswith("章")):
            return [(kind, found)]
    if found[0].isalpha() and "." not in found:
        return [("section", found), ("appendix", found)]
    return [("section", found)]


def caption_number(caption: str) -> str:
    """The number of "Table 3.1: …" in canonical form, "" when a caption has none."""
    match = _CAPTION.match(caption)
    return canonical(match["number"]) if match else ""


class TargetIndex:
    """Finds the node that a reference means.

    Args:
        tree: for the nearness of targets that share a number.
        targets: (kind, canonical number) to the ids of nodes that answer to it.
    """

    def __init__(self, tree: SectionTree, targets: Mapping[tuple[str, str], list[int]]) -> None:
        self._nodes = tree.nodes
        self._targets = targets

    def resolve(self, reference: Reference, origin: int) -> int | None:
        """The target's node id, or None: no such number, or several equally near."""
        found = self._targets.get((reference.kind, reference.number), [])
        if not found and reference.kind in ("section", "chapter", "note"):
            other = "chapter" if reference.kind == "section" else "section"
            found = self._targets.get((other, reference.number), [])
        if len(found) <= 1:
            return found[0] if found else None
        # Numbers that restart in every part: the one that shares most ancestors is meant.
        path = set(self._ancestors(origin))
        shared = [(sum(a in path for a in self._ancestors(t)), t) for t in found]
        most = max(shared)[0]
        nearest = [t for n, t in shared if n == most]
        return nearest[0] if len(nearest) == 1 else None

    def _ancestors(self, node: int) -> Iterator[int]:
        parent = self._nodes[node].parent
        while parent >= 0:
            yield parent
            parent = self._nodes[parent].parent
