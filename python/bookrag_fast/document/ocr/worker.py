"""The process that reads pictures for another one: ``python -m bookrag_fast.document.ocr.worker``.

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
from pathlib import Path
from typing import Any, BinaryIO

from bookrag_fast.errors import BookragError

__all__ = ["MEMORY_MB", "main"]

MEMORY_MB = 4096  # address space; a page takes a tenth of it


def main() -> int:
    # Whatever else in this process prints must not fall between the answers.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    _limit()
    jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    settings = json.loads(sys.stdin.buffer.readline() or b"{}")
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    try:
        from bookrag_fast.document.ocr.pictures import picture_of
        from bookrag_fast.document.ocr.recogniser import Recogniser
        from bookrag_fast.document.ocr.wire import PageJob

        recogniser = Recogniser(Path(settings["models"]) if settings["models"] else None)
    except BookragError as error:
        _send(out, {"broken": error.message, "hint": error.hint})
        return 1
    except Exception as error:  # whatever a library lacks is said to those who asked
        hint = "reinstall it: pip install --force-reinstall 'bookrag-fast[ocr]'"
        _send(out, {"broken": f"{type(error).__name__}: {error}", "hint": hint})
        return 1
    _send(out, {"ready": True})
    while True:
        try:
            grey, scale = picture_of(PageJob(**jobs.get()), settings["dpi"])
            _send(out, {"lines": recogniser.read(grey, scale)})
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


if __name__ == "__main__":
    sys.exit(main())
