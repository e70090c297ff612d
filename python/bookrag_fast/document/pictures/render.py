"""A PDF page as a picture, as a reader sees it."""

from __future__ import annotations

from math import ceil, floor, isfinite, sqrt

import numpy as np
import numpy.typing as npt
import pypdfium2.raw as raw

from bookrag_fast.document.model import BBox
from bookrag_fast.document.pdf.chars import geometry_of
from bookrag_fast.document.pdf.pdfium import Pdf
from bookrag_fast.errors import InvalidArgumentError, TooLargeError

__all__ = ["MAX_DPI", "MAX_PIXELS", "MIN_DPI", "check_dpi", "render_page"]

MIN_DPI, MAX_DPI = 20, 400
MAX_PIXELS = 36_000_000  # of one page, 144 MB: A4 at 400 dpi has 15 million
_POINTS = 72.0  # an inch
_MAX_WHOLE = 1_000_000  # pixels of a side of the page that a part is drawn of; PDFium takes ints
_BYTES = 4  # a pixel while PDFium draws


def check_dpi(dpi: int) -> None:
    """Raises InvalidArgumentError for a resolution that no page should be drawn at."""
    if not MIN_DPI <= dpi <= MAX_DPI:
        raise InvalidArgumentError(
            f"{dpi} dpi is out of range", f"choose {MIN_DPI} to {MAX_DPI} dots an inch"
        )


def render_page(pdf: Pdf, index: int, dpi: int, clip: BBox | None = None) -> npt.NDArray[np.uint8]:
    """Draws a page, annotations included: uint8[height, width, 3], RGB on white.

    Args:
        index: of the page, from 0.
        dpi: pixels an inch; a point is dpi / 72 pixels.
        clip: the part to draw, in points; None draws the whole page.

    Raises:
        InvalidArgumentError: the resolution is out of range; nothing of ``clip`` is on the page.
        TooLargeError: the picture would have more than :data:`MAX_PIXELS`.
        OSError: the page does not load.
    """
    check_dpi(dpi)
    scale = dpi / _POINTS
    with pdf.page(index) as page:
        geometry = geometry_of(page)
        if not (isfinite(geometry.width) and isfinite(geometry.height)):
            raise OSError(f"its size is {geometry.width:g} × {geometry.height:g} points")
        whole = (max(1, ceil(geometry.width * scale)), max(1, ceil(geometry.height * scale)))
        left, top, right, bottom = (0, 0, *whole) if clip is None else _pixels(clip, scale, whole)
        width, height = right - left, bottom - top
        if width <= 0 or height <= 0:
            raise InvalidArgumentError(
                f"{pdf.name}: the box {clip} lies outside page {index + 1}, which has "
                f"{geometry.width:g} × {geometry.height:g} points"
            )
        if width * height > MAX_PIXELS:
            most = floor(dpi * sqrt(MAX_PIXELS / (width * height)))
            raise TooLargeError(
                f"{pdf.name}, page {index + 1}: {width} × {height} pixels at {dpi} dpi are more "
                f"than {MAX_PIXELS:,}",
                f"use --dpi {most}" if most >= MIN_DPI else "the page is too large to be drawn",
            )
        if max(whole) > _MAX_WHOLE:
            raise TooLargeError(
                f"{pdf.name}, page {index + 1} has {geometry.width:g} × {geometry.height:g} points",
                "the page is too large to be drawn",
            )
        pixels = np.empty((height, width, _BYTES), np.uint8)
        bitmap = raw.FPDFBitmap_CreateEx(
            width, height, raw.FPDFBitmap_BGRx, pixels.ctypes.data, width * _BYTES
        )
        if not bitmap:
            raise OSError(f"PDFium has no memory for {width} × {height} pixels")
        try:
            raw.FPDFBitmap_FillRect(bitmap, 0, 0, width, height, 0xFFFFFFFF)
            raw.FPDF_RenderPageBitmap(bitmap, page, -left, -top, *whole, 0, raw.FPDF_ANNOT)
        finally:
            raw.FPDFBitmap_Destroy(bitmap)
    return np.ascontiguousarray(pixels[:, :, 2::-1])


def _pixels(clip: BBox, scale: float, whole: tuple[int, int]) -> tuple[int, int, int, int]:
    """left, top, right, bottom: the pixels that the box touches, on the page."""
    if not all(map(isfinite, clip)):
        return 0, 0, 0, 0
    return (
        max(0, floor(clip.x0 * scale)),
        max(0, floor(clip.y0 * scale)),
        min(whole[0], ceil(clip.x1 * scale)),
        min(whole[1], ceil(clip.y1 * scale)),
    )
