"""Printed contents pages: found, read, and tied to the headings that they list."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rapidfuzz import fuzz

from bookrag_fast.document.analysis.rows import split_entry
from bookrag_fast.document.model import Block, BlockKind, Document
from bookrag_fast.document.numbering import Scheme, parse_numbering, roman_value
from bookrag_fast.index.section import match_key, plain_key

__all__ = ["ContentsEntry", "PrintedContents", "read_contents"]

MAX_SHARE = 0.35  # contents pages stand in the first part of a book
MIN_ENTRIES = 4
MAX_HANG = 40.0  # points: further in stands not the rest of a title but an entry below it
MIN_SIMILARITY = 90.0

_TITLE = {
    "contents", "tableofcontents", "目次", "目次一覧", "содержание", "оглавление", "inhalt",
    "inhaltsverzeichnis", "sommaire", "indice",
}  # fmt: skip
_OTHER_LISTS = (
    "listof", "tablesand", "figuresand", "図目次", "表目次", "図表目次", "списокрисунков",
    "списоктаблиц",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ContentsEntry:
    """A line of a contents page. ``level`` is 1 for the top; ``value`` is the printed page."""

    title: str
    label: str
    value: int
    roman: bool
    level: int


@dataclass(slots=True)
class PrintedContents:
    """Pages that are contents pages, and what their entries were tied to.

    ``levels`` maps a block that prints a listed heading to the entry's level.
    """

    pages: set[int] = field(default_factory=set)
    entries: list[ContentsEntry] = field(default_factory=list)
    levels: dict[int, int] = field(default_factory=dict)
    groups: int = 0
    front: int = 0  # last page of the first list: what stands before is front matter
    beyond: int = 0  # entries whose pages come after the last one of the file

    @property
    def found(self) -> float:
        """Share of the entries that were tied to a heading."""
        return len(self.levels) / len(self.entries) if self.entries else 0.0


def read_contents(document: Document) -> PrintedContents:
    """All contents pages of a document, also those of its parts further back.

    A group of contents pages lists what stands between it and the next group, so that parts whose
    page numbers start again at 1 do not get into each other's way.
    """
    out = PrintedContents()
    if not document.pages:
        return out
    rows_by_page: dict[int, list[tuple[float, str]]] = defaultdict(list)
    limit = max(3, min(40, int(MAX_SHARE * len(document.pages))))
    named = {block.page for block in document.blocks if _names_contents(block)}
    for block in document.blocks:
        if block.page <= limit or block.page in named or block.page - 1 in named:
            rows_by_page[block.page].extend(_rows(block))
    groups: list[tuple[int, list[tuple[float, tuple[str, str, str]]]]] = []
    last, other_list = -9, False
    for page in sorted(rows_by_page):
        entries = _entries_of_page(rows_by_page[page], last == page - 1)
        if not entries:
            continue
        if page > last + 2:
            if groups and page not in named:
                continue  # a table of numbers; only the first list may go without a title
            groups.append((page, []))
            other_list = False
        last = page
        out.pages.add(page)
        if len(groups) == 1:
            out.front = page
        # A list of figures or tables may start on the page on which the contents end.
        for x, match, heading in entries:
            if heading:
                other_list = heading not in _TITLE
            if match is not None and not other_list:
                groups[-1][1].append((x, match))
    until = [*(page for page, _ in groups[1:]), len(document.pages) + 1][: len(groups)]
    for (first, found), end in zip(groups, until, strict=True):
        entries_of_group = _levelled(found)
        out.entries += entries_of_group
        # The first list may name what stands before it: a preface, the contents themselves.
        _tie(document, out, entries_of_group, 1 if first == groups[0][0] else first, end)
    out.groups = len(groups)
    return out


def _names_contents(block: Block) -> bool:
    return len(block.text) < 30 and plain_key(block.text) in _TITLE


def _rows(block: Block) -> Iterator[tuple[float, str]]:
    """Rows of a block with the x at which they start, in points."""
    if block.kind is BlockKind.IMAGE or not block.regions:
        return
    left = block.regions[0].bbox.x0
    unit = 0.6 * max(block.style.size, 1.0)
    for line in block.text.split("\n"):
        text = line.strip()
        if text:
            yield left + (len(line) - len(line.lstrip())) * unit, text


def _entries_of_page(
    rows: Sequence[tuple[float, str]], before: bool
) -> list[tuple[float, tuple[str, str, str] | None, str]]:
    """Entries of a page if it is a contents page, else nothing.

    A row that names a list ("Contents", "List of Tables") comes as an entry without a match, with
    its key.
    """
    titled = any(plain_key(text) in _TITLE for _, text in rows)
    entries: list[tuple[float, tuple[str, str, str]]] = []
    out: list[tuple[float, tuple[str, str, str] | None, str]] = []
    strong = 0
    pending: tuple[float, str] | None = None
    for x, text in rows:
        match = None if _is_bare_label(text) else split_entry(text)
        if match is not None and any(c.isalpha() for c in match[0]):
            gap = match[1]
            strong += len(gap) > 1 or "|" in gap or "." in gap
            wrapped = pending is not None and x - pending[0] < MAX_HANG
            if pending is not None and wrapped and not parse_numbering(text):
                joined = split_entry(f"{pending[1]} {text}")
                if joined is not None:
                    match, x = joined, pending[0]
            entries.append((x, match))
            out.append((x, match, ""))
            pending = None
        else:
            key = plain_key(text)
            if key in _TITLE or (len(key) < 30 and key.startswith(_OTHER_LISTS)):
                out.append((x, None, key))
                pending = None
            else:
                pending = (x, text) if len(text) < 160 else None
    values = [v for v in (_value(m[2])[0] for _, m in entries) if v is not None]
    rising = sum(a <= b for a, b in itertools.pairwise(values))
    ordered = rising >= 0.75 * max(1, len(values) - 1)
    many = len(entries) >= MIN_ENTRIES and len(entries) >= 0.4 * len(rows)
    if many and ordered and (strong >= 0.5 * len(entries) or titled or before):
        return out
    if titled and ordered and len(entries) >= 3:
        return out
    return []


def _is_bare_label(text: str) -> bool:
    """ "PART II" divides a contents list; its number is no page."""
    numbering = parse_numbering(text.replace("|", " "))
    named = (Scheme.PART, Scheme.CHAPTER, Scheme.APPENDIX)
    return numbering is not None and not numbering.rest and numbering.scheme in named


def _value(label: str) -> tuple[int | None, bool]:
    if label.isdigit():
        return int(label), False
    roman = roman_value(label)
    if roman:
        return roman, True
    tail = label.rpartition("-")[2]
    return (int(tail) if tail.isdigit() else None), False


def _levelled(found: Sequence[tuple[float, tuple[str, str, str]]]) -> list[ContentsEntry]:
    """Entries with levels: by numbering where there is one, by indent otherwise."""
    indents = _indent_ranks([x for x, _ in found])
    numbered_levels: dict[int, list[int]] = defaultdict(list)
    parsed = [parse_numbering(m[0]) for _, m in found]
    depths = [
        n.depth if n is not None and n.scheme is Scheme.DECIMAL and n.rest else None for n in parsed
    ]
    chapters = any(n is not None and n.scheme is Scheme.CHAPTER for n in parsed)
    parts = any(n is not None and n.scheme is Scheme.PART for n in parsed)
    first = 1 + int(parts)
    levels: list[int | None] = []
    for n, depth, indent in zip(parsed, depths, indents, strict=True):
        level: int | None = None
        if depth is not None:
            level = first + depth - 1 + int(chapters and depth == 1)
        elif n is not None and n.scheme is Scheme.PART:
            level = 1
        elif n is not None and n.scheme in (Scheme.CHAPTER, Scheme.APPENDIX, Scheme.ITEM):
            level = first
        levels.append(level)
        if level is not None:
            numbered_levels[indent].append(level)
    by_indent = {
        indent: Counter(of_indent).most_common(1)[0][0]
        for indent, of_indent in numbered_levels.items()
    }
    out = []
    for (_, match), level, indent in zip(found, levels, indents, strict=True):
        if level is None:
            level = by_indent.get(indent)
        if level is None:
            near = [k for k in by_indent if k < indent]
            level = by_indent[max(near)] + 1 if near else indent + 1
        value, roman = _value(match[2])
        if value is not None:
            title = match[0].strip(" .|·…")
            out.append(ContentsEntry(title, match[2], value, roman, level))
    return out


def _indent_ranks(xs: Sequence[float]) -> list[int]:
    """0 for the leftmost indent, 1 for the next, …; indents within 5 points are one."""
    edges: list[float] = []
    for x in sorted(xs):
        if not edges or x - edges[-1] > 5.0:
            edges.append(x)
    return [max(k for k, edge in enumerate(edges) if x >= edge - 0.01) for x in xs]


def _tie(
    document: Document,
    contents: PrintedContents,
    entries: Sequence[ContentsEntry],
    first: int,
    end: int,
) -> None:
    """Finds for each entry the block that prints its heading, on the pages [first, end)."""
    by_key: dict[str, list[int]] = defaultdict(list)
    for k, block in enumerate(document.blocks):
        if not first <= block.page < end:
            continue
        if block.page in contents.pages or block.kind in (BlockKind.TABLE, BlockKind.IMAGE):
            continue
        if len(block.text) <= 260 and block.line_count <= 5:
            key = match_key(block.text)
            if key:
                by_key[key].append(k)
    offset = {roman: _offset(document, entries, by_key, roman) for roman in (False, True)}
    reached = -1
    for entry in entries:
        page = None
        if offset[entry.roman] is not None:
            page = entry.value + (offset[entry.roman] or 0)
        choices = [k for k in by_key.get(match_key(entry.title), ()) if k not in contents.levels]
        if page is not None:
            near = [k for k in choices if abs(document.blocks[k].page - page) <= 1]
            choices = near or []
        whole = plain_key(entry.title)
        best = min(
            choices,
            key=lambda k: (
                # "6.1.1 Service" rather than a "SERVICE" near it.
                plain_key(document.blocks[k].text) != whole,
                abs(document.blocks[k].page - (page or 0)) if page else 0,
                k < reached,
                k,
            ),
            default=None,
        )
        if best is None and page is not None:
            best = _fuzzy(document, by_key, contents, entry.title, page)
            contents.beyond += best is None and page > len(document.pages)
        if best is not None:
            contents.levels[best] = entry.level
            reached = best


def _offset(
    document: Document,
    entries: Sequence[ContentsEntry],
    by_key: dict[str, list[int]],
    roman: bool,
) -> int | None:
    """Physical minus printed page number, by vote of the titles found; None when they disagree."""
    votes: Counter[int] = Counter()
    total = 0
    for entry in entries:
        if entry.roman is not roman:
            continue
        places = {document.blocks[k].page for k in by_key.get(match_key(entry.title), ())}
        if places:
            total += 1
            votes.update(page - entry.value for page in places)
    if not votes:
        return None
    value, count = votes.most_common(1)[0]
    return value if count >= max(1, 0.4 * total) else None


def _fuzzy(
    document: Document,
    by_key: dict[str, list[int]],
    contents: PrintedContents,
    title: str,
    page: int,
) -> int | None:
    wanted = match_key(title)
    best, best_score = None, MIN_SIMILARITY
    for key, indices in by_key.items():
        for k in indices:
            if document.blocks[k].page != page or k in contents.levels:
                continue
            score = fuzz.ratio(key, wanted)
            if len(wanted) >= 12 and key.startswith(wanted[:40]) and len(key) < 1.4 * len(wanted):
                score = max(score, 91.0)
            if score > best_score:
                best, best_score = k, score
    return best
