"""Which candidates are headings, seen over the whole document.

A full printed contents list settles the matter for what it lists and for styles that it lists.
Without one, numbers in sequence and styles that hold up as a group decide.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median

from bookrag_fast.document.model import BlockKind, Document
from bookrag_fast.document.numbering import Scheme
from bookrag_fast.index.candidates import Candidate, StyleKey
from bookrag_fast.index.contents import PrintedContents
from bookrag_fast.index.section import match_key, plain_key

__all__ = ["is_full", "judged", "sequence_members"]

FULL_ENTRIES = 8  # a contents list of at least so many entries …
FULL_SHARE = 0.75  # … of which so many were found is trusted
LISTED_STYLE = 0.5  # a style of which half or more is listed is listed on purpose
MAX_REPEATS = 8
STEADY = 8  # members of a style below the numbered ones that is one of headings
MAX_PER_PAGE = 7.0

_CONTINUED = re.compile(r"[\s(–—-]*\b(?:continued|cont['’.]?d?)\b[.)]*\s*$", re.IGNORECASE)
_NAMED = (Scheme.PART, Scheme.CHAPTER, Scheme.APPENDIX, Scheme.ITEM)
_BEGINNINGS = {
    "abstract",
    "introduction",
    "executivesummary",
    "要旨",
    "概要",
    "はじめに",
    "аннотация",
}


def judged(
    candidates: Sequence[Candidate], document: Document, contents: PrintedContents
) -> list[Candidate]:
    """The candidates that hold up, with the evidence that counted."""
    numbered = sequence_members(candidates)
    for c in candidates:
        if c.at not in numbered and "numbering" in c.evidence:
            c.evidence.remove("numbering")
    candidates = [c for c in candidates if c.evidence]
    keep = _by_contents(candidates, contents) if is_full(contents) else _by_form(candidates)
    keep -= {c.at for c in candidates if "numbering" not in c.evidence and _in_a_row(c, document)}
    front = _front_end(candidates, contents)
    repeated = Counter(plain_key(c.block.text) for c in candidates)
    out = []
    for c in candidates:
        if c.listed_level or "markup" in c.evidence:
            out.append(c)
            continue
        if c.at not in keep or c.at < front:
            continue
        if repeated[plain_key(c.block.text)] > MAX_REPEATS and "numbering" not in c.evidence:
            continue
        out.append(c)
    goes_on = _continued(out, document)
    return [c for c in out if c.at not in goes_on]


def _continued(kept: Sequence[Candidate], document: Document) -> set[int]:
    """Headings said again at the top of the next page, where their section goes on."""
    out: set[int] = set()
    last: dict[StyleKey, Candidate] = {}
    for c in kept:
        before = last.get(c.style)
        tops_page = c.at > 0 and document.blocks[c.at - 1].page < c.block.page
        if (
            before is not None
            and tops_page
            and before.block.regions
            and c.block.page == before.block.regions[-1].page + 1
            and _said(c.block.text) == _said(before.block.text)
        ):
            out.add(c.at)
        last[c.style] = c
    return out


def _said(text: str) -> str:
    return plain_key(_CONTINUED.sub("", text))


def is_full(contents: PrintedContents) -> bool:
    """Whether a printed contents list is long and true enough to be trusted."""
    return len(contents.entries) >= FULL_ENTRIES and contents.found >= FULL_SHARE


def _in_a_row(candidate: Candidate, document: Document) -> bool:
    """Another short block stands beside it: a cell of a table that was not recognised as one."""
    if not candidate.block.regions:
        return False
    box = candidate.block.regions[0].bbox
    for k in range(max(0, candidate.at - 3), min(len(document.blocks), candidate.at + 4)):
        other = document.blocks[k]
        if k == candidate.at or other.page != candidate.block.page or len(other.text) > 60:
            continue
        if other.kind in (BlockKind.IMAGE, BlockKind.CAPTION):
            continue
        their = other.regions[0].bbox
        same_row = min(box.y1, their.y1) - max(box.y0, their.y0) > 0.5 * min(
            box.height, their.height
        )
        if same_row and max(their.x0 - box.x1, box.x0 - their.x1) < 150.0:
            return True
    return False


def _by_contents(candidates: Sequence[Candidate], contents: PrintedContents) -> set[int]:
    """Unlisted candidates beside a full contents list.

    A style of which the list names only a few is not what the list goes by, so its members stand
    on their own; a list of one level leaves the levels below to typography.
    """
    members: dict[StyleKey, list[Candidate]] = defaultdict(list)
    for c in candidates:
        members[c.style].append(c)
    flat = len({entry.level for entry in contents.entries}) == 1
    top = max((c.style.prominence for c in candidates if c.listed_level), default=(0.0,))
    keep: set[int] = set()
    for style, of_style in members.items():
        # Each part of a book with its own contents has a title that none of them lists.
        if contents.groups > 1 and style.prominence > top and style.size > 1.1 * top[0]:
            keep |= {c.at for c in of_style}
        listed = sum(bool(c.listed_level) for c in of_style)
        on_its_own = 0 < listed <= LISTED_STYLE * len(of_style) or (flat and listed == 0)
        if on_its_own and _style_holds(of_style):
            keep |= {c.at for c in of_style if "typography" in c.evidence}
    return keep


def _by_form(candidates: Sequence[Candidate]) -> set[int]:
    members: dict[StyleKey, list[Candidate]] = defaultdict(list)
    for c in candidates:
        members[c.style].append(c)
    holds = {style: _style_holds(of_style) for style, of_style in members.items()}
    both = [c for c in candidates if len(set(c.evidence) & {"numbering", "typography"}) == 2]
    marked_depths = Counter(_depth(c) for c in both)
    numbered_styles = {c.style for c in both}
    # Where numbers carry the outline, a style below all numbered ones is below the outline.
    deepest = min((s.prominence for s in numbered_styles), default=None)
    decided_by_numbers = len(both) >= 8 and len(both) >= 0.3 * sum(
        "typography" in c.evidence for c in candidates
    )
    keep: set[int] = set()
    for c in candidates:
        if "numbering" in c.evidence:
            plain = "typography" not in c.evidence
            if plain and marked_depths[_depth(c)] >= 2:
                continue  # the headings of this depth have a style, and this is not one
            keep.add(c.at)
        elif holds[c.style]:
            below = deepest is not None and c.style.prominence < deepest
            if not (decided_by_numbers and below) or _is_steady(members[c.style]):
                keep.add(c.at)
    return keep


def _is_steady(members: Sequence[Candidate]) -> bool:
    """A bold style that stands apart from the text below it every time, all over the book: the
    lowest headings go without numbers there."""
    if len(members) < STEADY or not members[0].style.bold:
        return False
    gaps = [c.block.style.gap_before for c in members]
    apart = sum(gap is None or gap > 0.9 * c.block.style.size
                for c, gap in zip(members, gaps, strict=True))  # fmt: skip
    return apart >= 0.9 * len(members)


def _depth(c: Candidate) -> tuple[str, int]:
    return (c.numbering.scheme.value, c.numbering.depth) if c.numbering else ("", 0)


def _front_end(candidates: Sequence[Candidate], contents: PrintedContents) -> int:
    """The block up to which there is only a cover, a title, authors: no sections of the book."""
    end = 0
    if contents.pages:
        end = next((c.at for c in candidates if c.block.page > contents.front), 0)
    first_page = [c for c in candidates if c.block.page == 1]
    for c in first_page:
        if match_key(c.block.text) in _BEGINNINGS:
            return max(end, c.at)
    for c in first_page:
        if c.listed_level or ("numbering" in c.evidence and "typography" in c.evidence):
            return max(end, c.at)
    return end


def _style_holds(members: Sequence[Candidate]) -> bool:
    """A style is one of headings when its members are short and not crowded on their pages."""
    if median(len(c.block.text) for c in members) > 110:
        return False
    pages = {c.block.page for c in members}
    if pages == {0}:
        return True  # no pages to be crowded on
    return len(members) / len(pages) <= MAX_PER_PAGE


def sequence_members(candidates: Sequence[Candidate]) -> set[int]:
    """Blocks whose number continues a sequence, or starts one that is continued."""
    out: set[int] = set()
    last: dict[tuple[Scheme, tuple[int, ...]], tuple[int, Candidate]] = {}
    for c in candidates:
        n = c.numbering
        if n is None or "numbering" not in c.evidence:
            continue
        if n.scheme in _NAMED:
            out.add(c.at)
            continue
        parent, value = n.values[:-1], n.values[-1]
        before = last.get((n.scheme, parent))
        if before is not None and 0 < value - before[0] <= 2:
            # Items that follow each other directly make a list, not headings.
            beside = c.at - before[1].at <= 1 and c.block.page == before[1].block.page
            plain = "typography" not in c.evidence
            if not (beside and plain):
                out.add(c.at)
                if not (plain and "typography" in before[1].evidence):
                    out.add(before[1].at)
        elif n.depth > 1 and value <= 1:
            out.add(c.at)
        above = last.get((n.scheme, parent[:-1])) if parent and c.at in out else None
        if above is not None and above[0] == parent[-1]:
            out.add(above[1].at)  # "7" before "7.1", though there is no 6 and no 8
        last[(n.scheme, parent)] = (value, c)
    return out
