"""Whether books can be asked with an embedder: only vectors of one model can be compared."""

from __future__ import annotations

from collections.abc import Sequence

from bookrag_fast.errors import ModelError, ModelMismatchError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.models.protocols import Embedder, EmbedderInfo

__all__ = ["check_embedder", "remedy"]


def check_embedder(books: Sequence[BookIndex], embedder: Embedder) -> None:
    """Nothing if all books were made with this embedder. Blocks where a server has to say how long
    its vectors are. Where that one is down, books that agree are let pass: the question goes by
    words, and its answer says why.

    Raises:
        ModelMismatchError: a book was made with another one.
        ModelError: the server is down, and the books were made with several.
    """
    try:
        used = embedder.info
    except ModelError:
        if len({(b.meta.embedder.fingerprint, b.meta.embedder.dimension) for b in books}) > 1:
            raise
        return
    for book in books:
        made = book.meta.embedder
        if (made.fingerprint, made.dimension) != (used.fingerprint, used.dimension):
            raise ModelMismatchError(
                f"{book.meta.title!r} was indexed with {made.name} ({made.dimension} dimensions); "
                f"the embedder in use is {used.name} ({used.dimension})",
                remedy(book.meta.name, made, used),
            )


def remedy(name: str, made: EmbedderInfo, used: EmbedderInfo) -> str:
    """What makes a file's book, made with one embedder, one of another."""
    if made.name == used.name and made.dimension != used.dimension:
        # Perhaps only the server knows of it, which is not asked about a book that is known.
        return f"remove {name} and index it again: {used.name} gives other vectors than it did"
    return f"index {name} again to convert it, or set the embedder to {made.name}"
