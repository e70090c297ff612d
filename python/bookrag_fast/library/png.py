"""PNG files of ours: told by a signature from those of others, which are never replaced."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bookrag_fast.errors import InvalidArgumentError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["check_replaceable", "encoded", "write_png"]

_SIGNATURE = "bookrag show pages"  # in our PNGs: these may be replaced


def encoded(picture: Image) -> bytes:
    """The picture as a PNG with our signature."""
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("Software", _SIGNATURE)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", pnginfo=info, compress_level=3)
    return buffer.getvalue()


def write_png(file: Path, png: bytes) -> None:
    """Writes a file complete or not at all. Raises OSError."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.write_bytes(png)
        partial.replace(file)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def check_replaceable(file: Path) -> None:
    """Raises InvalidArgumentError when there is something else than a PNG of ours."""
    if not _ours_or_absent(file):
        raise InvalidArgumentError(
            f"{file} exists and was not drawn by bookrag: it is not replaced",
            "choose another place with --out, or move the file away",
        )


def _ours_or_absent(file: Path) -> bool:
    from PIL import Image

    if not os.path.lexists(file):
        return True
    try:
        with Image.open(file, formats=["PNG"]) as picture:
            return bool(picture.info.get("Software") == _SIGNATURE)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False
