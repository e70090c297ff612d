"""A page as a picture: grey pixels, dark on light as it was drawn or scanned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bookrag_fast.document.pictures.jobs import PageJob

__all__ = ["MAX_PIXELS", "MAX_SOURCE_PIXELS", "picture_of", "turn_of"]

Grey = npt.NDArray[np.uint8]

MAX_PIXELS = 25_000_000  # of a picture that is read: A4 at 400 dpi has 15 million
_ORIENTATION = 0x0112  # of EXIF
_SIDEWAYS = 5  # orientations from here on swap width and height
MAX_SOURCE_PIXELS = 250_000_000  # of an image file: A0 at 300 dpi has 140 million


def picture_of(job: PageJob, dpi: int) -> tuple[Grey, float]:
    """The page at ``dpi`` or, where that were more than `MAX_PIXELS`, at what these allow.

    Returns:
        The pixels (height, width), and how many of them make a point.

    Raises:
        OSError, ValueError: the page cannot be drawn or decoded.
    """
    scale = dpi / 72
    if job.width * job.height * scale * scale > MAX_PIXELS:
        scale = (MAX_PIXELS / (job.width * job.height)) ** 0.5
    if job.kind == "image":
        return _scan(Path(job.path), job.index, job.width, scale)
    return _rendered(job, scale), scale


def _rendered(job: PageJob, scale: float) -> Grey:
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(job.path, password=job.password)
        try:
            page = document[job.index]
            bitmap = page.render(scale=scale, grayscale=True)
            grey: Grey = np.array(bitmap.to_numpy(), dtype=np.uint8)
        finally:
            document.close()
    except pdfium.PdfiumError as error:
        raise OSError(str(error)) from None
    return grey if grey.ndim == 2 else np.ascontiguousarray(grey[:, :, 0])


def turn_of(image: Any) -> int:
    """The EXIF orientation still to be undone, 1 to 8; Pillow undoes a TIFF's by itself."""
    if image.format == "TIFF":
        return 1
    try:
        turn = image.getexif().get(_ORIENTATION, 1)
    except (OSError, ValueError, SyntaxError, LookupError):  # a damaged block says nothing
        return 1
    return turn if turn in range(1, 9) else 1


def _scan(path: Path, index: int, width: float, scale: float) -> tuple[Grey, float]:
    """An image is made smaller, never larger: that adds nothing to read."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = MAX_SOURCE_PIXELS
    # By its name Pillow maps a TIFF into memory, and garbles one that stands on its side.
    with path.open("rb") as file, Image.open(file) as image:
        if image.format == "TIFF":
            image.seek(index)
        pixels = image.size[0] * image.size[1]
        if pixels > MAX_SOURCE_PIXELS:
            raise ValueError(f"its {pixels:,} pixels are more than {MAX_SOURCE_PIXELS:,}")
        turn = turn_of(image)
        # (A TIFF's size is already that of the upright page.)
        wide = image.size[1] if turn >= _SIDEWAYS else image.size[0]
        shrink = max(1.0, wide / (width * scale))
        if shrink > 1 and image.format == "JPEG":
            # The decoder itself can halve: a large photograph never stands whole in memory.
            image.draft("L", (int(image.size[0] / shrink), int(image.size[1] / shrink)))
        grey = _upright(_grey(image), turn)
        target = max(1, round(wide / shrink))
        if grey.size[0] > target:
            high = max(1, round(grey.size[1] * target / grey.size[0]))
            grey = grey.resize((target, high), Image.Resampling.BOX)
        return np.array(grey, dtype=np.uint8), grey.size[0] / width


def _upright(image: Any, turn: int) -> Any:
    from PIL.Image import Transpose

    method = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }.get(turn)
    return image if method is None else image.transpose(method)


def _grey(image: Any) -> Any:
    from PIL import Image

    if image.mode.startswith("I") or image.mode == "F":  # 16 bits or more a pixel
        values = np.asarray(image, dtype=np.float32)
        top = 65535.0 if image.mode.startswith("I;16") else max(float(values.max()), 1.0)
        return Image.fromarray(np.clip(values / top * 255, 0, 255).astype(np.uint8))
    if image.has_transparency_data:
        paper = Image.new("RGBA", image.size, "white")
        paper.alpha_composite(image.convert("RGBA"))
        return paper.convert("L")
    return image.convert("L")
