"""Reading documents in a process of their own, so that no file can take the caller down.

A worker is kept for the next document: starting one costs about as much as reading ten pages.
"""

from __future__ import annotations

import json
import os
import select
import threading
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

from bookrag_fast import errors
from bookrag_fast.config import LayoutSettings, OcrSettings
from bookrag_fast.document.formats.kinds import is_pdf_head
from bookrag_fast.document.model import Document
from bookrag_fast.document.piped import Child, usable_cores
from bookrag_fast.document.transfer import from_json
from bookrag_fast.errors import (
    BookragError,
    DamagedDocumentError,
    DamagedPdfError,
    DocumentError,
    TooLargeError,
)
from bookrag_fast.forks import begins_anew, keep

__all__ = ["IsolatedReader"]

_POLL_S = 0.1  # how soon a cancellation is heeded
_SILENCE_S = 300.0  # nothing takes longer: pages are given up sooner (see `parallel`)
_DOCUMENTS = 64  # read by one worker before a fresh one takes over
_CODES = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, BookragError)
}


class IsolatedReader:
    """`read_document` in worker processes. Safe to share between threads: each document that is
    being read has a worker to itself.

    Args:
        memory_mb: address space of a process. A document that needs more is refused.
        workers: processes that read the pages of a long PDF side by side; None is one a core, at
            most two.
        ocr: how pages without a usable text layer are read; None takes the defaults.
        layout: whether a layout model sees the pages; None takes the defaults.
    """

    def __init__(
        self,
        *,
        memory_mb: int,
        workers: int | None = None,
        ocr: OcrSettings | None = None,
        layout: LayoutSettings | None = None,
    ) -> None:
        self._memory_mb = memory_mb
        self._workers = workers or min(2, usable_cores())
        self._settings = {
            "ocr": (ocr or OcrSettings()).model_dump(),
            "layout": (layout or LayoutSettings()).model_dump(),
        }
        self._idle: list[_Worker] = []  # one list for life: the finalizer holds it
        self._guard = threading.Lock()
        self._finalizer = weakref.finalize(self, _kill_all, self._idle)
        begins_anew(self)

    def forked(self) -> None:
        keep(*self._idle)
        self._idle.clear()
        self._guard = threading.Lock()

    def read(
        self,
        path: Path,
        *,
        password: str | None = None,
        pages: tuple[int, int | None] | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,
        check: Callable[[], None] = lambda: None,
    ) -> Document:
        """Read a document; errors as for `read_document`.

        Args:
            pages: of a PDF, the first and the last page to read; None reads all.
            progress: called with (pages done, pages in all).
            check: called several times a second; whatever it raises ends the reading at once.

        Raises:
            DamagedPdfError, DamagedDocumentError: also when the file made its reader crash or hang;
                if it was a page of a PDF that did, that page fails alone.
            TooLargeError: also when the worker's memory was not enough.
        """
        request = {
            "path": os.fsencode(path.absolute()).hex(),
            "password": password,
            **self._settings,
            "pages": pages,
            "workers": self._workers,
            "careful": False,
        }
        try:
            return self._read(path, request, progress, check)
        except _EndedError as ended:
            if not _is_pdf(path):
                raise ended.error from None
        # A page did that. Behind processes of their own for the pages, only that one fails.
        try:
            return self._read(path, {**request, "careful": True}, progress, check)
        except _EndedError as ended:
            raise ended.error from None

    def _read(
        self,
        path: Path,
        request: dict[str, Any],
        progress: Callable[[int, int], None],
        check: Callable[[], None],
    ) -> Document:
        worker = self._take()
        try:
            document = worker.read(path, request, progress, check)
        except (BookragError, _EndedError):
            self._give_back(worker)
            raise
        except BaseException:  # cancelled, interrupted: what it was doing is nobody's business now
            worker.kill()
            raise
        self._give_back(worker)
        return document

    def close(self) -> None:
        """End the idle worker. Documents that are being read are not disturbed."""
        with self._guard:
            _kill_all(self._idle)

    def _take(self) -> _Worker:
        with self._guard:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive():  # what ended while idle is no document's fault
                    return worker
                worker.kill()
        return _Worker(self._memory_mb)

    def _give_back(self, worker: _Worker) -> None:
        with self._guard:
            if worker.sound and not self._idle and worker.documents < _DOCUMENTS:
                self._idle.append(worker)
                return
        worker.kill()


def _kill_all(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.kill()
    workers.clear()


class _EndedError(Exception):
    """The process ended over a document, or will not; ``error`` is for the caller."""

    def __init__(self, error: BookragError) -> None:
        super().__init__(error.message)
        self.error = error


class _Worker(Child):
    """A process that reads one document at a time."""

    def __init__(self, memory_mb: int) -> None:
        self.documents = 0
        self.sound = True  # False once it died, hung or ran out of memory
        self._memory_mb = memory_mb
        self._heard: deque[tuple[str, bytes]] = deque()  # frames that wait to be looked at
        try:
            super().__init__("bookrag_fast.document.child", str(memory_mb))
        except OSError as error:
            raise DocumentError(
                f"cannot start a process to read documents: {error.strerror}",
                "free some memory or processes, or set isolate_reader to false",
            ) from error

    def read(
        self,
        path: Path,
        request: dict[str, Any],
        progress: Callable[[int, int], None],
        check: Callable[[], None],
    ) -> Document:
        self.documents += 1
        self.say("read", json.dumps(request).encode("ascii"))
        pages = 0
        while True:
            kind, payload = self._frame(path, pages, check)
            if kind == "progress":
                pages, total = json.loads(payload)
                progress(pages, total)
            elif kind == "document":
                return from_json(payload)
            elif kind == "memory":
                self.sound = False
                raise self._too_large(path, pages)
            else:
                fields = json.loads(payload)
                raise _CODES.get(fields["code"], DocumentError)(fields["message"], fields["hint"])

    def _frame(self, path: Path, pages: int, check: Callable[[], None]) -> tuple[str, bytes]:
        heard = monotonic()
        while not self._heard:
            check()
            ready, _, _ = select.select([self], [], [], _POLL_S)
            if ready:
                try:
                    self._heard.extend(self.hear())
                except EOFError:
                    raise self._died(path, pages) from None
                heard = monotonic()
            elif monotonic() - heard > _SILENCE_S:
                self.sound = False
                what = f"was not read within {_SILENCE_S:.0f} s"
                raise _EndedError(_damaged(path, pages, what))
        return self._heard.popleft()

    def _died(self, path: Path, pages: int) -> _EndedError:
        self.sound = False
        what = (
            f"ended its reader (status {self.status()}), or needs more than {self._memory_mb} MiB"
        )
        return _EndedError(_damaged(path, pages, what))

    def _too_large(self, path: Path, pages: int) -> BookragError:
        where = f" at page {pages + 1}" if _is_pdf(path) else ""
        return TooLargeError(
            f"{path.name} needs more than {self._memory_mb} MiB{where}",
            "raise reader_memory_mb in the configuration, or split the file",
        )


def _damaged(path: Path, pages: int, what: str) -> BookragError:
    """``pages`` were read before it happened; only a PDF is read page by page."""
    if not _is_pdf(path):
        return DamagedDocumentError(
            f"{path.name} {what}", "save the file anew with the program that made it"
        )
    return DamagedPdfError(
        f"page {pages + 1} of {path.name} {what}",
        "open and save the file with another PDF program, or raise reader_memory_mb",
    )


def _is_pdf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_pdf_head(file.read(1024))
    except OSError:  # gone meanwhile
        return False
