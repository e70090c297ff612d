"""A selection that is too long to be read whole, as stored summaries of its sections have it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bookrag_fast.index.book_index import BookIndex, count_tokens
from bookrag_fast.index.model import NodeKind
from bookrag_fast.query.evidence import evidence_of
from bookrag_fast.query.plan import Evidence

__all__ = ["condensed"]


def condensed(
    items: Sequence[Evidence], books: Mapping[str, BookIndex], tokens: int, *, head: int
) -> list[Evidence]:
    """The selection with as many sections read by their summaries as it takes to fit ``tokens``.

    The deepest sections come first, of those the longest: what can stays in the book's own words.
    A summary stands for a section that is selected whole, and names it: heading, pages, node.
    Without summaries, or with too few, the selection stays too long.

    Args:
        items: in document order, the books one after another.
        head: tokens that a passage takes beside its text.
    """
    over = sum(item.tokens + head for item in items) - tokens
    if over <= 0:
        return list(items)
    parts = [
        _Part(books[book], [item for item in items if item.book == book], head)
        for book in dict.fromkeys(item.book for item in items)
    ]
    sections = [(part, node) for part in parts for node in part.sections()]
    sections.sort(key=lambda s: (-s[0].book.nodes[s[1]].level, -s[0].saved(s[1])))  # stable
    for part, section in sections:
        if over <= 0:
            break
        over -= part.summarise(section)
    return [item for part in parts for item in part.items]


class _Part:
    """What is selected of one book, or stands for it."""

    def __init__(self, book: BookIndex, items: list[Evidence], head: int) -> None:
        self.book, self.items = book, items
        self._head = head
        self._nodes = [item.node_id for item in items]  # sorted

    def sections(self) -> list[int]:
        """Those that have a summary and a heading to cite it by, and are selected whole."""
        book = self.book
        found = np.array(
            [
                n.node_id
                for n in book.nodes
                if n.kind is NodeKind.SECTION and n.summary and n.title.strip()
            ],
            dtype=np.int32,
        )
        missing = np.setdiff1d(book.content_nodes, np.array(self._nodes, dtype=np.int32))
        ends = found + book.tree.subtree_sizes[found]
        whole = np.searchsorted(missing, found) == np.searchsorted(missing, ends)
        return [int(section) for section in found[whole]]

    def saved(self, section: int) -> int:
        """Tokens that its summary is shorter than what stands for it now."""
        within = self.items[self._within(section)]
        now = sum(item.tokens + self._head for item in within)
        return now - self._summary(section).tokens - self._head

    def summarise(self, section: int) -> int:
        """Let its summary stand for a section, if that is shorter; the tokens saved."""
        saved = max(self.saved(section), 0)
        if saved:
            within = self._within(section)
            self.items[within], self._nodes[within] = [self._summary(section)], [section]
        return saved

    def _within(self, section: int) -> slice:
        end = section + int(self.book.tree.subtree_sizes[section])
        return slice(bisect_left(self._nodes, section), bisect_left(self._nodes, end))

    def _summary(self, section: int) -> Evidence:
        node = self.book.nodes[section]
        pages = tuple(range(node.page_first, node.page_last + 1)) if node.page_first else ()
        text = f"{' '.join(node.title.split())}\n{node.summary}"
        return replace(
            evidence_of(self.book, section, {}),
            text=text,
            pages=pages,
            labels=tuple(map(self.book.label, pages)),
            tokens=count_tokens(text),
        )
