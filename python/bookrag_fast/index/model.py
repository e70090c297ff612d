"""The parts of a BookIndex as plain values: nodes of T, entities and relations of G, links of M.

These are what the builders make and the store writes. The compiled structures (`core.Tree`,
`core.KnowledgeGraph`, `core.GTLink`) are made from them once, when a book is opened.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from enum import IntEnum

from bookrag_fast.document.model import Cell, Region

__all__ = [
    "Entity",
    "ExtractedGraph",
    "Merge",
    "Node",
    "NodeKind",
    "Relation",
    "SectionTree",
    "normalise_name",
]

_SPACE = re.compile(r"\s+")


class NodeKind(IntEnum):
    """Types of tree nodes; the numbers are what `core.Tree` and the saved index hold."""

    ROOT = 0
    SECTION = 1
    TEXT = 2
    TABLE = 3
    IMAGE = 4
    EQUATION = 5
    LIST = 6
    CODE = 7

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Node:
    """A node of T. ``node_id`` is its place in document order; a parent comes before its children.

    Node 0 is the root (level 0), node 1 the document title (level 1), chapters have level 2, and
    so on; a content node has the level of its section plus one. ``title`` is the heading of a
    section, or the caption of a table or image; ``text`` is the content. ``evidence`` says what
    made a section one, in the words of :mod:`bookrag_fast.index.evidence`, and ``confidence`` how
    likely it is one, in [0, 1]; None where nobody judged it (content, titles, older books).
    ``summary`` is that of a section, if summaries were made and it is longer than one.
    """

    node_id: int
    parent: int  # -1 for the root
    kind: NodeKind
    level: int
    title: str
    text: str
    regions: tuple[Region, ...]
    page_first: int  # physical, 1-based; of the whole subtree; 0 when there is no page
    page_last: int
    numbering: str = ""
    evidence: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()
    confidence: float | None = None
    summary: str = ""


@dataclass(frozen=True, slots=True)
class SectionTree:
    """T, in document order (pre-order).

    ``toc_source`` is what most of it rests on: "outline", "markup" (levels that the source states),
    "tags", "contents-page", "numbering", "typography", "run-in", "model" when one decided, "pages"
    when there are no headings, or "none" when there are no pages either. ``confidence`` in [0, 1]
    is the share of the headings, found and known to be missing, that are expected to be right.
    """

    nodes: tuple[Node, ...]
    toc_source: str
    warnings: tuple[str, ...] = ()
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity of G. Its key is (normalised name, type). ``nodes`` is its GT-Link set."""

    name: str
    type: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        return normalise_name(self.name), self.type


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between two entities by their positions; parallel relations are all kept."""

    source: int
    target: int
    name: str
    description: str = ""
    weight: float = 1.0
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """One merge made by entity resolution, kept so that it can be explained.

    ``kept`` and ``merged`` are positions among the entities before resolution.
    """

    kept: int
    merged: int
    kept_name: str
    merged_name: str
    case: str  # "merge" (one candidate above the drop) or "ambiguous" (a rule or a model chose)
    rule: str  # the rule that allowed it
    score: float
    similarity: float  # cosine


@dataclass(frozen=True, slots=True)
class ExtractedGraph:
    """G with M: entities, relations between them, and the merges that resolution made."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    merges: tuple[Merge, ...] = field(default=())


def normalise_name(name: str) -> str:
    """NFKC, casefold, white space collapsed. Nothing is stripped: accents and CJK stay."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", name).casefold()).strip()
