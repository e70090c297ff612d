"""Processes that read files for this one, and how the two talk: frames over two pipes.

A frame is a line with a kind and a length, then that many bytes.
"""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import BinaryIO

__all__ = ["Child", "limit_memory", "listen", "own_output", "send", "usable_cores"]


def send(out: BinaryIO, kind: str, payload: bytes) -> None:
    out.write(b"%s %d\n" % (kind.encode("ascii"), len(payload)))
    out.write(payload)
    out.flush()


def usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


class _Frames:
    """Frames out of bytes as they arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def take(self) -> tuple[str, bytes] | None:
        """The next frame, None when it has not come as a whole."""
        head = self._buffer.find(b"\n")
        if head < 0:
            return None
        kind, size = self._buffer[:head].split()
        end = head + 1 + int(size)
        if len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[head + 1 : end])
        del self._buffer[:end]
        return kind.decode("ascii"), payload


class Child:
    """A process that runs a module of ours, and the pipes to it.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own module, by our own Python
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self._answers: BinaryIO = self._process.stdout  # type: ignore[assignment]
        self._frames = _Frames()

    def fileno(self) -> int:
        """To wait with `select` until it has something to say."""
        return self._answers.fileno()

    def say(self, kind: str, payload: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # found out when its answer does not come
            send(self._requests, kind, payload)

    def hear(self) -> Iterator[tuple[str, bytes]]:
        """The frames that have come since; waits if nothing has. Raises EOFError once it ended."""
        data = os.read(self.fileno(), 1 << 20)
        if not data:
            raise EOFError
        self._frames.feed(data)
        while frame := self._frames.take():
            yield frame

    def alive(self) -> bool:
        return self._process.poll() is None

    def status(self) -> int:
        """Its exit status, once it has ended."""
        return self._process.wait()

    def kill(self) -> None:
        self._process.kill()
        with contextlib.suppress(OSError):
            self._requests.close()
        self._answers.close()
        self._process.wait()


# --- on the side of the process that reads ---------------------------------------------------


def own_output() -> BinaryIO:
    """Standard output for frames alone: whatever else prints goes to standard error."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return out


def limit_memory(mb: int) -> None:
    """Limits the address space of this process, and leaves no core dumps of files behind."""
    # Not the hard limit too: processes that read pictures for this one have a limit of their own.
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = mb << 20 if hard == resource.RLIM_INFINITY else min(mb << 20, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS knows no such limit
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def listen() -> queue.SimpleQueue[tuple[str, bytes]]:
    """The frames on standard input. The process ends when that does, in the middle of its work
    too: whoever asked has gone then."""
    requests: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()

    def take_all() -> None:
        frames = _Frames()
        with contextlib.suppress(ValueError, OSError, MemoryError):
            while data := os.read(sys.stdin.fileno(), 1 << 20):
                frames.feed(data)
                while frame := frames.take():
                    requests.put(frame)
        os._exit(0)

    threading.Thread(target=take_all, daemon=True).start()
    return requests
