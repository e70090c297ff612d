"""Rows of a printed contents page: titles with page numbers at the right edge.

Such rows stand like a table of two or three columns. What tells them from one is that the numbers
rise, or that dots lead to them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bookrag_fast.document.analysis.rows import Row, is_contents_entry, split_entry

__all__ = ["entry_spans"]

MIN_ENTRIES = 5  # without any leader
MIN_LED = 3  # with leaders among them
MAX_BETWEEN = 2  # rows without a number: parts, titles over two lines
MAX_STEP = 5.0  # of the size, from entry to entry
_NUMBER = re.compile(r"\d{1,4}|[ivxlc]{1,6}")


@dataclass(frozen=True, slots=True)
class _Entry:
    at: int  # row
    value: int | None  # None for a Roman number
    led: bool  # by dots
    right: float


def entry_spans(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Ranges [first, last) of rows that list titles with their pages."""
    out: list[tuple[int, int]] = []
    run: list[_Entry] = []
    for entry in [*_entries(rows), None]:
        if run and (entry is None or not _follows(rows, run[-1], entry)):
            if _is_list(run) and not (_has_header(rows, run) and not any(e.led for e in run)):
                out.append((run[0].at, run[-1].at + 1))
            run = []
        if entry is not None:
            run.append(entry)
    return out


def _entries(rows: Sequence[Row]) -> list[_Entry]:
    out = []
    for k, row in enumerate(rows):
        last = row.cells[-1]
        if row.cells[0].stands_for:
            continue
        if len(row.cells) == 1:
            led = is_contents_entry(last.text)
            parts = split_entry(last.text) if led else None
            number = parts[2] if parts else ""
        else:
            number, led = last.text, any(is_contents_entry(c.text) for c in row.cells[:-1])
            before = row.cells[-2]
            letters = sum(c.isalpha() for cell in row.cells[:-1] for c in cell.text)
            if len(row.cells) > 3 or letters < 2 or last.x0 - before.x1 < 1.5 * row.size:
                continue
        if _NUMBER.fullmatch(number) or (led and number == ""):
            value = int(number) if number.isdigit() else None
            out.append(_Entry(k, value, led, last.x1))
    return out


def _follows(rows: Sequence[Row], before: _Entry, entry: _Entry) -> bool:
    if entry.at - before.at > MAX_BETWEEN + 1:
        return False
    between = rows[before.at + 1 : entry.at]
    if any(len(row.cells) > 1 or row.cells[0].stands_for for row in between):
        return False
    steps = (b.base - a.base for a, b in itertools.pairwise(rows[before.at : entry.at + 1]))
    return all(step < MAX_STEP * rows[entry.at].size for step in steps)


def _is_list(run: Sequence[_Entry]) -> bool:
    led = any(entry.led for entry in run)
    if len(run) < (MIN_LED if led else MIN_ENTRIES):
        return False
    values = [entry.value for entry in run if entry.value is not None]
    rising = sum(a <= b for a, b in itertools.pairwise(values))
    if rising < 0.9 * (len(values) - 1):
        return False
    if led:
        return True
    right = max(entry.right for entry in run)
    aligned = sum(right - entry.right < 2.0 for entry in run)
    years = all(1900 <= v <= 2100 for v in values)
    different = len(set(values)) > 0.5 * len(values)
    return bool(values) and not years and different and aligned >= 0.9 * len(run)


def _has_header(rows: Sequence[Row], run: Sequence[_Entry]) -> bool:
    """A row of cells right above that ends in a word: the head of a table of numbers."""
    at = run[0].at - 1
    if at < 0 or len(rows[at].cells) < 2:
        return False
    near = rows[at + 1].base - rows[at].base < 3 * rows[at].size
    return near and rows[at].cells[-1].text.casefold() not in ("page", "seite", "стр.", "ページ")
