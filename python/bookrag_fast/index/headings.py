"""Headings without an outline: levels that the source states, contents pages, numbering and
typography weighed together."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from bookrag_fast.document.model import Document
from bookrag_fast.document.numbering import Scheme, parse_numbering
from bookrag_fast.index.candidates import Candidate, StyleKey, candidates_of
from bookrag_fast.index.contents import PrintedContents
from bookrag_fast.index.judging import is_full, judged
from bookrag_fast.index.runin import run_ins, with_run_ins
from bookrag_fast.index.section import Heading, plain_key

__all__ = ["ByForm", "headings_by_form", "set_levels"]

_UNIT = re.compile(
    r"(?<=\S)\s*[(（](?:in|unaudited|dollars|amounts|単位)\b[^()（）]*[)）]$", re.IGNORECASE
)


class ByForm(NamedTuple):
    """Headings with what most of them rest on: "markup", "contents-page", "numbering", else
    "typography"; "run-in" where there are only such, "none" where there are none. And the
    candidates that are none, with level 0, in document order."""

    headings: list[Heading]
    source: str
    rejected: list[Heading]


def headings_by_form(document: Document, contents: PrintedContents) -> ByForm:
    """Which blocks are headings by what they look like and what lists them."""
    title_blocks = _title_blocks(document)
    candidates = [
        c
        for c in candidates_of(document, contents)
        if c.block.level is not None
        or (c.at not in title_blocks and c.block.page not in contents.pages)
    ]
    kept = judged(candidates, document, contents)
    headings: list[Heading] = []
    if kept:
        set_levels(kept)
        headings = _labels_joined([_heading(c) for c in kept], kept)
    if not kept or not is_full(contents):  # a full list settles what the headings are
        headings = with_run_ins(document, headings)
    source = _source(kept) if kept else "run-in" if headings else "none"
    return ByForm(headings, source, _rejected(document, contents, candidates, headings))


def _heading(c: Candidate) -> Heading:
    title, unit = _without_unit(c.block.text.replace("\n", " "))
    return Heading(
        title=title,
        level=c.level,
        page=c.block.page,
        at=c.at,
        blocks=(c.at,),
        regions=c.block.regions,
        numbering=c.numbering.label if c.numbering and "numbering" in c.evidence else "",
        evidence=tuple(c.evidence),
        rest=unit,
    )


def _source(kept: Sequence[Candidate]) -> str:
    for kind in ("markup", "contents-page", "numbering"):
        if 2 * sum(kind in c.evidence for c in kept) > len(kept):
            return kind
    return "typography"


def _rejected(
    document: Document,
    contents: PrintedContents,
    candidates: Sequence[Candidate],
    headings: Sequence[Heading],
) -> list[Heading]:
    """Candidates that did not become headings, the ones within paragraphs among them."""
    taken = {k for heading in headings for k in heading.blocks}
    out = {c.at: _heading(c) for c in candidates if c.at not in taken}
    for heading in run_ins(document):
        if heading.at not in taken and heading.page not in contents.pages:
            out[heading.at] = heading
    return [out[at] for at in sorted(out)]


def _without_unit(text: str) -> tuple[str, str]:
    """A title and the unit of the figures below it: "Balance Sheets", "(In millions)"."""
    match = _UNIT.search(text)
    return (text[: match.start()].rstrip(), match.group().strip()) if match else (text, "")


def _labels_joined(headings: list[Heading], kept: list[Candidate]) -> list[Heading]:
    """ "Chapter 3" on a line of its own and the title below it are one heading."""
    out: list[Heading] = []
    for heading, c in zip(headings, kept, strict=True):
        before = out[-1] if out else None
        if (
            before is not None
            and before.blocks[-1] == c.at - 1
            and before.page == heading.page
            and len(before.blocks) == 1
            and (label := parse_numbering(before.title)) is not None
            and not label.rest
            and label.scheme in (Scheme.PART, Scheme.CHAPTER, Scheme.APPENDIX)
            and parse_numbering(heading.title) is None
        ):
            before.title = f"{before.title} {heading.title}"
            before.blocks += heading.blocks
            before.regions += heading.regions
            before.evidence = tuple(dict.fromkeys(before.evidence + heading.evidence))
            continue
        out.append(heading)
    return out


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


def set_levels(kept: list[Candidate]) -> None:
    """Levels as stated where they are, from numbering depth where there is one, from the style's
    rank otherwise."""
    schemes = {c.numbering.scheme for c in kept if c.numbering and "numbering" in c.evidence}
    has_part = Scheme.PART in schemes
    has_chapter = Scheme.CHAPTER in schemes or Scheme.ITEM in schemes
    base = 1 + int(has_part)
    # A contents list of one level says nothing about levels.
    flat = len({c.listed_level for c in kept if c.listed_level}) == 1
    for c in kept:
        n = c.numbering
        if c.block.level is not None:
            c.level = c.block.level
            continue
        if c.listed_level and not flat:
            c.level = c.listed_level
            continue
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
    # Styles that stand out alike keep the order of the document.
    styles = dict.fromkeys(c.style for c in kept)
    ranked = sorted(styles, key=lambda s: s.prominence, reverse=True)
    known = [k for k, key in enumerate(ranked) if key in style_level]
    above = len({key.prominence for key in ranked[: known[0]]}) if known else 0
    # Styles above the first one whose level is known lead up to it; jumps are closed later.
    current = style_level[ranked[known[0]]] - above - 1 if known else 0
    last_prominence: tuple[float, ...] | None = None
    for key in ranked:
        if key in style_level:
            current = style_level[key]
        else:
            current += last_prominence != key.prominence
            style_level[key] = current
        last_prominence = key.prominence
    for c in kept:
        if not c.level:
            c.level = style_level[c.style]
    lowest = min(c.level for c in kept)
    for c in kept:
        c.level += 1 - lowest
