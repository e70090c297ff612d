"""bookrag_fast: a BookRAG engine (arXiv 2512.03413) with a compiled core.

>>> from bookrag_fast import Library
>>> lib = Library.open("shelf/")
>>> book = lib.add("handbook.pdf")
>>> lib.ask("What is the default damping?", books=[book.id]).text

`core` holds the compiled structures and algorithms for use on their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Answer", "Book", "BookragError", "Evidence", "Library", "__version__", "core"]

if TYPE_CHECKING:
    from bookrag_fast import core
    from bookrag_fast._version import __version__
    from bookrag_fast.errors import BookragError
    from bookrag_fast.library import Book, Library
    from bookrag_fast.query.plan import Answer, Evidence

# Resolved on first use: `import bookrag_fast.core` must not pay for grpc, pyarrow or pdfium.
_HOMES = {
    "Answer": "bookrag_fast.query.plan",
    "Book": "bookrag_fast.library",
    "BookragError": "bookrag_fast.errors",
    "Evidence": "bookrag_fast.query.plan",
    "Library": "bookrag_fast.library",
    "__version__": "bookrag_fast._version",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "core":
        return importlib.import_module("bookrag_fast.core")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'bookrag_fast' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
