"""`bookrag index`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bookrag_fast.cli.errors import describe, report
from bookrag_fast.cli.folders import expanded
from bookrag_fast.cli.options import (
    DebugOption,
    EmbedderOption,
    JsonOption,
    LayoutOption,
    LibraryOption,
    NoCacheOption,
    OcrOption,
    PagesOption,
    PasswordOption,
    opened,
    page_span,
    secret,
)
from bookrag_fast.cli.output import clean, emit_json
from bookrag_fast.cli.progress import shown_progress

__all__ = ["index"]


def index(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|FOLDER",
            show_default=False,
            help="PDF, Markdown, HTML, text, EPUB, DOCX, PNG, JPEG, TIFF, JSON of MinerU or "
            "docling; of a folder all that are in it and its subfolders.",
        ),
    ],
    password: PasswordOption = None,
    embedder: EmbedderOption = None,
    ocr: OcrOption = None,
    pages: PagesOption = None,
    layout: LayoutOption = None,
    no_cache: NoCacheOption = False,
    library: LibraryOption = Path("shelf"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Index books. A file that fails does not stop the rest; the exit code is the first failure's.

    With --json: {"books": [...], "errors": [{"file", "error"}]}, and "error", the first one.
    """
    password, span = secret(password), page_span(pages)
    found, problems = expanded(files)
    books: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    first_code = 0
    for folder, error in problems:
        problem, code = describe(error)
        first_code = first_code or code
        errors.append({"file": str(folder), "error": problem})
        if not as_json:
            report(problem, as_json=False)
    with opened(library, embedder, ocr, layout, no_cache=no_cache) as shelf:
        for file in found:
            before = {(b.id, b.created) for b in shelf.books()}
            try:
                with shown_progress(file.name) as progress:
                    book = shelf.add(file, password=password, pages=span, progress=progress)
            except Exception as error:  # one bad file fails alone
                problem, code = describe(error)
                first_code = first_code or code
                errors.append({"file": str(file), "error": problem})
                if not as_json:
                    if file.name not in problem["message"]:
                        problem = {**problem, "message": f"{file}: {problem['message']}"}
                    report(problem, as_json=False, error=error if debug else None)
                continue
            known = (book.id, book.created) in before
            books.append({"file": str(file), "known": known, **book.to_json()})
            if as_json:
                continue
            pages = f"{book.pages} pages, " if book.pages else ""
            what = "is already on the shelf" if known else "indexed"
            typer.echo(clean(
                f"{file.name} {what}: {book.id}  {book.title}  "
                f"({pages}{book.nodes} nodes, {book.entities} entities, "
                f"{book.relations} relations)"
            ))  # fmt: skip
            for warning in book.warnings:
                typer.echo(clean(f"  warning: {warning}"), err=True)
    if as_json:
        first = {"error": errors[0]["error"]} if errors else {}
        emit_json({"books": books, "errors": errors, **first})
    if first_code:
        raise typer.Exit(first_code)
