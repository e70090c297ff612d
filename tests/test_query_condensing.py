"""SUMMARIZE of what is too long to be read: stored summaries stand for sections."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asking import INDEX, executor, index_of, says
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.index.model import Node, NodeKind
from bookrag_fast.models.roles import Role
from bookrag_fast.prompts import RenderedPrompt
from bookrag_fast.query.condensing import condensed
from bookrag_fast.query.evidence import evidence_of
from bookrag_fast.query.plan import Answer, Evidence, Operation
from factories import region
from scripted_model import ScriptedModel

HEAD = 40


def book(chapters: int, sections: int, paragraphs: int, book_id: str = "d0d0d0d0d0d0") -> BookIndex:
    """A page for each section, whose chapters and sections have summaries; the first section of a
    chapter is longer by one paragraph a chapter."""
    nodes = list(INDEX.nodes[:2])
    page = 1

    def add(parent: int, kind: NodeKind, title: str, text: str, last: int = 0) -> int:
        node, level = len(nodes), nodes[parent].level + 1
        summary = f"Summary {node} of it. " * 3 if kind is NodeKind.SECTION else ""
        nodes.append(Node(node, parent, kind, level, title, text, (region(page),), page,
                          last or page, summary=summary))  # fmt: skip
        return node

    for c in range(1, chapters + 1):
        chapter = add(1, NodeKind.SECTION, f"Part {c}", "", page + sections - 1)
        for s in range(1, sections + 1):
            section = add(chapter, NodeKind.SECTION, f"Topic {c} of {s}", "")
            for p in range(paragraphs + (c if s == 1 else 0)):
                add(section, NodeKind.TEXT, "", f"Step {p} of {c}-{s}: " + "turn the valve " * 16)
            page += 1
    return index_of(
        nodes,
        meta=replace(INDEX.meta, book_id=book_id),
        pages=tuple(replace(INDEX.pages[0], number=n, label=None) for n in range(1, page)),
    )


BOOK = book(4, 3, 6)
LONG = book(12, 4, 12)


def selected(index: BookIndex, nodes: Any = None) -> list[Evidence]:
    chosen = index.content_nodes if nodes is None else nodes
    return [evidence_of(index, int(node), {}) for node in chosen]


def cost(items: list[Evidence]) -> int:
    return sum(item.tokens + HEAD for item in items)


def condense(items: list[Evidence], tokens: int, *books: BookIndex) -> list[Evidence]:
    return condensed(items, {b.meta.book_id: b for b in books or (BOOK,)}, tokens, head=HEAD)


def test_what_fits_is_read_as_it_stands() -> None:
    items = selected(BOOK)
    assert condense(items, cost(items)) == items


def test_the_longest_of_the_deepest_sections_comes_first() -> None:
    items = selected(BOOK)
    (summary,) = [e for e in condense(items, cost(items) - 1) if e.kind == "section"]
    assert summary.text == "Topic 4 of 1\n" + BOOK.nodes[summary.node_id].summary
    assert (summary.section, summary.pages) == (("Part 4",), (10,))


def test_chapters_are_read_by_summaries_where_those_of_sections_are_too_long() -> None:
    made = condense(selected(BOOK), 1)
    assert [item.text.partition("\n")[0] for item in made] == [f"Part {c}" for c in range(1, 5)]
    assert made[0].pages == (1, 2, 3)


def test_a_section_that_is_not_selected_whole_keeps_to_its_own_words() -> None:
    nodes = BOOK.content_nodes[1:]
    made = condense(selected(BOOK, nodes), 1)
    kept = [item.node_id for item in made if item.kind != "section"]
    first = nodes[nodes < np.searchsorted([n.page_first for n in BOOK.nodes], 2)]
    assert kept[: len(first)] == first.tolist()
    assert "Part 1" not in {item.text.partition("\n")[0] for item in made}


def test_without_summaries_nothing_changes() -> None:
    bare = replace(BOOK, nodes=tuple(replace(n, summary="") for n in BOOK.nodes))
    items = selected(bare)
    assert condense(items, 1, bare) == items


@given(
    tokens=st.integers(1, 9000),
    left_out=st.sets(st.sampled_from(BOOK.content_nodes.tolist()), max_size=4),
    both=st.booleans(),
)
def test_every_selected_node_is_read_once_in_order(
    tokens: int, left_out: set[int], both: bool
) -> None:
    other = book(2, 2, 3, "e0e0e0e0e0e0")
    chosen = [n for n in BOOK.content_nodes.tolist() if n not in left_out]
    items = selected(BOOK, chosen) + (selected(other) if both else [])
    made = condense(items, tokens, BOOK, other)
    read = []
    for item in made:
        index = BOOK if item.book == BOOK.meta.book_id else other
        end = item.node_id + int(index.tree.subtree_sizes[item.node_id])
        content = index.content_nodes
        read += [
            (item.book, n) for n in content[(content >= item.node_id) & (content < end)].tolist()
        ]
    assert read == [(item.book, item.node_id) for item in items]
    assert cost(made) <= cost(items)
    if cost(made) > tokens:  # then no chapter that could be shorter is left
        chapters = [n.node_id for n in BOOK.nodes if n.level == 2]
        whole = {c for c in chapters if not left_out & set(BOOK.tree.subtree_union([c]).tolist())}
        assert whole <= {item.node_id for item in made if item.book == BOOK.meta.book_id}


# --- in an answer -------------------------------------------------------------------------------


def summarised(index: BookIndex, operation: str = "SUMMARIZE") -> tuple[Answer, ScriptedModel]:
    def reply(prompt: RenderedPrompt) -> str:
        marks = re.findall(r'id="(E\d+)"', prompt.user) or re.findall(r"\[(E\d+)\]", prompt.user)
        return json.dumps({"answer": "It is about valves. " + "".join(f"[{m}]" for m in marks)})

    model = ScriptedModel(Role.ANSWER, reply, context_tokens=32_000)
    plan = says(category="global", filters=[], operation=operation)
    running = executor({Role.PLAN: plan, Role.ANSWER: model})
    asked = running.ask(lambda: [index], "Please summarize the whole book", 2000)
    return asyncio.run(asked), model


def test_a_book_too_long_to_be_read_is_summarised_from_its_summaries() -> None:
    bare = replace(LONG, nodes=tuple(replace(n, summary="") for n in LONG.nodes))
    without, thinned = summarised(bare)
    assert re.fullmatch(r"\d+ of \d+ selected passages were read", without.notes[0])

    answer, model = summarised(LONG)
    assert answer.plan.operation is Operation.SUMMARIZE
    (note,) = answer.notes
    told = re.fullmatch(r"too long to be read whole: of (\d+) sections the summaries", note)
    assert told is not None
    packed = next(o.detail for o in answer.trace.operators if "packs" in o.detail)
    assert packed["summaries"] == int(told.group(1))
    assert len(model.asked) <= len(thinned.asked)
    shown = "".join(p.user for p in model.asked)
    for section in (n for n in LONG.nodes if n.kind is NodeKind.SECTION and n.level == 3):
        assert section.title in shown  # no section is passed over


def test_summaries_are_cited_by_the_headings_of_their_sections() -> None:
    answer, _ = summarised(LONG)
    sections = [c for c in answer.citations if LONG.nodes[c.node_id].kind is NodeKind.SECTION]
    assert sections
    for citation in sections:
        node = LONG.nodes[citation.node_id]
        assert citation.quote == node.title
        assert citation.pages == tuple(range(node.page_first, node.page_last + 1))
        assert set(citation.pages) <= {page.number for page in LONG.pages}
        assert citation.boxes == node.regions


def test_what_is_to_be_found_everywhere_is_looked_for_in_the_text() -> None:
    answer, model = summarised(LONG, "ANALYZE")
    assert "selected passages were read" in answer.notes[0]
    assert not any("Summary" in prompt.user for prompt in model.asked)
