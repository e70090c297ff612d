"""Evidence and citations: passages, and where in the book they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bookrag_fast.document.model import BBox, Region
from bookrag_fast.query.plan import Citation, Evidence
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from bookrag_fast.server.wire.values import text_to

__all__ = ["citation_from", "citation_to", "evidence_from", "evidence_to"]


def _pages_to(pages: Sequence[int], labels: Sequence[str | None]) -> list[pb.PageRef]:
    padded = [*labels, *[None] * (len(pages) - len(labels))]
    return [
        pb.PageRef(number=page, label=None if label is None else text_to(label))
        for page, label in zip(pages, padded, strict=False)
    ]


def _pages_from(pages: Iterable[pb.PageRef]) -> tuple[tuple[int, ...], tuple[str | None, ...]]:
    refs = list(pages)
    return (
        tuple(ref.number for ref in refs),
        tuple(ref.label if ref.HasField("label") else None for ref in refs),
    )


def _boxes_to(regions: Iterable[Region]) -> list[pb.Box]:
    return [
        pb.Box(page=r.page, x0=r.bbox[0], y0=r.bbox[1], x1=r.bbox[2], y1=r.bbox[3]) for r in regions
    ]


def _boxes_from(boxes: Iterable[pb.Box]) -> tuple[Region, ...]:
    return tuple(Region(b.page, BBox(b.x0, b.y0, b.x1, b.y1)) for b in boxes)


def evidence_to(evidence: Evidence) -> pb.Evidence:
    return pb.Evidence(
        book=evidence.book,
        node_id=evidence.node_id,
        kind=evidence.kind,
        text=text_to(evidence.text),
        pages=_pages_to(evidence.pages, evidence.labels),
        boxes=_boxes_to(evidence.boxes),
        section=[text_to(s) for s in evidence.section],
        scores={k: float(v) for k, v in evidence.scores.items()},
        tokens=evidence.tokens,
    )


def evidence_from(message: pb.Evidence) -> Evidence:
    pages, labels = _pages_from(message.pages)
    return Evidence(
        book=message.book,
        node_id=message.node_id,
        kind=message.kind,
        text=message.text,
        pages=pages,
        labels=labels,
        boxes=_boxes_from(message.boxes),
        section=tuple(message.section),
        scores=dict(message.scores),
        tokens=message.tokens,
    )


def citation_to(citation: Citation) -> pb.Citation:
    return pb.Citation(
        book=citation.book,
        node_id=citation.node_id,
        pages=_pages_to(citation.pages, citation.labels),
        boxes=_boxes_to(citation.boxes),
        section=[text_to(s) for s in citation.section],
        quote=text_to(citation.quote),
    )


def citation_from(message: pb.Citation) -> Citation:
    pages, labels = _pages_from(message.pages)
    return Citation(
        book=message.book,
        node_id=message.node_id,
        pages=pages,
        labels=labels,
        boxes=_boxes_from(message.boxes),
        section=tuple(message.section),
        quote=message.quote,
    )
