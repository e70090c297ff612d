"""What callers hand over, looked at before it travels: a wrong type is named where it was given.

Messages name types, never values: one of them is a password.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from bookrag_fast.errors import InvalidArgumentError

__all__ = [
    "checked_books",
    "checked_callback",
    "checked_int",
    "checked_pages",
    "checked_password",
    "checked_path",
    "checked_seconds",
    "checked_text",
    "refuse",
]


def refuse(name: str, value: object, wanted: str) -> NoReturn:
    """Raises InvalidArgumentError: the argument `name` must be `wanted`."""
    raise InvalidArgumentError(f"{name} is of type {type(value).__name__}, but must be {wanted}")


def checked_text(value: Any, name: str) -> str:
    """A string."""
    return value if isinstance(value, str) else refuse(name, value, "a string")


def checked_password(value: Any) -> str | None:
    """A string, or None."""
    return None if value is None else checked_text(value, "password")


def checked_int(value: Any, name: str) -> int:
    """An integer of any library; True and False are none."""
    if not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
    refuse(name, value, "an integer")


def checked_pages(value: Any) -> tuple[int, int | None] | None:
    """A first and a last page, the last None for the file's own; None for all pages."""
    if value is None:
        return None
    if isinstance(value, str | bytes) or not isinstance(value, Sequence) or len(value) != 2:
        refuse("pages", value, "a pair: the first and the last page")
    first, last = value
    return checked_int(first, "pages[0]"), None if last is None else checked_int(last, "pages[1]")


def checked_path(value: Any, name: str) -> Path:
    """A string or a path object."""
    if isinstance(value, str) or (
        isinstance(value, os.PathLike) and isinstance(os.fspath(value), str)
    ):
        return Path(value)
    refuse(name, value, "a string or a path")


def checked_books(value: Any) -> list[str] | None:
    """References to books: None for all; one alone stands for a list of one."""
    if value is None:
        return None
    if isinstance(value, str | os.PathLike):
        value = [value]
    if isinstance(value, bytes | bytearray | memoryview) or not isinstance(value, Iterable):
        refuse("books", value, "a sequence of ids, titles or files")
    return [str(checked_path(ref, f"books[{i}]")) for i, ref in enumerate(value)]


def checked_callback(value: Any, name: str) -> Any:
    """Something to call, or None."""
    if value is not None and not callable(value):
        refuse(name, value, "a function")
    return value


def checked_seconds(value: object, name: str) -> float | None:
    """A length of time above 0; None for no limit."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse(name, value, "a number of seconds, or None")
    if not value > 0:
        raise InvalidArgumentError(f"{name} is {value}, but must be above 0")
    return float(value)
