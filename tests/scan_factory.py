"""Scans made by code: pages are drawn, rendered, worn a little, and put into PDFs as pictures."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pypdfium2 as pdfium
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from pdf_factory import HEIGHT, WIDTH, make_pdf

Draw = Callable[[Canvas], None]


def scanned(draw: Draw, folder: Path, *, dpi: int = 150, quarter_turns: int = 0, tilt: float = 0.0):  # type: ignore[no-untyped-def]
    """A page as an image in grey with paper noise, turned clockwise and tilted by degrees."""
    from PIL import Image

    path = make_pdf(folder / "drawn.pdf", [draw])
    document = pdfium.PdfDocument(path)
    try:
        grey = document[0].render(scale=dpi / 72, grayscale=True).to_pil().convert("L")
    finally:
        document.close()
    if tilt:
        grey = grey.rotate(tilt, resample=Image.Resampling.BICUBIC, fillcolor=255)
    noise = np.random.default_rng(7).normal(0, 8, (grey.height, grey.width))
    worn = np.clip(np.asarray(grey, np.float32) * 0.94 + noise, 0, 255).astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(np.rot90(worn, -quarter_turns)))


def jpeg(image) -> bytes:  # type: ignore[no-untyped-def]
    data = io.BytesIO()
    image.save(data, "JPEG", quality=80)
    return data.getvalue()


def picture_page(image) -> Draw:  # type: ignore[no-untyped-def]
    """Draws a scan over the whole page, which takes its shape."""
    reader = ImageReader(io.BytesIO(jpeg(image)))
    size = (WIDTH, HEIGHT) if image.height > image.width else (HEIGHT, WIDTH)

    def draw(canvas: Canvas) -> None:
        canvas.setPageSize(size)
        canvas.drawImage(reader, 0, 0, *size)

    return draw


def scan_pdf(path: Path, pages: Sequence[Draw], **wear: float) -> Path:
    """A PDF of scans of pages drawn by code; ``wear`` as for `scanned`."""
    images = [scanned(draw, path.parent, **wear) for draw in pages]  # type: ignore[arg-type]
    return make_pdf(path, [picture_page(image) for image in images])


def japanese_scan(lines: Sequence[tuple[str, float]], *, dpi: int = 200):  # type: ignore[no-untyped-def]
    """An A4 page of lines (text, size in points) downwards."""
    import noto_cjk_sans_jp_regular
    from PIL import Image, ImageDraw, ImageFont

    font_file = next(Path(noto_cjk_sans_jp_regular.__file__).parent.glob("*.otf"))
    page = Image.new("L", (round(WIDTH * dpi / 72), round(HEIGHT * dpi / 72)), 250)
    pen = ImageDraw.Draw(page)
    y = 80.0
    for text, size in lines:
        font = ImageFont.truetype(str(font_file), round(size * dpi / 72))
        pen.text((72 * dpi / 72, y * dpi / 72), text, fill=20, font=font)
        y += 1.7 * size
    return page
