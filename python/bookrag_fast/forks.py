"""What a forked child may not go on with: it has none of its parent's threads and tasks, but
shares the parent's sockets and its loops' selectors, which whatever it does to them reaches too."""

from __future__ import annotations

import gc
import os
import weakref
from typing import Any, Protocol

__all__ = ["Forked", "begins_anew", "keep"]


class Forked(Protocol):
    def forked(self) -> None:
        """Called in a child, before all else there: begin anew. `keep` what is let go of."""
        ...


_all: weakref.WeakSet[Any] = weakref.WeakSet()
_kept: list[object] = []


def begins_anew(thing: Forked) -> None:
    """Have a thing told of forks for as long as it lives."""
    _all.add(thing)


def keep(*parents: object) -> None:
    """Hold what is the parent's: when it is collected, it would be closed for the parent too."""
    _kept.extend(parents)


def _tell_all() -> None:
    # Garbage of the parent stays where it is: to collect it here could close what is the parent's,
    # and an ONNX session that is freed waits for threads which a child does not have.
    gc.freeze()
    for thing in list(_all):
        thing.forked()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_tell_all)
