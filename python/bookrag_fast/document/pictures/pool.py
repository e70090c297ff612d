"""Worker processes that look at pictures of pages, a page each at a time.

As many pages are in flight as there are workers, and a picture never leaves the worker that
renders it, so memory does not grow with the document.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from time import monotonic
from types import TracebackType
from typing import Any, BinaryIO, Generic, TypeVar

from bookrag_fast.document.pictures.jobs import PageFailure, PageJob
from bookrag_fast.errors import DocumentError

__all__ = ["PagePool", "Task", "UnavailableError"]

R = TypeVar("R")

_POLL_S = 0.25  # how often the caller hears that the work goes on
_START_S = 60.0  # to load the models on a busy machine
_MOST_WORKERS = 4  # unless the settings say otherwise: each takes some 500 MB


class UnavailableError(DocumentError):
    """No page at all can be looked at: what it takes is not installed, or does not work here."""


@dataclass(frozen=True, slots=True)
class Task(Generic[R]):
    """What the workers do.

    Args:
        name: in messages: "OCR".
        section: of the settings: "ocr".
        module: run as a program; it serves as `page_worker.serve` says.
        settings: for the module, as JSON.
        result: makes a worker's answer a result.
        workers: at most so many; None takes one a core, at most 4.
        page_seconds: a slower page fails alone.
    """

    name: str
    section: str
    module: str
    settings: dict[str, Any]
    result: Callable[[dict[str, Any]], R]
    workers: int | None
    page_seconds: float


class PagePool(Generic[R]):
    """Use as a context manager: leaving it ends the workers, whatever they are doing.

    Not for use by several threads at once.
    """

    def __init__(self, task: Task[R]) -> None:
        self._task = task
        self._workers: list[_Worker[R]] = []
        self._most = task.workers or min(_cores(), _MOST_WORKERS)

    def __enter__(self) -> PagePool[R]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
        self._workers.clear()

    def read(
        self, jobs: Iterable[PageJob], tick: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[PageJob, R | PageFailure]]:
        """Each job with what came of it, as they get done.

        Args:
            tick: called a few times a second; whatever it raises ends the reading.

        Raises:
            UnavailableError: no worker comes up, so that no page can be read.
        """
        waiting = deque(jobs)
        while waiting or any(worker.job for worker in self._workers):
            self._hand_out(waiting)
            busy = [worker for worker in self._workers if worker.job]
            ready, _, _ = select.select(busy, [], [], _POLL_S)
            tick()
            for worker in busy:
                job = worker.job
                assert job is not None
                try:
                    outcome = worker.outcome(may_read=worker in ready)
                except UnavailableError:
                    if not any(other.ready for other in self._workers):
                        raise
                    # There is not room for so many: those that are up go on without it.
                    worker.kill()
                    self._workers.remove(worker)
                    self._most = max(1, len(self._workers))
                    waiting.appendleft(job)
                    continue
                if outcome is not None:
                    if not worker.sound:
                        worker.kill()
                        self._workers.remove(worker)
                    yield job, outcome

    def _hand_out(self, waiting: deque[PageJob]) -> None:
        free = [worker for worker in self._workers if not worker.job]
        while waiting and (free or len(self._workers) < self._most):
            if free:
                worker = free.pop()
            else:
                worker = _Worker(self._task)
                self._workers.append(worker)
            worker.start(waiting.popleft())


class _Worker(Generic[R]):
    """One process, the pipes to it, and the page that it reads."""

    def __init__(self, task: Task[R]) -> None:
        self._task = task
        self.job: PageJob | None = None
        self.sound = True  # False once it died or was too slow
        self._page_s = task.page_seconds
        self.ready = False  # its models are loaded
        self._since = monotonic()
        self._buffer = bytearray()
        try:
            self._process = subprocess.Popen(  # noqa: S603  (a module of ours)
                [sys.executable, "-m", task.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise UnavailableError(
                f"cannot start a process for {task.name}: {error.strerror}",
                f"free some memory or processes, or set {task.section}.workers to 1",
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self._answers: BinaryIO = self._process.stdout  # type: ignore[assignment]
        self._say(task.settings)

    def fileno(self) -> int:
        return self._answers.fileno()

    def start(self, job: PageJob) -> None:
        self.job, self._since = job, monotonic()
        self._say(asdict(job))

    def outcome(self, *, may_read: bool) -> R | PageFailure | None:
        """What came of the page; None while it is being read."""
        limit = self._page_s if self.ready else self._page_s + _START_S
        if may_read:
            data = os.read(self.fileno(), 1 << 20)
            if not data:
                return self._died()
            self._buffer += data
            while (end := self._buffer.find(b"\n")) >= 0:
                answer = json.loads(self._buffer[:end])
                del self._buffer[: end + 1]
                if "ready" in answer:
                    self.ready, self._since = True, monotonic()
                elif "broken" in answer:
                    raise UnavailableError(str(answer["broken"]), str(answer["hint"]))
                else:
                    self.job = None
                    if "failed" in answer:
                        return PageFailure(str(answer["failed"]))
                    return self._task.result(answer)
        if monotonic() - self._since > limit:
            self.sound = False
            return PageFailure(f"it was not read within {self._page_s:g} s")
        return None

    def kill(self) -> None:
        self._process.kill()
        with contextlib.suppress(OSError):
            self._requests.close()
        self._answers.close()
        self._process.wait()

    def _say(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # found out when its answer does not come
            self._requests.write(json.dumps(message).encode("ascii") + b"\n")
            self._requests.flush()

    def _died(self) -> PageFailure:
        self.sound = False
        status = self._process.wait()
        if not self.ready:
            raise UnavailableError(
                f"the process for {self._task.name} ended before it could read (status {status})",
                f"free some memory, set {self._task.section}.workers to 1, or switch "
                f"{self._task.name} off",
            )
        return PageFailure(f"the process that read it ended (status {status})")


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1
