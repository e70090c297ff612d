"""What was read from a page, drawn over its picture: boxes by kind, order, headings by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bookrag_fast.document.model import BBox

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

__all__ = ["HEADING", "Mark", "draw_marks"]

HEADING = "heading"
_KINDS = {
    "text": (70, 110, 160),
    "list": (0, 140, 140),
    "table": (20, 130, 40),
    "image": (200, 120, 0),
    "equation": (120, 60, 180),
    "code": (120, 80, 40),
    "caption": (130, 130, 0),
    "footnote": (110, 110, 110),
    "title": (230, 130, 180),  # looked like a heading and was not taken for one
}
_OTHER = (60, 60, 60)
_LEVELS = ((215, 0, 0), (230, 80, 0), (200, 0, 140), (120, 0, 200), (0, 60, 220), (0, 0, 0))
_FILL = 36  # alpha of a box's inside, of 255
_GRID = 150  # alpha of the lines between cells
_FONT_PX = 12
_POINTS = 72.0


@dataclass(frozen=True, slots=True)
class Mark:
    """A box on a page. ``label`` says which it is in reading order; ``level`` is a heading's, from
    1, else 0; ``cells`` are boxes of a table's cells where they are known. Boxes in points."""

    kind: str
    box: BBox
    label: str
    level: int = 0
    cells: tuple[BBox, ...] = ()


def draw_marks(
    pixels: npt.NDArray[np.uint8], marks: Sequence[Mark], *, dpi: int, caption: str
) -> Image:
    """The page with its marks, and below it the caption and a legend of what is on it.

    Args:
        pixels: uint8[height, width, 3], the page at ``dpi``.
        caption: one line; what the font does not have is drawn as "?".
    """
    from PIL import Image, ImageDraw, ImageFont

    scale = dpi / _POINTS
    size = max(_FONT_PX, round(_FONT_PX * dpi / 100))
    font = ImageFont.load_default(size)
    page = Image.fromarray(pixels)
    legend = _legend(marks)
    rows = _rows(legend, page.width, font)
    out = Image.new("RGB", (page.width, page.height + round((len(rows) + 1) * 1.6 * size)), "white")
    out.paste(page)
    pen = ImageDraw.Draw(out, "RGBA")
    for mark in marks:
        _draw(pen, mark, scale, font)
    y = page.height
    pen.line((0, y, page.width, y), fill=(0, 0, 0))
    pen.text((size // 2, y + size * 0.3), _ascii(caption), font=font, fill=(0, 0, 0))
    for row in rows:
        y += round(1.6 * size)
        x = size / 2
        for name, colour in row:
            pen.rectangle((x, y + size * 0.4, x + size, y + size * 1.3), fill=(*colour, 160))
            pen.text((x + 1.4 * size, y + size * 0.3), name, font=font, fill=(0, 0, 0))
            x += _entry_width(name, font)
    return out


def _draw(pen: ImageDraw, mark: Mark, scale: float, font: FreeTypeFont | ImageFont) -> None:
    colour = _colour(mark)
    pen.rectangle(_scaled(mark.box, scale), fill=(*colour, _FILL), outline=(*colour, 255), width=2)
    for cell in mark.cells:
        pen.rectangle(_scaled(cell, scale), outline=(*colour, _GRID), width=1)
    text = f"H{mark.level} {mark.label}" if mark.level else mark.label
    left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
    width, height = right - left + 4, bottom - top + 4
    # Beside the box, where the tag hides none of its text: on the left if there is room.
    x0, y0 = mark.box.x0 * scale, mark.box.y0 * scale
    x = x0 - width if x0 >= width else mark.box.x1 * scale
    pen.rectangle((x, y0, x + width, y0 + height), fill=(*colour, 230))
    pen.text((x + 2 - left, y0 + 2 - top), text, font=font, fill=(255, 255, 255))


def _scaled(box: BBox, scale: float) -> tuple[float, float, float, float]:
    x0, y0 = box.x0 * scale, box.y0 * scale
    return x0, y0, max(x0 + 1, box.x1 * scale), max(y0 + 1, box.y1 * scale)


def _colour(mark: Mark) -> tuple[int, int, int]:
    if mark.level:
        return _LEVELS[min(mark.level, len(_LEVELS)) - 1]
    return _KINDS.get(mark.kind, _OTHER)


def _legend(marks: Sequence[Mark]) -> list[tuple[str, tuple[int, int, int]]]:
    """Names and colours of what is on the page, with how many there are."""
    counts: dict[tuple[int, str], tuple[int, tuple[int, int, int]]] = {}
    for mark in marks:
        name = f"heading, level {mark.level}" if mark.level else mark.kind
        before = counts.get((mark.level, name), (0, _colour(mark)))
        counts[mark.level, name] = before[0] + 1, before[1]
    order = sorted(counts, key=lambda key: (key[0] == 0, key))
    return [(f"{name}: {counts[level, name][0]}", counts[level, name][1]) for level, name in order]


def _rows(
    legend: Sequence[tuple[str, tuple[int, int, int]]], width: int, font: FreeTypeFont | ImageFont
) -> list[list[tuple[str, tuple[int, int, int]]]]:
    rows: list[list[tuple[str, tuple[int, int, int]]]] = []
    used = float(width)
    for entry in legend:
        need = _entry_width(entry[0], font)
        if used + need > width or not rows:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += need
    return rows


def _entry_width(name: str, font: FreeTypeFont | ImageFont) -> float:
    return font.getbbox(name)[2] + 3.0 * font.getbbox("M")[3]


def _ascii(text: str) -> str:
    return text.encode("ascii", "replace").decode("ascii")
