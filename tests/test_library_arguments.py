"""Arguments of a Library: what will do, and what is refused by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bookrag_fast import Library
from bookrag_fast.errors import (
    BudgetError,
    InvalidArgumentError,
    LibraryError,
    UnknownBookError,
)


def test_paths_and_names_that_no_file_can_have(own: Library) -> None:
    with pytest.raises(LibraryError):
        Library.open("a\0b", embedder=own.embedder)
    with pytest.raises(UnknownBookError):
        own.book("\udc80")


@pytest.mark.parametrize("question", [None, 5, b"x"])
def test_a_question_is_a_string(shelf: Library, question: object) -> None:
    with pytest.raises(InvalidArgumentError):
        shelf.search(question)  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", [0, -1, 10**30])
def test_a_budget_is_a_number_within_bounds(shelf: Library, budget: int) -> None:
    with pytest.raises(BudgetError):
        shelf.search("damping", budget_tokens=budget)


WRONG_TYPES: list[tuple[str, Callable[[Any, str], object]]] = [
    ("books", lambda lib, _: lib.search("q", books=3)),
    ("books", lambda lib, _: lib.ask("q", books=b"abcd")),
    ("books[1]", lambda lib, book: lib.search("q", books=[book, 5])),
    ("budget_tokens", lambda lib, _: lib.search("q", budget_tokens="5")),
    ("budget_tokens", lambda lib, _: lib.ask("q", budget_tokens=float("nan"))),
    ("budget_tokens", lambda lib, _: lib.search_result("q", budget_tokens=True)),
    ("path", lambda lib, _: lib.add(5)),
    ("path", lambda lib, _: lib.add(b"handbook.pdf")),
    ("path", lambda lib, _: lib.find_file(None)),
    ("password", lambda lib, _: lib.add("handbook.pdf", password=b"secret")),
    ("progress", lambda lib, _: lib.add("handbook.pdf", progress=5)),
    ("ref", lambda lib, _: lib.remove(None)),
    ("ref", lambda lib, _: lib.tree(5)),
    ("ref", lambda lib, _: lib.index([])),
    ("node_id", lambda lib, book: lib.node(book, "1")),
    ("node_id", lambda lib, book: lib.node(book, 1.0)),
    ("node_id", lambda lib, book: lib.node(book, None)),
    ("limit", lambda lib, book: lib.graph(book, limit="x")),
    ("path", lambda _, __: Library.open(5)),  # type: ignore[arg-type]
    ("settings", lambda _, __: Library.open(settings={})),  # type: ignore[arg-type]
    ("embedder", lambda _, __: Library.open(embedder="static")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("name", "call"), WRONG_TYPES)
def test_a_wrong_type_is_named_where_it_was_given(
    shelf: Library, name: str, call: Callable[[Any, str], object]
) -> None:
    book = shelf.books()[0].id
    with pytest.raises(InvalidArgumentError, match=rf"^{re.escape(name)} is of type") as caught:
        call(shelf, book)
    assert "secret" not in str(caught.value)


def test_integers_and_paths_of_any_kind_will_do(shelf: Library) -> None:
    book = shelf.books()[0]
    assert shelf.node(book.id, np.int64(1)) == shelf.node(book.id, 1)  # type: ignore[arg-type]
    wanted = shelf.search("q", books=[book.id], budget_tokens=500)
    given: list[Any] = [book.id, (book.id,), iter([book.id]), {book.id}, [Path(book.name)]]
    for books in given:
        assert shelf.search("q", books=books, budget_tokens=np.uint16(500)) == wanted  # type: ignore[arg-type]
