"""Which format a file is in. Its content decides, the extension only where that is silent."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path

from bookrag_fast.document.files import file_head
from bookrag_fast.document.formats.encoding import decode_text, looks_like_text
from bookrag_fast.errors import DamagedDocumentError, UnsupportedFormatError

__all__ = ["SUFFIXES", "Format", "detect_format", "is_layout_json", "is_pdf_head"]

MAX_BYTES = 4 << 30
_HEAD = 4096
_JSON_HEAD = 1 << 16  # the first text of a list may be long
_PDF_WINDOW = 1024  # PDFium, like other readers, allows rubbish before "%PDF-"


class Format(str, Enum):
    PDF = "PDF"
    MARKDOWN = "Markdown"
    HTML = "HTML"
    TEXT = "plain text"
    EPUB = "EPUB"
    DOCX = "DOCX"
    JSON = "JSON of MinerU or docling"
    IMAGE = "PNG, JPEG and TIFF images"


_BY_SUFFIX = {
    ".pdf": Format.PDF,
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd", ".qmd", ".rmd"), Format.MARKDOWN),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xht"), Format.HTML),
    **dict.fromkeys((".txt", ".text", ".rst", ".log"), Format.TEXT),
    ".epub": Format.EPUB,
    ".docx": Format.DOCX,
    ".json": Format.JSON,
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".tif", ".tiff"), Format.IMAGE),
}
SUFFIXES = frozenset(_BY_SUFFIX)  # of files that a folder is searched for
_SUPPORTED = ", ".join(kind.value for kind in Format)
_HINT = f"what can be read: {_SUPPORTED}; convert the file to one of them"

# First bytes of scans: PNG, JPEG, TIFF (either byte order, also with 64-bit offsets).
_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
# First bytes of what people may hand in and cannot be read.
_OTHERS = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file", "save it as DOCX"),
    (b"{\\rtf", "RTF", "save it as DOCX"),
    (b"%!PS", "PostScript", "convert it to PDF with ps2pdf"),
    (b"AT&TFORM", "DjVu", "convert it to PDF"),
    (b"GIF8", "a GIF image", "save it as PNG"),
    (b"\x1f\x8b", "compressed by gzip", "unpack it first"),
    (b"Rar!", "a RAR archive", "unpack it first"),
    (b"7z\xbc\xaf", "a 7z archive", "unpack it first"),
)
_HTML_START = re.compile(
    r"(?:\s|<!--.*?-->|<\?xml[^>]*>)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_OF_A_PARSER = re.compile(r'"DoclingDocument"|"page_idx"')
_JSON_START = re.compile(r"\s*[\[{]")
_OFFICE = {
    "ppt/presentation.xml": "PPTX",
    "xl/workbook.xml": "XLSX",
    "content.xml": "an OpenDocument file",
}


def detect_format(path: Path) -> Format:
    """The format of a file.

    Raises:
        DocumentError, EmptyDocumentError, TooLargeError: see `file_head`.
        UnsupportedFormatError: it is in none that can be read; the message says in which it is,
            the hint what can be read.
        DamagedDocumentError: it begins like an EPUB or DOCX, but its archive is broken.
    """
    _, head = file_head(path, _HEAD, most=MAX_BYTES)
    suffix = path.suffix.lower()
    hinted = _BY_SUFFIX.get(suffix)
    if hinted is Format.PDF or (is_pdf_head(head) and (hinted is None or head[:5] == b"%PDF-")):
        return Format.PDF
    if head.startswith(b"PK\x03\x04"):
        return _of_archive(path)
    if head.startswith(_IMAGES):
        return Format.IMAGE
    for mark, name, hint in _OTHERS:
        if head.startswith(mark):
            raise UnsupportedFormatError(
                f"{path.name} is {name}, which is not read", f"{hint}; {_HINT}".removeprefix("; ")
            )
    if hinted in (Format.EPUB, Format.DOCX, Format.IMAGE):
        what = "an image" if hinted is Format.IMAGE else "an archive"
        raise DamagedDocumentError(
            f"{path.name} is no {path.suffix[1:].upper()}: it is not {what}", "copy the file again"
        )
    if not looks_like_text(head):
        raise UnsupportedFormatError(
            f"{path.name} is binary data of no kind that is read, whatever its name says", _HINT
        )
    return _of_text(path, decode_text(head), suffix)


def is_pdf_head(head: bytes) -> bool:
    """Whether a file that begins so may be a PDF."""
    return b"%PDF-" in head[:_PDF_WINDOW]


def is_layout_json(path: Path) -> bool:
    """Whether a JSON file begins like one that a layout parser wrote."""
    try:
        with path.open("rb") as file:
            return _OF_A_PARSER.search(decode_text(file.read(_JSON_HEAD))) is not None
    except OSError:
        return False


def _of_text(path: Path, head: str, suffix: str) -> Format:
    hinted = _BY_SUFFIX.get(suffix)
    if hinted is Format.JSON or (
        hinted is None and _JSON_START.match(head) and _OF_A_PARSER.search(head)
    ):
        return Format.JSON
    if hinted in (Format.MARKDOWN, Format.HTML):
        return hinted
    if _HTML_START.match(head):
        return Format.HTML
    if hinted is None and head.lstrip().startswith("<?xml"):
        raise UnsupportedFormatError(f"{path.name} is XML, but not XHTML", _HINT)
    return Format.TEXT


def _of_archive(path: Path) -> Format:
    from bookrag_fast.document.formats.archive import Archive  # lxml: for archives only

    with Archive(path) as archive:
        if "word/document.xml" in archive:
            return Format.DOCX
        if "META-INF/container.xml" in archive:
            return Format.EPUB
        name = next((name for part, name in _OFFICE.items() if part in archive), "a ZIP archive")
    raise UnsupportedFormatError(f"{path.name} is {name}, which is not read", _HINT)
