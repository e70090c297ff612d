"""What a forked child may not go on with: it has none of its parent's threads and tasks, but
shares the parent's sockets, files and its loops' selectors, which whatever it does to them reaches
too."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Protocol

__all__ = ["Forked", "Resting", "begins_anew", "keep", "rests"]


class Forked(Protocol):
    def forked(self) -> None:
        """Called in a child, before all else there: begin anew. `keep` what is let go of."""
        ...


class Resting(Protocol):
    def resting(self) -> AbstractContextManager[None]:
        """Entered before a fork, by the thread that forks, and left after it in the parent alone:
        what the child must not find under way is ended meanwhile."""
        ...


_all: weakref.WeakSet[Any] = weakref.WeakSet()
_resting: weakref.WeakSet[Any] = weakref.WeakSet()
_kept: list[object] = []


class _Forking(threading.local):
    """Of a thread: two may fork at the same time."""

    rests: ExitStack | None = None


_forking = _Forking()


def begins_anew(thing: Forked) -> None:
    """Have a thing told of forks for as long as it lives."""
    _all.add(thing)


def rests(thing: Resting) -> None:
    """Have a thing rest while the process forks, for as long as it lives."""
    _resting.add(thing)


def keep(*parents: object) -> None:
    """Hold what is the parent's: when it is collected, it would be closed for the parent too."""
    _kept.extend(parents)


def _rest_all() -> None:
    _forking.rests = ExitStack()
    for thing in list(_resting):
        _forking.rests.enter_context(thing.resting())


def _go_on() -> None:
    rests, _forking.rests = _forking.rests, None
    if rests is not None:
        rests.close()


def _tell_all() -> None:
    # Garbage of the parent stays where it is: to collect it here could close what is the parent's,
    # and an ONNX session that is freed waits for threads which a child does not have.
    gc.freeze()
    keep(_forking.rests)
    _forking.rests = None
    for thing in list(_all):
        thing.forked()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_rest_all, after_in_parent=_go_on, after_in_child=_tell_all)
