"""Page ranges: "3", "3-10", "3,5,8-", and printed labels: "iv", "iv-vi", "A-3"."""

from __future__ import annotations

import re

from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.index.book_index import BookIndex

__all__ = ["pages_of", "parse_pages"]

_LONGEST_NUMBER = 9  # digits; what is longer lies beyond every book
_PART = re.compile(r"(\d*)\s*[-–—~〜]\s*(\d*)|(\d+)")


def parse_pages(text: str, last: int) -> list[int]:
    """Physical pages of a range, ascending, each once, none beyond ``last``.

    Open ends reach to the first or last page: "8-" and "-3".

    Raises:
        InvalidArgumentError: not a range ("3-x"), a page 0, or an end before its beginning. It
            is never silently ignored.
    """
    pages: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None or match.group(0).strip() in ("-", "–", "—", "~", "〜"):
            raise InvalidArgumentError(
                f"{part.strip()!r} in {text!r} is no page range", 'write "3", "3-10" or "3,5,8-"'
            )
        single = match.group(3)
        first = _number(single or match.group(1) or "1")
        end = _number(single) if single else _number(match.group(2) or str(last))
        if first < 1 or (end < first and not (match.group(2) == "" and first > last)):
            raise InvalidArgumentError(
                f"{part.strip()!r} in {text!r} is no page range",
                "pages are numbered from 1 and a range goes upwards",
            )
        pages.update(range(first, min(end, last) + 1))
    return sorted(pages)


def _number(digits: str) -> int:
    """Their value, bounded: Python refuses to read a number of thousands of digits."""
    short = digits.lstrip("0")
    return 10**_LONGEST_NUMBER if len(short) > _LONGEST_NUMBER else int(short or 0)


def pages_of(index: BookIndex, text: str) -> list[int]:
    """Physical pages that a range means in a book, printed labels included.

    A single label that the book prints elsewhere than on the page of that number means both: a
    reader who says "page 5" may count either way.
    """
    labelled = _labelled(index, text)
    try:
        return sorted({*labelled, *parse_pages(text, len(index.pages))})
    except InvalidArgumentError:
        if labelled:
            return labelled
        raise


def _labelled(index: BookIndex, text: str) -> list[int]:
    """Pages by printed label: one label, or from one to another that stands behind it."""
    single = index.pages_labelled(text.strip())
    if single:
        return single
    ends = re.split(r"\s*[-–—~〜]\s*", text.strip())
    if len(ends) != 2 or all(end.isdecimal() for end in ends):
        return []  # a range of plain numbers counts physical pages
    first, last = (index.pages_labelled(end) for end in ends)
    return list(range(first[0], last[0] + 1)) if first and last else []
