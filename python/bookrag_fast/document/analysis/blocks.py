"""Columns of lines → drafts of blocks: paragraphs, headings, lists, code, tables, captions."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

from bookrag_fast.document.analysis.captions import caption_kind
from bookrag_fast.document.analysis.cells import cells_of, mend_wrapped
from bookrag_fast.document.analysis.entries import entry_spans
from bookrag_fast.document.analysis.equations import are_equations, is_equation
from bookrag_fast.document.analysis.frames import frame_to_page
from bookrag_fast.document.analysis.joining import ends_sentence, join_lines
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.analysis.rows import Row, is_contents_entry, rows_of, single
from bookrag_fast.document.analysis.tables import table_spans
from bookrag_fast.document.model import BBox, Block, BlockKind, Cell, Lead, Region, Style
from bookrag_fast.document.numbering import Scheme, is_bullet, parse_numbering

__all__ = ["Body", "Draft", "drafts_of"]

_FOOTNOTE_MARK = re.compile(r"^(?:\d{1,3}|[*†‡§¶]{1,3}|[a-z]\b)\s?[.)]?\s*\S")
_WIDE = re.compile("[\u2e80-\u9fff\uff00-\uffef]")
_PAGE_NUMBER = re.compile(r"(?:[A-Z]{1,2}-)?\d{1,4}|[ivxlc]{1,7}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Body:
    """The face of the document's running text; size in points."""

    size: float
    bold: bool
    mono: bool


@dataclass(slots=True)
class Draft:
    """A block in the making. Boxes in points of the page as displayed."""

    kind: BlockKind
    text: str
    page: int
    box: BBox
    style: Style
    line_count: int
    column: int  # counts columns over the page; paragraphs run on from one to the next
    last_line_full: bool = True
    contents: bool = False
    cells: tuple[Cell, ...] = ()
    regions: list[Region] = field(default_factory=list)
    part_bold: bool = False
    lines: list[Line] = field(default_factory=list)
    lead: Lead | None = None

    def block(self) -> Block:
        numbering = parse_numbering(self.text) if self.kind is not BlockKind.TABLE else None
        return Block(
            kind=self.kind,
            text=self.text,
            regions=tuple(self.regions) or (Region(self.page, self.box),),
            style=self.style,
            line_count=self.line_count,
            numbering=numbering.label if numbering else "",
            cells=self.cells,
            lead=self.lead if self.lead and self.text.startswith(self.lead.text) else None,
        )


@dataclass(frozen=True, slots=True)
class _Column:
    left: float
    right: float
    pitch: dict[float, float]  # baseline distance by size, in points

    @property
    def width(self) -> float:
        return max(self.right - self.left, 1.0)

    def pitch_of(self, size: float) -> float:
        return self.pitch.get(_size_key(size), 1.2 * size)


def _size_key(size: float) -> float:
    return round(size * 2) / 2


def drafts_of(
    columns: list[list[Line]], page: int, page_height: float, body: Body, *, tables: bool = True
) -> list[Draft]:
    """Drafts of one page in reading order; every line goes into exactly one of them.

    Without ``tables``, rows of cells are taken for lines like any other.
    """
    out: list[Draft] = []
    for number, lines in enumerate(columns):
        rows = rows_of(lines)
        column = _measure(rows)
        at = 0
        for first, last, kind in [*_spans(rows, body, tables), (len(rows), len(rows), None)]:
            plain = [line for row in rows[at:first] for line in _pieces(row)]
            out.extend(_paragraphs(plain, column, page, number, page_height, body))
            if kind is BlockKind.TABLE:
                out.append(_table(rows[first:last], page, number, column))
            elif kind is not None:
                out.append(_listing(rows[first:last], kind, page, number, column))
            elif last > first:
                out.append(_stand_in(rows[first].cells[0], page, number, column))
            at = last
    return _merged_lists(out)


