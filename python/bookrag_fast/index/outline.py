"""Headings from the PDF's own outline, where it is sound."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Sequence

from rapidfuzz import fuzz

from bookrag_fast.document.model import BlockKind, Document, OutlineEntry
from bookrag_fast.document.numbering import parse_numbering
from bookrag_fast.index.section import Heading, close_levels, match_key, plain_key

__all__ = ["headings_from_outline", "usable_entries"]

_JUNK = re.compile(
    r"^(?:page|pages|p\.?|slide|folie|seite|scan|img|image|sheet|стр\w*\.?|ページ|頁|スライド|bookmark"
    r"|untitled|無題|_goback|ole_link)[\s_\-:#.]*[0-9ivxlc]*(?:\s*(?:of|/)\s*\d+)?$"
    r"|^[\w\-. ()]+\.(?:tiff?|jpe?g|png|pdf|docx?|indd|eps|pptx?)$|^[\W\d_]*$",
    re.IGNORECASE,
)
_NO_TITLES = (BlockKind.TABLE, BlockKind.IMAGE)
MIN_SIMILARITY = 88.0
MIN_FOUND = 0.35  # share of entries whose title stands on their page


def usable_entries(document: Document) -> tuple[list[OutlineEntry], list[str]]:
    """The outline if it is sound, else nothing, with warnings that say what was wrong."""
    entries = [e for e in document.outline if e.title.strip()]
    if not entries:
        warnings = ["the PDF outline has no titles and is ignored"] if document.outline else []
        return [], warnings
    warnings = []
    last = len(document.pages)
    beyond = [e for e in entries if e.page > last]
    if beyond:
        warnings.append(
            f"{len(beyond)} outline entries point beyond the last page ({last}): clamped to it"
        )
        entries = [
            OutlineEntry(e.title, e.level, last, None) if e.page > last else e for e in entries
        ]
    lost = sum(e.page < 1 for e in entries)
    if lost:
        warnings.append(f"{lost} outline entries lead nowhere and are left out")
        entries = [e for e in entries if e.page >= 1]
    reason = _unsound(entries, lost, last)
    if reason:
        return [], [*warnings, f"the PDF outline is ignored: {reason}"]
    return entries, warnings


def _unsound(entries: Sequence[OutlineEntry], lost: int, page_count: int) -> str:
    count = len(entries)
    if count == 0 or lost > count:
        return "most entries lead nowhere"
    junk = sum(bool(_JUNK.match(e.title.strip())) for e in entries)
    if junk > 0.3 * count:
        return f'{junk} of {count} titles are no titles ("{entries[0].title[:40]}")'
    if page_count > 3 and count >= 3 and len({e.page for e in entries}) == 1:
        return f"all {count} entries lead to page {entries[0].page}"
    if count > 40 * page_count:
        return f"{count} entries for {page_count} pages"
    back = sum(b.page < a.page for a, b in itertools.pairwise(entries))
    if count >= 4 and back > 0.2 * (count - 1):
        return "its pages are out of order"
    if len({plain_key(e.title) for e in entries}) < 0.34 * count:
        return "its titles repeat each other"
    return ""


def headings_from_outline(
    document: Document, entries: Sequence[OutlineEntry], *, kind: str = "outline"
) -> tuple[list[Heading], float]:
    """Headings of the entries, each tied to the block that prints it, and the share found.

    ``kind`` is the evidence that the entries are.
    """
    on_page: dict[int, list[int]] = defaultdict(list)
    for k, block in enumerate(document.blocks):
        on_page[block.page].append(k)
    first_after = _first_block_by_page(document)
    used: set[int] = set()
    found = 0
    out: list[Heading] = []
    reached = 0
    for entry in entries:
        blocks = _printed(document, entry, on_page, used, reached)
        if blocks:
            found += 1
            used.update(blocks)
            block = document.blocks[blocks[0]]
            at = max(blocks[0], reached)
            page = block.page if block.page == entry.page or blocks else entry.page
            regions = tuple(r for k in blocks for r in document.blocks[k].regions)
            rest = _rest(entry.title, document.blocks[blocks[-1]].text) if len(blocks) == 1 else ""
        else:
            at = max(_place(document, entry, on_page, first_after), reached)
            page, regions, rest = entry.page, (), ""
        numbering = parse_numbering(entry.title)
        printed = parse_numbering(document.blocks[blocks[0]].text) if blocks else None
        out.append(
            Heading(
                title=entry.title,
                level=entry.level,
                page=page,
                at=at,
                blocks=blocks,
                regions=regions,
                numbering=(numbering or printed).label if (numbering or printed) else "",  # type: ignore[union-attr]
                evidence=(kind, "printed") if blocks and kind == "outline" else (kind,),
                rest=rest,
            )
        )
        reached = at
    close_levels(out)
    return out, found / len(entries) if entries else 0.0


def _first_block_by_page(document: Document) -> list[int]:
    """For each page the first block on it or after it."""
    count = len(document.pages)
    first = [len(document.blocks)] * (count + 2)
    for k in range(len(document.blocks) - 1, -1, -1):
        first[document.blocks[k].page] = k
    for page in range(count, 0, -1):
        first[page] = min(first[page], first[page + 1])
    return first


def _printed(
    document: Document,
    entry: OutlineEntry,
    on_page: dict[int, list[int]],
    used: set[int],
    reached: int,
) -> tuple[int, ...]:
    """The blocks that print the entry's title: on its page, else on a neighbouring one."""
    wanted, whole = match_key(entry.title), plain_key(entry.title)
    if not wanted:
        return ()
    for page in (entry.page, entry.page + 1, entry.page - 1):
        best: tuple[int, ...] = ()
        best_score = 0.0
        indices = on_page.get(page, [])
        for position, k in enumerate(indices):
            if k in used or document.blocks[k].kind in _NO_TITLES:
                continue
            score = _likeness(wanted, whole, document.blocks[k].text)
            group: tuple[int, ...] = (k,)
            if position + 1 < len(indices) and len(document.blocks[k].text) < len(entry.title):
                after = indices[position + 1]
                # Signs alone and tables are part of no title: taken for one they would be lost.
                signs = not all(plain_key(document.blocks[i].text) for i in (k, after))
                if signs or document.blocks[after].kind in _NO_TITLES:
                    after = k
                both = f"{document.blocks[k].text} {document.blocks[after].text}"
                together = _likeness(wanted, whole, both)
                if after != k and after not in used and together > score + 1.0:
                    score, group = together, (k, after)
            if score < MIN_SIMILARITY:
                continue
            if document.blocks[k].kind is BlockKind.TITLE:
                score += 3.0
            if k >= reached:
                score += 4.0
            if entry.top is not None and page == entry.page:
                distance = abs(document.blocks[k].regions[0].bbox.y0 - entry.top)
                score -= min(distance, 400.0) / 80.0
            if score > best_score:
                best, best_score = group, score
        if best:
            return best
    return ()


