"""Documents: readers that turn files into pages and blocks in reading order."""

from __future__ import annotations

from bookrag_fast.document.dispatch import read_document
from bookrag_fast.document.isolated import IsolatedReader
from bookrag_fast.document.model import (
    Annotation,
    BBox,
    Block,
    BlockKind,
    Cell,
    Document,
    OutlineEntry,
    Page,
    PageStatus,
    Region,
    Style,
)

__all__ = [
    "Annotation",
    "BBox",
    "Block",
    "BlockKind",
    "Cell",
    "Document",
    "IsolatedReader",
    "OutlineEntry",
    "Page",
    "PageStatus",
    "Region",
    "Style",
    "read_document",
]
