"""Code points of a PDF → text as one would type it."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

__all__ = ["clean", "decode", "is_cjk"]

_LIGATURES = {
    0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st",
    0xFB06: "st", 0x00A0: " ", 0x2002: " ", 0x2003: " ", 0x2009: " ", 0x200B: "", 0xFEFF: "",
}  # fmt: skip
_BROKEN_LIGATURE = re.compile(r"(?<=[a-z]) (ffi|ffl|fi|fl|ff) (?=[a-z])")
_LETTER_SPACED = re.compile(r"(?:\S ){4,}\S(?!\S)")
_SPACES = re.compile(r"[ \t\u3000]{2,}")


def is_cjk(code: int) -> bool:
    """Scripts written without spaces between words. Korean has them."""
    return (
        0x2E80 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0xFF00 <= code <= 0xFFEF
        or 0x20000 <= code <= 0x3FFFF
    )


def decode(letters: npt.NDArray[np.uint32]) -> str:
    """UTF-32 as PDFs have it, perhaps with surrogates: pairs are joined, others replaced."""
    if ((letters >= 0xD800) & (letters <= 0xDFFF)).any():
        text = letters.tobytes().decode("utf-32-le", "surrogatepass")
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return letters.tobytes().decode("utf-32-le", "replace")


def clean(text: str) -> str:
    """Ligatures spelled out, broken ones mended, letter-spaced words joined."""
    text = text.translate(_LIGATURES)
    if " f" in text:
        text = _BROKEN_LIGATURE.sub(r"\1", text)
    if len(text) > 8 and _LETTER_SPACED.search(text):
        text = _LETTER_SPACED.sub(_close_up, text)
    return _SPACES.sub(" ", text).strip()


def _close_up(match: re.Match[str]) -> str:
    spaced = match.group(0)
    letters = spaced.split(" ")
    if all(len(x) == 1 and x.isalpha() and ord(x) < 0x2E80 for x in letters):
        return "".join(letters)
    return spaced
