"""What was read from pictures → lines as a text layer would have given them.

Measured sizes waver from line to line by a tenth, which the layout analysis would take for
headings. So sizes near the running text's are made equal to it, and others put on a coarse scale.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bookrag_fast.document.analysis.lines import Line, put_together
from bookrag_fast.document.ocr.wire import OcrLine, PageReading

__all__ = ["typeset"]

SAME_SIZE = 1.17  # a ratio below which two sizes are one
STEP = 1.15  # of the scale of all other sizes
BOLD = 1.2  # times the thickness of the running text's strokes, for its size: at least that
SPREADS = 5.0  # and so many of their median deviations more, since worn print varies
A_PAGE = 400  # characters that tell what is usual on a page
ASCENT, DESCENT = 0.8, 0.2  # of the size


def typeset(readings: Mapping[int, PageReading], body: float | None) -> dict[int, list[Line]]:
    """Lines of each page, in points of their frames.

    Args:
        readings: by page; all pages of a document, since sizes are compared throughout.
        body: size of the running text on pages that have a text layer, None if none has. A
            running text in pictures that measures about the same is taken to be as large.
    """
    lines = [line for reading in readings.values() for line in reading.lines]
    if not lines:
        return {page: [] for page in readings}
    measured = _median([(line.size, len(line.text)) for line in lines])
    size = body if body and _near(measured, body) else round(measured * 2) / 2
    size = max(size, 1.0)
    usual = _heavy(lines, measured)
    out: dict[int, list[Line]] = {}
    for page, reading in readings.items():
        # Pages are scanned lighter and darker.
        enough = sum(len(line.text) for line in reading.lines) >= A_PAGE
        heavy = _heavy(reading.lines, measured) if enough else usual
        set_ = [_line(line, measured, size, heavy) for line in reading.lines]
        frames = sorted(
            {line.frame for line in set_}, key=lambda f: -sum(x.frame == f for x in set_)
        )
        out[page] = [
            line for f in frames for line in put_together([x for x in set_ if x.frame == f])
        ]
    return out


def _heavy(lines: Sequence[OcrLine], measured: float) -> float:
    """Thickness of strokes, for the size, from which running text is bold."""
    share = [
        (line.stroke / line.size, len(line.text)) for line in lines if _near(line.size, measured)
    ]
    if not share:
        return math.inf
    usual = _median(share)
    return max(BOLD * usual, usual + SPREADS * _median([(abs(s - usual), n) for s, n in share]))


def _line(line: OcrLine, measured: float, body: float, heavy: float) -> Line:
    steps = 0 if _near(line.size, measured) else round(math.log(line.size / measured, STEP))
    size = round(STEP**steps * body * 2) / 2
    return Line(
        text=line.text,
        x0=line.x0,
        y0=line.base - ASCENT * size,
        x1=line.x1,
        y1=line.base + DESCENT * size,
        base=line.base,
        size=size,
        # In smaller type strokes are thicker by themselves, and larger type is a heading anyhow.
        bold=steps == 0 and len(line.text) > 2 and line.stroke > heavy * line.size,
        italic=False,
        mono=False,
        family="",
        color=0,
        frame=line.frame,
    )


def _near(a: float, b: float) -> bool:
    return max(a, b) < SAME_SIZE * min(a, b)


def _median(weighted: Sequence[tuple[float, int]]) -> float:
    half = sum(weight for _, weight in weighted) / 2
    seen = 0.0
    for value, weight in sorted(weighted):
        seen += weight
        if seen >= half:
            return value
    return weighted[-1][0]
