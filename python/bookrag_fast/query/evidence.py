"""Ranked nodes as evidence: within a budget, each with everything needed to cite it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat, zip_longest

from bookrag_fast.index.book_index import BookIndex, count_tokens
from bookrag_fast.index.model import NodeKind
from bookrag_fast.query.plan import Evidence
from bookrag_fast.query.retrieve import Ranked

__all__ = ["MOST_EVIDENCE", "Place", "cut", "evidence_of", "interleave", "merged", "within_budget"]

Place = tuple[Ranked, int]  # the ranking of a book, and a place in it

_KINDS = tuple(kind.label for kind in NodeKind)  # an enum's own name takes a microsecond a node
MOST_EVIDENCE = 10_000  # nodes handed out for one question, whatever the budget
_SENTENCE_END = re.compile(r"[.!?。！？][\"'”’)]*(?=\s|$)|\n|(?<=[。！？])")


def evidence_of(index: BookIndex, node_id: int, scores: dict[str, float]) -> Evidence:
    """A tree node as evidence, with everything needed to cite it."""
    node = index.nodes[node_id]
    text = index.evidence_text(node_id)
    if len(node.regions) == 1:  # as almost every node has
        pages: tuple[int, ...] = (node.regions[0].page,)
    else:
        pages = tuple(dict.fromkeys(r.page for r in node.regions)) or (
            (node.page_first,) if node.page_first else ()
        )
    path = index.section_path(node_id)
    return Evidence(
        book=index.meta.book_id,
        node_id=node_id,
        kind=_KINDS[node.kind],
        text=text,
        pages=pages,
        labels=tuple([index.label(p) for p in pages]),
        boxes=node.regions,
        section=path[:-1] if node.kind is NodeKind.SECTION else path,
        scores=scores,
        tokens=int(index.node_tokens[node_id]),
    )


def merged(ranked: Sequence[Ranked]) -> Iterator[Place]:
    """Rankings of several books as one. Each book's own order holds within it; between books
    relevance decides."""
    if len(ranked) == 1:
        return zip(repeat(ranked[0]), range(min(MOST_EVIDENCE, len(ranked[0].nodes))))
    places = [
        (float(r.order[i]), b, i, r)
        for b, r in enumerate(ranked)
        for i in range(min(MOST_EVIDENCE, len(r.nodes)))
    ]
    places.sort(key=lambda entry: (-entry[0], entry[1], entry[2]))
    return ((r, i) for _, _, i, r in places[:MOST_EVIDENCE])


def interleave(rankings: Sequence[Iterable[Place]]) -> Iterator[Place]:
    """Rankings of several questions, taken in turn, each node once."""
    if len(rankings) == 1:
        yield from rankings[0]
        return
    met: set[tuple[str, int]] = set()
    for places in zip_longest(*rankings):
        for place in places:
            if place is not None:
                ranked, i = place
                key = (ranked.index.meta.book_id, int(ranked.nodes[i]))
                if key not in met:
                    met.add(key)
                    yield place


def within_budget(ranked: Iterable[Place], budget: int) -> list[Evidence]:
    """Evidence until the budget is spent. A node that no longer fits is passed over for smaller
    ones behind it; the very first one is shortened to fit, so that no budget returns nothing."""
    chosen: list[Evidence] = []
    left = budget
    for ranking, i in ranked:
        node = int(ranking.nodes[i])
        tokens = int(ranking.index.node_tokens[node])
        if tokens > left and chosen:
            if left < budget * 0.05:
                break
            continue
        scores = {name: float(values[i]) for name, values in ranking.scores.items()}
        item = evidence_of(ranking.index, node, scores)
        if item.tokens > left:
            item = cut(item, left)
        chosen.append(item)
        left -= item.tokens
        if left <= 0:
            break
    return chosen


def cut(item: Evidence, tokens: int) -> Evidence:
    """The beginning of a node that fits: whole sentences if one fits, else whole words and "…"."""
    low, high = 0, len(item.text)
    while low < high:  # the longest beginning that costs no more
        middle = (low + high + 1) // 2
        if count_tokens(item.text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    fits = item.text[:low]
    ends = [m.end() for m in _SENTENCE_END.finditer(fits)]
    if ends:
        text = fits[: ends[-1]]
    else:
        room = low - 1  # for the mark
        whole = item.text[room : room + 1].isspace() or item.text[max(room - 1, 0)].isspace()
        head = item.text[:room]
        text = (head if whole else head.rsplit(None, 1)[0] if " " in head else head).rstrip() + "…"
    return replace(item, text=text, tokens=count_tokens(text))
