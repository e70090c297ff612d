"""Entities that stand for parts of the book: sections, tables with their headers, images,
equations."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bookrag_fast.index.crossrefs import caption_number, section_numbers
from bookrag_fast.index.model import Node, NodeKind, SectionTree, normalise_name

__all__ = ["Structural", "bare_title", "headers_of", "is_page", "structural_entities"]

_MOST_HEADERS = 64  # of one table; beyond this its first column is data
_LONGEST_HEADER = 80
_LONGEST_NAME = 200
_CHAPTER_LEVEL = 2
_LABEL = re.compile(
    r"(?P<label>(?:table|figure|fig\.|tab\.|таблица|рисунок|рис\.|図|表)\s*"
    r"[A-Z]?[.\-]?\d+(?:[.\-]\d+)*[a-z]?)\s*[.:：|–—-]?\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_NUMBERING = re.compile(
    r"^\s*(?:(?:chapter|section|appendix|part|annex|item|глава|раздел|приложение)\s+)?"
    r"(?:[A-Z]?\d+(?:\.\d+)*[A-Z]?|[A-Z](?:\.\d+)+|[A-Z](?=[.:)]\s)|[IVXLC]+(?=[.:)]\s))"
    r"(?:[.:)](?!\d)\s*|\s+)(?:[–—:-]\s*)?"
    r"|^\s*第\s*[0-9一二三四五六七八九十]+\s*[章節項部編]\s*",
    re.IGNORECASE,
)
_EQUATION = re.compile(r"\((?P<number>[A-Z]?\.?\d+(?:\.\d+)*[a-z]?)\)\s*$")
_KIND_NAMES = {
    "section": "Section",
    "chapter": "Chapter",
    "appendix": "Appendix",
    "part": "Part",
    "item": "Item",
}


@dataclass(frozen=True, slots=True)
class Structural:
    """A part of the book as an entity: ``targets`` are what references call it."""

    name: str
    type: str
    node: int
    aliases: tuple[str, ...] = ()
    targets: tuple[tuple[str, str], ...] = ()
    description: str = ""


def structural_entities(tree: SectionTree) -> Iterator[Structural]:
    """One entity a section (but for the "sections" that are mere pages), table, captioned image
    and numbered equation, in document order, with names unique within their type."""
    names = _section_names(tree)
    used: Counter[tuple[str, str]] = Counter()
    for node in tree.nodes:
        made = _of(node, names)
        if made is None:
            continue
        key = (normalise_name(made.name), made.type)
        used[key] += 1
        if used[key] > 1:
            name = f"{made.name} (page {node.page_first})" if node.page_first else made.name
            if used[normalise_name(name), made.type]:
                name = f"{name} [{node.node_id}]"
            used[normalise_name(name), made.type] += 1
            made = Structural(
                name, made.type, made.node, made.aliases, made.targets, made.description
            )
        yield made


def _of(node: Node, section_names: dict[int, str]) -> Structural | None:
    title = " ".join(node.title.split())[:_LONGEST_NAME]
    if node.kind is NodeKind.SECTION:
        if node.node_id not in section_names:
            return None
        name = section_names[node.node_id]
        numbers = section_numbers(node)
        aliases = [f"{_KIND_NAMES[k]} {number}" for k, number in numbers if k in _KIND_NAMES]
        whole = [number for _, number in numbers if number.isdigit()]
        if node.level <= _CHAPTER_LEVEL:  # "5 Search" is called Chapter 5 as well
            aliases += [f"Chapter {number}" for number in whole]
        return _structural(name, "section", node, [title, *aliases], numbers)
    if node.kind in (NodeKind.TABLE, NodeKind.IMAGE):
        kind = "table" if node.kind is NodeKind.TABLE else "image"
        if not title:
            if kind == "image":
                return None
            title = f"Table on page {node.page_first}" if node.page_first else "Table"
        match = _LABEL.match(title)
        aliases = [match["label"].strip(), match["rest"].strip()] if match else []
        number = caption_number(title)
        return _structural(title, kind, node, aliases, [(kind, number)] if number else [])
    if node.kind is NodeKind.EQUATION:
        match = _EQUATION.search(node.text)
        if match is None:
            return None
        number = match["number"]
        name = f"Equation ({number})"
        text = " ".join(node.text.split())[:300]
        aliases = [f"Equation {number}", f"Eq. {number}"]
        return _structural(name, "equation", node, aliases, [("equation", number.upper())], text)
    return None


def _structural(
    name: str,
    kind: str,
    node: Node,
    aliases: list[str],
    targets: list[tuple[str, str]],
    description: str = "",
) -> Structural:
    seen = {normalise_name(name): None}
    kept = []
    for alias in aliases:
        folded = normalise_name(alias)
        if len(folded) > 1 and folded not in seen:
            seen[folded] = None
            kept.append(alias)
    return Structural(name, kind, node.node_id, tuple(kept), tuple(targets), description)


def bare_title(title: str) -> str:
    """A heading without its number; the heading itself if nothing else is in it."""
    whole = " ".join(unicodedata.normalize("NFKC", title).split())
    bare = _NUMBERING.sub("", whole, count=1).strip().removesuffix(".")
    return bare if any(c.isalpha() for c in bare) else whole


def is_page(node: Node) -> bool:
    """Whether a section is a mere page, made because the document has no headings."""
    return node.evidence == ("page",)


def _section_names(tree: SectionTree) -> dict[int, str]:
    """Names of section nodes: the heading without its number; where a heading recurs
    ("Summary"), with that of the section above."""
    bare = {
        node.node_id: bare_title(node.title)[:_LONGEST_NAME]
        for node in tree.nodes
        if node.kind is NodeKind.SECTION and node.title.strip() and not is_page(node)
    }
    times = Counter(normalise_name(name) for name in bare.values())
    names = {}
    for node_id, name in bare.items():
        above = bare.get(tree.nodes[node_id].parent)
        if times[normalise_name(name)] > 1 and above:
            name = f"{name} ({above})"
        names[node_id] = name
    return names


def headers_of(node: Node) -> list[str]:
    """Row and column headers of a table, without repetitions, in reading order.

    A column's header is the text of its header cells from top to bottom, joined by " / ". Where no
    cell is marked a header, the first row and the first column are. Numbers are no headers, but
    years are.
    """
    cells = sorted(node.cells, key=lambda c: (c.row, c.column))
    if not cells:
        return []
    head_rows = _header_rows(node)
    columns: dict[int, list[str]] = {}
    rows: list[str] = []
    marked = any(c.header for c in cells)
    width = 1 + max(c.column for c in cells)
    for cell in cells:
        text = " ".join(cell.text.split()).strip(" :*|$")
        if cell.row in head_rows:
            if cell.column_span >= width > 2 and len(head_rows) > 1:
                continue  # a title over all columns
            for column in range(cell.column, min(cell.column + cell.column_span, width)):
                parts = columns.setdefault(column, [])
                if text and (not parts or parts[-1] != text):
                    parts.append(text)
        elif (cell.column == 0 and width > 1) or (marked and cell.header):
            rows.append(text)
    joined = [" / ".join(parts) for _, parts in sorted(columns.items())]
    found = dict.fromkeys(h for h in [*joined, *rows] if _is_header(h))
    return list(found)[:_MOST_HEADERS]


def _header_rows(node: Node) -> set[int]:
    """The leading rows that hold column headers."""
    marks: dict[int, list[bool]] = {}
    for cell in node.cells:
        marks.setdefault(cell.row, []).append(cell.header)
    if not any(any(row) for row in marks.values()):
        return {min(marks)}
    rows: set[int] = set()
    for row in sorted(marks):
        if sum(marks[row]) * 2 <= len(marks[row]):
            break
        rows.add(row)
    return rows


def _is_header(text: str) -> bool:
    if not 2 <= len(text) <= _LONGEST_HEADER:
        return False
    return any(c.isalpha() for c in text) or re.fullmatch(r"(?:19|20)\d\d", text) is not None