def _likeness(wanted: str, whole: str, text: str) -> float:
    """0 … 100, 100 for the same title; a paragraph that begins with the title counts as 92."""
    if len(text) > 2000:
        text = text[: 2 * len(whole) + 60]
    key, stripped = plain_key(text), match_key(text)
    if key == whole or stripped == wanted:
        return 100.0
    if len(key) < 0.5 * len(wanted):
        return 0.0
    if len(key) > 1.3 * len(whole) + 3:
        if len(wanted) >= 4 and (key.startswith(whole) or stripped.startswith(wanted)):
            return 92.0
        return 0.0
    return float(max(fuzz.ratio(key, whole), fuzz.ratio(stripped, wanted)))


def _rest(title: str, text: str) -> str:
    """What follows the title in a block that begins with it; "" when nothing does."""
    whole = plain_key(title)
    if len(plain_key(text)) <= 1.3 * len(whole) + 3:
        return ""
    target = whole if plain_key(text).startswith(whole) else match_key(title)
    start = 0
    if target is not whole:
        numbering = parse_numbering(text)
        start = len(text) - len(numbering.rest) if numbering else 0
    # Walk until the title's letters are used up.
    seen = ""
    for position in range(max(start, 0), len(text)):
        seen += plain_key(text[position])
        if len(seen) >= len(target):
            return text[position + 1 :].lstrip(" .:—–-\n")
    return ""


def _place(
    document: Document,
    entry: OutlineEntry,
    on_page: dict[int, list[int]],
    first_after: list[int],
) -> int:
    """The block before which an entry that is not printed starts."""
    if entry.top is not None:
        for k in on_page.get(entry.page, []):
            if document.blocks[k].regions[0].bbox.y0 >= entry.top - 3:
                return k
        if on_page.get(entry.page):
            return on_page[entry.page][-1] + 1
    return first_after[min(entry.page, len(first_after) - 1)]
