"""Headings that a tagged PDF marks as such: H, H1 … H6 and Title of its structure tree.

The tree names marked content by number; which text that is, the page's objects say, and where.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pypdfium2.raw as raw

from bookrag_fast.document.model import BBox
from bookrag_fast.document.pdf.chars import PageChars
from bookrag_fast.document.pdf.pdfium import PageGeometry

__all__ = ["HeadingTag", "heading_tags", "tagged_text"]

MAX_ELEMENTS = 20_000  # of a page's structure
MAX_OBJECTS = 20_000
MAX_DEPTH = 64
MAX_TAGS = 200  # headings of a page
MAX_PIECES = 40  # text objects of a heading
MAX_TEXT = 400  # characters; a longer "heading" is a paragraph

# What is in a contents list repeats headings; the others hold words, and are most of a tree.
_SKIPPED = frozenset(
    "TOC TOCI Artifact P Span Link Figure Formula Code Lbl Note Reference BibEntry Quote".split()
)
_NESTS = ("Sect", "Part", "Art", "Div")
_BREAKS = 3.0  # points that a character may stand outside the box of its text object


@dataclass(frozen=True, slots=True)
class HeadingTag:
    """``level`` is 1 for H1 and Title; ``boxes`` are those of the text objects, as displayed."""

    level: int
    boxes: tuple[BBox, ...]

    @property
    def top(self) -> float:
        return min(b.y0 for b in self.boxes)


def heading_tags(page: Any, geometry: PageGeometry) -> list[HeadingTag]:
    """The headings in the structure tree of an open page, in its order; the lock is held by the
    caller. Those without text on the page are left out."""
    tree = raw.FPDF_StructTree_GetForPage(page)
    if not tree:
        return []
    try:
        found = list(_headings(tree))
    finally:
        raw.FPDF_StructTree_Close(tree)
    wanted = {number for _, numbers in found for number in numbers}
    boxes = _boxes(page, geometry, wanted) if wanted else {}
    out = []
    for level, numbers in found:
        mine = tuple(box for number in numbers for box in boxes.get(number, ()))
        if mine and len(mine) <= MAX_PIECES:
            out.append(HeadingTag(level, mine))
    return out[:MAX_TAGS]


def tagged_text(tag: HeadingTag, chars: PageChars) -> str:
    """What stands in the boxes of a tag, in PDFium's order; "" for more than a heading can be."""
    x, y = chars.origin[:, 0], chars.origin[:, 1]
    inside = np.zeros(len(chars), np.bool_)
    for box in tag.boxes:
        inside |= (
            (x >= box.x0 - _BREAKS)
            & (x < box.x1)
            & (y >= box.y0 - _BREAKS)
            & (y <= box.y1 + _BREAKS)
        )
    inside &= ~chars.generated
    at = np.flatnonzero(inside)
    if not 0 < len(at) <= MAX_TEXT:
        return ""
    between = np.zeros(len(chars), np.bool_)
    between[at[0] : at[-1] + 1] = chars.generated[at[0] : at[-1] + 1]  # spaces, ends of lines
    codes = chars.code[inside | between]
    text = "".join(chr(c) if 0 < c < 0xD800 or 0xE000 <= c < 0xFFFE else " " for c in codes)
    return " ".join(text.replace("\x02", "-").split())


def _headings(tree: Any) -> Iterator[tuple[int, list[int]]]:
    """(level, numbers of marked content) of each heading."""
    buffer = ctypes.create_string_buffer(64)
    stack = [(raw.FPDF_StructTree_GetChildAtIndex(tree, k), 0, 0)
             for k in reversed(range(raw.FPDF_StructTree_CountChildren(tree)))]  # fmt: skip
    seen = 0
    while stack:
        element, depth, around = stack.pop()
        seen += 1
        if not element or seen > MAX_ELEMENTS or depth > MAX_DEPTH:
            continue
        kind = _type_of(element, buffer)
        if kind in _SKIPPED:
            continue
        level = _level(kind, around)
        if level:
            yield level, _contents(element)
            continue
        around += kind in _NESTS
        count = raw.FPDF_StructElement_CountChildren(element)
        stack += [
            (raw.FPDF_StructElement_GetChildAtIndex(element, k), depth + 1, around)
            for k in reversed(range(min(count, MAX_ELEMENTS)))
        ]


def _level(kind: str, around: int) -> int:
    """0 for what is no heading. A bare H is as deep as the sections around it."""
    if kind == "Title":
        return 1
    if kind == "H":
        return max(1, min(around, 6))
    return int(kind[1]) if len(kind) == 2 and kind[0] == "H" and kind[1] in "123456" else 0


def _type_of(element: Any, buffer: Any) -> str:
    """The standard type, a custom one being resolved by the file's role map."""
    size = raw.FPDF_StructElement_GetType(element, buffer, 64)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace") if 2 < size <= 64 else ""


def _contents(element: Any) -> list[int]:
    """Numbers of the marked content in an element and below it."""
    out: list[int] = []
    stack = [(element, 0)]
    while stack and len(out) < MAX_TEXT:
        here, depth = stack.pop()
        if not here or depth > MAX_DEPTH:
            continue
        for k in range(raw.FPDF_StructElement_GetMarkedContentIdCount(here)):
            number = raw.FPDF_StructElement_GetMarkedContentIdAtIndex(here, k)
            if number >= 0:  # -1 is a child element
                out.append(number)
        count = min(raw.FPDF_StructElement_CountChildren(here), MAX_TEXT)
        stack += [
            (raw.FPDF_StructElement_GetChildAtIndex(here, k), depth + 1)
            for k in reversed(range(count))
        ]
    return out


def _boxes(page: Any, geometry: PageGeometry, wanted: set[int]) -> dict[int, list[BBox]]:
    """By number of marked content, the boxes of its text objects."""
    out: dict[int, list[BBox]] = {}
    sides = [ctypes.c_float() for _ in range(4)]
    for k in range(min(raw.FPDFPage_CountObjects(page), MAX_OBJECTS)):
        item = raw.FPDFPage_GetObject(page, k)
        number = raw.FPDFPageObj_GetMarkedContentID(item)
        if number not in wanted or raw.FPDFPageObj_GetType(item) != raw.FPDF_PAGEOBJ_TEXT:
            continue
        if raw.FPDFPageObj_GetBounds(item, *sides):
            left, bottom, right, top = (s.value for s in sides)
            out.setdefault(number, []).append(geometry.display(left, bottom, right, top))
    return out
