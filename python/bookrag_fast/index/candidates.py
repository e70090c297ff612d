"""Candidates for headings, judged by their own form and mark only.

A block is a candidate when its form allows it (short, no sentence) and something marks it: a style
that stands out from the running text, or a number that fits into a sequence. Styles are judged as
groups, since a heading style is used again and again while a chance emphasis is not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bookrag_fast.document.model import Block, BlockKind, Document
from bookrag_fast.document.numbering import Numbering, Scheme, parse_numbering
from bookrag_fast.index.contents import PrintedContents
from bookrag_fast.index.section import plain_key

__all__ = ["UNNUMBERED", "Candidate", "Face", "StyleKey", "body_face", "candidates_of", "style_of"]

MAX_CHARACTERS = 180
MAX_LINES = 4

_SENTENCE_END = re.compile(r"[.;,。、；，]$")
_ABBREVIATION_END = re.compile(r"\b(?:inc|ltd|co|corp|etc|al|vs|no|jr|sr|u\.s)\.$", re.IGNORECASE)
UNNUMBERED = {
    "abstract", "acknowledgments", "acknowledgements", "references", "bibliography", "appendix",
    "introduction", "conclusion", "conclusions", "foreword", "preface", "index", "glossary",
    "contents", "tableofcontents", "目次", "はじめに", "おわりに", "参考文献", "謝辞", "付録",
    "索引",
    "введение", "заключение", "содержание", "литература", "оглавление",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StyleKey:
    """What makes two headings look alike. Size in half points."""

    size: int
    bold: bool
    italic: bool
    caps: bool
    family: str
    color: int | None

    @property
    def prominence(self) -> tuple[float, ...]:
        return (self.size, self.bold, self.caps, not self.italic)


@dataclass(slots=True)
class Candidate:
    at: int  # the block
    block: Block
    style: StyleKey
    numbering: Numbering | None
    evidence: list[str]
    level: int = 0
    listed_level: int = 0  # of the contents page that lists it


@dataclass(frozen=True, slots=True)
class Face:
    """The document's running text."""

    size: float
    bold: bool
    italic: bool
    family: str
    color: int | None


def body_face(blocks: Sequence[Block]) -> Face:
    faces: Counter[tuple[float, bool, bool, str, int | None]] = Counter()
    for block in blocks:
        if block.kind in (BlockKind.TEXT, BlockKind.LIST):
            style = block.style
            faces[
                (round(style.size * 2) / 2, style.bold, style.italic, style.family, style.color)
            ] += len(block.text)
    if not faces:
        return Face(10.0, False, False, "", None)
    return Face(*faces.most_common(1)[0][0])


def style_of(block: Block) -> StyleKey:
    style = block.style
    letters = [c for c in block.text if c.isalpha()]
    return StyleKey(
        size=round(style.size * 2),
        bold=style.bold,
        italic=style.italic,
        caps=len(letters) > 3 and block.text.isupper(),
        family=style.family,
        color=style.color,
    )


def candidates_of(document: Document, contents: PrintedContents) -> list[Candidate]:
    """Blocks whose form and mark allow a heading, and those that a contents page lists or whose
    source states a level."""
    face = body_face(document.blocks)
    out: list[Candidate] = []
    for k, block in enumerate(document.blocks):
        listed = k in contents.levels
        form = block.kind in (BlockKind.TITLE, BlockKind.TEXT) and _form_allows(block)
        stated = block.level is not None
        if not form and not listed and not stated:
            continue
        numbering = parse_numbering(block.text)
        style = style_of(block)
        evidence = ["markup"] if stated else []
        evidence += ["contents-page"] if listed else []
        if _stands_out(block, style, face):
            evidence.append("typography")
        if numbering is not None and _may_number(numbering, block):
            evidence.append("numbering")
        if evidence:
            level = contents.levels.get(k, 0)
            out.append(Candidate(k, block, style, numbering, evidence, listed_level=level))
    return out


def _form_allows(block: Block) -> bool:
    text = block.text.strip()
    if len(text) < 2 or len(text) > MAX_CHARACTERS or block.line_count > MAX_LINES:
        return False
    letters = sum(c.isalpha() for c in text)
    if letters < 2 or letters < 0.35 * len(text.replace(" ", "")):
        return False
    if len(block.regions) > 1 or text.count("|") > 1:
        return False
    if block.regions:
        box = block.regions[0].bbox
        if box.height > 2.5 * box.width and len(text) > 3:
            return False  # sideways
    if _SENTENCE_END.search(text) and not _ABBREVIATION_END.search(text):
        numbering = parse_numbering(text)
        return numbering is not None and len(text) < 80 and block.kind is BlockKind.TITLE
    return True


def _stands_out(block: Block, style: StyleKey, face: Face) -> bool:
    text = block.text
    size = block.style.size
    if size < 0.93 * face.size:
        return False
    if text[0].islower():
        return False
    if size > 1.07 * face.size:
        return True
    if style.bold and not face.bold:
        return True
    if style.caps and size >= 0.97 * face.size:
        return True
    if plain_key(text) in UNNUMBERED:
        return True
    gap = block.style.gap_before
    alone = gap is None or gap > 0.6 * size
    other_face = style.family != face.family or style.color != face.color or style.italic
    return other_face and alone and len(text) < 90


def _may_number(numbering: Numbering, block: Block) -> bool:
    if numbering.scheme in (Scheme.PART, Scheme.CHAPTER, Scheme.APPENDIX, Scheme.ITEM):
        return True
    if not numbering.rest or numbering.rest[0].islower():
        return False
    return numbering.scheme in (
        Scheme.DECIMAL, Scheme.SECTION, Scheme.ARTICLE, Scheme.ROMAN, Scheme.LETTER,
    )  # fmt: skip
