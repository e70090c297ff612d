"""Frames: a page as displayed (0) and the page turned (1 to 3).

In its frame a text reads to the right and downwards, so that sideways text (and vertical Japanese,
frame 1) goes through the same layout as any other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bookrag_fast.document.model import BBox

__all__ = ["frame_to_page", "page_to_frame"]


def page_to_frame(
    frame: int, x0: npt.NDArray[np.float32], y0: npt.NDArray[np.float32],
    x1: npt.NDArray[np.float32], y1: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.float32], ...]:  # fmt: skip
    """Boxes as displayed → boxes in a frame. Turned frames have negative coordinates."""
    if frame == 0:
        return x0, y0, x1, y1
    if frame == 1:
        return y0, -x1, y1, -x0
    if frame == 2:
        return -x1, -y1, -x0, -y0
    return -y1, x0, -y0, x1


def frame_to_page(frame: int, x0: float, y0: float, x1: float, y1: float) -> BBox:
    """The inverse of :func:`page_to_frame` for one box."""
    if frame == 0:
        return BBox(x0, y0, x1, y1)
    if frame == 1:
        return BBox(-y1, x0, -y0, x1)
    if frame == 2:
        return BBox(-x1, -y1, -x0, -y0)
    return BBox(y0, -x1, y1, -x0)
