"""``read_document``: a file of any supported format → Document."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bookrag_fast.config import LayoutSettings, OcrSettings
from bookrag_fast.document.files import file_bytes, file_sha256
from bookrag_fast.document.formats.building import Reading
from bookrag_fast.document.formats.kinds import Format, detect_format
from bookrag_fast.document.model import BlockKind, Document
from bookrag_fast.errors import EmptyDocumentError, InvalidArgumentError

if TYPE_CHECKING:
    from bookrag_fast.document.pdf.parallel import PagePool

__all__ = ["read_document"]

Progress = Callable[[int, int], None]

MAX_TEXT_BYTES = 256 << 20  # of formats that are held in memory as a whole


def read_document(
    path: Path | str,
    *,
    password: str | None = None,
    progress: Progress | None = None,
    ocr: OcrSettings | None = None,
    layout: LayoutSettings | None = None,
    pages: tuple[int, int | None] | None = None,
    pool: PagePool | None = None,
) -> Document:
    """Reads a file into blocks in reading order. Its content says which format it is in, its
    extension only where the content is silent.

    Args:
        path: the file.
        password: opens an encrypted PDF; ignored where none is needed.
        progress: called with (pages done, pages in all) after each page, outside any lock; never
            for a format without pages.
        ocr: how pages without a usable text layer are read; None takes the defaults.
        layout: whether a layout model sees the pages of a PDF or a scan; None takes the defaults.
        pages: of a PDF, the first and the last page to read, as `read_pdf` takes them.
        pool: processes that read the pages of a long PDF side by side; the result is the same.

    Raises:
        InvalidArgumentError: ``pages`` are not among those of the file, or it is no PDF.
        DocumentError: one of its subclasses, by what is wrong with the file:
            UnsupportedFormatError, EmptyDocumentError (also for a file without any text),
            DamagedDocumentError, and for a PDF those of `read_pdf`. The class itself for a missing
            path or a folder.
        TooLargeError: the file, what it unpacks to or its page count is beyond the limits.
        ModelError: the layout model is wanted, and is missing or broken.

    A page or part that fails alone is a warning; the rest goes on.
    """
    path = Path(path)
    kind = detect_format(path)
    if kind is Format.PDF:
        from bookrag_fast.document.pdf.reader import read_pdf

        return read_pdf(
            path,
            password=password,
            progress=progress,
            ocr=ocr,
            layout=layout,
            pages=pages,
            pool=pool,
        )
    if pages is not None:
        raise InvalidArgumentError(
            f"{path.name} is no PDF: pages of it cannot be chosen", "index all of it"
        )
    if kind is Format.IMAGE:
        from bookrag_fast.document.pictures.scans import read_scan

        return read_scan(path, progress=progress, ocr=ocr, layout=layout)
    reading = _read(path, kind, progress)
    if not any(b.text.strip() or b.kind is BlockKind.IMAGE for b in reading.blocks):
        raise EmptyDocumentError(f"{path.name} has no text in it", "check what the file holds")
    return Document(
        name=path.name,
        sha256=file_sha256(path),
        title=reading.title,
        pages=reading.pages,
        blocks=tuple(reading.blocks),
        warnings=tuple(f"{path.name}: {warning}" for warning in reading.warnings),
    )


def _read(path: Path, kind: Format, progress: Progress | None) -> Reading:
    # Each reader's libraries are imported when it is needed: a process reads few formats.
    if kind is Format.EPUB:
        from bookrag_fast.document.formats.epub import read_epub

        return read_epub(path)
    if kind is Format.DOCX:
        from bookrag_fast.document.formats.docx import read_docx

        return read_docx(path)
    data = file_bytes(path, most=MAX_TEXT_BYTES)
    if kind is Format.MARKDOWN:
        from bookrag_fast.document.formats.markdown import read_markdown

        return read_markdown(data)
    if kind is Format.HTML:
        from bookrag_fast.document.formats.html import read_html

        return read_html(data)
    if kind is Format.JSON:
        from bookrag_fast.document.formats.layout_json import read_layout_json

        return read_layout_json(data, path.name, progress)
    from bookrag_fast.document.formats.text import read_text

    return read_text(data)
