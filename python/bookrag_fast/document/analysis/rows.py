"""Lines of a column → rows, and what a row is: text, a row of cells, a contents entry, code."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from bookrag_fast.document.analysis.captions import caption_label
from bookrag_fast.document.analysis.lines import Line, lead_of
from bookrag_fast.document.numbering import is_bullet, parse_numbering

__all__ = ["Row", "is_contents_entry", "rows_of", "single", "split_entry"]

_LEADER = re.compile(r"(?:[.．·・…_]\s?){4,}|…{2,}|\.{4,}")
_LEADERS = " .．·・…_|\t\u3000"
_SIGNS_BEFORE = ("$", "€", "£", "¥", "￥", "US$")
_SIGNS_BEHIND = (")", "%", ")%", "％", "*")
_DIGITISH = "0123456789(.-—–"
_EQUATION_NUMBER = re.compile(r"\((?:[A-Z]\.?)?\d{1,3}(?:\.\d{1,3})?[a-z]?\)")
_AMOUNT = re.compile(r"[(\-−–]?[$€£¥]?\s?[(\-−–]?\.?\d[\d.,]*\)?\s?%?\)?|[-–—]")
_FORMULA_SIGN = re.compile(r"[=<>≤≥≈≠∈⊂⊆≡∝∼+−·×∑∏∫|(\[{]")
_WORDS = re.compile(r"(?=.*[^\W\d_]{4})(?:[A-Z]|.*\s)", re.DOTALL)  # more than a piece of a formula
_LABEL = re.compile(r"(?:[A-Z]{1,2}-)?\d{1,4}|[ivxlc]{1,7}", re.IGNORECASE)
_LABEL_ENDS = "ivxlcIVXLC\u0130\u0131"  # with the letters that are an i when case is ignored


@dataclass(slots=True)
class Row:
    """Lines on one baseline, left to right."""

    cells: list[Line]

    @property
    def base(self) -> float:
        return self.cells[0].base

    @property
    def x0(self) -> float:
        cells = self.cells
        return cells[0].x0 if len(cells) == 1 else min(c.x0 for c in cells)

    @property
    def x1(self) -> float:
        cells = self.cells
        return cells[0].x1 if len(cells) == 1 else max(c.x1 for c in cells)

    @property
    def size(self) -> float:
        cells = self.cells
        return cells[0].size if len(cells) == 1 else max(c.size for c in cells)


def split_entry(text: str) -> tuple[str, str, str] | None:
    """(title, leader, page label) of a line of a contents page, None when it has no page label.

    Linear in the text, whatever it is made of: a regular expression that looks for dots would go
    over a line of a thousand dots again and again.
    """
    text = text.rstrip()
    if not text or not (text[-1].isdigit() or text[-1] in _LABEL_ENDS):
        return None
    at = len(text)
    while at > 0 and len(text) - at < 9 and (text[at - 1].isalnum() or text[at - 1] == "-"):
        at -= 1
    label, before = text[at:], text[:at]
    if not _LABEL.fullmatch(label):
        return None
    title = before.rstrip(_LEADERS)
    return (title, before[len(title) :], label) if title else None


def is_contents_entry(text: str) -> bool:
    """A line of a printed contents page: a title, at least four dots, a page number or nothing."""
    entry = split_entry(text)
    if entry is not None:
        leader = entry[1]
    else:
        stripped = text.rstrip()
        leader = stripped[len(stripped.rstrip(_LEADERS)) :]
    if len(leader) < 2:
        return False
    dots = sum(2 if c == "…" else 1 for c in leader if c not in " |_\t\u3000")
    return dots >= 4


def rows_of(lines: list[Line]) -> list[Row]:
    """Rows from top to bottom. Labels and leaders are joined with the text that they belong to."""
    rows: list[Row] = []
    for line in sorted(lines, key=lambda x: (x.base, x.x0)):
        whole = bool(line.stands_for or (rows and rows[-1].cells[0].stands_for))
        if rows and not whole and _same_row(rows[-1], line):
            rows[-1].cells.append(line)
        else:
            rows.append(Row([line]))
    for row in rows:
        row.cells.sort(key=lambda x: x.x0)
        if len(row.cells) > 1:
            row.cells = _joined(row.cells)
    for order in (rows, rows[::-1]):
        for known, row in itertools.pairwise(order):
            if len(row.cells) > 1 and len(known.cells) == 1 and _is_stretched(row, known.cells[0]):
                row.cells = [single(row.cells, " ")]
    return rows


def _is_stretched(row: Row, line: Line) -> bool:
    """A line of justified text with wide gaps, next to a line of the same paragraph."""
    cells = row.cells
    gaps = [b.x0 - a.x1 for a, b in itertools.pairwise(cells)]
    words = sum(c.text[-1].islower() or c.text[-1] in ",.;:" for c in cells)
    return (
        not line.stands_for
        and not line.mono
        and abs(row.base - line.base) < 1.6 * line.size
        and abs(cells[0].size - line.size) < 0.1 * line.size
        and abs(row.x1 - line.x1) < 1.5
        and abs(row.x0 - line.x0) < 2.5 * line.size
        and len(line.text) >= 20
        and max(gaps) < 4 * line.size
        and 2 * words > len(cells)
    )


def _same_row(row: Row, line: Line) -> bool:
    near = abs(line.base - row.base) < 0.35 * min(line.size, row.size) + 0.5
    apart = all(line.x0 >= c.x1 - 0.3 * c.size or line.x1 <= c.x0 + 0.3 * c.size for c in row.cells)
    return near and apart


def _joined(cells: list[Line]) -> list[Line]:
    out = [cells[0]]
    for position, right in enumerate(cells[1:], start=1):
        left = out[-1]
        gap = right.x0 - left.x1
        leads = _LEADER.search(left.text[-12:]) or _LEADER.match(right.text)
        label = position == 1 and gap < 7 * left.size and _is_label(left.text)
        label = label or (
            gap < 4 * left.size and caption_label(left.text) == left.text.rstrip(".:")
        )
        # "$ | 1,204" and "12.5 | %" are one cell each.
        money = left.text in _SIGNS_BEFORE and gap < 12 * left.size and right.text[0] in _DIGITISH
        percent = right.text in _SIGNS_BEHIND and gap < 2 * left.size
        last = position == len(cells) - 1
        number = last and _EQUATION_NUMBER.fullmatch(right.text) and not _is_entry(left.text)
        if money or percent or leads or label or number or gap < 0.5 * left.size:
            out[-1] = single([left, right], " ")
        else:
            out.append(right)
    return out


def _is_entry(text: str) -> bool:
    """A cell of a table: an amount, or words without the signs of a formula. What stands behind it
    in brackets is a negative amount, no equation's number."""
    if _AMOUNT.fullmatch(text):
        return True
    return _WORDS.match(text) is not None and not _FORMULA_SIGN.search(text)


def _is_label(text: str) -> bool:
    """A bullet or a number that stands alone before the text that it labels."""
    if len(text) <= 2 and is_bullet(text + " "):
        return True
    if len(text) > 16:
        return False
    numbering = parse_numbering(text)
    return numbering is not None and not numbering.rest


def single(cells: list[Line], glue: str) -> Line:
    """One line out of the cells of a row."""
    if len(cells) == 1:
        return cells[0]
    main = max(cells, key=lambda c: (c.width, -c.x0))
    return Line(
        text=glue.join(c.text for c in cells),
        x0=min(c.x0 for c in cells),
        y0=min(c.y0 for c in cells),
        x1=max(c.x1 for c in cells),
        y1=max(c.y1 for c in cells),
        base=main.base,
        size=main.size,
        bold=main.bold and all(c.bold or len(c.text) < 3 for c in cells),
        italic=main.italic,
        mono=main.mono,
        family=main.family,
        color=main.color,
        frame=main.frame,
        part_bold=cells[0].bold and not cells[-1].bold,
        lead=lead_of(cells[0], cells[1], glue) if len(cells) == 2 else cells[0].lead,
    )
