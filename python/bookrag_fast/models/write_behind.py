"""Writing a little later, many things at once, on another thread than the one that has them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from bookrag_fast.forks import begins_anew

__all__ = ["WriteBehind"]


class WriteBehind:
    """Calls ``write`` on a thread of its own ``delay_s`` after the first `due` since the last time.

    There is a thread only while something is due. The interpreter waits for it at exit, so that a
    process which ends in the usual ways loses nothing; a killed one loses ``delay_s`` at most.
    """

    def __init__(self, write: Callable[[], None], delay_s: float) -> None:
        self._write = write
        self._delay_s = delay_s
        self.forked()
        begins_anew(self)

    def forked(self) -> None:
        self._guard = threading.Lock()
        self._timer: threading.Timer | None = None

    def due(self) -> None:
        with self._guard:
            if self._timer is not None:
                return
            self._timer = threading.Timer(self._delay_s, self._run)
            timer = self._timer
            timer.daemon = False  # else as the thread that is here, often a loop's
        try:
            timer.start()
        except RuntimeError:  # no more threads: the interpreter is ending
            self._run()

    def now(self) -> None:
        """Write on this thread what is due."""
        with self._guard:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        self._write()

    def _run(self) -> None:
        with self._guard:
            self._timer = None
        self._write()
