"""Run-in headings: "**Scope.** This standard applies …", at the start of a paragraph.

Authors' own outlines hardly ever list such headings beside headings on lines of their own, so they
are sections where they are numbered in sequence, or where the document has hardly any other.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from bookrag_fast.document.model import Block, BlockKind, Document
from bookrag_fast.document.numbering import Numbering, Scheme, parse_numbering
from bookrag_fast.index.candidates import Candidate, style_of
from bookrag_fast.index.judging import sequence_members
from bookrag_fast.index.section import Heading, plain_key

__all__ = ["run_ins", "with_run_ins"]

MIN_ALIKE = 3  # in one style
MAX_TITLE = 80  # characters
MIN_REST = 20  # characters of the paragraph behind it
MAX_SAME = 2  # times that one title may come: "Note.", "Remark." are no headings
FEW_HEADINGS = 3  # fewer headings on lines of their own than this carry no document
MAX_LISTED = 0.6  # of the paragraphs that follow each other: more is a list of definitions …
SHORT = 160  # … where so many characters or fewer stand behind the words

_END = re.compile(r"[.:。：]\s*$")
_MARKS = " .:。：–—-"


@dataclass(frozen=True, slots=True)
class _RunIn:
    at: int
    block: Block
    title: str
    rest: str
    end: str
    numbering: Numbering | None


def with_run_ins(document: Document, headings: Sequence[Heading]) -> list[Heading]:
    """The headings with the run-in ones among them, in document order."""
    taken = {k for heading in headings for k in heading.blocks}
    found = [r for r in _candidates(document) if r.at not in taken]
    groups: dict[tuple[object, ...], list[_RunIn]] = defaultdict(list)
    for r in found:
        lead = r.block.lead
        assert lead is not None
        numbered = r.numbering is not None
        groups[(numbered, lead.bold, lead.italic, lead.family, r.end)].append(r)
    own = list(headings)
    out = list(headings)
    for members in groups.values():
        numbered = members[0].numbering is not None
        kept = [m for m, n in _with_counts(members) if numbered or n <= MAX_SAME]
        if numbered:
            kept = _in_sequence(document, own, kept)
        elif len(own) >= FEW_HEADINGS or _is_list(kept):
            continue
        if len(kept) >= MIN_ALIKE:
            out += [_heading(r, _level(r.numbering, own)) for r in kept]
    return sorted(out, key=lambda h: h.at)


def run_ins(document: Document) -> list[Heading]:
    """Everything that has the form of a run-in heading, whether it is one or not: level 0."""
    return [_heading(r, 0) for r in _candidates(document)]


def _candidates(document: Document) -> Iterator[_RunIn]:
    for k, block in enumerate(document.blocks):
        lead = block.lead
        if block.kind is not BlockKind.TEXT or lead is None or not (lead.bold or lead.italic):
            continue
        rest = block.text[len(lead.text) :]
        # The full stop may be set in either face.
        end = _END.search(lead.text) or re.match(r"\s*[.:。：](?=\s|$)", rest)
        title = lead.text.strip(_MARKS)
        numbering = parse_numbering(title)
        bare = numbering.rest if numbering is not None else title
        if (
            end is None
            or not 2 <= len(bare) <= MAX_TITLE
            or bare[0].islower()
            or not any(c.isalpha() for c in bare)
            or len(rest.strip(_MARKS)) < MIN_REST
        ):
            continue
        if numbering is not None and numbering.scheme not in (Scheme.DECIMAL, Scheme.SECTION):
            numbering = None
        yield _RunIn(k, block, title, rest.lstrip(_MARKS), end.group().strip(), numbering)


def _with_counts(members: Sequence[_RunIn]) -> Iterator[tuple[_RunIn, int]]:
    counts = Counter(plain_key(r.title) for r in members)
    return ((r, counts[plain_key(r.title)]) for r in members)


def _is_list(members: Sequence[_RunIn]) -> bool:
    """Definitions of terms, one after the other and short."""
    if len(members) < 2:
        return False
    next_to = sum(b.at == a.at + 1 for a, b in itertools.pairwise(members))
    short = median(len(r.rest) for r in members) <= SHORT
    return short and next_to > MAX_LISTED * (len(members) - 1)


def _in_sequence(
    document: Document, headings: Sequence[Heading], members: Sequence[_RunIn]
) -> list[_RunIn]:
    """Those whose numbers go on where other headings or run-ins stop."""
    known = [
        Candidate(h.at, document.blocks[h.at], style_of(document.blocks[h.at]),
                  parse_numbering(h.title), ["numbering", "typography"])
        for h in headings if h.blocks
    ]  # fmt: skip
    mine = [Candidate(r.at, r.block, style_of(r.block), r.numbering, ["numbering", "typography"])
            for r in members]  # fmt: skip
    held = sequence_members(sorted(known + mine, key=lambda c: c.at))
    return [r for r in members if r.at in held]


def _heading(r: _RunIn, level: int) -> Heading:
    return Heading(
        title=r.title,
        level=level,
        page=r.block.page,
        at=r.at,
        blocks=(r.at,),
        regions=r.block.regions,
        numbering=r.numbering.label if r.numbering else "",
        evidence=("run-in", "numbering") if r.numbering else ("run-in",),
        rest=r.rest,
    )


def _level(numbering: Numbering | None, headings: Sequence[Heading]) -> int:
    """By the depth of its number, as other headings have it; else below all others."""
    deepest = max((h.level for h in headings), default=0)
    if numbering is None:
        return deepest + 1
    offsets = Counter(
        h.level - n.depth
        for h in headings
        if (n := parse_numbering(h.title)) is not None and n.scheme is numbering.scheme
    )
    if offsets:
        return max(1, numbering.depth + offsets.most_common(1)[0][0])
    return deepest + numbering.depth
