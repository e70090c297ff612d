"""A BookIndex as Arrow tables and back. Names and types here are the saved format, version 3.

Anyone can open the files in DuckDB, Polars or pandas. Numeric columns come back as views of the
memory-mapped file, without a copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bookrag_fast.document.model import Annotation, BBox, Cell, Page, PageStatus, Region
from bookrag_fast.index.book_index import BookIndex, BookMeta, Neighbours
from bookrag_fast.index.lexicon import Lexicon
from bookrag_fast.index.model import Entity, Merge, Node, NodeKind, Relation

__all__ = ["ADDED", "OPTIONAL", "SCHEMAS", "from_tables", "to_tables"]

_STRINGS = pa.list_(pa.string())
_IDS = pa.list_(pa.int32())

# Fixed-size lists (vectors, neighbours) have their length added when a table is made.
SCHEMAS: dict[str, dict[str, pa.DataType]] = {
    "pages": {
        "number": pa.int32(),
        "label": pa.string(),
        "width": pa.float32(),
        "height": pa.float32(),
        "status": pa.string(),
        "note": pa.string(),
    },
    "nodes": {
        "parent": pa.int32(),
        "kind": pa.uint8(),
        "level": pa.int32(),
        "title": pa.string(),
        "text": pa.string(),
        "page_first": pa.int32(),
        "page_last": pa.int32(),
        "numbering": pa.string(),
        "evidence": _STRINGS,
        "confidence": pa.float32(),
        "summary": pa.string(),
    },
    "regions": {
        "node": pa.int32(),
        "page": pa.int32(),
        "x0": pa.float32(),
        "y0": pa.float32(),
        "x1": pa.float32(),
        "y1": pa.float32(),
    },
    "cells": {
        "node": pa.int32(),
        "row": pa.int32(),
        "column": pa.int32(),
        "row_span": pa.int32(),
        "column_span": pa.int32(),
        "header": pa.bool_(),
        "text": pa.string(),
        "bbox": pa.list_(pa.float32()),
    },
    "entities": {
        "name": pa.string(),
        "type": pa.string(),
        "description": pa.string(),
        "aliases": _STRINGS,
    },
    "relations": {
        "source": pa.int32(),
        "target": pa.int32(),
        "name": pa.string(),
        "description": pa.string(),
        "weight": pa.float32(),
        "nodes": _IDS,
    },
    "links": {"entity": pa.int32(), "node": pa.int32()},
    "merges": {
        "kept": pa.int32(),
        "merged": pa.int32(),
        "kept_name": pa.string(),
        "merged_name": pa.string(),
        "case": pa.string(),
        "rule": pa.string(),
        "score": pa.float32(),
        "similarity": pa.float32(),
    },
    "annotations": {
        "page": pa.int32(),
        "kind": pa.string(),
        "bbox": pa.list_(pa.float32()),
        "text": pa.string(),
        "name": pa.string(),
        "target": pa.string(),
    },
    "terms": {"term": pa.string(), "postings": pa.int64()},
    "postings": {"node": pa.int32(), "weight": pa.float32()},
    "node_vectors": {"vector": pa.list_(pa.float32())},
    "entity_vectors": {"vector": pa.list_(pa.float32())},
    "neighbours": {"ids": pa.list_(pa.int32()), "cosines": pa.list_(pa.float32())},
}

# Columns that older formats lack, by table: column → the format that brought it. Where a saved
# book lacks one, its values are None.
ADDED: dict[str, dict[str, int]] = {"nodes": {"confidence": 2, "summary": 3}}

# Tables that a book may lack: it is empty then. Versions that do not know one pass over it.
OPTIONAL = frozenset({"annotations"})


def to_tables(index: BookIndex) -> dict[str, pa.Table]:
    """Every table of a book, by name."""
    nodes, entities, lexicon = index.nodes, index.entities, index.lexicon
    regions = [(n.node_id, r.page, *r.bbox) for n in nodes for r in n.regions]
    cells = [
        (n.node_id, c.row, c.column, c.row_span, c.column_span, c.header, c.text,
         None if c.bbox is None else list(c.bbox))
        for n in nodes
        for c in n.cells
    ]  # fmt: skip
    rows: dict[str, list[tuple[Any, ...]]] = {
        "pages": [(p.number, p.label, p.width, p.height, p.status.value, p.note)
                  for p in index.pages],
        "nodes": [(n.parent, int(n.kind), n.level, n.title, n.text, n.page_first, n.page_last,
                   n.numbering, list(n.evidence), n.confidence, n.summary) for n in nodes],
        "regions": regions,
        "cells": cells,
        "entities": [(e.name, e.type, e.description, list(e.aliases)) for e in entities],
        "relations": [(r.source, r.target, r.name, r.description, r.weight, list(r.nodes))
                      for r in index.relations],
        "links": [(i, node) for i, e in enumerate(entities) for node in e.nodes],
        "merges": [(m.kept, m.merged, m.kept_name, m.merged_name, m.case, m.rule, m.score,
                    m.similarity) for m in index.merges],
        "annotations": [(a.page, a.kind, list(a.bbox), a.text, a.name, a.target)
                        for a in index.annotations],
        "terms": list(zip(lexicon.vocabulary, np.diff(lexicon.indptr).tolist(), strict=True)),
    }  # fmt: skip
    tables = {name: _table(name, values) for name, values in rows.items()}
    tables["postings"] = pa.table({"node": lexicon.nodes, "weight": lexicon.weights})
    tables["node_vectors"] = pa.table({"vector": _fixed(index.node_vectors)})
    tables["entity_vectors"] = pa.table({"vector": _fixed(index.entity_vectors)})
    tables["neighbours"] = pa.table(
        {"ids": _fixed(index.neighbours.ids), "cosines": _fixed(index.neighbours.cosines)}
    )
    return tables


def from_tables(tables: dict[str, pa.Table], meta: BookMeta) -> BookIndex:
    """The book again. Ranges are checked by the structures that it builds.

    Raises:
        ValueError, IndexError, KeyError, bookrag_fast.errors.InvalidArgumentError: the tables
            contradict each other.
    """
    regions: dict[int, list[Region]] = {}
    for node, page, *box in _rows(tables["regions"]):
        regions.setdefault(node, []).append(Region(page, BBox(*box)))
    cells: dict[int, list[Cell]] = {}
    for node, row, col, row_span, col_span, header, text, bbox in _rows(tables["cells"]):
        box4 = None if bbox is None else BBox(*bbox)
        cells.setdefault(node, []).append(Cell(row, col, text, row_span, col_span, header, box4))
    nodes = tuple(
        Node(i, parent, NodeKind(kind), level, title, text, tuple(regions.get(i, ())), first, last,
             numbering, tuple(evidence), tuple(cells.get(i, ())), confidence, summary or "")
        for i, (parent, kind, level, title, text, first, last, numbering, evidence,
                confidence, summary)
        in enumerate(_rows(tables["nodes"]))
    )  # fmt: skip
    for node in nodes:
        if not -1 <= node.parent < max(node.node_id, 1):
            raise ValueError(f"node {node.node_id} has parent {node.parent}, which is not above it")
    num_entities = tables["entities"].num_rows
    linked: list[list[int]] = [[] for _ in range(num_entities)]
    for entity, node_id in _rows(tables["links"]):
        if entity < 0:
            raise ValueError(f"a link names entity {entity}")
        linked[entity].append(node_id)
    counts = _column(tables["terms"], "postings")
    if (counts < 0).any() or int(counts.sum()) != tables["postings"].num_rows:
        raise ValueError("the terms do not add up to the postings")
    postings = _column(tables["postings"], "node")
    if len(postings) and not 0 <= int(postings.min()) <= int(postings.max()) < len(nodes):
        raise ValueError("a posting names a node that does not exist")
    neighbours = Neighbours(
        _matrix(tables["neighbours"], "ids"), _matrix(tables["neighbours"], "cosines")
    )
    if neighbours.ids.shape != neighbours.cosines.shape or len(neighbours.ids) != num_entities:
        raise ValueError("the neighbour lists do not match the entities")
    if (
        neighbours.ids.size
        and not -1 <= neighbours.ids.min() <= neighbours.ids.max() < num_entities
    ):
        raise ValueError("a neighbour list names an entity that does not exist")
    index = BookIndex(
        meta=meta,
        pages=tuple(
            Page(number, label, width, height, PageStatus(status), note)
            for number, label, width, height, status, note in _rows(tables["pages"])
        ),
        nodes=nodes,
        entities=tuple(
            Entity(name, type_, description, tuple(aliases), tuple(linked[i]))
            for i, (name, type_, description, aliases) in enumerate(_rows(tables["entities"]))
        ),
        relations=tuple(
            Relation(source, target, name, description, weight, tuple(origin))
            for source, target, name, description, weight, origin in _rows(tables["relations"])
        ),
        merges=tuple(Merge(*row) for row in _rows(tables["merges"])),
        node_vectors=_matrix(tables["node_vectors"], "vector"),
        entity_vectors=_matrix(tables["entity_vectors"], "vector"),
        lexicon=Lexicon(
            vocabulary={t: i for i, (t, _) in enumerate(_rows(tables["terms"]))},
            indptr=np.fromiter(accumulate(counts.tolist(), initial=0), np.int64, len(counts) + 1),
            nodes=postings,
            weights=_column(tables["postings"], "weight"),
            num_nodes=len(nodes),
        ),
        neighbours=neighbours,
        annotations=tuple(
            Annotation(page, kind, BBox(*bbox), text, name, target)
            for page, kind, bbox, text, name, target in _rows(tables["annotations"])
        ),
    )
    index.check_vectors()
    return index


def _table(name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMAS[name])
    return pa.table(
        [
            pa.array(values, type=kind)
            for values, kind in zip(columns, SCHEMAS[name].values(), strict=True)
        ],
        schema=pa.schema(list(SCHEMAS[name].items())),
    )


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _fixed(matrix: npt.NDArray[Any]) -> pa.FixedSizeListArray:
    flat = pa.array(np.ascontiguousarray(matrix).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])


def _column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """A numeric column as an array; a view of the file (one batch was written)."""
    return _one_piece(table, name).to_numpy(zero_copy_only=True)  # type: ignore[no-any-return]


def _matrix(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """A fixed-size-list column as a matrix; a view of the file."""
    rows = _one_piece(table, name)
    flat: npt.NDArray[Any] = rows.flatten().to_numpy(zero_copy_only=True)
    return flat.reshape(len(rows), rows.type.list_size)


def _one_piece(table: pa.Table, name: str) -> pa.Array:
    chunks = table.column(name).chunks
    if len(chunks) > 1:
        raise ValueError(f"column {name} is in {len(chunks)} pieces, 1 expected")
    return chunks[0] if chunks else pa.array([], type=table.schema.field(name).type)
