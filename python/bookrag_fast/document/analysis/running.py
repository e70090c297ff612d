"""Running heads, feet, page numbers and watermarks, recognised by repetition over pages."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from bookrag_fast.document.analysis.frames import frame_to_page
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.model import Page
from bookrag_fast.document.numbering import parse_numbering

__all__ = ["page_numbers", "running_lines"]

MARGIN = 0.11  # of the page's height, at top and bottom: where running matter stands
EDGE_ROWS = 4  # rows at top and bottom that are looked at
MIN_PAGES = 3

_NO_LETTER = re.compile(r"[\W_]+")
_JOINTS = re.compile(r"\s*[|•·–—]\s*|\s{2,}")
_NUMBER_BEHIND = re.compile(r"\s+(?:\d{1,4}|[ivxlc]{1,7})$")
_DIGITS = re.compile(r"\d+")
_ROMAN = re.compile(r"^[ivxlcdm]{1,7}$", re.IGNORECASE)
_NUMBER_ALONE = re.compile(
    r"^\W*(?:page|seite|стр\.?|p\.)?\s*([0-9]{1,4}|[ivxlc]{1,7}|[A-Z]{1,2}-[0-9]{1,3})"
    r"(?:\s*(?:of|/|／|из|von)\s*[0-9]{1,4})?\W*$",
    re.IGNORECASE,
)
_LABEL_AT_END = re.compile(r"(?:^|\s)([0-9]{1,4}|[ivxlc]{1,7})$")
_LABEL_AT_START = re.compile(r"^([0-9]{1,4}|[ivxlc]{1,7})(?:\s|$)")


def running_lines(
    pages: Sequence[Page], lines: Sequence[list[Line]], body_size: float
) -> list[set[int]]:
    """For each page the positions of its running lines. ``body_size`` is the running text's.

    Two lines are alike when they stand at the same height with the same text, digits aside. They
    are running when most pages between the first and the last of them have one (a head may
    alternate, or change with the chapter); a heading that merely recurs is not that dense.
    """
    seen: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
    apart: set[tuple[int, int]] = set()
    for p, (page, of_page) in enumerate(zip(pages, lines, strict=True)):
        edge = _edge_lines(page, of_page)
        apart.update((p, k) for k, stands_apart in edge.items() if stands_apart)
        for k in edge:
            line = of_page[k]
            y = frame_to_page(line.frame, line.x0, line.y0, line.x1, line.y1)
            seen[(_masked(line.text), round(y.y0 / 8), round(line.size * 2))].append((p, k))
    out: list[set[int]] = [set() for _ in pages]
    merged = _neighbouring_heights(seen)
    for (text, _, half_points), places in merged.items():
        # "Lesson 1", "Lesson 2" in large type, a page each, are headings whatever they count.
        large = half_points > 2.3 * body_size and len(text) > 4
        on = sorted({p for p, _ in places})
        # A table that goes on from page to page repeats its header, but close to its rows.
        stands_apart = 2 * len(apart.intersection(places)) >= len(places)
        if not stands_apart and len(on) < 0.5 * len(pages):
            continue
        for stretch in _dense_stretches(on, len(pages), text):
            inside = set(stretch)
            if not _digits_run(
                [(p, lines[p][k].text) for p, k in places if p in inside],
                may_count=stands_apart and not large,
            ):
                continue
            for p, k in places:
                if p in inside:
                    out[p].add(k)
    _add_changing_heads(pages, lines, out, body_size)
    _add_lone_numbers(pages, lines, out)
    return out


def _add_changing_heads(
    pages: Sequence[Page], lines: Sequence[list[Line]], out: list[set[int]], body_size: float
) -> None:
    """Heads that change with the section: always at one height, apart from the text, and said
    elsewhere in the book in larger or bolder type, since they repeat a heading."""
    largest: dict[str, float] = {}
    for line in itertools.chain.from_iterable(lines):
        key = _said(line.text)
        largest[key] = max(largest.get(key, 0.0), _weight(line))
    known: Counter[tuple[int, int, bool]] = Counter(
        (
            round(lines[p][k].base / 3),
            round(lines[p][k].size),
            lines[p][k].base > pages[p].height / 2,
        )
        for p, marks in enumerate(out)
        for k in marks
    )
    by_place: dict[tuple[int, int, bool], list[tuple[int, int]]] = defaultdict(list)
    for p, (page, of_page) in enumerate(zip(pages, lines, strict=True)):
        rest = [k for k in range(len(of_page)) if k not in out[p] and of_page[k].frame == 0]
        if len(rest) < 3:
            continue
        rest.sort(key=lambda k: of_page[k].base)
        for ordered, low in ((rest, False), (rest[::-1], True)):
            first = of_page[ordered[0]]
            row = [k for k in ordered if abs(of_page[k].base - first.base) < 0.5 * first.size]
            inner = next((of_page[k] for k in ordered if k not in row), None)
            if inner is None or first.size > 1.15 * body_size:
                continue
            if any(_is_bare_label(of_page[k].text) for k in row):
                continue  # "Item 2." beside its title is a heading
            in_margin = first.base > 0.88 * page.height if low else first.base < 0.12 * page.height
            if in_margin and abs(inner.base - first.base) > 1.7 * max(first.size, inner.size):
                by_place[(round(first.base / 3), round(first.size), low)].extend(
                    (p, k) for k in row
                )
    for place, places in by_place.items():
        said_again = [
            (p, k)
            for p, k in places
            if any(
                largest.get(key, 0.0) > 1.05 * _weight(lines[p][k])
                for key in _parts(lines[p][k].text)
            )
        ]
        running_place = known[place] >= max(3, 0.2 * len(pages))
        many = len(places) >= max(4, 0.2 * len(pages)) and len(said_again) >= 0.6 * len(places)
        # Small type at one height on most pages needs no more proof.
        small = place[1] < 0.95 * body_size and len(places) + known[place] >= 0.4 * len(pages)
        if small and len(places) >= 4:
            said_again = places
        if running_place or many or (small and len(places) >= 4):
            for p, k in said_again:
                out[p].add(k)


def _is_bare_label(text: str) -> bool:
    numbering = parse_numbering(text)
    return numbering is not None and not numbering.rest and any(c.isalpha() for c in text)


def _weight(line: Line) -> float:
    """How much a line stands out: its size, bold counting for a tenth more."""
    return line.size * (1.1 if line.bold else 1.0)


def _parts(text: str) -> list[str]:
    """What a line and its parts say: a head may join the book's and the chapter's name."""
    parts = [part for part in _JOINTS.split(text) if len(part) > 3]
    return [_said(text), *map(_said, parts)] if len(parts) > 1 else [_said(text)]


def _said(text: str) -> str:
    """What a line says, without numbering in front and a page number behind."""
    numbering = parse_numbering(text)
    text = numbering.rest if numbering is not None and numbering.rest else text
    return _NO_LETTER.sub("", _NUMBER_BEHIND.sub("", text).casefold()) or text


def _digits_run(texts: list[tuple[int, str]], *, may_count: bool) -> bool:
    """Whether lines alike but for their digits are running matter.

    Their numbers either stay the same or one of them goes with the pages; headings such as
    "2.1 Version 3.0" that merely fall on one height have numbers of their own.
    """
    if len({text for _, text in texts}) <= max(1, 0.3 * len(texts)):
        return True
    if not may_count and any(c.isalpha() for c in texts[0][1]):
        return False
    groups = [[int(d[:9]) for d in _DIGITS.findall(text)] for _, text in texts]
    width = Counter(len(g) for g in groups).most_common(1)[0][0]
    if width == 0:
        return True  # alike altogether, or Roman numerals
    least = 3 if any(c.isalpha() for c in texts[0][1]) else 2  # "Item 6.", "Item 7." may be chance
    for k in range(width):
        offsets = Counter(g[k] - p for (p, _), g in zip(texts, groups, strict=True) if len(g) > k)
        if offsets.most_common(1)[0][1] >= max(least, 0.6 * len(texts)):
            return True
    # Odd and even pages apart, or numbering that starts again: steps of one page, one number.
    steps = 0
    for (p, _), (q, _), a, b in zip(texts, texts[1:], groups, groups[1:], strict=False):
        steps += any(y - x == q - p for x, y in zip(a, b, strict=False))
    return steps >= 0.7 * (len(texts) - 1) and len(texts) > 2


def _edge_lines(page: Page, lines: list[Line]) -> dict[int, bool]:
    """Lines at the top and bottom of a page, and whether white space parts them from the text."""
    boxes = [frame_to_page(x.frame, x.x0, x.y0, x.x1, x.y1) for x in lines]
    out: dict[int, bool] = {}
    upright = [k for k, line in enumerate(lines) if line.frame == 0]
    rows: list[tuple[float, float, list[int]]] = []
    for k in sorted(upright, key=lambda k: boxes[k].y0):
        box = boxes[k]
        if rows and min(rows[-1][1], box.y1) - box.y0 > 0.5 * box.height:
            rows[-1] = (rows[-1][0], max(rows[-1][1], box.y1), [*rows[-1][2], k])
        else:
            rows.append((box.y0, box.y1, [k]))
    for ordered in (rows, rows[::-1]):
        apart = 0
        for r in range(1, min(EDGE_ROWS + 1, len(ordered))):
            upper, lower = sorted((ordered[r - 1], ordered[r]), key=lambda row: row[0])
            if lower[0] - upper[1] > 0.6 * (ordered[r - 1][1] - ordered[r - 1][0]):
                apart = r
        for r, (y0, y1, of_row) in enumerate(ordered[:EDGE_ROWS]):
            in_margin = y1 < MARGIN * page.height or y0 > (1 - MARGIN) * page.height
            if in_margin or r < 2:
                for k in of_row:
                    out[k] = out.get(k, False) or r < apart
    for k, line in enumerate(lines):
        if line.frame != 0:
            out[k] = True
    return {k: apart for k, apart in out.items() if len(lines[k].text) <= 160}


def _masked(text: str) -> str:
    text = text.casefold().strip()
    if _ROMAN.match(text):
        return "#"
    return _DIGITS.sub("#", text)


def _neighbouring_heights(
    seen: dict[tuple[str, int, int], list[tuple[int, int]]],
) -> dict[tuple[str, int, int], list[tuple[int, int]]]:
    """Puts together what stands half a line higher or lower on some pages."""
    out: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
    for key in sorted(seen):
        text, y, size = key
        near = (text, y - 1, size)
        if near in out:
            out[near] = out[near] + seen[key]
        else:
            out[key] = list(seen[key])
    return out


def _dense_stretches(on: list[int], page_count: int, text: str) -> list[list[int]]:
    """Groups of pages close enough to each other to carry one running line."""
    groups: list[list[int]] = []
    for p in on:
        if groups and p - groups[-1][-1] <= 4:
            groups[-1].append(p)
        else:
            groups.append([p])
    total = len(on)
    need = 2 if page_count <= 3 and text.strip("#-–—| ./") == "" else MIN_PAGES
    # A text that is all over the book is running even where it comes alone between chapters.
    everywhere = total >= max(MIN_PAGES, 0.3 * page_count)
    return [g for g in groups if len(g) >= need or (everywhere and len(g) >= 1)]


def _add_lone_numbers(
    pages: Sequence[Page], lines: Sequence[list[Line]], out: list[set[int]]
) -> None:
    """Page numbers at the very edge, also where they are the only one at their height."""
    found: list[tuple[int, int, int, bool]] = []  # page, line, printed − physical, in the margin
    for p, (page, of_page) in enumerate(zip(pages, lines, strict=True)):
        boxes = [frame_to_page(x.frame, x.x0, x.y0, x.x1, x.y1) for x in of_page]
        lowest = max((b.y0 for b in boxes), default=0.0)
        for k, line in enumerate(of_page):
            match = _NUMBER_ALONE.match(line.text)
            value = _value(match.group(1)) if match else None
            if value is None:
                continue
            margin = boxes[k].y1 < 0.09 * page.height or boxes[k].y0 > 0.9 * page.height
            # Web pages printed to PDF have pages cut to their text: the number is the last line.
            if margin or boxes[k].y0 >= lowest - 1:
                found.append((p, k, value - p, margin))
    in_margin = Counter(offset for _, _, offset, margin in found if margin)
    anywhere = Counter(offset for _, _, offset, _ in found)
    for p, k, offset, margin in found:
        sure = anywhere[offset] >= max(4, 0.2 * len(pages))
        if sure or (margin and (in_margin[offset] >= 2 or len(pages) == 1)):
            out[p].add(k)


def page_numbers(
    pages: Sequence[Page], lines: Sequence[list[Line]], running: Sequence[set[int]]
) -> list[str | None]:
    """Printed page numbers read off running lines, for PDFs without /PageLabels.

    A number counts when it goes up by one from page to page, at least twice running.
    """
    choices: list[list[tuple[str, int, bool]]] = []
    for of_page, marks in zip(lines, running, strict=True):
        found: list[tuple[str, int, bool]] = []
        for k in sorted(marks):
            text = of_page[k].text.strip(" -–—|•·")
            alone = _NUMBER_ALONE.match(text)
            labels = [alone.group(1)] if alone else []
            if not alone:
                for pattern in (_LABEL_AT_END, _LABEL_AT_START):
                    match = pattern.search(text)
                    if match:
                        labels.append(match.group(1))
            for label in labels:
                value = _value(label)
                if value is not None:
                    found.append((label, value, not label.isdigit()))
        choices.append(found)
    out: list[str | None] = []
    for p, found in enumerate(choices):
        chosen = None
        for label, value, roman in found:
            before = p > 0 and any(v == value - 1 and r == roman for _, v, r in choices[p - 1])
            after = p + 1 < len(pages) and any(
                v == value + 1 and r == roman for _, v, r in choices[p + 1]
            )
            if before or after:
                chosen = label
                break
        out.append(chosen)
    return out


def _value(label: str) -> int | None:
    if label.isdigit():
        return int(label)
    if _ROMAN.match(label):
        values = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
        digits = [values[c] for c in label.lower()]
        later = [*digits[1:], 0]
        return sum(-a if a < b else a for a, b in zip(digits, later, strict=True))
    tail = label.rpartition("-")[2]
    return int(tail) if tail.isdigit() else None
