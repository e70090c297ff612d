"""Evidence as models read it: numbered passages within a number of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bookrag_fast.document.model import Cell
from bookrag_fast.index.book_index import BookIndex, count_tokens
from bookrag_fast.query.evidence import cut
from bookrag_fast.query.model_text import enclosed
from bookrag_fast.query.plan import Evidence

__all__ = ["HEAD", "Pack", "packs"]

Numbered = Sequence[tuple[int, Evidence]]

_LONGEST_SECTION = 200  # characters of a section path
HEAD = 40  # tokens of what is said of a passage beside its text, about
_SMALLEST = 48  # tokens of a passage that is worth showing cut
_WIDEST = 64  # columns and …
_LARGEST = 10_000  # … places of a table that is laid out


@dataclass(frozen=True, slots=True)
class Pack:
    """Passages that fit one prompt. ``evidence`` by number."""

    text: str
    evidence: dict[int, Evidence]


def packs(
    items: Numbered,
    books: Mapping[str, BookIndex],
    room: int,
    *,
    most: int,
    pictures: Mapping[int, str] | None = None,
) -> list[Pack]:
    """Passages in packs of at most ``room`` tokens, at most ``most`` packs, in order.

    What several packs cannot hold is thinned out evenly, so that every part of a selection is
    read. A passage too long for its pack is cut, and what the last pack cannot hold is left out.
    ``pictures`` says what a model saw in pictures, by the passage's number.
    """
    if most > 1:
        items = _thinned(items, most * room)
    made: list[Pack] = []
    texts: list[str] = []
    evidence: dict[int, Evidence] = {}
    left = room
    for number, item in items:
        if left < HEAD and len(made) + 1 == most:
            break
        text = _passage(number, item, books, (pictures or {}).get(number, ""))
        cost = count_tokens(text)
        if cost > left and evidence and len(made) + 1 < most:
            made.append(Pack("\n".join(texts), evidence))
            texts, evidence, left = [], {}, room
        if cost > left:
            shorter = _shortened(item, left - (cost - item.tokens))
            if shorter is None:
                continue
            item = shorter
            text = _passage(number, item, books, "")
            cost = count_tokens(text)
            if cost > left:
                continue
        texts.append(text)
        evidence[number] = item
        left -= cost
    if evidence:
        made.append(Pack("\n".join(texts), evidence))
    return made


def _thinned(items: Numbered, tokens: int) -> Numbered:
    """As many as have about so many tokens, evenly spread."""
    total = sum(item.tokens + HEAD for _, item in items)
    if total <= tokens:
        return items
    share = max(tokens, 1) / total
    return [item for i, item in enumerate(items) if int((i + 1) * share) > int(i * share)]


def _shortened(item: Evidence, tokens: int) -> Evidence | None:
    """The beginning of a passage; None if there is no room for one."""
    return cut(item, min(tokens, item.tokens)) if tokens >= min(_SMALLEST, item.tokens) else None


def _passage(number: int, item: Evidence, books: Mapping[str, BookIndex], seen: str) -> str:
    book = books.get(item.book)
    text = _text(item, book)
    if seen:
        text += f"\n(What a model sees in the picture:) {seen}"
    return enclosed(
        "passage",
        text,
        id=f"E{number}",
        kind=item.kind,
        node=str(item.node_id),
        section=" > ".join(item.section)[:_LONGEST_SECTION],
        pages=", ".join(map(str, item.pages[:8])),
        book=book.meta.title[:_LONGEST_SECTION] if book and len(books) > 1 else "",
    )


def _text(item: Evidence, book: BookIndex | None) -> str:
    """A whole table by its cells, everything else as it is."""
    if book is None:
        return item.text
    node = book.nodes[item.node_id]
    if not node.cells or item.text != book.evidence_text(item.node_id):
        return item.text
    table = _table(node.cells)
    return f"{node.title}\n{table}".strip() if table else item.text


def _table(cells: Iterable[Cell]) -> str:
    """Rows of "| a | b |"; a cell that spans several columns or rows stands in each of them, so
    that every value has its headers. "" for a table too large to lay out."""
    cells = list(cells)
    width = max(c.column + c.column_span for c in cells)
    height = max(c.row + c.row_span for c in cells)
    if width > _WIDEST or width * height > _LARGEST:
        return ""
    grid = [[""] * width for _ in range(height)]
    for cell in cells:
        text = " ".join(cell.text.split()).replace("|", "\\|")
        for row in range(cell.row, cell.row + cell.row_span):
            for column in range(cell.column, cell.column + cell.column_span):
                grid[row][column] = text
    lines = ["| " + " | ".join(row) + " |" for row in grid]
    headers = {c.row for c in cells if c.header}
    if 0 in headers:
        last = next(row for row in range(height) if row not in headers or row + 1 == height)
        lines.insert(max(last, 1), "|" + " --- |" * width)
    return "\n".join(lines)
