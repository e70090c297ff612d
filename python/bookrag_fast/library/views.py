"""What people look at: a book's tree, a node, its graph and its figures."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.index.model import NodeKind
from bookrag_fast.library.types import TreeNode

__all__ = ["graph", "node", "page_annotations", "pieces", "stats", "tree"]


def tree(index: BookIndex) -> TreeNode:
    """Nested nodes from the root. Built from the leaves up: depth costs no recursion."""
    children: list[list[TreeNode]] = [[] for _ in index.nodes]
    built: TreeNode | None = None
    for n in reversed(index.nodes):
        built = TreeNode(
            node_id=n.node_id,
            kind=n.kind.label,
            level=n.level,
            title=n.title,
            page=n.regions[0].page if n.regions else n.page_first,
            page_last=n.page_last,
            label=index.label(n.regions[0].page if n.regions else n.page_first),
            text=n.text,
            children=tuple(reversed(children[n.node_id])),
            # The root stands for the tree as a whole.
            evidence=n.evidence if n.parent >= 0 else (index.meta.toc_source,),
            confidence=n.confidence if n.parent >= 0 else index.meta.confidence,
            summary=n.summary,
        )
        if n.parent >= 0:
            children[n.parent].append(built)
    assert built is not None  # a tree has a root
    return built


def node(index: BookIndex, node_id: int) -> dict[str, Any]:
    n = index.node(node_id)
    pages = list(dict.fromkeys(r.page for r in n.regions))
    entities = index.links.entities_of(node_id)
    return {
        "book": index.meta.book_id,
        "node_id": n.node_id,
        "kind": n.kind.label,
        "level": n.level,
        "parent": n.parent,
        "title": n.title,
        "text": n.text,
        **({"summary": n.summary} if n.summary else {}),
        "pages": pages,
        "labels": [index.label(p) for p in pages],
        "boxes": [{"page": r.page, "bbox": [round(v, 2) for v in r.bbox]} for r in n.regions],
        "section": list(index.section_path(node_id)),
        "evidence": list(n.evidence),
        "confidence": _shown(n.confidence),
        "entities": [
            {"id": int(e), "name": index.entities[e].name, "type": index.entities[e].type}
            for e in entities
        ],
    }


def graph(index: BookIndex, limit: int) -> dict[str, Any]:
    degrees = _degrees(index)
    best = np.argsort(-degrees, kind="stable")[: max(0, limit)].tolist()
    shown = set(best)
    return {
        "entities": [
            {
                "id": e,
                "name": index.entities[e].name,
                "type": index.entities[e].type,
                "description": index.entities[e].description,
                "aliases": list(index.entities[e].aliases),
                "degree": int(degrees[e]),
                "nodes": list(index.entities[e].nodes),
            }
            for e in best
        ],
        "relations": [
            {
                "source": r.source,
                "target": r.target,
                "name": r.name,
                "weight": round(r.weight, 4),
                "nodes": list(r.nodes),
            }
            for r in index.relations
            if r.source in shown and r.target in shown
        ],
        "merges": [
            {
                "kept": m.kept_name,
                "merged": m.merged_name,
                "case": m.case,
                "rule": m.rule,
                "score": round(m.score, 4),
                "similarity": round(m.similarity, 4),
            }
            for m in index.merges
        ],
        "counts": {
            "entities": len(index.entities),
            "relations": len(index.relations),
            "merges": len(index.merges),
        },
    }


def page_annotations(index: BookIndex) -> dict[str, Any]:
    labels = [p.label for p in index.pages]
    return {
        "annotations": [
            {
                "page": a.page,
                "label": labels[a.page - 1] if 1 <= a.page <= len(labels) else None,
                "kind": a.kind,
                "bbox": [round(v, 2) for v in a.bbox],
                "text": a.text,
                "name": a.name,
                "target": a.target,
            }
            for a in index.annotations
        ]
    }


def stats(index: BookIndex) -> dict[str, Any]:
    import igraph

    entities, relations = len(index.entities), len(index.relations)
    pairs = igraph.Graph(n=entities, edges=[(r.source, r.target) for r in index.relations])
    pairs.simplify()
    kinds = {kind.label: 0 for kind in NodeKind}
    for n in index.nodes:
        kinds[n.kind.label] += 1
    return {
        "book": index.meta.book_id,
        "title": index.meta.title,
        "name": index.meta.name,
        "pages": index.pages_read,
        "nodes": kinds,
        "depth": max((n.level for n in index.nodes if n.kind is NodeKind.SECTION), default=0),
        "tokens": int(index.node_tokens[index.content_nodes].sum()),
        "entities": entities,
        "relations": relations,
        "links": sum(len(e.nodes) for e in index.entities),
        "merges": len(index.merges),
        "mean_degree": round(2 * pairs.ecount() / entities, 3) if entities else 0.0,
        "density": round(pairs.density(), 6) if entities > 1 else 0.0,
        "components": len(pairs.connected_components()) if entities else 0,
        "toc_source": index.meta.toc_source,
        "confidence": _shown(index.meta.confidence),
        "embedder": {
            "name": index.meta.embedder.name,
            "dimension": index.meta.embedder.dimension,
        },
        "models": [use.to_json() for use in index.meta.models],
        "created": index.meta.created,
        "warnings": list(index.meta.warnings),
    }


def pieces(text: str) -> list[str]:
    """An answer's text in sentences, whose concatenation is the text."""
    return re.findall(r".+?(?:[.!?。！？]\s+|\n|$)", text, flags=re.S)


def _shown(confidence: float | None) -> float | None:
    return None if confidence is None else round(confidence, 4)


def _degrees(index: BookIndex) -> np.ndarray[Any, np.dtype[np.int64]]:
    degrees = np.zeros(len(index.entities), dtype=np.int64)
    for r in index.relations:
        degrees[r.source] += 1
        degrees[r.target] += 1
    return degrees
