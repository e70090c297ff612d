"""What a reader yields: a Document of Pages and Blocks, the same for every file format.

Coordinates are PDF points (1/72 inch), origin at the top left of the page as a reader sees it
(after /Rotate), y growing downwards. Page numbers are physical and 1-based; printed labels are
kept beside them. ``None`` means "not there"; an unknown value is never written as a default.

Formats without pages (Markdown, HTML, text, EPUB, DOCX) yield no pages and blocks without regions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

__all__ = [
    "Annotation",
    "BBox",
    "Block",
    "BlockKind",
    "Cell",
    "Document",
    "Lead",
    "OutlineEntry",
    "Page",
    "PageStatus",
    "Region",
    "Style",
]


class BBox(NamedTuple):
    """A box in points, top-left origin: x0 <= x1, y0 <= y1."""

    x0: float
    y0: float
    x1: float
    y1: float

    def union(self, other: BBox) -> BBox:
        return BBox(
            min(self.x0, other.x0),
            min(self.y0, other.y0),
            max(self.x1, other.x1),
            max(self.y1, other.y1),
        )

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.y1 - self.y0


class Region(NamedTuple):
    """Where something stands: a box on a physical, 1-based page."""

    page: int
    bbox: BBox


class BlockKind(str, Enum):
    """Initial type of a block as the layout parser sees it (tau in the paper)."""

    TITLE = "title"  # a candidate only: section filtering decides
    TEXT = "text"
    LIST = "list"
    TABLE = "table"
    IMAGE = "image"
    EQUATION = "equation"
    CODE = "code"
    CAPTION = "caption"
    FOOTNOTE = "footnote"


class PageStatus(str, Enum):
    OK = "ok"
    OCR = "ocr"  # its text was read from a picture; the page's note says how surely
    NO_TEXT = "no_text"  # loads, but yields no usable characters; the note says why
    FAILED = "failed"  # could not be loaded; the rest of the book is unharmed


@dataclass(frozen=True, slots=True)
class Style:
    """Layout features of a block (f in the paper). Sizes and indent in points."""

    size: float = 0.0
    bold: bool = False
    italic: bool = False
    family: str = ""
    color: int | None = None  # 0xRRGGBB, None when unknown
    indent: float = 0.0  # left edge relative to the column's left edge
    gap_before: float | None = None  # white space above, None at the top of a column
    centered: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table. Row and column are 0-based; spans are 1 or more."""

    row: int
    column: int
    text: str
    row_span: int = 1
    column_span: int = 1
    header: bool = False
    bbox: BBox | None = None


class Lead(NamedTuple):
    """The words that open a paragraph in a face of their own: a run-in heading, or emphasis."""

    text: str
    bold: bool
    italic: bool
    family: str


@dataclass(frozen=True, slots=True)
class Block:
    """b = (content, initial type, layout features), in reading order.

    A block that runs over a column or page break keeps every region; one whose source says nothing
    of where it stands has none. A caption that the source ties to its table or image follows it.
    """

    kind: BlockKind
    text: str
    regions: tuple[Region, ...]
    style: Style = Style()
    line_count: int = 1
    numbering: str = ""  # "3.2.1", "IV", "Appendix A", "第3章"; "" when there is none
    cells: tuple[Cell, ...] = ()
    level: int | None = None  # heading level that the source itself states, 1-based; None if none
    lead: Lead | None = None  # ``text`` begins with it and goes on in another face
    seen_as: str = ""  # what a layout model took it for, in its words; "" if it was not asked

    @property
    def page(self) -> int:
        """First physical page of the block, 0 when it stands on none."""
        return self.regions[0].page if self.regions else 0


@dataclass(frozen=True, slots=True)
class Page:
    """A physical page. ``label`` is the printed number ("iv", "A-3"), None when unknown."""

    number: int
    label: str | None
    width: float
    height: float
    status: PageStatus = PageStatus.OK
    note: str = ""


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A bookmark. ``level`` is 1 for the top level; ``top`` is y in points, None when unknown."""

    title: str
    level: int
    page: int
    top: float | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """What stands on a page beside its text. ``page`` is physical and 1-based.

    ``kind`` is "note", "text" (written onto the page), "highlight", "underline", "strikeout",
    "stamp", "link" or "field". ``text`` is a comment or a field's value ("" for an empty one),
    ``name`` the field's name or the comment's author, ``target`` the address of a web link.
    """

    page: int
    kind: str
    bbox: BBox
    text: str = ""
    name: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document. Running heads, feet and page numbers are not among ``blocks``."""

    name: str  # the file's name
    sha256: str  # of the file's bytes, hexadecimal
    title: str | None  # from metadata or the first page, None when neither says
    pages: tuple[Page, ...]
    blocks: tuple[Block, ...]
    outline: tuple[OutlineEntry, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    span: tuple[int, int] | None = None  # first and last page read, None when all were
    tags: tuple[OutlineEntry, ...] = ()  # headings that a tagged PDF marks as such
    annotations: tuple[Annotation, ...] = ()  # by page

    @property
    def pages_read(self) -> int:
        """How many of ``pages`` were asked for."""
        return len(self.pages) if self.span is None else self.span[1] - self.span[0] + 1

    def label_of(self, page: int) -> str | None:
        """Printed label of a physical page; None for a page that is not there."""
        return self.pages[page - 1].label if 1 <= page <= len(self.pages) else None
