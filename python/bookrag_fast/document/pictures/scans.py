"""``read_scan``: an image file, its frames as pages → Document.

Pages are as large as the file's resolution says. Without a plausible one they are taken to be
sheets of A4, so that sizes of type come out in the usual range.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bookrag_fast.config import LayoutSettings, OcrSettings
from bookrag_fast.document.files import file_sha256
from bookrag_fast.document.layout.stage import LayoutStage
from bookrag_fast.document.model import Document, Page, PageStatus
from bookrag_fast.document.ocr.stage import INSTALL, OcrStage, is_installed
from bookrag_fast.document.pdf.pages import RawPage, failed_page
from bookrag_fast.document.pdf.pdfium import MAX_PAGES
from bookrag_fast.document.pdf.reader import Progress, RawPages, finished
from bookrag_fast.document.pictures.pixels import MAX_SOURCE_PIXELS, turn_of
from bookrag_fast.errors import (
    DocumentError,
    NoTextLayerError,
    TooLargeError,
    UnreadablePagesError,
)

__all__ = ["read_scan"]

A4 = 841.9  # points, its longer side
PLAUSIBLE = (72.0, 4000.0)  # points, the longer side of a scanned sheet: 2.5 cm to A0 and more
# What Pillow raises for a frame that it cannot make out: a TypeError where its size is missing.
_BROKEN_FRAME = (OSError, ValueError, TypeError, SyntaxError, LookupError, EOFError)
_TRUSTED_DPI = (90.0, 2500.0)  # 72 is what programs write that know of none


def read_scan(
    path: Path | str,
    *,
    progress: Progress | None = None,
    ocr: OcrSettings | None = None,
    layout: LayoutSettings | None = None,
) -> Document:
    """Reads a PNG, JPEG or TIFF by OCR; each frame of a TIFF is a page.

    Args:
        progress, ocr, layout: as for `read_document`.

    Raises:
        DocumentError: the file is none of these, is damaged, or OCR is not installed or is off.
        NoTextLayerError: no text is in it.
        TooLargeError: too many pages or pixels; nothing has been decoded then.
        UnreadablePagesError: no page can be decoded.
        ModelError: the layout model is wanted, and is missing or broken.
    """
    path = Path(path)
    settings = ocr or OcrSettings()
    if not is_installed():
        raise DocumentError(f"{path.name} is an image and needs OCR to be read", INSTALL)
    if settings.mode == "off":
        raise DocumentError(f"{path.name} is an image, and OCR is off", "index with --ocr auto")
    stage = OcrStage(settings, path, kind="image")
    model = LayoutStage(layout or LayoutSettings(), path, kind="image")
    found = RawPages()
    with _opened(path) as image:
        count = _frames(image) if image.format == "TIFF" else 1
        if count > MAX_PAGES:
            raise TooLargeError(
                f"{path.name} has {count:,} pages, the limit is {MAX_PAGES:,}", "split the file"
            )
        for index in range(count):
            try:
                if image.format == "TIFF":
                    image.seek(index)
                found.add(RawPage(Page(index + 1, None, *_size(image))))
                stage.want(index)
            except _BROKEN_FRAME as error:
                note = str(error) or "its beginning cannot be read"
                found.add(failed_page(index + 1, note))
                found.warnings.append(f"{path.name}, page {index + 1}: not read: {note}")
    found.warnings += stage.run(
        found.pages, found.lines, found.pictures, body=None, progress=progress
    )
    if not any(found.lines):
        notes = [page.note for page in found.pages if page.status is PageStatus.FAILED]
        if len(notes) == len(found.pages):
            raise UnreadablePagesError(
                f"{path.name} cannot be read: page 1: {notes[0]}", "scan or copy it again"
            )
        raise NoTextLayerError(
            f"no text was found in {path.name}: {found.pages[0].note}", stage.remedy()
        )
    found.show(model, progress)
    return finished(found, path, file_sha256(path))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The image, of which nothing but its header is decoded."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = MAX_SOURCE_PIXELS
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # checked below
            image = Image.open(path, formats=("PNG", "JPEG", "TIFF"))
    except Image.DecompressionBombError as error:
        raise TooLargeError(f"{path.name}: {error}", "make the image smaller") from None
    except (OSError, ValueError, SyntaxError) as error:
        raise DocumentError(
            f"{path.name} is not a PNG, JPEG or TIFF that can be read: {error}",
            "open and save it with another program",
        ) from None
    with image:
        if image.size[0] * image.size[1] > MAX_SOURCE_PIXELS:
            raise TooLargeError(
                f"{path.name} has {image.size[0]:,} × {image.size[1]:,} pixels, more than "
                f"{MAX_SOURCE_PIXELS:,}",
                "make the image smaller",
            )
        yield image


def _frames(image: Any) -> int:
    """How many a TIFF has; of one that breaks off, those before, and the one that it breaks in."""
    try:
        return int(image.n_frames)
    except _BROKEN_FRAME:
        return int(image.tell()) + 1


def _size(image: Any) -> tuple[float, float]:
    """Width and height in points, the right way up."""
    wide, high = image.size
    if min(wide, high) < 1:
        raise ValueError("it has no pixels")
    if turn_of(image) >= 5:
        wide, high = high, wide
    dpi = image.info.get("dpi", (0, 0))
    low, top = _TRUSTED_DPI
    try:
        across, down = (float(v) for v in dpi)
    except (TypeError, ValueError, ZeroDivisionError):
        across = down = 0.0
    if low <= across <= top and low <= down <= top:
        if turn_of(image) >= 5:
            across, down = down, across
        size = wide * 72 / across, high * 72 / down
        if PLAUSIBLE[0] <= max(size) <= PLAUSIBLE[1]:
            return size
    scale = A4 / max(wide, high)
    return wide * scale, high * scale
