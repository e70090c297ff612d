"""Pages of one document read side by side, in processes of their own."""

from __future__ import annotations

from bookrag_fast.document.pdf.parallel.pool import PagePool

__all__ = ["PagePool"]
