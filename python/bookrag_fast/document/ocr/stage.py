"""Which pages of a document are read from pictures, and what becomes of them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bookrag_fast.config import OcrSettings
from bookrag_fast.document.analysis.frames import frame_to_page
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.model import BBox, Page, PageStatus
from bookrag_fast.document.ocr.legible import fault_of
from bookrag_fast.document.ocr.task import ocr_task
from bookrag_fast.document.ocr.typeset import typeset
from bookrag_fast.document.ocr.wire import PageReading
from bookrag_fast.document.pictures.jobs import PageFailure, PageJob
from bookrag_fast.document.pictures.pool import PicturePool, UnavailableError

__all__ = ["INSTALL", "OcrStage", "is_installed"]

INSTALL = "pip install 'bookrag-fast[ocr]'"

LITTLE_TEXT = 120  # characters: a stamp or a page number on a scan
PICTURE_SHARE = 0.5  # of the page: what a scan covers, at least
AGREEMENT = 0.5  # of the words read: so many in the text layer prove it
DOUBTFUL = 0.8  # a mean confidence below which a page is reported
FOREIGN = 0.6  # of the lines of a page: in no script that the models know

NO_LAYER = "no text layer"
_NO_WORDS = "its text layer has no words"
_STAMPED = "a picture with a little text on it"
_ASKED = "OCR of every page was asked for"


def is_installed() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("rapidocr", "PIL", "cv2"))


class OcrStage:
    """Collects the pages of one document that need it, then reads them.

    Args:
        kind: of the file: "pdf" or "image".
    """

    def __init__(
        self, settings: OcrSettings, path: Path, password: str | None = None, kind: str = "pdf"
    ) -> None:
        self._settings = settings
        self._path = path
        self._password = password
        self._kind = kind
        self._reasons: dict[int, str] = {}
        self._trouble = ("", "")  # why pages were not read at all, with the remedy
        self.reported: set[int] = set()  # numbers of the pages without text that a warning names

    def look(
        self, index: int, lines: Sequence[Line], images: Sequence[BBox], drawn: bool, area: float
    ) -> bool:
        """Whether a page is to be read; it is then remembered.

        Args:
            index: of the page, from 0.
            images: boxes of its pictures, in points.
            drawn: whether anything but text is on it.
            area: of the page, square points.
        """
        reason = self._reason(lines, images, drawn, area)
        if reason:
            self._reasons[index] = reason
        return bool(reason)

    def want(self, index: int) -> None:
        """Has a page read that can be nothing but a picture."""
        self._reasons[index] = NO_LAYER

    def _reason(
        self, lines: Sequence[Line], images: Sequence[BBox], drawn: bool, area: float
    ) -> str:
        if self._settings.mode == "off":
            return NO_LAYER if drawn and not lines else ""
        if not lines:
            return NO_LAYER if drawn else ""
        if self._settings.mode == "always":
            return _ASKED
        covered = max((b.width * b.height for b in images), default=0.0)
        if covered > PICTURE_SHARE * area and sum(len(x.text) for x in lines) <= LITTLE_TEXT:
            return _STAMPED
        return fault_of("\n".join(line.text for line in lines))

    def run(
        self,
        pages: list[Page],
        lines: list[list[Line]],
        pictures: list[list[BBox]],
        *,
        body: float | None,
        progress: Callable[[int, int], None] | None,
    ) -> list[str]:
        """Reads the pages that wait, and puts what was read in place of what was there.

        Args:
            pages, lines, pictures: of the whole document; changed in place.
            body: size of the running text of the other pages, in points; None if they have none.
            progress: called with (pages done, pages in all), now and then for no reason.

        Returns:
            Warnings.
        """
        outcomes, trouble = self._outcomes(pages, progress)
        self._trouble = trouble
        readings = {k: _known(x) for k, x in outcomes.items() if isinstance(x, PageReading)}
        typed = typeset(readings, body)
        doubtful: list[int] = []
        foreign: list[int] = []
        unread: list[int] = []
        for index, reason in self._reasons.items():
            outcome = outcomes.get(index)
            if not isinstance(outcome, PageReading):
                why = f"failed: {outcome.reason}" if outcome else trouble[0]
                if self._kind == "image" and outcome:
                    status = PageStatus.FAILED
                    pages[index] = replace(pages[index], status=status, note=outcome.reason)
                elif _is_poor(reason):
                    unread.append(index + 1)
                    lines[index].clear()
                    note = f"{reason}; OCR {why}"
                    pages[index] = replace(pages[index], status=PageStatus.NO_TEXT, note=note)
                elif outcome:
                    pages[index] = replace(pages[index], note=f"{reason}; OCR: {why}")
                continue
            if outcome.unknown > FOREIGN:
                foreign.append(index + 1)
            merged = _merged(reason, lines[index], typed[index])
            if merged is None:
                continue
            lines[index][:] = merged
            if not merged:
                note = "OCR found no text"
                pages[index] = replace(pages[index], status=PageStatus.NO_TEXT, note=note)
                continue
            pictures[index][:] = [b for b in pictures[index] if not _is_the_scan(b, merged)]
            note = f"read by OCR ({reason}), confidence {outcome.confidence:.2f}"
            pages[index] = replace(pages[index], status=PageStatus.OCR, note=note)
            if outcome.confidence < DOUBTFUL:
                doubtful.append(index + 1)
        warnings = [
            f"{self._path.name}, page {k + 1}: not read by OCR: {x.reason}"
            for k, x in outcomes.items()
            if isinstance(x, PageFailure)
        ]
        if doubtful:
            warnings.append(
                f"{self._path.name}: OCR was unsure of {len(doubtful)} pages: {_listed(doubtful)}"
            )
        if foreign:
            warnings.append(
                f"{self._path.name}: {len(foreign)} pages are for the most part in a script that "
                f"the OCR models do not know: {_listed(foreign)} (name others in ocr.models)"
            )
        silent = [number for number in unread if number - 1 not in outcomes]
        if silent:
            warnings.append(
                f"{self._path.name}: {len(silent)} of {len(pages)} pages are pictures of text, and "
                f"OCR {trouble[0]}: {_listed(silent)} ({trouble[1]})"
            )
        self.reported = {*unread, *(k + 1 for k, x in outcomes.items() if not _has_read(x))}
        return warnings

    def remedy(self) -> str:
        """What to do about a document without any text."""
        if self._settings.mode == "off":
            return "index it with --ocr auto"
        if not is_installed():
            return f"to read it by OCR: {INSTALL}"
        if self._trouble[1]:
            return self._trouble[1]
        return "check with a viewer that there is text on its pages"

    def _outcomes(
        self, pages: Sequence[Page], progress: Callable[[int, int], None] | None
    ) -> tuple[dict[int, PageReading | PageFailure], tuple[str, str]]:
        """By page what was read; and why the rest was not, with the remedy."""
        if self._settings.mode == "off":
            return {}, ("is switched off", "index it with --ocr auto")
        if not self._reasons:
            return {}, ("", "")
        if not is_installed():
            return {}, ("is not installed", f"{INSTALL}, then remove and index the book again")
        jobs = [
            PageJob(
                self._kind,
                str(self._path.absolute()),
                self._password,
                index,
                pages[index].width,
                pages[index].height,
            )
            for index in self._reasons
        ]
        outcomes: dict[int, PageReading | PageFailure] = {}

        def tell() -> None:
            if progress is not None:
                progress(len(pages) - len(jobs) + len(outcomes), len(pages))

        try:
            with PicturePool(ocr_task(self._settings)) as pool:
                for job, outcome in pool.read(jobs, tell):
                    outcomes[job.index] = outcome
                    tell()
        except UnavailableError as error:
            return outcomes, (f"failed: {error.message}", error.hint)
        return outcomes, ("", "")


def _has_read(outcome: PageReading | PageFailure) -> bool:
    return isinstance(outcome, PageReading)


def _known(reading: PageReading) -> PageReading:
    """What can be relied on of a page: on one in a foreign script, the lines that are not."""
    if reading.unknown <= FOREIGN:
        return reading
    return PageReading([line for line in reading.lines if not line.is_sparse])


def _is_poor(reason: str) -> bool:
    """Whether the page has nothing better than what OCR would have given."""
    return reason not in (_NO_WORDS, _STAMPED, _ASKED)


def _merged(reason: str, layer: list[Line], read: list[Line]) -> list[Line] | None:
    """The lines of a page that has been read; None where its text layer proved good or better."""
    if reason == _STAMPED:
        fresh = [line for line in read if not any(_overlap(line, other) for other in layer)]
        return layer + fresh if fresh else None
    if reason == _ASKED and not read:
        return None
    if reason == _NO_WORDS:
        known = {word for line in layer for word in line.text.split()}
        words = [w for line in read for w in line.text.split() if len(w) > 2]
        if sum(word in known for word in words) >= AGREEMENT * len(words):
            return None
    return read


def _overlap(a: Line, b: Line) -> bool:
    one, two = (frame_to_page(x.frame, x.x0, x.y0, x.x1, x.y1) for x in (a, b))
    x = min(one.x1, two.x1) - max(one.x0, two.x0)
    y = min(one.y1, two.y1) - max(one.y0, two.y0)
    return x > 0 and y > 0.3 * min(one.height, two.height)


def _is_the_scan(box: BBox, lines: Sequence[Line]) -> bool:
    """Whether the text that was read stands in this picture."""
    inside = 0
    for line in lines:
        b = frame_to_page(line.frame, line.x0, line.y0, line.x1, line.y1)
        x, y = (b.x0 + b.x1) / 2, (b.y0 + b.y1) / 2
        inside += box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1
    return 2 * inside > len(lines)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:12])) + (" …" if len(numbers) > 12 else "")
