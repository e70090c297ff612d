"""Pages and boxes as layout parsers write them, checked: what is impossible is not there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bookrag_fast.document.model import BBox, Page, PageStatus

__all__ = ["MAX_PAGES", "box_of", "number_of", "sheets", "text_of", "whole_of"]

MAX_PAGES = 100_000


def number_of(value: Any) -> float | None:
    """A finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond every float
        return None


def whole_of(value: Any) -> int | None:
    """A whole number of reasonable size, None for anything else."""
    return value if type(value) is int and abs(value) < 1 << 31 else None


def text_of(value: Any) -> str:
    """Text, or the lines of a list of texts; "" for anything else."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return "\n".join(v.strip() for v in value if isinstance(v, str) and v.strip())
    return ""


def box_of(values: Sequence[Any]) -> BBox | None:
    """A box of four numbers (left, top, right, bottom), in order whatever theirs is."""
    numbers = [number_of(v) for v in values]
    if len(numbers) != 4 or any(n is None for n in numbers):
        return None
    x0, y0, x1, y1 = (n or 0.0 for n in numbers)
    return BBox(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))


def sheets(known: dict[int, tuple[float, float]], note: str = "") -> tuple[Page, ...]:
    """Pages 1 … last with their sizes; those between that the file does not have say so."""
    last = max(known, default=0)
    return tuple(
        Page(n, None, *known[n], note=note)
        if n in known
        else Page(n, None, 0.0, 0.0, PageStatus.NO_TEXT, "not in the file")
        for n in range(1, last + 1)
    )
