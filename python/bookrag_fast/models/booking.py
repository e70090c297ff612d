"""Which book work is done for: what embedders and rerankers take meanwhile is booked on it.

They are asked for texts, by code that knows of no book. So the book travels beside the call, in its
context, which threads and tasks take along.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["book_of_the_work", "booked_on"]

_book: ContextVar[str] = ContextVar("bookrag_book", default="")


@contextmanager
def booked_on(book: str) -> Iterator[None]:
    """What models take within is taken for this book; "" for none in particular."""
    token = _book.set(book)
    try:
        yield
    finally:
        _book.reset(token)


def book_of_the_work() -> str:
    return _book.get()
