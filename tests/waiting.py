"""Waiting for what other threads bring about in their own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

# As many as a loop has of them: what holds them all leaves none to others.
WORKER_THREADS = ThreadPoolExecutor()._max_workers


def eventually(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Returns once the condition is true; blocks, so what it waits for runs in another thread."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not come about"
        time.sleep(0.001)
