"""The other end of `page_pool`: a process that looks at pictures of pages for another one.

Settings come as one JSON line on standard input, then jobs, a line each; answers go to standard
output as JSON lines. It ends when its input does, in the middle of a page too: whoever asked has
gone then.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from bookrag_fast.document.pictures.jobs import PageJob
from bookrag_fast.errors import BookragError

__all__ = ["MEMORY_MB", "serve"]

MEMORY_MB = 4096  # address space; a page takes a tenth of it


def serve(
    load: Callable[[dict[str, Any]], Callable[[PageJob], dict[str, Any]]], *, remedy: str
) -> int:
    """Answers until the input ends; the exit status.

    Args:
        load: makes of the settings what answers a job. What it raises is said to those who asked.
        remedy: for an error that is none of ours.
    """
    # Whatever else in this process prints must not fall between the answers.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    _limit()
    jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    settings = json.loads(sys.stdin.buffer.readline() or b"{}")
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    try:
        answer = load(settings)
    except BookragError as error:
        _send(out, {"broken": error.message, "hint": error.hint})
        return 1
    except Exception as error:  # whatever a library lacks
        _send(out, {"broken": f"{type(error).__name__}: {error}", "hint": remedy})
        return 1
    _send(out, {"ready": True})
    while True:
        try:
            _send(out, answer(PageJob(**jobs.get())))
        except MemoryError:
            _send(out, {"failed": f"it needs more than {MEMORY_MB} MiB"})
        except Exception as error:  # one bad page fails alone
            _send(out, {"failed": str(error) or type(error).__name__})


def _limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY_MB << 20
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS knows no such limit
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _listen(jobs: queue.SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin.buffer:
        jobs.put(json.loads(line))
    os._exit(0)


def _send(out: BinaryIO, answer: dict[str, Any]) -> None:
    out.write(json.dumps(answer, separators=(",", ":")).encode("ascii") + b"\n")
    out.flush()
