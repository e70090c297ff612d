"""Text laid over pages: at an angle, or large and across the lines. It is no content."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from bookrag_fast.document.analysis.lettering import clean
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.pdf.chars import PageChars

__all__ = ["part_tilted", "watermarks"]

MAX_TILTED = 0.3  # of a page's characters; more is a page scanned askew …
FEW = 80  # … unless they are so few
LARGE = 1.8  # of the running text's size
MIN_PAGES = 3  # for upright ones, which may be headings
PLACE = 12.0  # points within which two stand at one place
MAX_MARKS = 200  # a page; what there is more of is no watermark

_OTHER_ANGLE = 4  # as `run_turn` has it


def part_tilted(chars: PageChars) -> tuple[PageChars, list[Line]]:
    """(the characters without those at an angle, a line for each text at an angle)."""
    if not len(chars) or not len(chars.run_turn) or not (chars.run_turn == _OTHER_ANGLE).any():
        return chars, []
    tilted = (chars.run_turn[chars.run] == _OTHER_ANGLE) & (chars.run >= 0)
    shown = (chars.run_mode[chars.run] != 3) & (chars.run_color[chars.run] >> 24 != 0)
    count = int((tilted & ~chars.generated).sum())
    if not count or (count > FEW and count > MAX_TILTED * int((~chars.generated).sum())):
        return chars, []
    return chars.pick(~tilted), list(_lines(chars.pick(tilted & shown)))


def _lines(chars: PageChars) -> Iterator[Line]:
    if not len(chars):
        return
    solid = ~chars.generated & (chars.code > 32)
    size = chars.run_size[chars.run]
    step = np.hypot(*np.diff(chars.origin, axis=0).T) if len(chars) > 1 else np.zeros(0)
    # PDFium's own spaces have no place: what follows one is parted by the text object only.
    parted = (chars.run[1:] != chars.run[:-1]) & (
        (step > 2.5 * size[1:]) | ~solid[1:] | ~solid[:-1]
    )
    cuts = [0, *(np.flatnonzero(parted) + 1).tolist(), len(chars)]
    for a, b in itertools.pairwise(cuts):
        at = np.flatnonzero(solid[a:b]) + a
        text = "".join(chr(c) if 32 < c < 0xD800 else " " for c in chars.code[a:b].tolist())
        text = clean(" ".join(text.split()))
        if not len(at) or not text:
            continue
        run = int(chars.run[at[0]])
        font = chars.fonts[int(chars.run_font[run])]
        box = chars.box[at]
        middle, height = float(box[:, 1::2].mean()), float(chars.run_size[run])
        yield Line(
            text=text, x0=float(box[:, 0].min()), y0=middle - height / 2,
            x1=float(box[:, 2].max()), y1=middle + height / 2, base=middle + 0.3 * height,
            size=height, bold=bool(chars.run_bold[run]), italic=font.italic, mono=font.mono,
            family=font.family, color=int(chars.run_color[run]) & 0xFFFFFF, frame=0, tilted=True,
        )  # fmt: skip


def watermarks(lines: Sequence[Sequence[Line]], body_size: float) -> list[set[int]]:
    """For each page the positions of its watermarks.

    Text at an angle is one where it recurs at its place, or lies across other lines; upright text
    where it is large, recurs at its place and lies across other lines: titles of slides recur, too.
    """
    out: list[set[int]] = [set() for _ in lines]
    seen: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
    for p, of_page in enumerate(lines):
        marks = [k for k, x in enumerate(of_page) if x.frame == 0
                 and (x.tilted or x.size > LARGE * body_size)]  # fmt: skip
        if len(marks) <= MAX_MARKS:
            for k in marks:
                line = of_page[k]
                x, y = round(line.middle_x / PLACE), round(line.middle / PLACE)
                seen[(line.text.casefold(), x, y)].append((p, k))
    for places in seen.values():
        pages = {p for p, _ in places}
        tilted = all(lines[p][k].tilted for p, k in places)
        across = 2 * sum(_lies_across(lines[p], k) for p, k in places) > len(places)
        large = all(lines[p][k].size > LARGE * body_size for p, k in places)
        recurs = len(pages) >= (2 if tilted else MIN_PAGES)
        if (recurs and (tilted or across)) or (tilted and large and across):
            for p, k in places:
                out[p].add(k)
    return out


def _lies_across(lines: Sequence[Line], k: int) -> bool:
    mark = lines[k]
    return any(
        min(mark.x1, x.x1) > max(mark.x0, x.x0)
        and min(mark.y1, x.y1) - max(mark.y0, x.y0) > 0.5 * x.height
        for j, x in enumerate(lines)
        if j != k and x.frame == 0 and not x.tilted
    )