def _spans(rows: list[Row], body: Body, tables: bool) -> list[tuple[int, int, BlockKind | None]]:
    """Ranges of rows that are one block by their layout; None for what stands in for others."""
    out: list[tuple[int, int, BlockKind | None]] = [
        (k, k + 1, None) for k, row in enumerate(rows) if row.cells[0].stands_for
    ]
    if tables:
        listed = entry_spans(rows)
        out += [(*span, BlockKind.LIST) for span in listed]
        at = 0
        for start, end in [*listed, (len(rows), len(rows))]:
            for first, last in table_spans(rows[at:start], mono=body.mono):
                found = rows[at + first : at + last]
                kind = BlockKind.EQUATION if are_equations(found) else BlockKind.TABLE
                out.append((at + first, at + last, kind))
            at = end
    return sorted(out, key=lambda span: span[0])


def _listing(rows: list[Row], kind: BlockKind, page: int, number: int, measured: _Column) -> Draft:
    """Entries of a contents page, or formulas under each other: a line a row."""
    glue = "  " if kind is BlockKind.LIST else " "
    lines = [single(row.cells, glue) for row in rows]
    return Draft(
        kind=kind,
        text=_indented(lines) if kind is BlockKind.LIST else "\n".join(x.text for x in lines),
        page=page,
        box=_box(lines),
        style=_style(lines[0], lines, measured, None),
        line_count=len(lines),
        column=number,
        contents=kind is BlockKind.LIST,
        lines=lines,
    )


def _stand_in(line: Line, page: int, column: int, measured: _Column) -> Draft:
    """The draft of a ruled table or a drawn figure."""
    lines = list(line.pieces) or [line]
    return Draft(
        kind=line.stands_for or BlockKind.TABLE,
        text=line.text,
        page=page,
        box=BBox(line.x0, line.y0, line.x1, line.y1),
        style=_style(lines[0], lines, measured, None),
        line_count=1 + max((c.row for c in line.cells), default=len(line.pieces) - 1),
        column=column,
        cells=line.cells,
    )


def _pieces(row: Row) -> list[Line]:
    """Lines of a row outside tables. A page number stays with its title, all else stands alone."""
    if len(row.cells) == 1:
        return row.cells
    if len(row.cells) == 2 and _PAGE_NUMBER.fullmatch(row.cells[1].text):
        return [single(row.cells, "  ")]
    return row.cells


