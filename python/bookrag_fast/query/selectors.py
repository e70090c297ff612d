"""Selectors narrow the tree before anything is ranked: by section, page or modality. (By entity and
by relevance: see `retrieve`.)

Node sets are sorted, unique int32 arrays, so that they can be united and intersected cheaply.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz

from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.index.model import NodeKind, normalise_name
from bookrag_fast.query.ranges import pages_of

__all__ = ["CHAPTER_DEPTH", "filter_modal", "filter_range", "find_sections"]

IntArray = npt.NDArray[np.int32]

CHAPTER_DEPTH = 2  # root 0, document title 1, chapters 2
_TITLE_SIMILARITY = 85.0  # of 100, for a section named by a slightly different title


def filter_range(index: BookIndex, pages: str, nodes: IntArray | None = None) -> IntArray:
    """Nodes with something on these pages ("3-10", a printed label); see `ranges.pages_of`."""
    wanted = set(pages_of(index, pages))
    candidates = range(len(index.nodes)) if nodes is None else nodes.tolist()
    return np.array(
        [i for i in candidates if any(r.page in wanted for r in index.nodes[i].regions)],
        dtype=np.int32,
    )


def filter_modal(index: BookIndex, kind: str, nodes: IntArray | None = None) -> IntArray:
    """Nodes of one kind ("table", "image", "code", …)."""
    wanted = NodeKind[kind.upper()]
    candidates = range(len(index.nodes)) if nodes is None else nodes.tolist()
    return np.array([i for i in candidates if index.nodes[i].kind == wanted], dtype=np.int32)


_NUMBERED = re.compile(
    r"^(?:chapter|section|part|appendix|annex)\s+([0-9]+(?:\.[0-9]+)*|[a-z](?:\.[0-9]+)*|[ivxlc]+)$"
)


def find_sections(index: BookIndex, value: str | None, *, depth: int | None = None) -> IntArray:
    """Section nodes that a filter names, by number ("Section 3.2", "Appendix B") or title.

    An empty value selects the sections themselves: all below the document title, or those at one
    depth.
    """
    sections = [n for n in index.nodes if n.kind is NodeKind.SECTION and n.level >= CHAPTER_DEPTH]
    if not value:
        chosen = [n for n in sections if depth is None or n.level == depth]
        return np.array([n.node_id for n in chosen], dtype=np.int32)
    wanted = normalise_name(value)
    numbered = _NUMBERED.match(wanted)
    exact, near = [], []
    for node in sections:
        title = normalise_name(node.title)
        number = normalise_name(node.numbering).rstrip(".")
        if wanted in (title, number) or (numbered and _bears(title, number, wanted, numbered[1])):
            exact.append(node.node_id)
        elif not numbered and (
            fuzz.ratio(wanted, _without_number(title)) >= _TITLE_SIMILARITY
            or title.startswith(wanted)
        ):
            near.append(node.node_id)
    return np.array(exact or near, dtype=np.int32)


def _bears(title: str, number: str, wanted: str, digits: str) -> bool:
    """Whether a heading is the one that "chapter 3" means, by its numbering or its words."""
    head = rf"(?:{re.escape(wanted)}|{re.escape(digits)})(?![\w.]*\w)"
    return number in (digits, wanted) or re.match(head, title) is not None


def _without_number(title: str) -> str:
    return re.sub(r"^(?:chapter|section|part|appendix)?\s*[\d.]+\s*[:.)-]?\s*", "", title)
