"""PDFium behind one lock: opening, closing, geometry, labels and the outline.

PDFium is not thread-safe, so every call into it happens inside :data:`PDFIUM_LOCK`. The lock is
held for one page operation at a time, never for a whole document, so that other threads get their
turn. Handles are closed as soon as their page is read: memory does not grow with the page count.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from bookrag_fast.document.files import file_head
from bookrag_fast.document.model import BBox, OutlineEntry
from bookrag_fast.errors import (
    DamagedPdfError,
    DocumentError,
    EncryptedPdfError,
    NotAPdfError,
    TooLargeError,
    WrongPasswordError,
    ZeroPagesError,
)

__all__ = [
    "MAX_BYTES",
    "MAX_OUTLINE",
    "MAX_PAGES",
    "PDFIUM_LOCK",
    "PageGeometry",
    "Pdf",
    "check_file",
    "open_pdf",
]

PDFIUM_LOCK = threading.RLock()

MAX_BYTES = 4 << 30
MAX_PAGES = 100_000
MAX_OUTLINE = 50_000
_HEADER_WINDOW = 1024  # PDFium, like other readers, allows rubbish before "%PDF-"


@dataclass(frozen=True, slots=True)
class PageGeometry:
    """A page as displayed. Sizes in points; ``turn`` is /Rotate in quarter turns clockwise.

    ``box`` is the visible area (CropBox within MediaBox) in PDF's own space: left, bottom,
    right, top.
    """

    box: tuple[float, float, float, float]
    turn: int

    @property
    def width(self) -> float:
        left, bottom, right, top = self.box
        return right - left if self.turn % 2 == 0 else top - bottom

    @property
    def height(self) -> float:
        left, bottom, right, top = self.box
        return top - bottom if self.turn % 2 == 0 else right - left

    def affine(self) -> tuple[float, float, float, float, float, float]:
        """(a, b, c, d, e, f): displayed x = a·x + c·y + e, displayed y = b·x + d·y + f."""
        left, bottom, right, top = self.box
        return (
            (1.0, 0.0, 0.0, -1.0, -left, top),
            (0.0, 1.0, 1.0, 0.0, -bottom, -left),
            (-1.0, 0.0, 0.0, 1.0, right, -bottom),
            (0.0, -1.0, -1.0, 0.0, top, right),
        )[self.turn % 4]

    def display(self, left: float, bottom: float, right: float, top: float) -> BBox:
        a, b, c, d, e, f = self.affine()
        xs = (a * left + c * bottom + e, a * right + c * top + e)
        ys = (b * left + d * bottom + f, b * right + d * top + f)
        return BBox(min(xs), min(ys), max(xs), max(ys))


def check_file(path: Path) -> int:
    """Size in bytes of a file that may be a PDF.

    Raises:
        DocumentError: there is no such file, it is a folder, or it may not be read.
        EmptyDocumentError: it has no bytes.
        NotAPdfError: it does not start like a PDF.
        TooLargeError: it is beyond :data:`MAX_BYTES`.
    """
    size, head = file_head(path, _HEADER_WINDOW, most=MAX_BYTES)
    if b"%PDF-" not in head:
        raise NotAPdfError(
            f"{path.name} is not a PDF: it does not start with %PDF-",
            "check what the file is; one of another format needs the extension of that format",
        )
    return size


class Pdf:
    """An open PDF. Use :func:`open_pdf`; every method takes the lock by itself."""

    def __init__(self, document: pdfium.PdfDocument, name: str) -> None:
        self.name = name
        self._document = document
        with PDFIUM_LOCK:
            self.page_count = int(raw.FPDF_GetPageCount(document))
            self.tagged = bool(raw.FPDFCatalog_IsTagged(document))
            kind = raw.FPDF_GetFormType(document)
            self.is_xfa = kind == raw.FORMTYPE_XFA_FULL
            if kind == raw.FORMTYPE_ACRO_FORM:
                document.init_forms()
            self.form = document.formenv
        self.raw = document.raw

    @contextmanager
    def page(self, index: int) -> Iterator[ctypes.c_void_p]:
        """The raw page handle, 0-based, with the lock held. Raises OSError if it fails to load."""
        with PDFIUM_LOCK:
            handle = raw.FPDF_LoadPage(self._document, index)
            if not handle:
                raise OSError("PDFium cannot load the page")
            try:
                yield handle
            finally:
                raw.FPDF_ClosePage(handle)

    def labels(self) -> list[str | None]:
        """/PageLabels, None where there is none."""
        out: list[str | None] = []
        with PDFIUM_LOCK:
            for index in range(self.page_count):
                size = raw.FPDF_GetPageLabel(self._document, index, None, 0)
                if not 2 < size <= 512:
                    out.append(None)
                    continue
                buffer = ctypes.create_string_buffer(size)
                raw.FPDF_GetPageLabel(self._document, index, buffer, size)
                label = buffer.raw[: size - 2].decode("utf-16-le", "replace").strip()
                out.append(label if label.isprintable() and label else None)
        return out

    def metadata_title(self) -> str:
        with PDFIUM_LOCK:
            size = raw.FPDF_GetMetaText(self._document, b"Title", None, 0)
            if not 2 < size <= 4096:
                return ""
            buffer = ctypes.create_string_buffer(size)
            raw.FPDF_GetMetaText(self._document, b"Title", buffer, size)
            return buffer.raw[: size - 2].decode("utf-16-le", "replace").strip("\0 \n\r\t")

    def outline(self, geometry: list[PageGeometry | None]) -> list[OutlineEntry]:
        """Bookmarks in order; those without a destination get page 0."""
        out: list[OutlineEntry] = []
        with PDFIUM_LOCK:
            try:
                for mark in self._document.get_toc(max_depth=12):
                    if len(out) >= MAX_OUTLINE:
                        break
                    out.append(self._entry(mark, geometry))
            except (pdfium.PdfiumError, ValueError, RecursionError):
                return out
        return out

    @staticmethod
    def _entry(mark: pdfium.PdfBookmark, geometry: list[PageGeometry | None]) -> OutlineEntry:
        title = " ".join(mark.get_title().replace("\0", "").split())
        page, top = 0, None
        dest = mark.get_dest()
        if dest is not None:
            index = dest.get_index()
            if index is not None and index >= 0:
                page = index + 1
                top = _top_of(dest, geometry[index] if index < len(geometry) else None)
        return OutlineEntry(title=title, level=mark.level + 1, page=page, top=top)

    def close(self) -> None:
        with PDFIUM_LOCK:
            self._document.close()


def _top_of(dest: pdfium.PdfDest, geometry: PageGeometry | None) -> float | None:
    """Displayed y of a destination, None when it names none (a fit of the whole page)."""
    if geometry is None:
        return None
    mode, numbers = dest.get_view()
    if mode == raw.PDFDEST_VIEW_XYZ and len(numbers) >= 2 and numbers[1] is not None:
        left, top = float(numbers[0] or 0.0), float(numbers[1])
    elif mode in (raw.PDFDEST_VIEW_FITH, raw.PDFDEST_VIEW_FITBH) and numbers and numbers[0]:
        left, top = 0.0, float(numbers[0])
    else:
        return None
    y = geometry.display(left, top, left, top).y0
    # XYZ with 0 or a place off the page means "wherever the reader is".
    return y if -5.0 <= y < geometry.height else None


@contextmanager
def open_pdf(path: Path, password: str | None) -> Iterator[Pdf]:
    """Opens a checked file (see :func:`check_file`).

    Raises:
        EncryptedPdfError, WrongPasswordError: a password is missing or wrong.
        ZeroPagesError: it opens and has no page.
        DamagedPdfError: it is truncated or damaged beyond repair.
        TooLargeError: it claims more than :data:`MAX_PAGES` pages.
    """
    with PDFIUM_LOCK:
        try:
            document = pdfium.PdfDocument(path, password=password)
        except pdfium.PdfiumError as error:
            raise _opening_error(path, password, error) from None
        except UnicodeEncodeError:  # a lone surrogate: bytes of a command line that are no UTF-8
            raise WrongPasswordError(
                f"the password for {path.name} is no text", "give it in UTF-8"
            ) from None
    pdf: Pdf | None = None
    try:
        pdf = Pdf(document, path.name)
        if pdf.page_count > MAX_PAGES:
            raise TooLargeError(
                f"{path.name} claims {pdf.page_count:,} pages, the limit is {MAX_PAGES:,}",
                "split the file",
            )
        yield pdf
    finally:
        with PDFIUM_LOCK:
            document.close()


def _opening_error(path: Path, password: str | None, error: pdfium.PdfiumError) -> DocumentError:
    code = error.err_code
    if code == raw.FPDF_ERR_PASSWORD:
        if password is None:
            return EncryptedPdfError(
                f"{path.name} is encrypted and needs a password", "give it with --password"
            )
        return WrongPasswordError(
            f"the password does not open {path.name}", "check the password and its spelling"
        )
    if code == raw.FPDF_ERR_SECURITY:
        return EncryptedPdfError(
            f"{path.name} is encrypted in a way that cannot be opened here",
            "save an unencrypted copy with the program that made it",
        )
    if _opens_without_pages(path, password):
        return ZeroPagesError(f"{path.name} has no pages", "check how the file was made")
    if _is_truncated(path):
        return DamagedPdfError(
            f"{path.name} is truncated: its end (%%EOF) is missing",
            "copy or download the file again",
        )
    return DamagedPdfError(
        f"{path.name} is damaged beyond repair", "open and save it with another PDF program"
    )


def _opens_without_pages(path: Path, password: str | None) -> bool:
    """PDFium's error code does not tell: it stays what the last failure made it."""
    with PDFIUM_LOCK:
        secret = None if password is None else password.encode() + b"\0"
        handle = raw.FPDF_LoadDocument(os.fsencode(path) + b"\0", secret)
        if not handle:
            return False
        try:
            return int(raw.FPDF_GetPageCount(handle)) == 0
        finally:
            raw.FPDF_CloseDocument(handle)


def _is_truncated(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - 2048))
        return b"%%EOF" not in file.read()
