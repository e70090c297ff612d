"""What a DOCX keeps apart from its text: outline levels of styles, and the numbers of lists and
headings, which Word makes when it shows them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from lxml import etree

__all__ = ["Numbers", "Styles", "attribute", "local_name", "outline_level", "value_of"]

T = TypeVar("T")

_HEADING = re.compile(r"(?:heading|überschrift|titre|título|見出し|标题)\s*([1-9])", re.IGNORECASE)
_LEVELS = 9  # of outlines and of lists
_DEEPEST = 50  # styles that a style is based on
_PART = re.compile(r"%([1-9])")
_MOST = 5000  # higher letters and Roman numerals nobody writes


def local_name(element: etree._Element) -> str:
    """Without its namespace; "" for a comment or an instruction."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def value_of(element: etree._Element, *path: str) -> str | None:
    """The w:val at the end of a path of local names, None when it is not there."""
    found = element
    for name in path:
        inner = found.find(f"{{*}}{name}")
        if inner is None:
            return None
        found = inner
    return attribute(found, "val")


def attribute(element: etree._Element, name: str) -> str | None:
    """By its local name: the strict and the usual namespace differ."""
    for key, value in element.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return None


class Styles:
    """Paragraph styles by id. ``root`` is that of word/styles.xml, None when there is none."""

    def __init__(self, root: etree._Element | None) -> None:
        self._styles: dict[str, etree._Element] = {}
        for style in root if root is not None else ():
            if local_name(style) == "style":
                self._styles[attribute(style, "styleId") or ""] = style

    def name(self, style: str) -> str:
        """Casefolded: "heading 1", "title", "caption"."""
        found = self._styles.get(style)
        return ((value_of(found, "name") if found is not None else None) or style).casefold()

    def level(self, style: str) -> int | None:
        """Heading level, 1-based; of the style or of the nearest that it is based on."""
        return self._inherited(style, self._own_level)

    def list_of(self, style: str) -> tuple[str | None, str | None]:
        """(list id, level) that the style gives its paragraphs; None where it gives none."""
        return (
            self._inherited(style, lambda s: value_of(s, "pPr", "numPr", "numId")),
            self._inherited(style, lambda s: value_of(s, "pPr", "numPr", "ilvl")),
        )

    def _own_level(self, style: etree._Element) -> int | None:
        if match := _HEADING.fullmatch(value_of(style, "name") or ""):
            return int(match.group(1))
        return outline_level(style)

    def _inherited(self, style: str, find: Callable[[etree._Element], T | None]) -> T | None:
        for _ in range(_DEEPEST):
            found = self._styles.get(style)
            if found is None:
                return None
            value = find(found)
            if value is not None:
                return value
            style = value_of(found, "basedOn") or ""
        return None


def outline_level(holder: etree._Element) -> int | None:
    """1-based outline level of a style or paragraph; None for none and for running text."""
    stated = value_of(holder, "pPr", "outlineLvl")
    level = _whole(stated, _LEVELS)
    return level + 1 if level < _LEVELS else None


@dataclass(slots=True)
class _Level:
    form: str = "decimal"
    text: str = ""
    start: int = 1


@dataclass(slots=True)
class _List:
    levels: dict[int, _Level] = field(default_factory=dict)
    counts: list[int | None] = field(default_factory=lambda: [None] * _LEVELS)


class Numbers:
    """Counts the items of every list. ``root`` is that of word/numbering.xml, None for none."""

    def __init__(self, root: etree._Element | None) -> None:
        abstract: dict[str, _List] = {}
        self._lists: dict[str, _List] = {}
        for element in root if root is not None else ():
            name = local_name(element)
            if name == "abstractNum":
                levels = {
                    _whole(attribute(level, "ilvl"), 0): _Level(
                        value_of(level, "numFmt") or "decimal",
                        value_of(level, "lvlText") or "",
                        _whole(value_of(level, "start"), 1),
                    )
                    for level in element.iterfind("{*}lvl")
                }
                abstract[attribute(element, "abstractNumId") or ""] = _List(levels)
            elif name == "num":
                shared = abstract.get(value_of(element, "abstractNumId") or "")
                if shared is not None:
                    self._lists[attribute(element, "numId") or ""] = shared

    def next(self, list_id: str, level: int) -> str | None:
        """The mark of the next item: "2.", "1.3", "-" for a bullet; None when the list is unknown.

        A list goes on where it was left; an item starts the levels below it anew.
        """
        found = self._lists.get(list_id)
        if found is None:
            return None
        level = min(max(level, 0), _LEVELS - 1)
        own = found.levels.get(level, _Level())
        count = found.counts[level]
        found.counts[level] = own.start if count is None else count + 1
        found.counts[level + 1 :] = [None] * (_LEVELS - level - 1)
        if own.form == "bullet":
            return "-"
        if own.form == "none":
            return ""

        def part(match: re.Match[str]) -> str:
            at = int(match.group(1)) - 1
            of_level = found.levels.get(at, _Level())
            number = found.counts[at]
            return _shown(of_level.start if number is None else number, of_level.form)

        return _PART.sub(part, own.text).strip()


def _shown(number: int, form: str) -> str:
    if not 0 < number <= _MOST:
        return str(number)
    if form in ("lowerLetter", "upperLetter"):
        letters = chr(97 + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if form == "upperLetter" else letters
    if form in ("lowerRoman", "upperRoman"):
        roman = _roman(number)
        return roman if form == "upperRoman" else roman.lower()
    return f"{number:02d}" if form == "decimalZero" else str(number)


def _roman(number: int) -> str:
    out = ""
    for value, sign in zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        "M CM D CD C XC L XL X IX V IV I".split(),
        strict=True,
    ):
        out += sign * (number // value)
        number %= value
    return out


def _whole(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 7 else default