def _measure(rows: list[Row]) -> _Column:
    lefts = sorted(row.x0 for row in rows)
    rights = sorted(row.x1 for row in rows)
    # An outlier (a marginal note, a hanging number) must not set the edge.
    left = lefts[min(len(lefts) - 1, len(lefts) // 20)]
    right = rights[max(0, len(rights) - 1 - len(rights) // 20)]
    steps: dict[float, list[float]] = defaultdict(list)
    for a, b in itertools.pairwise(rows):
        step = b.base - a.base
        if abs(a.size - b.size) < 0.3 and 0.8 * a.size < step < 2.4 * a.size:
            steps[_size_key(a.size)].append(step)
    pitch = {}
    for size, found in steps.items():
        # The lower half: steps between paragraphs are larger than those inside.
        found.sort()
        pitch[size] = found[max(0, (len(found) - 1) // 3)]
    return _Column(left, right, pitch)


def _table(rows: list[Row], page: int, column: int, measured: _Column) -> Draft:
    rows = mend_wrapped(rows)
    text = "\n".join(" | ".join(cell.text for cell in row.cells) for row in rows)
    lines = [cell for row in rows for cell in row.cells]
    return Draft(
        kind=BlockKind.TABLE,
        text=text,
        page=page,
        box=_box(lines),
        style=_style(lines[0], lines, measured, None),
        line_count=len(rows),
        column=column,
        cells=cells_of(rows),
    )


def _box(lines: list[Line]) -> BBox:
    return frame_to_page(
        lines[0].frame,
        min(x.x0 for x in lines),
        min(x.y0 for x in lines),
        max(x.x1 for x in lines),
        max(x.y1 for x in lines),
    )


def _style(first: Line, lines: list[Line], column: _Column, gap: float | None) -> Style:
    return Style(
        size=round(float(median(x.size for x in lines)), 2),
        bold=sum(len(x.text) for x in lines if x.bold) * 2 > sum(len(x.text) for x in lines),
        italic=all(x.italic for x in lines),
        family=first.family,
        color=first.color,
        indent=round(first.x0 - column.left, 1),
        gap_before=None if gap is None else round(gap, 1),
        centered=all(_centered(x, column) for x in lines),
    )


def _centered(line: Line, column: _Column) -> bool:
    middle = (column.left + column.right) / 2
    return (
        abs(line.middle_x - middle) < 0.025 * column.width + 1
        and line.x0 - column.left > 1.5 * line.size
    )


def _paragraphs(
    lines: list[Line], column: _Column, page: int, number: int, page_height: float, body: Body
) -> list[Draft]:
    groups: list[list[Line]] = []
    for line in lines:
        # Text side by side (a marginal note, two headings) goes on in its own lane.
        lane = next((g for g in groups[-1:-4:-1] if _overlap(g[-1], line)), None)
        if lane is not None and not _breaks(lane, line, column, body):
            lane.append(line)
        else:
            groups.append([line])
    out: list[Draft] = []
    before: Line | None = None
    for group in groups:
        gap = None if before is None else group[0].y0 - before.y1
        out.append(_draft(group, column, page, number, page_height, body, gap))
        before = group[-1]
    return out


def _overlap(a: Line, b: Line) -> bool:
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 0


def _breaks(group: list[Line], line: Line, column: _Column, body: Body) -> bool:
    """Whether ``line`` starts a new block after the lines of ``group``."""
    last = group[-1]
    size = max(last.size, line.size)
    step = line.base - last.base
    if abs(last.size - line.size) > 0.08 * size and not _same_sentence(last, line, column):
        return True
    if line.mono and last.mono:
        return step > 2.6 * size or step < 0.3 * size
    if line.mono != last.mono:
        return True
    contents, contents_before = is_contents_entry(line.text), is_contents_entry(last.text)
    if contents and contents_before:
        return step > 3.5 * size
    if contents_before:
        return True
    if contents:
        # The first line of an entry over two lines joins it; anything else does not.
        return True
    if step > 1.3 * min(column.pitch_of(size), 1.6 * size) + 0.5 or step < 0.3 * size:
        return True
    # Bold words may run over a line's end into the next; a short bold line is a heading.
    full = last.x1 > column.right - 0.15 * column.width
    if line.bold != last.bold and not (line.part_bold and last.bold and full):
        return True
    if is_bullet(line.text):
        return True
    large = last.size > 1.1 * body.size or (last.bold and not body.bold)
    numbering = parse_numbering(line.text)
    ended = last.x1 < column.right - 0.15 * column.width or ends_sentence(last.text)
    if numbering is not None:
        strong = numbering.depth > 1 or numbering.scheme not in (Scheme.DECIMAL, Scheme.LETTER)
        if large and (numbering.dotted or numbering.depth > 1):
            return True
        if ended and (strong or numbering.dotted or line.x0 < last.x0 - 0.5 * size):
            return True
    if caption_kind(line.text) and ended:
        return True
    centered = _centered(last, column)
    if (
        centered != _centered(line, column)
        and (centered or len(group) > 1)
        and (last.x1 < column.right - 0.15 * column.width)
    ):
        return True
    if centered:
        return False
    return _indent_breaks(group, line, column, ended, large)


def _same_sentence(last: Line, line: Line, column: _Column) -> bool:
    """A small difference of size inside one paragraph, as scans and mixed scripts have it."""
    return (
        abs(last.size - line.size) < 0.2 * max(last.size, line.size)
        and last.bold == line.bold
        and last.x1 > column.right - 0.05 * column.width
        and line.text[:1].islower()
    )


def _indent_breaks(
    group: list[Line], line: Line, column: _Column, ended: bool, large: bool
) -> bool:
    first, last, size = group[0], group[-1], line.size
    short = last.x1 < column.right - 0.12 * column.width
    finished = ends_sentence(last.text)
    # A script without case does not tell.
    starts_new = line.text[:1].isupper() or not line.text[:1].isalpha()
    may_start = starts_new or not line.text[:1].islower()
    if line.x0 > last.x0 + 0.8 * size:
        # An indent starts a paragraph, unless the item above hangs out.
        hanging = len(group) == 1 and (
            is_bullet(first.text) or parse_numbering(first.text) is not None
        )
        # Chinese and Japanese wrap at any character: a short line is a whole one.
        hanging = hanging and not (short and _WIDE.match(last.text[-1:]))
        if not hanging and (ended or short) and (len(group) > 1 or last.x0 <= column.left + size):
            return line.x0 - last.x0 < 8 * size or short
    elif line.x0 < last.x0 - 0.8 * size and len(group) > 1:
        return True
    elif line.x0 < last.x0 - 0.8 * size:
        # A first line that stands in: the paragraph goes on at the edge, unless it has ended.
        ends = starts_new or (may_start and finished)
        return short and ends and last.x1 < column.right - 0.3 * column.width
    opens = starts_new or (may_start and not large)  # a large line is a heading that wraps
    if len(group) == 1 and short and opens and not finished:
        numbered = parse_numbering(last.text)
        if numbered is not None and numbered.rest:
            return True
    return last.x1 < column.right - 0.25 * column.width and finished and may_start


def _draft(
    lines: list[Line],
    column: _Column,
    page: int,
    number: int,
    page_height: float,
    body: Body,
    gap: float | None,
) -> Draft:
    box = _box(lines)
    style = _style(lines[0], lines, column, gap)
    contents = is_contents_entry(lines[0].text)
    if contents or (all(x.mono for x in lines) and not body.mono and len(lines) > 1):
        text = _indented(lines)
    else:
        text = join_lines(x.text for x in lines)
    draft = Draft(
        kind=BlockKind.TEXT,
        text=text,
        page=page,
        box=box,
        style=style,
        line_count=len(lines),
        column=number,
        last_line_full=lines[-1].x1 > column.right - 0.12 * column.width,
        contents=contents,
        part_bold=lines[0].part_bold or (lines[0].bold and not lines[-1].bold),
        lines=lines,
        lead=_lead(lines),
    )
    draft.kind = _kind(draft, lines, page_height, body)
    return draft


def _lead(lines: list[Line]) -> Lead | None:
    """What opens the paragraph in a face of its own, at most over its first two lines."""
    first = lines[0]
    if first.lead is not None or len(lines) < 2:
        return first.lead
    goes_on = lines[1].lead
    if goes_on is None or goes_on[1:] != (first.bold, first.italic, first.family):
        return None
    return goes_on._replace(text=join_lines([first.text, goes_on.text]))


def _indented(lines: list[Line]) -> str:
    """One row a line, the indent kept as spaces."""
    left = min(x.x0 for x in lines)
    return "\n".join(
        " " * min(40, max(0, round((x.x0 - left) / (0.6 * max(x.size, 1.0))))) + x.text
        for x in lines
    )


def _kind(draft: Draft, lines: list[Line], page_height: float, body: Body) -> BlockKind:
    text, style = draft.text, draft.style
    if draft.contents:
        return BlockKind.LIST
    if (
        all(x.mono for x in lines)
        and not body.mono
        and (len(lines) > 1 or style.size <= 1.05 * body.size)
    ):
        return BlockKind.CODE
    if is_bullet(text) and len(text) > 2:
        return BlockKind.LIST
    if caption_kind(text) and len(text) < 1200:
        return BlockKind.CAPTION
    if (
        style.size < 0.93 * body.size
        and draft.box.y0 > 0.55 * page_height
        and _FOOTNOTE_MARK.match(text)
        and len(text) > 12
    ):
        return BlockKind.FOOTNOTE
    if is_equation(text, lines, style):
        return BlockKind.EQUATION
    if (
        len(text) <= 250
        and len(lines) <= 4
        and (
            style.size > 1.08 * body.size
            or (style.bold and not body.bold)
            or (len(text) > 3 and text.isupper())
        )
        and any(c.isalpha() for c in text)
    ):
        return BlockKind.TITLE
    return BlockKind.TEXT


def _merged_lists(drafts: list[Draft]) -> list[Draft]:
    """Neighbouring items of one list become one block, an item a line."""
    out: list[Draft] = []
    for draft in drafts:
        last = out[-1] if out else None
        if (
            last is not None
            and draft.kind is BlockKind.LIST
            and last.kind is BlockKind.LIST
            and draft.contents == last.contents
            and len(last.text) + len(draft.text) < 1500
        ):
            last.text += "\n" + draft.text
            last.box = last.box.union(draft.box)
            last.line_count += draft.line_count
            last.lines = last.lines + draft.lines
            last.last_line_full = draft.last_line_full
        else:
            out.append(draft)
    return out
