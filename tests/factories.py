"""Small BookIndexes made by hand, for tests that need no PDF and no model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from bookrag_fast.document.model import BBox, Cell, Page, Region
from bookrag_fast.index.book_index import BookIndex, BookMeta, Neighbours
from bookrag_fast.index.lexicon import build_lexicon, tokenize
from bookrag_fast.index.model import Entity, Merge, Node, NodeKind, Relation
from bookrag_fast.index.neighbours import nearest
from bookrag_fast.models.protocols import EmbedderInfo, FloatMatrix
from bookrag_fast.models.twins import LocalEmbedder


class HashEmbedder(LocalEmbedder):
    """Words to fixed random directions: equal words are near, everything else is far. Real
    embedders have tests of their own."""

    def __init__(self, dimension: int = 32, name: str = "hash") -> None:
        self._info = EmbedderInfo(name, dimension, f"{name}-{dimension}")

    @property
    def info(self) -> EmbedderInfo:
        return self._info

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        rows = np.zeros((len(texts), self._info.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in tokenize(text):
                seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
                row += np.random.default_rng(seed).standard_normal(len(row)).astype(np.float32)
            norm = float(np.linalg.norm(row))
            if norm:
                row /= norm
        return rows


def region(page: int, top: float = 100.0) -> Region:
    return Region(page, BBox(72.0, top, 500.0, top + 20.0))


def small_index(embedder: HashEmbedder | None = None, book_id: str = "b0b0b0b0b0b0") -> BookIndex:
    """Two chapters, a table with cells, a figure; six pages labelled i, ii, 1, 2, 3, 4."""
    embedder = embedder or HashEmbedder()
    S, T = NodeKind.SECTION, NodeKind.TEXT

    def node(i, parent, kind, level, title, text, page, last=None, **more):  # type: ignore[no-untyped-def]
        return Node(
            i, parent, kind, level, title, text, (region(page),), page, last or page, **more
        )

    nodes = (
        Node(0, -1, NodeKind.ROOT, 0, "The Pump Handbook", "", (), 1, 6),
        node(1, 0, S, 1, "The Pump Handbook", "", 1, 6, evidence=("title",)),
        node(2, 1, T, 2, "", "This handbook is for operators of centrifugal pumps.", 2),
        node(3, 1, S, 2, "1 Installation", "", 3, 4, numbering="1", evidence=("outline",),
             confidence=0.5),
        node(4, 3, T, 3, "", "Mount the pump on a level plate. The plate is 20 mm of steel.", 3),
        node(5, 3, S, 3, "1.1 Wiring", "", 4, 4, numbering="1.1"),
        node(6, 5, T, 4, "", "Net positive suction head (NPSH) must exceed 3.5 metres.", 4),
        node(7, 1, S, 2, "2 Operation", "", 5, 6, numbering="2"),
        node(
            8, 7, NodeKind.TABLE, 3, "Table 1: Limits of operation",
            "Quantity | Limit\nPressure | 16 bar\nTemperature | 80 °C", 5,
            cells=(
                Cell(0, 0, "Quantity", header=True),
                Cell(0, 1, "Limit", header=True, bbox=BBox(1, 2, 3, 4)),
                Cell(1, 0, "Pressure"), Cell(1, 1, "16 bar"),
                Cell(2, 0, "Temperature"), Cell(2, 1, "80 °C"),
            ),
        ),
        node(9, 7, NodeKind.IMAGE, 3, "Figure 1: Cross-section of the pump", "", 5),
        node(10, 7, T, 3, "", "Stop the pump when the pressure exceeds the limit in Table 1.", 6),
    )  # fmt: skip
    entities = (
        Entity("pump", "concept", "A machine.", ("pumps",), (2, 4, 10)),
        Entity("NPSH", "concept", "", ("net positive suction head",), (6,)),
        Entity("Table 1: Limits of operation", "table", "", ("Table 1",), (8, 10)),
        Entity("pressure", "header", "", (), (8, 10)),
        Entity("東京", "place", "", (), (2,)),
    )
    relations = (
        Relation(0, 1, "CoOccurs", "", 1.5, (4, 6)),
        Relation(3, 2, "ContainedIn", "", 1.0, (8,)),
        Relation(3, 2, "CoOccurs", "", 0.5, (10,)),
        Relation(0, 3, "CoOccurs", "", 2.0, (10,)),
    )
    texts = ["" if n.kind is NodeKind.ROOT else f"{n.title}\n{n.text}".strip() for n in nodes]
    entity_vectors = embedder.embed([e.name for e in entities])
    ids, cosines = nearest(entity_vectors, 10)
    labels = ("i", "ii", "1", "2", "3", "4")
    return BookIndex(
        meta=BookMeta(book_id, "The Pump Handbook", "pump.pdf", "ab" * 32,
                      "2026-01-01T00:00:00+00:00", "outline", embedder.info, ("a warning",),
                      0.75, "/books/pump.pdf"),
        pages=tuple(Page(i + 1, label, 595.0, 842.0) for i, label in enumerate(labels)),
        nodes=nodes,
        entities=entities,
        relations=relations,
        merges=(Merge(0, 5, "pump", "pumps", "merge", "plural", 0.9, 0.95),),
        node_vectors=embedder.embed(texts),
        entity_vectors=entity_vectors,
        lexicon=build_lexicon(texts),
        neighbours=Neighbours(ids, cosines),
    )  # fmt: skip
