"""Small PDFs made by code, for tests of the reader and of the tree."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

WIDTH, HEIGHT = 595.0, 842.0  # A4 in points

LOREM = (
    "The quick brown fox jumps over the lazy dog while the river flows quietly past the old mill "
    "and the miller counts his sacks of flour before the evening comes down over the valley. "
)


def make_pdf(
    path: Path,
    pages: Sequence[Callable[[Canvas], None]],
    *,
    title: str | None = None,
    password: str | None = None,
    outline: Sequence[tuple[str, int, int]] = (),
) -> Path:
    """Writes a PDF; ``outline`` holds (title, level from 0, page from 1)."""
    encrypt = StandardEncryption(password, canPrint=1) if password else None
    canvas = Canvas(str(path), pagesize=(WIDTH, HEIGHT), encrypt=encrypt)
    if title:
        canvas.setTitle(title)
    for number, draw in enumerate(pages, start=1):
        for k, (_, _, page) in enumerate(outline):
            if page == number:
                canvas.bookmarkPage(f"o{k}")
        draw(canvas)
        canvas.showPage()
    for k, (text, level, page) in enumerate(outline):
        if page > len(pages):
            continue
        canvas.addOutlineEntry(text, f"o{k}", level)
    canvas.save()
    return path


def text_lines(
    canvas: Canvas,
    lines: Sequence[str],
    *,
    x: float = 72,
    top: float = 100,
    size: float = 10,
    font: str = "Helvetica",
    leading: float = 12,
) -> float:
    """Draws lines downwards from ``top`` (points from the page's top); the y after the last."""
    canvas.setFont(font, size)
    y = top
    for line in lines:
        canvas.drawString(x, HEIGHT - y, line)
        y += leading
    return y


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` characters."""
    out: list[str] = []
    for word in text.split():
        if out and len(out[-1]) + 1 + len(word) <= width:
            out[-1] += " " + word
        else:
            out.append(word)
    return out


def paragraph(
    canvas: Canvas, text: str, *, top: float, x: float = 72, width: int = 90, size: float = 10
) -> float:
    return text_lines(canvas, wrapped(text, width), x=x, top=top, size=size) + 8


def heading(canvas: Canvas, text: str, *, top: float, size: float = 14, x: float = 72) -> float:
    return text_lines(canvas, [text], x=x, top=top, size=size, font="Helvetica-Bold") + 12


def image(width: int = 8, height: int = 8, *, noise: bool = False) -> ImageReader:
    """A small picture of its own colours; ``noise`` makes a grey one that no packing shrinks."""
    from PIL import Image

    if noise:
        grey = random.Random(width * height).randbytes(width * height)
        return ImageReader(Image.frombytes("L", (width, height), grey))
    picture = Image.new("RGB", (width, height), (200, 30, 30))
    picture.putpixel((0, 0), (0, 0, 255))
    return ImageReader(picture)
