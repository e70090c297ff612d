"""Document → BookIndex, offline: tree, graph, resolution, vectors, words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from time import monotonic

import numpy as np

from bookrag_fast.config import Settings
from bookrag_fast.document.model import Document
from bookrag_fast.index.book_index import BookIndex, BookMeta, Neighbours
from bookrag_fast.index.extraction import extract_graph
from bookrag_fast.index.lexicon import build_lexicon
from bookrag_fast.index.model import Node, NodeKind
from bookrag_fast.index.neighbours import nearest
from bookrag_fast.index.resolution import resolve
from bookrag_fast.index.tree import build_tree
from bookrag_fast.models.protocols import Embedder, FloatMatrix

__all__ = ["StageCallback", "build_index"]

# stage, done, total, unit; may raise to stop the build
StageCallback = Callable[[str, int, int | None, str], None]

_NEIGHBOURS = 10  # kept for each entity; the augmentation of G' adds at most its mean degree
_EMBED_BATCH = 512
_REPORT_EVERY_S = 0.2


def build_index(
    document: Document,
    embedder: Embedder,
    settings: Settings,
    *,
    book_id: str,
    source: str | None = None,
    on_stage: StageCallback = lambda stage, done, total, unit: None,
) -> BookIndex:
    """Index a parsed document. CPU-bound; the same document and models give the same index.

    Args:
        source: where the document's file lies, to be remembered.
        on_stage: told of progress, at least once a stage; whatever it raises ends the build.
    """
    on_stage("tree", 0, len(document.blocks), "blocks")
    tree = build_tree(document)
    on_stage("extract", 0, len(tree.nodes), "nodes")
    raw = extract_graph(tree)
    on_stage("resolve", 0, len(raw.entities), "entities")
    limits = settings.resolution
    graph, entity_vectors = resolve(
        raw,
        embedder,
        k=limits.candidates,
        g=limits.gradient,
        max_distance=limits.max_distance,
        min_score=limits.min_score,
    )
    texts = _searchable(tree.nodes)
    node_vectors = _embed(texts, embedder, on_stage)
    ids, cosines = nearest(entity_vectors, _NEIGHBOURS)
    title = document.title or tree.nodes[0].title or document.name
    if document.span is not None:
        title = f"{title} (pages {document.span[0]}–{document.span[1]})"
    return BookIndex(
        meta=BookMeta(
            book_id=book_id,
            title=title,
            name=document.name,
            sha256=document.sha256,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            toc_source=tree.toc_source,
            embedder=embedder.info,
            warnings=document.warnings + tree.warnings,
            confidence=tree.confidence,
            source=source,
        ),
        pages=document.pages,
        nodes=tree.nodes,
        entities=graph.entities,
        relations=graph.relations,
        merges=graph.merges,
        node_vectors=node_vectors,
        entity_vectors=entity_vectors,
        lexicon=build_lexicon(texts),
        neighbours=Neighbours(ids, cosines),
        annotations=document.annotations,
    )


def _searchable(nodes: Sequence[Node]) -> list[str]:
    """The text that each node is found by: heading or caption, then content.

    The first content of a section is also found by the section's heading, as a reader would who
    leafs through the pages. The root is no place.
    """
    texts: list[str] = []
    for node in nodes:
        above = nodes[node.parent] if node.parent >= 0 else None
        opens = (
            above is not None
            and node.kind > NodeKind.SECTION
            and above.kind is NodeKind.SECTION
            and node.node_id == above.node_id + 1
        )
        parts = (above.title if opens and above else "", node.title, node.text)
        texts.append("" if above is None else "\n".join(p for p in parts if p))
    return texts


def _embed(texts: list[str], embedder: Embedder, on_stage: StageCallback) -> FloatMatrix:
    """float32[len(texts), d], in batches, so that progress shows and a stop is heeded."""
    vectors = np.zeros((len(texts), embedder.info.dimension), dtype=np.float32)
    said = -_REPORT_EVERY_S
    for start in range(0, len(texts), _EMBED_BATCH):
        if monotonic() - said >= _REPORT_EVERY_S:
            said = monotonic()
            on_stage("embed", start, len(texts), "nodes")
        batch = texts[start : start + _EMBED_BATCH]
        vectors[start : start + len(batch)] = embedder.embed(batch)
    on_stage("embed", len(texts), len(texts), "nodes")
    return vectors
