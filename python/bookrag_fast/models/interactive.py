"""Whether somebody waits for what models are asked.

The work of an index may ride out an outage; a question has the rules to fall back on, and a person
in front of it. Embedders and rerankers are asked by code that knows of neither, so this travels
beside the call, in its context, as `booking` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["interactively", "is_interactive"]

_interactive: ContextVar[bool] = ContextVar("bookrag_interactive", default=False)


@contextmanager
def interactively() -> Iterator[None]:
    """Somebody waits for what models are asked within."""
    token = _interactive.set(True)
    try:
        yield
    finally:
        _interactive.reset(token)


def is_interactive() -> bool:
    return _interactive.get()
