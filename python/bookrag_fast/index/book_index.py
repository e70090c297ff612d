"""B = (T, G, M): one book, opened for questions. Immutable, shared by threads, owns no client."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bookrag_fast import core
from bookrag_fast.document.model import Annotation, Page
from bookrag_fast.errors import InvalidArgumentError, UnknownNodeError
from bookrag_fast.index.lexicon import STOP_WORDS, Lexicon, build_lexicon, tokenize
from bookrag_fast.index.model import Entity, Merge, Node, NodeKind, Relation, normalise_name
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.models.protocols import EmbedderInfo, FloatMatrix

__all__ = ["BookIndex", "BookMeta", "Neighbours", "count_tokens"]

IntArray = npt.NDArray[np.int32]

_EDGE_BLOCK = 4096
_LEADERS = re.compile(r"(?:\.\s?){4,}|…{2,}|(?:·\s?){4,}|[・‥]{4,}")
_LEADER_SHARE = 150  # characters of text that one line with dotted leaders accounts for, at most

# CJK radicals up to the full-width forms, and the supplementary ideographs.
_WIDE = re.compile("[\u2e80-\uffef\U00020000-\U0003ffff]")


def count_tokens(text: str) -> int:
    """Tokens of a text as budgets count them: a CJK character is one, other text characters / 4
    (rounded up)."""
    if text.isascii():
        return (len(text) + 3) // 4
    wide = len(_WIDE.findall(text))
    return wide + (len(text) - wide + 3) // 4


@dataclass(frozen=True, slots=True)
class BookMeta:
    """What is known of a book besides its content.

    ``confidence`` is that of the section tree, in [0, 1]; ``source`` the absolute path of the
    file when it was indexed. Both are None in books of format 1. ``models`` are those that had a
    part in making it, the embedder only if it was paid for.
    """

    book_id: str
    title: str
    name: str
    sha256: str
    created: str
    toc_source: str
    embedder: EmbedderInfo
    warnings: tuple[str, ...] = ()
    confidence: float | None = None
    source: str | None = None
    models: tuple[ModelUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Nearest entities of each entity, for the augmentation of G'.

    ``ids`` int32[V, k], -1 where there are fewer; ``cosines`` float32[V, k], descending.
    """

    ids: IntArray
    cosines: FloatMatrix


