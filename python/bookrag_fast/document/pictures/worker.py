"""The other end of `pictures.pool`: a process that looks at pictures of pages for another one.

It is told its settings, then jobs, and answers each; all of it JSON in frames (see `piped`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, BinaryIO

from bookrag_fast.document.pictures.jobs import PageJob
from bookrag_fast.document.piped import limit_memory, listen, own_output, send
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
    out = own_output()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    limit_memory(MEMORY_MB)
    requests = listen()
    try:
        answer = load(json.loads(requests.get()[1]))
    except BookragError as error:
        _say(out, "broken", {"message": error.message, "hint": error.hint})
        return 1
    except Exception as error:  # whatever a library lacks
        _say(out, "broken", {"message": f"{type(error).__name__}: {error}", "hint": remedy})
        return 1
    send(out, "ready", b"")
    while True:
        job = PageJob(**json.loads(requests.get()[1]))
        try:
            _say(out, "done", answer(job))
        except MemoryError:
            _say(out, "failed", f"it needs more than {MEMORY_MB} MiB")
        except Exception as error:  # one bad page fails alone
            _say(out, "failed", str(error) or type(error).__name__)


def _say(out: BinaryIO, kind: str, what: object) -> None:
    send(out, kind, json.dumps(what, separators=(",", ":")).encode("ascii"))
