"""Select_by_Section by model: which sections, by their titles, are worth reading as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from bookrag_fast.index.book_index import BookIndex, count_tokens
from bookrag_fast.models.plain_text import clipped
from bookrag_fast.models.roles import Role
from bookrag_fast.query.inquiry import Call, Inquiry
from bookrag_fast.query.question import Question
from bookrag_fast.query.selectors import CHAPTER_DEPTH

__all__ = ["SectionsReply", "select_sections"]

FloatArray = npt.NDArray[np.float32]

_MOST_LISTED = 80  # sections shown to a model
_LONGEST_TITLE = 120  # characters
_REPLY_TOKENS = 256


class SectionsReply(BaseModel):
    """Sections to be read."""

    sections: list[int] = Field(description="numbers from the list, best first; may be empty")


@dataclass(frozen=True, slots=True)
class _Section:
    book: int  # its place among the books asked
    node: int
    level: int
    title: str
    score: float


async def select_sections(
    inquiry: Inquiry, question: Question, texts: Sequence[FloatArray]
) -> list[list[int]]:
    """Section nodes of each book that a model adds by their titles, none where there is no model
    or nothing to choose from. ``texts`` are the relevance of each book's nodes."""
    chosen: list[list[int]] = [[] for _ in inquiry.books]
    most = inquiry.settings.added_sections
    if inquiry.models.role(Role.PLAN) is None or most == 0:
        return chosen
    sections = await inquiry.work.run(_sections, inquiry.books, question, texts)
    if len(sections) <= most:  # all of them are looked at anyway
        return chosen
    room = inquiry.room(Role.PLAN, question.text, _REPLY_TOKENS) - 400  # the prompt's own words
    listed = _listed(sections, room)
    with inquiry.tracer.operator("Select_by_Section") as note:
        call = Call(
            Role.PLAN,
            "sections_for",
            {"question": question.text, "sections": _outline(inquiry.books, listed)},
            "sections chosen by relevance",
            max_tokens=_REPLY_TOKENS,
            expected_tokens=20,
            values={"most": most},
        )
        reply = await inquiry.ask(call, SectionsReply, note)
        numbers = [] if reply is None else list(dict.fromkeys(reply.sections))
        added = [listed[n - 1] for n in numbers if 1 <= n <= len(listed)][:most]
        for section in added:
            chosen[section.book].append(section.node)
        note["listed"], note["sections"] = len(listed), [s.title for s in added]
    return chosen


def _sections(
    books: Sequence[BookIndex], question: Question, texts: Sequence[FloatArray]
) -> list[_Section]:
    """Every section with how well its title or its best node speaks to the question."""
    found = []
    for place, (book, text) in enumerate(zip(books, texts, strict=True)):
        sizes = book.tree.subtree_sizes
        cosines = book.node_vectors @ question.vector
        for node in book.headings[0].tolist():
            best = float(text[node : node + int(sizes[node])].max())
            title = clipped(book.nodes[node].title, _LONGEST_TITLE)
            score = best + float(cosines[node])
            found.append(_Section(place, node, book.nodes[node].level, title, score))
    return found


def _listed(sections: Sequence[_Section], room: int) -> list[_Section]:
    """Chapters, then the best of the sections below them, as far as there is room; in the order of
    the books."""
    kept: list[_Section] = []
    left = room
    for section in sorted(sections, key=lambda s: (s.level > CHAPTER_DEPTH, -s.score)):
        cost = count_tokens(section.title) + section.level + 4
        if cost > left or len(kept) == _MOST_LISTED:
            break
        kept.append(section)
        left -= cost
    return sorted(kept, key=lambda s: (s.book, s.node))


def _outline(books: Sequence[BookIndex], sections: Sequence[_Section]) -> str:
    lines, book = [], -1
    for number, section in enumerate(sections, 1):
        if section.book != book and len(books) > 1:
            book = section.book
            lines.append(clipped(books[book].meta.title, _LONGEST_TITLE))
        lines.append(f"{'  ' * (section.level - CHAPTER_DEPTH)}{number}: {section.title}")
    return "\n".join(lines)
