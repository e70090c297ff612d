"""Sums of money as people read them."""

from __future__ import annotations

from math import floor, log10

__all__ = ["usd_text"]

_USUAL, _MOST = 4, 9  # digits after the point


def usd_text(usd: float) -> str:
    """US dollars with four digits after the point, or as many more as show what a small sum is."""
    digits = _USUAL if usd <= 0 else min(max(_USUAL, 1 - floor(log10(usd))), _MOST)
    return f"{usd:.{digits}f}"
