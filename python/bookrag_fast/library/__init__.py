"""Many books on one shelf: add, search, ask, remove."""

from __future__ import annotations

from bookrag_fast.library.library import Library
from bookrag_fast.library.types import (
    AnswerEvent,
    Book,
    Estimate,
    Picture,
    Problem,
    Progress,
    ProgressCallback,
    TreeNode,
)

__all__ = [
    "AnswerEvent",
    "Book",
    "Estimate",
    "Library",
    "Picture",
    "Problem",
    "Progress",
    "ProgressCallback",
    "TreeNode",
]
