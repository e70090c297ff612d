"""Processes that read the pages of a document side by side, and what they answer in order.

A page that ends its process, or keeps it too long, fails alone: another process goes on behind it.
"""

from __future__ import annotations

import itertools
import json
import os
import select
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import NamedTuple

from bookrag_fast.document.analysis.blocks import Body, Draft
from bookrag_fast.document.pdf.pages import RawPage, failed_page
from bookrag_fast.document.pdf.parallel.wire import drafts_from, layout_to, page_from
from bookrag_fast.document.piped import Child
from bookrag_fast.errors import DamagedPdfError, DocumentError

__all__ = ["PagePool"]

COLD, WARM = 64, 16  # pages that are worth starting processes for, and worth asking those running
RUN = 8  # pages in a row for one process: neighbours share fonts and other objects
LOW = 3  # pages that wait at a process when it gets more
AHEAD = 256  # answers that wait for an earlier page; no more is asked for then
MOST_LOST = 16  # pages of a document that may end their process

_POLL_S = 0.25
_PAGE_S = 240.0  # a page that takes longer than this never ends
_START_S = 60.0  # more for the first one, on a busy machine


class _Job(NamedTuple):
    order: int
    page: int  # from 1
    kind: str
    payload: bytes


class PagePool:
    """Worker processes, started when they are needed and kept for the next document.

    For one document at a time. Workers end with the process that has the pool.

    Args:
        workers: at most so many processes.
        memory_mb: address space of each.
        least: pages that a document has at least, to be read here; None for what pays off.
    """

    def __init__(self, workers: int, memory_mb: int, *, least: int | None = None) -> None:
        self._most = workers
        self._memory_mb = memory_mb
        self._least = least
        self._workers: list[_Worker] = []
        self._name = ""
        self._opening = b""
        self._lost = 0
        self._retried: set[int] = set()  # orders of layouts

    def __enter__(self) -> PagePool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def takes(self, pages: int) -> bool:
        """Whether a document of so many pages is to be read here."""
        least = self._least
        if least is None:
            least = WARM if self._workers else COLD
        return pages >= least

    def pages(self, path: Path, password: str | None, numbers: Iterable[int]) -> Iterator[RawPage]:
        """Pages of a file by their numbers, from 1, in that order; one that could not be read
        has PageStatus.FAILED.

        Raises:
            DamagedPdfError: many pages end their process.
            DocumentError: no process can be started.
        """
        fields = {"path": os.fsencode(path.absolute()).hex(), "password": password}
        self._name, self._opening = path.name, json.dumps(fields).encode("ascii")
        self._lost = 0
        self._retried.clear()
        jobs = (_Job(k, page, "read", b"%d" % page) for k, page in enumerate(numbers))
        for job, answer in self._answers(jobs):
            yield failed_page(job.page, answer) if isinstance(answer, str) else page_from(answer)
        for worker in self._workers:
            worker.tell("close", b"")

    def drafts(self, pages: Iterable[tuple[RawPage, Body]]) -> Iterator[list[Draft]]:
        """The drafts of pages, each with the body it is set in; in order.

        Raises:
            DamagedPdfError: the layout of a page ends its process, or does not end.
        """
        jobs = (
            _Job(k, raw.page.number, "draft", layout_to(raw, body))
            for k, (raw, body) in enumerate(pages)
        )
        for job, answer in self._answers(jobs):
            if isinstance(answer, str):  # for the second time
                raise DamagedPdfError(
                    f"page {job.page} of {self._name} cannot be laid out: {answer}",
                    "raise reader_memory_mb, or leave the page out",
                )
            yield drafts_from(answer)

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
        self._workers.clear()

    def _answers(self, jobs: Iterator[_Job]) -> Iterator[tuple[_Job, bytes | str]]:
        """Each job with its answer, or why there is none; in order."""
        for worker in list(self._workers):
            # Busy for a document that was given up, or ended while idle, which is no page's fault.
            if worker.jobs or not worker.alive():
                worker.kill()
                self._workers.remove(worker)
        done: dict[int, tuple[_Job, bytes | str]] = {}
        order = 0
        while True:
            if len(done) < AHEAD:
                self._hand_out(jobs)
            busy = [worker for worker in self._workers if worker.jobs]
            if not busy:
                return
            ready, _, _ = select.select(busy, [], [], _POLL_S)
            for worker in busy:
                try:
                    for answer in worker.answers(may_read=worker in ready):
                        job = worker.jobs.popleft()
                        done[job.order] = job, answer
                except _EndedError as end:
                    lost = self._replace(worker)
                    if lost is not None:
                        done[lost.order] = lost, str(end)
            while order in done:
                yield done.pop(order)
                order += 1

    def _hand_out(self, jobs: Iterator[_Job]) -> None:
        for k in range(self._most):
            if k < len(self._workers) and len(self._workers[k].jobs) > LOW:
                continue
            run = list(itertools.islice(jobs, RUN))
            if not run:
                return
            if k == len(self._workers):
                self._workers.append(_Worker(self._memory_mb))
            for job in run:
                self._workers[k].ask(job, self._opening)

    def _replace(self, worker: _Worker) -> _Job | None:
        """Has the jobs of a worker that ended done by a fresh one; the one that is given up.

        That is the one it ended on. A layout is tried once more first: PDFium has no part in it,
        so what ended the worker was likely not the page, and without it there is no document.
        """
        worker.kill()
        lost = worker.jobs.popleft()
        self._lost += 1
        if self._lost > MOST_LOST:
            raise DamagedPdfError(
                f"{self._name} ended its reader on {self._lost} pages, page {lost.page} the last",
                "open and save the file with another PDF program, or raise reader_memory_mb",
            )
        fresh = _Worker(self._memory_mb)
        self._workers[self._workers.index(worker)] = fresh
        again = lost.kind == "draft" and lost.order not in self._retried
        if again:
            self._retried.add(lost.order)
            fresh.ask(lost, self._opening)
        for job in worker.jobs:
            fresh.ask(job, self._opening)
        return None if again else lost


