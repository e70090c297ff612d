"""Page ranges are understood or refused, never silently ignored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.query.ranges import pages_of, parse_pages
from factories import small_index


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("3", [3]),
        ("3-5", [3, 4, 5]),
        ("3,5,8-", [3, 5, 8, 9, 10]),
        ("-2", [1, 2]),
        ("9-99", [9, 10]),
        ("40", []),
        ("40-", []),
        ("4–5", [4, 5]),
        (" 2 , 1 ", [1, 2]),
        ("1,1,1-1", [1]),
    ],
)
def test_ranges(text: str, pages: list[int]) -> None:
    assert parse_pages(text, 10) == pages


@pytest.mark.parametrize("text", ["", "x", "3-x", "0", "5-3", "-", "3,,4", "1.5", "0-2", "３-x"])
def test_malformed_ranges_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_pages(text, 10)


@given(st.text(alphabet="0123456789-, ", max_size=12), st.integers(1, 50))
def test_pages_are_in_the_book_and_ascending(text: str, last: int) -> None:
    try:
        pages = parse_pages(text, last)
    except InvalidArgumentError:
        return
    assert pages == sorted(set(pages))
    assert all(1 <= p <= last for p in pages)


def test_printed_labels_count_too() -> None:
    index = small_index()
    assert pages_of(index, "ii") == [2]
    assert pages_of(index, "2") == [2, 4]  # the page labelled 2 is the fourth
    assert pages_of(index, "5-6") == [5, 6]
    assert pages_of(index, "i-ii") == [1, 2]
    assert pages_of(index, "3-4") == [3, 4]
    with pytest.raises(InvalidArgumentError):
        pages_of(index, "xliv")


def test_a_number_of_thousands_of_digits_lies_beyond_the_book() -> None:
    assert parse_pages("9" * 5000, 10) == []
    assert parse_pages("2-" + "9" * 5000, 3) == [2, 3]
    assert parse_pages("0" * 5000 + "2", 3) == [2]
