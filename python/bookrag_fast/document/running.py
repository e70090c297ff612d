"""Running heads, feet, page numbers and watermarks, recognised by repetition over pages."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from bookrag_fast.document.lines import Line, frame_to_page
from bookrag_fast.document.model import Page
from bookrag_fast.document.numbering import parse_numbering

__all__ = ["page_numbers", "running_lines"]

MARGIN = 0.14  # of the page's height, at top and bottom: where running matter stands
EDGE_LINES = 2  # the outermost lines at top and bottom are looked at wherever they stand
MIN_PAGES = 3

_NO_LETTER = re.compile(r"[\W_]+")
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
    for p, (page, of_page) in enumerate(zip(pages, lines, strict=True)):
        for k in _edge_lines(page, of_page):
            line = of_page[k]
            y = frame_to_page(line.frame, line.x0, line.y0, line.x1, line.y1)
            seen[(_masked(line.text), round(y.y0 / 8), round(line.size * 2))].append((p, k))
    out: list[set[int]] = [set() for _ in pages]
    merged = _neighbouring_heights(seen)
    for (text, _, half_points), places in merged.items():
        # "Lesson 1", "Lesson 2" in large type, a page each, are headings whatever they count.
        large = half_points > 2.3 * body_size and len(text) > 4
        on = sorted({p for p, _ in places})
        for stretch in _dense_stretches(on, len(pages), text):
            inside = set(stretch)
            if not _digits_run(
                [(p, lines[p][k].text) for p, k in places if p in inside], may_count=not large
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
    elsewhere in the book too (they repeat a heading)."""
    texts: Counter[str] = Counter(_said(line.text) for of_page in lines for line in of_page)
    by_place: dict[tuple[int, int, bool], list[tuple[int, int]]] = defaultdict(list)
    for p, (page, of_page) in enumerate(zip(pages, lines, strict=True)):
        rest = [k for k in range(len(of_page)) if k not in out[p] and of_page[k].frame == 0]
        if len(rest) < 3:
            continue
        rest.sort(key=lambda k: of_page[k].base)
        for k, after, low in ((rest[0], rest[1], False), (rest[-1], rest[-2], True)):
            line, other = of_page[k], of_page[after]
            if line.size > 1.15 * body_size:
                continue
            in_margin = line.base > 0.88 * page.height if low else line.base < 0.12 * page.height
            if in_margin and abs(other.base - line.base) > 1.7 * max(line.size, other.size):
                by_place[(round(line.base / 3), round(line.size), low)].append((p, k))
    for places in by_place.values():
        said_again = [(p, k) for p, k in places if texts[_said(lines[p][k].text)] > 1]
        if len(places) >= max(4, 0.2 * len(pages)) and len(said_again) >= 0.6 * len(places):
            for p, k in said_again:
                out[p].add(k)


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
    if not may_count:
        return False
    groups = [[int(d[:9]) for d in _DIGITS.findall(text)] for _, text in texts]
    width = Counter(len(g) for g in groups).most_common(1)[0][0]
    if width == 0:
        return True  # alike altogether, or Roman numerals
    for k in range(width):
        offsets = Counter(g[k] - p for (p, _), g in zip(texts, groups, strict=True) if len(g) > k)
        if offsets.most_common(1)[0][1] >= max(2, 0.6 * len(texts)):
            return True
    # Odd and even pages apart, or numbering that starts again: steps of one page, one number.
    steps = 0
    for (p, _), (q, _), a, b in zip(texts, texts[1:], groups, groups[1:], strict=False):
        steps += any(y - x == q - p for x, y in zip(a, b, strict=False))
    return steps >= 0.7 * (len(texts) - 1) and len(texts) > 2


def _edge_lines(page: Page, lines: list[Line]) -> list[int]:
    ordered = sorted(
        range(len(lines)),
        key=lambda k: (
            frame_to_page(lines[k].frame, lines[k].x0, lines[k].y0, lines[k].x1, lines[k].y1).y0
        ),
    )
    edge = set(ordered[:EDGE_LINES]) | set(ordered[-EDGE_LINES:])
    for k, line in enumerate(lines):
        box = frame_to_page(line.frame, line.x0, line.y0, line.x1, line.y1)
        if box.y1 < MARGIN * page.height * 0.8 or box.y0 > (1 - MARGIN * 0.8) * page.height:
            edge.add(k)
    return sorted(k for k in edge if len(lines[k].text) <= 160)


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
    found: list[tuple[int, int, int]] = []  # page, line, offset between printed and physical
    for p, (page, of_page) in enumerate(zip(pages, lines, strict=True)):
        for k, line in enumerate(of_page):
            box = frame_to_page(line.frame, line.x0, line.y0, line.x1, line.y1)
            at_edge = box.y1 < 0.09 * page.height or box.y0 > 0.9 * page.height
            match = _NUMBER_ALONE.match(line.text) if at_edge else None
            if match:
                value = _value(match.group(1))
                if value is not None:
                    found.append((p, k, value - p))
    offsets: dict[int, int] = defaultdict(int)
    for _, _, offset in found:
        offsets[offset] += 1
    for p, k, offset in found:
        if offsets[offset] >= 2 or len(pages) == 1:
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