@dataclass(frozen=True)
class BookIndex:
    """One book's T, G and M with what questions need beside them.

    Attributes:
        node_vectors: float32[nodes, d], unit rows; rows of zeros for nodes without text.
        entity_vectors: float32[entities, d], unit rows.
        lexicon: BM25 over the nodes.
        neighbours: nearest entities, made once at index time.
        annotations: what stands on the pages beside their text; none in older books.
    """

    meta: BookMeta
    pages: tuple[Page, ...]
    nodes: Sequence[Node]
    entities: Sequence[Entity]
    relations: Sequence[Relation]
    merges: tuple[Merge, ...]
    node_vectors: FloatMatrix
    entity_vectors: FloatMatrix
    lexicon: Lexicon
    neighbours: Neighbours
    annotations: tuple[Annotation, ...] = ()
    tree: core.Tree = field(init=False)
    graph: core.KnowledgeGraph = field(init=False)
    links: core.GTLink = field(init=False)

    def __post_init__(self) -> None:
        def column(values: Iterable[int], dtype: Any = np.int32) -> Any:
            return np.fromiter(values, dtype=dtype)

        nodes, entities, relations = self.nodes, self.entities, self.relations
        set_ = object.__setattr__  # frozen: these three are derived, once
        set_(
            self,
            "tree",
            core.Tree(
                column(n.parent for n in nodes),
                column((n.kind for n in nodes), np.uint8),
                column(n.page_first for n in nodes),
                column(n.page_last for n in nodes),
            ),
        )
        set_(
            self,
            "graph",
            core.KnowledgeGraph(
                len(entities),
                column(r.source for r in relations),
                column(r.target for r in relations),
                np.fromiter((r.weight for r in relations), np.float32),
            ),
        )
        counts = column(len(e.nodes) for e in entities)
        set_(
            self,
            "links",
            core.GTLink(
                len(entities),
                len(nodes),
                np.repeat(np.arange(len(entities), dtype=np.int32), counts),
                column(node for e in entities for node in e.nodes),
            ),
        )

    # --- lookups ----------------------------------------------------------------------------

    def node(self, node_id: int) -> Node:
        """The node of that id; UnknownNodeError if there is none."""
        if not 0 <= node_id < len(self.nodes):
            raise UnknownNodeError(
                f"book {self.meta.book_id} has no node {node_id}",
                f"nodes are numbered 0 to {len(self.nodes) - 1}; `bookrag show "
                f"{self.meta.book_id} tree` lists them",
            )
        return self.nodes[node_id]

    def section_path(self, node_id: int) -> tuple[str, ...]:
        """Headings above a node, outermost first, without the book's own title; a section's own
        heading is the last one."""
        node = self.nodes[node_id]
        section = node_id if node.kind <= NodeKind.SECTION else node.parent
        known = self._paths.get(section)
        if known is None:
            known = self._paths[section] = self._path_of(section)
        return known

    @cached_property
    def _paths(self) -> dict[int, tuple[str, ...]]:
        """Section paths that were asked for: one question asks for the same ones many times."""
        return {}

    def _path_of(self, section: int) -> tuple[str, ...]:
        node = self.nodes[section]
        path: list[str] = []
        while node.level >= 1:
            if node.kind is NodeKind.SECTION and node.level >= 2:
                path.append(node.title)
            node = self.nodes[node.parent]
        return tuple(reversed(path))

    @property
    def pages_read(self) -> int:
        """How many of ``pages`` were asked for: those that the root spans."""
        root = self.nodes[0]
        return root.page_last - root.page_first + 1 if self.pages else 0

    def label(self, page: int) -> str | None:
        """Printed label of a physical page."""
        return self.pages[page - 1].label if 1 <= page <= len(self.pages) else None

    def pages_labelled(self, label: str) -> list[int]:
        """Physical pages that print this label."""
        wanted = label.casefold()
        return [p.number for p in self.pages if p.label and p.label.casefold() == wanted]

    @cached_property
    def content_nodes(self) -> IntArray:
        """Nodes that can be evidence, in document order: everything with text of its own, and
        headings that stand alone, without any content under them."""
        parents = {n.parent for n in self.nodes}
        return np.array(
            [
                n.node_id
                for n in self.nodes
                if (n.text or n.title)
                and (
                    n.kind > NodeKind.SECTION
                    or (n.kind is NodeKind.SECTION and n.node_id not in parents)
                )
            ],
            dtype=np.int32,
        )

    @cached_property
    def node_tokens(self) -> IntArray:
        """Tokens of each node's evidence text."""
        return np.array([count_tokens(self.evidence_text(n.node_id)) for n in self.nodes], np.int32)

    def evidence_text(self, node_id: int) -> str:
        """What a node says: its caption, if it has one, above its text."""
        node = self.nodes[node_id]
        if node.kind is not NodeKind.SECTION and node.title and node.title not in node.text:
            return f"{node.title}\n{node.text}" if node.text else node.title
        return node.text or node.title

    @cached_property
    def headings(self) -> tuple[IntArray, Lexicon]:
        """Section nodes below the document title, and the words of their headings (one text a
        section, in the same order)."""
        found = [n for n in self.nodes if n.kind is NodeKind.SECTION and n.level >= 2]
        ids = np.array([n.node_id for n in found], dtype=np.int32)
        return ids, build_lexicon([n.title for n in found])

    @cached_property
    def heading_weights(self) -> npt.NDArray[np.float32]:
        """Weight (idf in the book) of the content words of each heading, float32[sections]."""
        sections, _ = self.headings
        return np.array(
            [
                sum(self.lexicon.idf(t) for t in set(tokenize(self.nodes[s].title)) - STOP_WORDS)
                for s in sections.tolist()
            ],
            dtype=np.float32,
        )

    @cached_property
    def section_of(self) -> IntArray:
        """The section that each node stands in (a section stands in itself); int32[nodes]."""
        return np.array(
            [n.node_id if n.kind <= NodeKind.SECTION else max(n.parent, 0) for n in self.nodes],
            dtype=np.int32,
        )

    @cached_property
    def is_contents(self) -> npt.NDArray[np.bool_]:
        """Nodes of a printed table of contents (dotted leaders): they repeat every heading's
        words and answer nothing. bool[nodes]."""
        return np.array(
            [len(_LEADERS.findall(n.text)) * _LEADER_SHARE > len(n.text) for n in self.nodes],
            dtype=np.bool_,
        )

    @cached_property
    def names(self) -> dict[str, tuple[int, ...]]:
        """Normalised name or alias → entities that bear it."""
        found: dict[str, list[int]] = {}
        for position, entity in enumerate(self.entities):
            for name in dict.fromkeys(map(normalise_name, (entity.name, *entity.aliases))):
                if name:
                    found.setdefault(name, []).append(position)
        return {name: tuple(ids) for name, ids in found.items()}

    @cached_property
    def relation_cosines(self) -> npt.NDArray[np.float32]:
        """Cosine of the two ends' vectors, float32[relations]."""
        count = len(self.relations)
        sources = np.fromiter((r.source for r in self.relations), np.int32, count)
        targets = np.fromiter((r.target for r in self.relations), np.int32, count)
        cosines = np.empty(count, dtype=np.float32)
        for start in range(0, count, _EDGE_BLOCK):  # bounds the gathered vectors
            part = slice(start, start + _EDGE_BLOCK)
            ends = self.entity_vectors[sources[part]], self.entity_vectors[targets[part]]
            cosines[part] = np.einsum("ij,ij->i", *ends)
        return cosines

    @cached_property
    def retriever(self) -> core.Retriever:
        """The compiled hot path over T, G and M; made once, when a book is first asked."""
        content = np.zeros(len(self.nodes), dtype=np.bool_)
        content[self.content_nodes] = True
        return core.Retriever(
            self.tree,
            self.graph,
            self.links,
            self.neighbours.ids,
            self.neighbours.cosines,
            self.relation_cosines,
            content,
        )

    def check_vectors(self) -> None:
        """Matrices have the shapes that the rest relies on."""
        dim = self.meta.embedder.dimension
        for name, matrix, rows in (
            ("node_vectors", self.node_vectors, len(self.nodes)),
            ("entity_vectors", self.entity_vectors, len(self.entities)),
        ):
            if matrix.shape != (rows, dim):
                raise InvalidArgumentError(f"{name} has shape {matrix.shape}, not {(rows, dim)}")
