"""`bookrag ask` and `bookrag search`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from bookrag_fast.cli.options import (
    BooksOption,
    DebugOption,
    EmbedderOption,
    JsonOption,
    LibraryOption,
    NoCacheOption,
    PasswordOption,
    chosen_books,
    opened,
    spoken,
)
from bookrag_fast.cli.output import (
    answer_lines,
    emit,
    emit_json,
    explain_lines,
    search_lines,
)
from bookrag_fast.errors import UnknownBookError

if TYPE_CHECKING:
    from bookrag_fast.library import Library

__all__ = ["ask", "search"]

QuestionArgument = Annotated[str, typer.Argument(metavar="QUESTION", show_default=False)]
BudgetOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--budget", metavar="TOKENS", help="Bound of the evidence, in tokens."),
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Show the plan and how long each operator took.")
]


def ask(
    question: QuestionArgument,
    book: BooksOption = None,
    budget: BudgetOption = None,
    password: PasswordOption = None,
    explain: ExplainOption = False,
    embedder: EmbedderOption = None,
    no_cache: NoCacheOption = False,
    library: LibraryOption = Path("shelf"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Answer a question, with the pages that the answer stands on."""
    with opened(library, embedder, no_cache=no_cache) as shelf:
        options = _options(shelf, book, budget, password)
        answer = shelf.ask(spoken(question), **options)
        titles = _titles(shelf, options["books"])
    if as_json:
        emit_json(answer.to_json())
        return
    emit(answer_lines(answer, titles))
    if explain:
        emit(explain_lines(answer.plan, answer.trace))


def search(
    question: QuestionArgument,
    book: BooksOption = None,
    budget: BudgetOption = None,
    password: PasswordOption = None,
    explain: ExplainOption = False,
    embedder: EmbedderOption = None,
    no_cache: NoCacheOption = False,
    library: LibraryOption = Path("shelf"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Find the passages, tables and figures that speak to a question, best first."""
    with opened(library, embedder, no_cache=no_cache) as shelf:
        options = _options(shelf, book, budget, password)
        result = shelf.search_result(spoken(question), **options)
        titles = _titles(shelf, options["books"])
    if as_json:
        emit_json(result.to_json())
        return
    emit(search_lines(result, titles))
    if explain:
        emit(explain_lines(result.plan, result.trace))


def _options(
    shelf: Library, references: list[str] | None, budget: int | None, password: str | None
) -> dict[str, Any]:
    options: dict[str, Any] = {"books": chosen_books(shelf, references, password)}
    if budget is not None:
        options["budget_tokens"] = budget
    if options["books"] is None and not shelf.books():
        raise UnknownBookError(
            f"the shelf {shelf.folder} has no books",
            "`bookrag index FILE` adds one, or name a file with --book",
        )
    return options


def _titles(shelf: Library, asked: list[str] | None) -> dict[str, str]:
    """Titles of the books that were asked."""
    return {b.id: b.title for b in shelf.books() if asked is None or b.id in asked}
