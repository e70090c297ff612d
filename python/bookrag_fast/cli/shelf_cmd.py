"""`bookrag list` and `bookrag rm`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bookrag_fast.cli.errors import describe, report
from bookrag_fast.cli.options import DebugOption, JsonOption, LibraryOption, opened, spoken
from bookrag_fast.cli.output import book_line, clean, emit, emit_json

__all__ = ["list_books", "remove"]


def list_books(
    library: LibraryOption = Path("shelf"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List the books of the shelf."""
    with opened(library) as shelf:
        books = shelf.books()
    if as_json:
        emit_json({"books": [b.to_json() for b in books]})
        return
    emit(book_line(b) for b in books)
    if not books:
        typer.echo(f"The shelf {library} has no books; `bookrag index FILE` adds one.", err=True)


def remove(
    books: Annotated[list[str], typer.Argument(metavar="BOOK", show_default=False)],
    library: LibraryOption = Path("shelf"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Take books off the shelf; the files they were made from stay where they are."""
    removed: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    first_code = 0
    with opened(library) as shelf:
        for reference in books:
            try:
                book = shelf.remove(spoken(reference))
            except Exception as error:  # one unknown book fails alone
                problem, code = describe(error)
                first_code = first_code or code
                errors.append({"book": reference, "error": problem})
                if not as_json:
                    report(problem, as_json=False, error=error if debug else None)
                continue
            removed.append(book.to_json())
            if not as_json:
                typer.echo(clean(f"removed {book.id}  {book.title}"))
    if as_json:
        first = {"error": errors[0]["error"]} if errors else {}
        emit_json({"removed": removed, "errors": errors, **first})
    if first_code:
        raise typer.Exit(first_code)
