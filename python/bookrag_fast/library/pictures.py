"""Pages drawn with what was read from them, one PNG a page, so that people can check a parse."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bookrag_fast.document.model import Document, Page, Region
from bookrag_fast.document.pdf.pdfium import Pdf, check_file, open_pdf
from bookrag_fast.document.pictures.overlay import HEADING, Mark, draw_marks
from bookrag_fast.document.pictures.render import check_dpi, render_page
from bookrag_fast.errors import BookragError, DocumentError, InvalidArgumentError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.index.model import NodeKind, SectionTree
from bookrag_fast.library.files import sha256_of
from bookrag_fast.library.png import check_replaceable, encoded, write_png

__all__ = [
    "DEFAULT_DPI",
    "DrawnPage",
    "draw_pages",
    "marks_of_book",
    "marks_of_document",
    "page_range",
    "source_of",
]

DEFAULT_DPI = 100
_RANGE = re.compile(r"\s*(\d{1,9})?\s*(-)?\s*(\d{1,9})?\s*")

Marks = Mapping[int, Sequence[Mark]]  # by physical page


@dataclass(frozen=True, slots=True)
class DrawnPage:
    """A page and its picture. ``error`` says why there is none: a page fails alone."""

    page: int
    label: str | None
    file: Path
    marks: int
    error: BookragError | None = None


def draw_pages(
    pdf: Path,
    pages: Sequence[Page],
    marks: Marks,
    numbers: Sequence[int],
    folder: Path,
    *,
    dpi: int = DEFAULT_DPI,
    password: str | None = None,
) -> Iterator[DrawnPage]:
    """Draws pages, one in memory at a time, as ``STEM-p0003.png`` in ``folder``, made if absent.

    Args:
        pages: all of the book, for their labels.
        numbers: physical numbers of those to draw.
        dpi: pixels an inch, 20 to 400.

    Raises:
        InvalidArgumentError: the resolution is out of range; a picture would replace a file that
            is none of ours; the folder cannot be made. Nothing is drawn then.
        DocumentError: the PDF cannot be opened.
    """
    check_dpi(dpi)
    check_file(pdf)
    files = {number: folder / f"{pdf.stem}-p{number:04d}.png" for number in numbers}
    _make(folder)
    for file in files.values():
        check_replaceable(file)
    with open_pdf(pdf, password) as opened:
        for number, file in files.items():
            of_page, label = marks.get(number, ()), pages[number - 1].label
            try:
                _draw(opened, number, label, of_page, file, dpi)
            except (BookragError, OSError) as error:
                yield DrawnPage(number, label, file, len(of_page), _as_ours(error, file, number))
            else:
                yield DrawnPage(number, label, file, len(of_page))


def _draw(
    pdf: Pdf, number: int, label: str | None, marks: Sequence[Mark], file: Path, dpi: int
) -> None:
    printed = f" (printed {label})" if label and label != str(number) else ""
    caption = f"page {number}{printed}, {len(marks)} boxes, {dpi} dpi"
    picture = draw_marks(render_page(pdf, number - 1, dpi), marks, dpi=dpi, caption=caption)
    write_png(file, encoded(picture))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidArgumentError(
            f"cannot use {folder} as a folder: {why}", "choose another one with --out"
        ) from error


def _as_ours(error: BookragError | OSError, file: Path, number: int) -> BookragError:
    if isinstance(error, BookragError):
        return error
    why = error.strerror or str(error)
    return DocumentError(f"page {number} cannot be drawn as {file}: {why}")


# --- what to draw -----------------------------------------------------------------------------


def marks_of_book(index: BookIndex) -> Marks:
    """The nodes of a saved book, labelled with their numbers as `show node` takes them."""
    out: dict[int, list[Mark]] = defaultdict(list)
    for node in index.nodes:
        level = max(0, node.level - 1) if node.kind is NodeKind.SECTION else 0
        kind = HEADING if level else node.kind.label
        cells = tuple(c.bbox for c in node.cells if c.bbox is not None)
        for k, (page, box) in enumerate(node.regions):
            out[page].append(Mark(kind, box, f"#{node.node_id}", level, cells if k == 0 else ()))
    return out


def marks_of_document(document: Document, tree: SectionTree) -> Marks:
    """The blocks of a document just read, numbered on each page in reading order; those that head
    a section have its level. A candidate for a heading that heads none stays a "title"."""
    levels: dict[Region, int] = {
        region: node.level - 1
        for node in tree.nodes
        if node.kind is NodeKind.SECTION and node.level > 1
        for region in node.regions
    }
    out: dict[int, list[Mark]] = defaultdict(list)
    for block in document.blocks:
        cells = tuple(c.bbox for c in block.cells if c.bbox is not None)
        for k, region in enumerate(block.regions):
            level = levels.get(region, 0)
            kind = HEADING if level else block.kind.value
            label = str(len(out[region.page]) + 1)
            out[region.page].append(Mark(kind, region.bbox, label, level, cells if k == 0 else ()))
    return out


def source_of(index: BookIndex, pdf: Path | None = None) -> Path:
    """The PDF that a book was made from: the one named, or the one it was indexed from.

    Raises:
        DocumentError: it is not known where it is, not there any more, or not the same file.
    """
    meta = index.meta
    hint = "name the file: --pdf, or the argument pdf"
    if pdf is None and meta.source is None:
        raise DocumentError(f"{meta.title!r} does not remember where its file {meta.name} is", hint)
    path = pdf if pdf is not None else Path(meta.source or "")
    if not path.is_file():
        what = "there is no file" if pdf is not None else f"the file of {meta.title!r} has gone:"
        raise DocumentError(f"{what} {path}", hint)
    try:
        same = sha256_of(path) == meta.sha256
    except OSError as error:
        raise DocumentError(f"cannot read {path}: {error.strerror or error}", hint) from error
    if not same:
        raise DocumentError(
            f"{path} is not the file that {meta.title!r} was made from: its content is another",
            "name the right file with --pdf, or index this one again",
        )
    return path


def page_range(text: str | None, count: int) -> list[int]:
    """Physical pages of "3-7", "3", "5-", "-4" or several of them with commas; None is all.

    Raises:
        InvalidArgumentError: it is no range, or names a page that the book does not have.
    """
    if text is None:
        return list(range(1, count + 1))
    out: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None or not (match[1] or match[3]) or (match[3] and not match[2]):
            raise InvalidArgumentError(f"{part!r} is no page range", "write 3, 3-7, 5- or 1,4-6")
        first = int(match[1] or 1)
        last = int(match[3]) if match[3] else count if match[2] else first
        if match[1] and match[3] and 1 <= last < first:
            raise InvalidArgumentError(
                f"the range of pages {first}-{last} is reversed", f"write {last}-{first}"
            )
        if not 1 <= first <= last <= count:
            raise InvalidArgumentError(
                f"pages {part.strip()} are not among the book's 1 to {count}",
                "pages are physical: the first one of the file is 1",
            )
        out.update(range(first, last + 1))
    return sorted(out)
