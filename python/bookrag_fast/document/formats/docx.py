"""DOCX → blocks, straight from WordprocessingML.

python-docx would pass over content controls, tracked insertions, text boxes and footnotes, knows no
numbers of lists, and loads every picture before a size can be checked; so the few elements that
carry text are read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from bookrag_fast.document.formats.archive import Archive
from bookrag_fast.document.formats.building import MAX_COLUMNS, Reading, block, heading, table
from bookrag_fast.document.formats.docx_styles import (
    Numbers,
    Styles,
    attribute,
    local_name,
    outline_level,
    value_of,
)
from bookrag_fast.document.model import Block, BlockKind, Cell

__all__ = ["read_docx"]

_BODY = "word/document.xml"
_NOTES = (("word/footnotes.xml", "footnote"), ("word/endnotes.xml", "endnote"))
_CORE = "docProps/core.xml"
# Taken out, moved away, said again for older programs, or of no text.
_SKIPPED = frozenset(
    "del moveFrom Fallback rPr pPr tblPr trPr tcPr sectPr instrText delText txbxContent".split()
)
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_MAX_INDENT = 9


def read_docx(path: Path) -> Reading:
    """Content of a document: headings by the outline levels of their styles, with the numbers that
    Word shows, lists, tables with merged cells, notes after the paragraph that refers to them.

    Raises:
        DamagedDocumentError, TooLargeError: see `Archive`.
    """
    with Archive(path) as archive:

        def part(name: str) -> etree._Element | None:
            return archive.xml(name) if name in archive else None

        body = archive.xml(_BODY)
        styles, numbers = Styles(part("word/styles.xml")), Numbers(part("word/numbering.xml"))
        notes = {
            (kind, attribute(note, "id") or ""): note
            for name, kind in _NOTES
            if (root := part(name)) is not None
            for note in root
            if local_name(note) == kind
        }
        core = part(_CORE)
    teller = _Teller(styles, numbers, notes)
    teller.tell(body)
    stated = core.findtext("{*}title") if core is not None else None
    return Reading(teller.finished(), teller.title or (stated or "").strip() or None)


class _Teller:
    """Paragraphs and tables in document order, to blocks."""

    def __init__(
        self, styles: Styles, numbers: Numbers, notes: dict[tuple[str, str], etree._Element]
    ) -> None:
        self.title: str | None = None  # the first paragraph in the style "Title"
        self._styles = styles
        self._numbers = numbers
        self._notes = notes
        self._told_notes = 0
        self._footnotes: list[str] = []  # to follow the paragraph or table that refers to them
        self._title_at = -1
        self._blocks: list[Block] = []
        self._items: list[str] = []  # of the open list
        self._caption: str | None = None  # that may belong to the table below it

    def tell(self, body: etree._Element) -> None:
        waiting = list(reversed(body))
        while waiting:  # a stack, not recursion: tables nest as deep as a file says
            element = waiting.pop()
            name = local_name(element)
            if name == "p":
                waiting += reversed(self._paragraph(element))
            elif name == "tbl":
                rows = _rows(element)
                if self._arranges(rows):
                    waiting += reversed([inner for row in rows for cell in row for inner in cell])
                else:
                    waiting += reversed(self._table(rows))
            elif name not in _SKIPPED:
                waiting += reversed(element)

    def finished(self) -> list[Block]:
        self._close()
        if self.title is None:
            return self._blocks
        return [  # the title stands above the chapters
            heading(b.text, b.level + 1) if b.level is not None and k != self._title_at else b
            for k, b in enumerate(self._blocks)
        ]

    # --- paragraphs ---------------------------------------------------------------------------

    def _paragraph(self, paragraph: etree._Element) -> list[etree._Element]:
        """Makes blocks of a paragraph; returns the text boxes in it."""
        text, images, beside = self._read(paragraph)
        style = value_of(paragraph, "pPr", "pStyle") or ""
        name = self._styles.name(style)
        level = outline_level(paragraph) or self._styles.level(style)
        mark, indent = self._mark(paragraph, style) if text else (None, 0)
        marked = f"{mark} {text}" if mark else text
        if not text:
            pass
        elif name == "title" and self.title is None and all(b.level is None for b in self._blocks):
            self.title = " ".join(text.split())
            self._add(heading(self.title, 1))
            self._title_at = len(self._blocks) - 1
        elif level is not None:
            self._add(heading(" ".join(marked.split()), level))
        elif name == "caption":
            self._close()
            self._caption = text
        elif mark is not None:
            self._end_caption()
            self._items.append("  " * indent + marked.replace("\n", "\n" + "  " * (indent + 1)))
        else:
            self._add(block(_kind(paragraph), text))
        for alt in images:
            self._add(block(BlockKind.IMAGE, alt))
        self._end_notes()
        return beside

    def _read(self, holder: etree._Element) -> tuple[str, list[str], list[etree._Element]]:
        """Text of a paragraph or cell, alternative texts of its pictures, text boxes in it."""
        pieces: list[str] = []
        images: list[str] = []
        beside: list[etree._Element] = []
        for element in _walk(holder):
            name = local_name(element)
            if name == "t":
                pieces.append(element.text or "")
            elif name in _BREAKS:
                pieces.append(_BREAKS[name])
            elif name == "p" and pieces:
                pieces.append("\n")
            elif name == "txbxContent":
                beside.extend(element)
            elif name == "docPr":
                alt = element.get("descr") or ""
                images.append(" ".join(alt.split()))
            elif name in ("footnoteReference", "endnoteReference"):
                kind = name.removesuffix("Reference")
                note = self._notes.pop((kind, attribute(element, "id") or ""), None)
                if note is not None:
                    self._told_notes += 1
                    pieces.append(f"[{self._told_notes}]")
                    text, _, _ = self._read(note)
                    self._footnotes.append(f"[{self._told_notes}] {text}")
        if beside:
            images = [alt for alt in images if alt]  # the frame of a text box is no picture
        lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
        return "\n".join(line for line in lines if line), images, beside

    def _mark(self, paragraph: etree._Element, style: str) -> tuple[str | None, int]:
        """The number or bullet that Word shows before a paragraph, and how deep it stands."""
        list_id = value_of(paragraph, "pPr", "numPr", "numId")
        depth = value_of(paragraph, "pPr", "numPr", "ilvl")
        of_style = self._styles.list_of(style)
        list_id, depth = list_id or of_style[0], depth or of_style[1]
        if not list_id or list_id == "0":  # 0 takes away what the style gives
            return None, 0
        level = int(depth) if depth and depth.isascii() and depth.isdigit() else 0
        level = min(level, _MAX_INDENT)
        return self._numbers.next(list_id, level), level

    # --- tables -------------------------------------------------------------------------------

    def _arranges(self, rows: list[list[etree._Element]]) -> bool:
        """Whether a table arranges a page: of one cell, or with headings in it."""
        cells = [cell for row in rows for cell in row]
        if len(cells) <= 1:
            return True
        return any(
            self._styles.level(value_of(p, "pPr", "pStyle") or "") is not None
            for cell in cells
            for p in cell.iterfind("{*}p")
        )

    def _table(self, rows: list[list[etree._Element]]) -> list[etree._Element]:
        """Makes a block of a table; returns the text boxes in it."""
        cells: list[Cell] = []
        spanning: dict[int, int] = {}  # column → the cell that may go on below
        beside: list[etree._Element] = []
        for at, row in enumerate(rows):
            column = 0
            head = bool(row) and row[0].getparent().find("{*}trPr/{*}tblHeader") is not None
            for cell in row:
                span = value_of(cell, "tcPr", "gridSpan") or "1"
                width = int(span) if span.isascii() and span.isdigit() and len(span) < 5 else 1
                width = min(max(width, 1), MAX_COLUMNS - column)
                text, _, extra = self._read(cell)
                beside += extra
                merge = cell.find("{*}tcPr/{*}vMerge")
                goes_on = merge is not None and attribute(merge, "val") in (None, "continue")
                above = spanning.get(column)
                if goes_on and above is not None:
                    old = cells[above]
                    joined = f"{old.text}\n{text}".strip("\n")
                    height = at - old.row + 1
                    cells[above] = Cell(
                        old.row, old.column, joined, height, old.column_span, old.header
                    )
                else:
                    spanning[column] = len(cells)
                    cells.append(Cell(at, column, text, 1, width, head))
                column = min(column + width, MAX_COLUMNS - 1)
        caption, self._caption = self._caption, None
        if any(c.text for c in cells):
            self._add(table(cells))
        if caption is not None:  # above its table in the file, behind it here
            self._add(block(BlockKind.CAPTION, caption))
        self._end_notes()
        return beside

    # --- order --------------------------------------------------------------------------------

    def _add(self, made: Block) -> None:
        self._close()
        self._blocks.append(made)

    def _close(self) -> None:
        if self._items:
            self._blocks.append(block(BlockKind.LIST, "\n".join(self._items)))
            self._items = []
        self._end_caption()

    def _end_notes(self) -> None:
        notes, self._footnotes = self._footnotes, []
        for note in notes:
            self._add(block(BlockKind.FOOTNOTE, note))

    def _end_caption(self) -> None:
        if self._caption is not None:
            self._blocks.append(block(BlockKind.CAPTION, self._caption))
            self._caption = None


def _kind(paragraph: etree._Element) -> BlockKind:
    named = {local_name(child) for child in paragraph} - {"pPr", "bookmarkStart", "bookmarkEnd"}
    if named and named <= {"oMath", "oMathPara"}:
        return BlockKind.EQUATION
    return BlockKind.TEXT


def _walk(root: etree._Element) -> Iterator[etree._Element]:
    """Descendants in order, text boxes as a whole, nothing that is not shown."""
    waiting = list(reversed(root))
    while waiting:
        element = waiting.pop()
        name = local_name(element)
        if name == "txbxContent":
            yield element
        elif name and name not in _SKIPPED:
            yield element
            waiting += reversed(element)


def _rows(root: etree._Element) -> list[list[etree._Element]]:
    """Cells by row. Content controls may stand around rows and cells."""
    return [list(_shallow(row, "tc")) for row in _shallow(root, "tr")]


def _shallow(root: etree._Element, wanted: str) -> Iterator[etree._Element]:
    waiting = list(reversed(root))
    while waiting:
        element = waiting.pop()
        name = local_name(element)
        if name == wanted:
            yield element
        elif name in ("sdt", "sdtContent", "ins", "customXml", "moveTo"):
            waiting += reversed(element)
