"""Worker processes that look at pictures of pages, a page each at a time.

As many pages are in flight as there are workers, and a picture never leaves the worker that
renders it, so memory does not grow with the document.
"""

from __future__ import annotations

import json
import select
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from time import monotonic
from types import TracebackType
from typing import Any, Generic, TypeVar

from bookrag_fast.document.pictures.jobs import PageFailure, PageJob
from bookrag_fast.document.piped import Child, usable_cores
from bookrag_fast.errors import DocumentError

__all__ = ["PicturePool", "Task", "UnavailableError"]

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
        module: run as a program; it serves as `pictures.worker.serve` says.
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


class PicturePool(Generic[R]):
    """Use as a context manager: leaving it ends the workers, whatever they are doing.

    Not for use by several threads at once.
    """

    def __init__(self, task: Task[R]) -> None:
        self._task = task
        self._workers: list[_Worker[R]] = []
        self._most = task.workers or min(usable_cores(), _MOST_WORKERS)

    def __enter__(self) -> PicturePool[R]:
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


class _Worker(Child, Generic[R]):
    """A process, and the page that it looks at."""

    def __init__(self, task: Task[R]) -> None:
        self._task = task
        self.job: PageJob | None = None
        self.sound = True  # False once it died or was too slow
        self._page_s = task.page_seconds
        self.ready = False  # its models are loaded
        self._since = monotonic()
        try:
            super().__init__(task.module)
        except OSError as error:
            raise UnavailableError(
                f"cannot start a process for {task.name}: {error.strerror}",
                f"free some memory or processes, or set {task.section}.workers to 1",
            ) from error
        self._ask("settings", task.settings)

    def start(self, job: PageJob) -> None:
        self.job, self._since = job, monotonic()
        self._ask("job", asdict(job))

    def outcome(self, *, may_read: bool) -> R | PageFailure | None:
        """What came of the page; None while it is being read."""
        limit = self._page_s if self.ready else self._page_s + _START_S
        try:
            for kind, payload in self.hear() if may_read else ():
                if kind == "ready":
                    self.ready, self._since = True, monotonic()
                    continue
                answer = json.loads(payload)
                if kind == "broken":
                    raise UnavailableError(str(answer["message"]), str(answer["hint"]))
                self.job = None
                return PageFailure(answer) if kind == "failed" else self._task.result(answer)
        except EOFError:
            return self._died()
        if monotonic() - self._since > limit:
            self.sound = False
            return PageFailure(f"it was not read within {self._page_s:g} s")
        return None

    def _ask(self, kind: str, what: dict[str, Any]) -> None:
        self.say(kind, json.dumps(what).encode("ascii"))

    def _died(self) -> PageFailure:
        self.sound = False
        status = self.status()
        if not self.ready:
            raise UnavailableError(
                f"the process for {self._task.name} ended before it could read (status {status})",
                f"free some memory, set {self._task.section}.workers to 1, or switch "
                f"{self._task.name} off",
            )
        return PageFailure(f"the process that read it ended (status {status})")
