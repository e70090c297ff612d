"""The values that a Library hands out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bookrag_fast.document.model import BBox
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.query.plan import Answer, Evidence, QueryPlan

__all__ = [
    "AnswerEvent",
    "Book",
    "Estimate",
    "Picture",
    "Problem",
    "Progress",
    "ProgressCallback",
    "TreeNode",
]


@dataclass(frozen=True, slots=True)
class Book:
    """A book on the shelf. ``id`` is stable while the file's content and the models are."""

    id: str
    title: str
    name: str  # the file's name when it was indexed
    pages: int  # those that were read; 0 for a format without pages
    nodes: int
    entities: int
    relations: int
    sha256: str
    embedder: str
    created: str  # ISO 8601, UTC
    toc_source: str  # what the section tree rests on: "outline", "markup", "numbering", …
    warnings: tuple[str, ...] = ()
    confidence: float | None = None  # of the section tree, in [0, 1]; None in older books
    models: tuple[ModelUse, ...] = ()  # that had a part in making it

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "name": self.name,
            "pages": self.pages,
            "nodes": self.nodes,
            "entities": self.entities,
            "relations": self.relations,
            "sha256": self.sha256,
            "embedder": self.embedder,
            "created": self.created,
            "toc_source": self.toc_source,
            "warnings": list(self.warnings),
            "confidence": self.confidence,
            "models": [use.to_json() for use in self.models],
        }


@dataclass(frozen=True, slots=True)
class Estimate:
    """What models would be asked to make a book of a file, and what that would cost, by role;
    tokens are counted by characters. ``known`` is a book that is on the shelf already, for which
    none would be asked. ``models`` beyond what the cache has: its replies count as ``cached``.
    """

    name: str  # the file's
    pages: int  # those that were read
    nodes: int
    models: tuple[ModelUse, ...] = ()
    known: bool = False

    @property
    def calls(self) -> int:
        return sum(use.usage.calls for use in self.models)

    @property
    def usd(self) -> float:
        return sum(use.usd for use in self.models)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "pages": self.pages,
            "nodes": self.nodes,
            "known": self.known,
            "models": [use.to_json() for use in self.models],
            "calls": self.calls,
            "usd": round(self.usd, 6),
        }


@dataclass(frozen=True, slots=True)
class Picture:
    """A part of a page as it is printed. ``bbox`` in points, top-left origin, is the part asked
    for; the picture shows a few points around it. ``width`` and ``height`` in pixels."""

    page: int  # physical, 1-based
    label: str | None
    bbox: BBox
    dpi: int
    width: int
    height: int
    png: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of the section tree T. ``page`` is physical and 1-based (0 where there is none).

    ``evidence`` is what a section rests on, in the words of :mod:`bookrag_fast.index.evidence`,
    ``confidence`` how likely it is one, in [0, 1]; None for content, and in older books. On the
    root they are what most of the tree rests on, and the confidence of the whole.
    """

    node_id: int
    kind: str
    level: int  # 0 root, 1 document title, 2 chapters, …; content sits one below its section
    title: str
    page: int
    page_last: int
    label: str | None
    text: str
    children: tuple[TreeNode, ...] = field(default=())
    evidence: tuple[str, ...] = ()
    confidence: float | None = None
    summary: str = ""  # of a section, if summaries were made

    def to_json(self) -> dict[str, Any]:
        return {
            "node_id": self.node_id,
            "kind": self.kind,
            "level": self.level,
            "title": self.title,
            "page": self.page,
            "page_last": self.page_last,
            "label": self.label,
            "evidence": list(self.evidence),
            "confidence": None if self.confidence is None else round(self.confidence, 4),
            **({"summary": self.summary} if self.summary else {}),
            "children": [c.to_json() for c in self.children],
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """A step of indexing. ``total`` is None while it is unknown; ``rate`` is units a second."""

    stage: str  # "parse", "tree", "sections", "summarise", "extract", "resolve", …, "done"
    done: int
    total: int | None
    unit: str  # "pages", "blocks", "candidates", "sections", "entities", "nodes"
    rate: float | None = None
    eta_s: float | None = None


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with the shelf, and what mends it."""

    level: str  # "error" or "warning"
    where: str
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class AnswerEvent:
    """A step of a streamed answer. ``kind`` says which of the other fields is set."""

    kind: str  # "plan", "evidence", "text", "answer"
    plan: QueryPlan | None = None
    evidence: tuple[Evidence, ...] = ()
    text: str = ""  # the next piece of the answer's text
    answer: Answer | None = None