class _EndedError(Exception):
    """A worker has ended or must be ended; the text says why, as the page's note."""


class _Worker(Child):
    """A process that reads pages, and what it has been asked for."""

    def __init__(self, memory_mb: int) -> None:
        self.jobs: deque[_Job] = deque()
        self._memory_mb = memory_mb
        self._opening = b""
        self._ready = False
        self._heard = monotonic()
        try:
            super().__init__("bookrag_fast.document.pdf.parallel.worker", str(memory_mb))
        except OSError as error:
            raise DocumentError(
                f"cannot start a process to read pages: {error.strerror}",
                "free some memory or processes, or set reader_workers to 1",
            ) from error

    def ask(self, job: _Job, opening: bytes) -> None:
        """``opening`` says which document a page to read is of."""
        if job.kind == "read" and opening != self._opening:
            self.tell("open", opening)
            self._opening = opening
        if not self.jobs:
            self._heard = monotonic()
        self.jobs.append(job)
        self.tell(job.kind, job.payload)

    def tell(self, kind: str, payload: bytes) -> None:
        if kind == "close":
            self._opening = b""
        self.say(kind, payload)

    def answers(self, *, may_read: bool) -> Iterator[bytes]:
        """What has come; raises _EndedError when nothing can come any more."""
        if may_read:
            try:
                for kind, payload in self.hear():
                    self._heard = monotonic()
                    if kind == "ready":
                        self._ready = True
                    else:
                        yield payload
            except EOFError:
                raise self._ended() from None
        elif monotonic() - self._heard > _PAGE_S + (0 if self._ready else _START_S):
            raise _EndedError(f"it was not read within {_PAGE_S:.0f} s")

    def _ended(self) -> Exception:
        status = self.status()
        if not self._ready:
            return DocumentError(
                f"the process to read pages ended at its start (status {status})",
                f"give it more than {self._memory_mb} MiB (reader_memory_mb), or set "
                "reader_workers to 1",
            )
        return _EndedError(
            f"it ended its reader (status {status}), or needs more than {self._memory_mb} MiB"
        )
