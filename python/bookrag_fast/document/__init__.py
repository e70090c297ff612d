"""Documents: readers that turn files into pages and blocks in reading order."""

from __future__ import annotations

from bookrag_fast.document.isolated import IsolatedReader
from bookrag_fast.document.model import (
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
from bookrag_fast.document.reader import read_document

__all__ = [
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
