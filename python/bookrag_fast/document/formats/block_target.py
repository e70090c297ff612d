"""Start tags, end tags and text, in HTML's own vocabulary, become blocks as they pass by.

It is the target of the HTML parser, and what other markup is told to. No tree is built, so that
neither depth nor size of a document costs more than its blocks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bookrag_fast.document.formats.building import RawCell, block, grid, heading, table
from bookrag_fast.document.model import Block, BlockKind

__all__ = ["BlockTarget"]

_HEADINGS = {f"h{n}": n for n in range(1, 7)}
# Not shown, not text, or there to move about: never content. Readings over characters (rt) go too,
# so that words stay whole.
_HIDDEN = frozenset(
    "script style template noscript nav iframe object embed video audio canvas svg map select "
    "button input textarea datalist rp rt annotation annotation-xml".split()
)
_HIDDEN_ROLES = frozenset({"navigation", "search", "doc-pagebreak", "doc-toc"})
_UNSEEN = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_BREAKING = frozenset(
    "address article aside blockquote body center dd details dir div dl dt fieldset figure footer "
    "form frameset header hgroup hr html legend li main menu ol p section summary ul".split()
)
_LISTS = frozenset({"ul", "ol", "menu", "dir"})
_FOOTNOTES = re.compile(r"\b(?:doc-)?(?:foot|end|rear)notes?\b")
_BREAK = "\v"  # a line's end that is meant, unlike those of the source
_ANCHOR = re.compile(r"^§(?=[^\W\d])|(?<=\S)\s*¶$|(?<=\S)\s+#$")  # a sign to link to a heading by
_MAX_HEADING = 1000  # characters; what is longer was left open by mistake
_MAX_INDENT = 20  # levels of a list


@dataclass(slots=True)
class _Table:
    rows: list[list[RawCell]] = field(default_factory=list)
    cell: RawCell | None = None  # the open one
    caption: str = ""
    head: bool = False  # inside thead
    layout: bool = False  # it arranges a page, and its cells are no data


@dataclass(slots=True)
class _Figure:
    first: int  # of its blocks
    caption: str = ""


@dataclass(slots=True)
class _List:
    ordered: bool
    next: int
    marker: str = ""  # of the item that has no text yet


class BlockTarget:
    """Methods are those of lxml's parser targets. `blocks` and `title` are ready after `close`."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.title = ""
        self._text: list[str] = []  # of what is being read: a paragraph, a cell, a heading
        self._images: list[str] = []  # alternative texts, to follow the paragraph they stand in
        self._depth = 0
        self._hidden_at = 0  # depth of the element that hides all inside it; 0 when none does
        self._whole = ""  # heading, caption, title or pre: read as a whole, whatever is inside
        self._whole_at = 0
        self._level = 0
        self._footnote_at = 0
        self._main_at = 0
        self._main_from = 0
        self._main: list[tuple[int, int]] = []  # ranges of blocks inside <main>
        self._tables: list[_Table] = []
        self._figures: list[_Figure] = []
        self._lists: list[_List] = []
        self._items: list[str] = []  # lines of the outermost open list

    # --- what the parser calls ----------------------------------------------------------------

    def start(self, tag: str, attrib: Mapping[str, str]) -> None:
        self._depth += 1
        if self._hidden_at:
            return
        if tag in _HIDDEN or (attrib and _is_hidden(attrib)):
            self._hidden_at = self._depth
        elif tag == "br":
            self._text.append("\n" if self._whole == "pre" else _BREAK)
        elif tag == "img":
            self._image(attrib.get("alt"))
        elif self._whole:
            if tag in _BREAKING and self._whole != "pre":
                self._text.append(_BREAK)
        elif tag in _HEADINGS or attrib.get("role") == "heading":
            self._start_heading(_HEADINGS.get(tag) or _level(attrib.get("aria-level")))
        elif tag in ("pre", "title", "caption", "figcaption"):
            self._start_whole(tag)
        elif tag in ("table", "tr", "td", "th", "thead", "tbody", "tfoot"):
            self._start_table(tag, attrib)
        elif tag in _BREAKING:
            self._start_breaking(tag, attrib)

    def end(self, tag: str) -> None:
        depth = self._depth
        self._depth -= 1
        if self._hidden_at:
            if depth == self._hidden_at:
                self._hidden_at = 0
        elif self._whole:
            if depth == self._whole_at:
                self._end_whole()
            elif tag in _BREAKING and self._whole != "pre":
                self._text.append(_BREAK)
        elif tag in ("table", "tr", "td", "th", "thead"):
            self._end_table(tag)
        elif tag in _BREAKING:
            self._break()
            if tag in _LISTS and self._lists and not self._in_cell():
                self._lists.pop()
                if not self._lists:
                    self._end_list()
            elif tag == "figure" and self._figures:
                self._end_figure()
        if depth == self._footnote_at:
            self._footnote_at = 0
        if depth == self._main_at:
            self._end_main()

    def data(self, text: str) -> None:
        if not self._hidden_at:
            self._text.append(text)

    def close(self) -> BlockTarget:
        """What was left open is closed."""
        self._hidden_at = 0
        if self._whole:
            self._end_whole()
        while self._tables:
            self._end_table("table")
        self._lists.clear()
        self._break()
        self._end_list()
        while self._figures:
            self._end_figure()
        if self._main_at:
            self._end_main()
        return self

    def content(self) -> list[Block]:
        """Blocks without what stands around the page's <main>, where that holds most of the text:
        site names, menus and notices are none of it."""
        inside = [b for first, end in self._main for b in self.blocks[first:end]]
        size, whole = (sum(len(b.text) for b in of) for of in (inside, self.blocks))
        return inside if 2 * size > whole else self.blocks

    def insert(self, *blocks: Block) -> None:
        """Blocks made elsewhere, after all that was read so far."""
        self._break()
        self._end_list()
        self.blocks += blocks

    # --- paragraphs ---------------------------------------------------------------------------

    def _take(self) -> str:
        """The text read so far, white space collapsed; lines are those that breaks made."""
        text = "".join(self._text)
        self._text = []
        if _BREAK in text:
            lines = (" ".join(line.split()) for line in text.split(_BREAK))
            return "\n".join(line for line in lines if line)
        return " ".join(text.split())

    def _break(self) -> None:
        """Ends a paragraph; inside a cell, a line."""
        if self._in_cell():
            self._text.append(_BREAK)
            return
        text = self._take()
        if text and self._lists:
            self._item(text)
        elif text:
            self._emit(text)
        if self._images:
            self._end_list()
            self.blocks += (block(BlockKind.IMAGE, alt) for alt in self._images)
            self._images = []

    def _emit(self, text: str) -> None:
        kind = BlockKind.FOOTNOTE if self._footnote_at else BlockKind.TEXT
        self.blocks.append(block(kind, text))

    def _start_breaking(self, tag: str, attrib: Mapping[str, str]) -> None:
        self._break()
        if attrib and not self._footnote_at:
            role = f"{attrib.get('role', '')} {attrib.get('epub:type', '')}"
            if _FOOTNOTES.search(role):
                self._end_list()
                self._footnote_at = self._depth
        if self._in_cell():
            return
        if tag == "main" and not self._main_at:
            self._end_list()
            self._main_at, self._main_from = self._depth, len(self.blocks)
        elif tag in _LISTS:
            self._lists.append(_List(tag == "ol", _number(attrib.get("start"), 1)))
        elif tag == "li" and self._lists:
            self._lists[-1].marker = _marker(self._lists[-1])
        elif tag == "figure":
            self._end_list()
            self._figures.append(_Figure(len(self.blocks)))

    def _end_main(self) -> None:
        self._end_list()
        self._main.append((self._main_from, len(self.blocks)))
        self._main_at = 0

    def _image(self, alt: str | None) -> None:
        text = " ".join((alt or "").split())
        if self._whole or self._in_cell():
            self._text.append(f" {text} ")
        elif text or self._figures:
            self._images.append(text)

    # --- what is read as a whole --------------------------------------------------------------

    def _start_heading(self, level: int) -> None:
        if self._in_cell():
            self._becomes_layout()
        self._start_whole("heading")
        self._level = level

    def _start_whole(self, what: str) -> None:
        if what == "pre" and self._in_cell():
            return  # a line of the cell
        self._break()
        if what != "title":
            self._end_list()
        self._whole, self._whole_at = what, self._depth

    def _end_whole(self) -> None:
        whole, self._whole, self._whole_at = self._whole, "", 0
        if whole == "pre":
            code = "".join(self._text).strip("\n").rstrip()
            self._text = []
            if code.strip():
                self.blocks.append(block(BlockKind.CODE, code))
            return
        text = self._take()
        if whole == "title":
            self.title = self.title or text
        elif whole == "heading" and len(text) <= _MAX_HEADING:
            text = _ANCHOR.sub("", " ".join(text.split("\n")))
            if text:
                self.blocks.append(heading(text, self._level))
        elif whole == "caption" and self._tables and not self._tables[-1].layout:
            self._tables[-1].caption = text
        elif whole == "figcaption" and self._figures:
            self._figures[-1].caption = text
        elif text:
            self._emit(text)

    def _end_figure(self) -> None:
        figure = self._figures.pop()
        if not figure.caption:
            return
        shows = len(self.blocks) > figure.first and self.blocks[-1].kind in (
            BlockKind.TABLE,
            BlockKind.IMAGE,
        )
        kind = BlockKind.CAPTION if shows else BlockKind.TEXT
        self.blocks.append(block(kind, figure.caption))

    # --- lists --------------------------------------------------------------------------------

    def _item(self, text: str) -> None:
        """A line of the list, with the item's marker where it begins."""
        open_list = self._lists[-1]
        indent = "  " * min(len(self._lists) - 1, _MAX_INDENT)
        lead = open_list.marker or "  "
        open_list.marker = ""
        self._items.append(indent + lead + text.replace("\n", f"\n{indent}  "))

    def _end_list(self) -> None:
        if self._items:
            kind = BlockKind.FOOTNOTE if self._footnote_at else BlockKind.LIST
            self.blocks.append(block(kind, "\n".join(self._items)))
            self._items = []

    # --- tables -------------------------------------------------------------------------------

    def _in_cell(self) -> bool:
        return bool(self._tables) and self._tables[-1].cell is not None

    def _start_table(self, tag: str, attrib: Mapping[str, str]) -> None:
        if tag == "table":
            if self._in_cell():
                self._becomes_layout()
            self._break()
            self._end_list()
            self._tables.append(_Table(layout=attrib.get("role") in ("presentation", "none")))
            return
        if not self._tables:
            self._break()  # a piece of a table
            return
        open_table = self._tables[-1]
        self._end_cell()
        if tag in ("thead", "tbody", "tfoot"):
            open_table.head = tag == "thead"
        elif open_table.layout:
            self._break()
        elif tag == "tr":
            open_table.rows.append([])
        else:
            self._break()  # text between cells belongs to none
            open_table.cell = RawCell(
                "",
                _number(attrib.get("rowspan"), 1),
                _number(attrib.get("colspan"), 1),
                tag == "th" or open_table.head,
            )

    def _end_table(self, tag: str) -> None:
        if not self._tables:
            return
        open_table = self._tables[-1]
        self._end_cell()
        if open_table.layout or tag == "table":
            self._break()
        if tag == "thead":
            open_table.head = False
        if tag != "table":
            return
        self._tables.pop()
        rows = [row for row in open_table.rows if row]
        cells = grid(rows)
        if not any(cell.text for cell in cells):
            cells = []
        if cells and max(cell.column + cell.column_span for cell in cells) > 1:
            self.blocks.append(table(cells))
            if open_table.caption:
                self.blocks.append(block(BlockKind.CAPTION, open_table.caption))
            return
        for text in (open_table.caption, *(cell.text for cell in cells)):
            if text:
                self._emit(text)

    def _end_cell(self) -> None:
        open_table = self._tables[-1]
        if open_table.cell is not None:
            open_table.cell.text = self._take()
            if not open_table.rows:
                open_table.rows.append([])
            open_table.rows[-1].append(open_table.cell)
            open_table.cell = None

    def _becomes_layout(self) -> None:
        """A table in whose cell stands a heading or another table arranges a page."""
        open_table = self._tables[-1]
        self._end_cell()
        open_table.layout = True
        for text in (open_table.caption, *(c.text for row in open_table.rows for c in row)):
            if text:
                self._emit(text)
        open_table.rows, open_table.caption = [], ""


def _is_hidden(attrib: Mapping[str, str]) -> bool:
    return (
        "hidden" in attrib
        or attrib.get("aria-hidden") == "true"
        or attrib.get("role") in _HIDDEN_ROLES
        or attrib.get("epub:type") == "pagebreak"
        or ("style" in attrib and _UNSEEN.search(attrib["style"]) is not None)
    )


def _level(stated: str | None) -> int:
    return min(max(_number(stated, 2), 1), 9)


def _marker(open_list: _List) -> str:
    if not open_list.ordered:
        return "- "
    open_list.next += 1
    return f"{open_list.next - 1}. "


def _number(text: str | None, default: int) -> int:
    """A small number of an attribute; the default where there is none."""
    stripped = (text or "").strip()
    return (
        int(stripped)
        if stripped.isascii() and stripped.isdigit() and len(stripped) < 7
        else default
    )
