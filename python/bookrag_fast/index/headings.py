"""Headings without an outline: numbering and typography weighed together, over the whole document.

A block is a candidate when its form allows it (short, no sentence) and something marks it: a style
that stands out from the running text, or a number that fits into a sequence. Styles are judged as
groups, since a heading style is used again and again while a chance emphasis is not.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bookrag_fast.document.model import Block, BlockKind, Document
from bookrag_fast.document.numbering import Numbering, Scheme, parse_numbering
from bookrag_fast.index.section import Heading, plain_key

__all__ = ["Candidate", "StyleKey", "candidates_of", "headings_by_form"]

MAX_CHARACTERS = 180
MAX_LINES = 4

_SENTENCE_END = re.compile(r"[.;,。、；，]$")
_ABBREVIATION_END = re.compile(r"\b(?:inc|ltd|co|corp|etc|al|vs|no|jr|sr|u\.s)\.$", re.IGNORECASE)
_UNNUMBERED = {
    "abstract", "acknowledgments", "acknowledgements", "references", "bibliography", "appendix",
    "introduction", "conclusion", "conclusions", "foreword", "preface", "index", "glossary",
    "contents", "tableofcontents", "目次", "はじめに", "おわりに", "参考文献", "謝辞", "付録", "索引",
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


def candidates_of(document: Document) -> list[Candidate]:
    """Blocks whose form and mark allow a heading."""
    face = body_face(document.blocks)
    out: list[Candidate] = []
    for k, block in enumerate(document.blocks):
        if block.kind not in (BlockKind.TITLE, BlockKind.TEXT) or not _form_allows(block):
            continue
        numbering = parse_numbering(block.text)
        style = style_of(block)
        evidence = []
        if _stands_out(block, style, face):
            evidence.append("typography")
        if numbering is not None and _may_number(numbering, block):
            evidence.append("numbering")
        if evidence:
            out.append(Candidate(k, block, style, numbering, evidence))
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
    if plain_key(text) in _UNNUMBERED:
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


def headings_by_form(document: Document) -> tuple[list[Heading], str]:
    """Headings and what they mainly rest on ("numbering" or "typography")."""
    candidates = candidates_of(document)
    title_blocks = _title_blocks(document)
    candidates = [c for c in candidates if c.at not in title_blocks]
    kept = _judged(candidates, document)
    if not kept:
        return [], "pages"
    set_levels(kept)
    headings = [
        Heading(
            title=c.block.text.replace("\n", " "),
            level=c.level,
            page=c.block.page,
            at=c.at,
            blocks=(c.at,),
            regions=c.block.regions,
            numbering=c.numbering.label if c.numbering and "numbering" in c.evidence else "",
            evidence=tuple(c.evidence),
        )
        for c in kept
    ]
    numbered = sum("numbering" in c.evidence for c in kept)
    return headings, "numbering" if 2 * numbered > len(kept) else "typography"


def _title_blocks(document: Document) -> set[int]:
    """Blocks of page 1 that print the document's title."""
    if not document.title:
        return set()
    wanted = plain_key(document.title)
    out = set()
    for k, block in enumerate(document.blocks):
        if block.page > 2:
            break
        key = plain_key(block.text)
        if len(key) > 3 and key in wanted and len(key) > 0.25 * len(wanted):
            out.add(k)
    return out


def _judged(candidates: list[Candidate], document: Document) -> list[Candidate]:
    """The candidates that hold up when the document is seen as a whole."""
    in_sequence = sequence_members(candidates)
    groups: dict[StyleKey, list[Candidate]] = defaultdict(list)
    for c in candidates:
        groups[c.style].append(c)
    good_style = {key: _style_holds(members, document) for key, members in groups.items()}
    repeated = Counter((plain_key(c.block.text)) for c in candidates)
    out = []
    for c in candidates:
        if c.at not in in_sequence and "numbering" in c.evidence:
            c.evidence.remove("numbering")
        if repeated[plain_key(c.block.text)] > 4 and "numbering" not in c.evidence:
            continue
        typographic = "typography" in c.evidence and good_style[c.style]
        if typographic or "numbering" in c.evidence:
            if not typographic and "typography" in c.evidence:
                c.evidence.remove("typography")
            out.append(c)
    return out


def _style_holds(members: list[Candidate], document: Document) -> bool:
    lengths = [len(c.block.text) for c in members]
    if median(lengths) > 110:
        return False
    pages = {c.block.page for c in members}
    return len(members) / len(pages) <= 9


def sequence_members(candidates: list[Candidate]) -> set[int]:
    """Blocks whose number continues a sequence, or starts one that is continued."""
    out: set[int] = set()
    last: dict[tuple[Scheme, tuple[int, ...]], tuple[int, Candidate]] = {}
    for c in candidates:
        n = c.numbering
        if n is None:
            continue
        if n.scheme in (Scheme.PART, Scheme.CHAPTER, Scheme.APPENDIX, Scheme.ITEM):
            out.add(c.at)
            continue
        parent, value = n.values[:-1], n.values[-1]
        before = last.get((n.scheme, parent))
        if before is not None and 0 < value - before[0] <= 2:
            out.add(c.at)
            out.add(before[1].at)
        elif n.depth > 1 and value <= 1:
            # x.1 needs its parent x, which may be printed anywhere before.
            out.add(c.at)
        last[(n.scheme, parent)] = (value, c)
    return out


_RANK = {
    Scheme.PART: 0.0,
    Scheme.CHAPTER: 1.0,
    Scheme.APPENDIX: 1.0,
    Scheme.ITEM: 1.0,
    Scheme.SECTION: 2.0,
    Scheme.ARTICLE: 2.5,
}


def set_levels(kept: list[Candidate]) -> None:
    """Levels from numbering depth where there is one, from the style's rank otherwise."""
    schemes = {c.numbering.scheme for c in kept if c.numbering and "numbering" in c.evidence}
    has_part = Scheme.PART in schemes
    has_chapter = Scheme.CHAPTER in schemes or Scheme.ITEM in schemes
    base = 1 + int(has_part)
    for c in kept:
        n = c.numbering
        if n is None or "numbering" not in c.evidence:
            continue
        if n.scheme is Scheme.PART:
            c.level = 1
        elif n.scheme in (Scheme.CHAPTER, Scheme.APPENDIX, Scheme.ITEM):
            c.level = base
        elif n.scheme in (Scheme.DECIMAL,):
            c.level = base + n.depth - 1
            if n.depth == 1 and has_chapter:
                c.level = base + 1
    by_style: dict[StyleKey, list[int]] = defaultdict(list)
    for c in kept:
        if c.level:
            by_style[c.style].append(c.level)
    style_level: dict[StyleKey, int] = {
        key: Counter(levels).most_common(1)[0][0] for key, levels in by_style.items()
    }
    ranked = sorted({c.style for c in kept}, key=lambda s: s.prominence, reverse=True)
    current, last_prominence = 0, None
    for key in ranked:
        if key in style_level:
            current = style_level[key]
        elif last_prominence != key.prominence:
            current += 1
            style_level[key] = current
        else:
            style_level[key] = max(current, 1)
        last_prominence = key.prominence
    for c in kept:
        if not c.level:
            c.level = style_level[c.style]
