"""`bookrag index`"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

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
    SummariesOption,
    opened,
    page_span,
    secret,
)
from bookrag_fast.cli.output import clean, emit_json
from bookrag_fast.cli.progress import shown_progress
from bookrag_fast.cli.spending_view import estimate_lines, known_lines, left_lines, spent_lines

if TYPE_CHECKING:
    from bookrag_fast.library import Library

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
    summaries: SummariesOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Tell what models would be asked and what it would cost; index nothing.",
        ),
    ] = False,
    library: LibraryOption = Path("shelf"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Index books. A file that fails does not stop the rest; the exit code is the first failure's.

    With --json: {"books": [...], "errors": [{"file", "error"}]}, and "error", the first one; with
    --dry-run "estimates" instead of "books". A book that is "known" has "changes": what would be
    different if it were made now.
    """
    password, span = secret(password), page_span(pages)
    found, problems = expanded(files)
    done: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    first_code = 0
    for folder, error in problems:
        problem, code = describe(error)
        first_code = first_code or code
        errors.append({"file": str(folder), "error": problem})
        if not as_json:
            report(problem, as_json=False)
    with (
        _unwritten(library, dry_run) as place,
        opened(place, embedder, ocr, layout, summaries=summaries, no_cache=no_cache) as shelf,
    ):
        for file in found:
            try:
                with shown_progress(file.name) as progress:
                    result, lines = (_estimated if dry_run else _indexed)(
                        shelf, file, password=password, pages=span, progress=progress
                    )
            except Exception as error:  # one bad file fails alone
                problem, code = describe(error)
                first_code = first_code or code
                errors.append({"file": str(file), "error": problem})
                if not as_json:
                    if file.name not in problem["message"]:
                        problem = {**problem, "message": f"{file}: {problem['message']}"}
                    report(problem, as_json=False, error=error if debug else None)
                continue
            done.append({"file": str(file), **result})
            if as_json:
                continue
            for line in lines:
                typer.echo(clean(line))
            for warning in result.get("warnings", ()):
                typer.echo(clean(f"  warning: {warning}"), err=True)
    if as_json:
        first = {"error": errors[0]["error"]} if errors else {}
        emit_json({"estimates" if dry_run else "books": done, "errors": errors, **first})
    if first_code:
        raise typer.Exit(first_code)


def _indexed(shelf: Library, file: Path, **options: Any) -> tuple[dict[str, Any], list[str]]:
    """A book as JSON and in words."""
    from bookrag_fast.library.changes import changes

    before = {(b.id, b.created) for b in shelf.books()}
    book = shelf.add(file, **options)
    known = (book.id, book.created) in before
    pages = f"{book.pages} {'page' if book.pages == 1 else 'pages'}, " if book.pages else ""
    what = "is already on the shelf" if known else "indexed"
    line = (
        f"{file.name} {what}: {book.id}  {book.title}  ({pages}{book.nodes} nodes, "
        f"{book.entities} entities, {book.relations} relations)"
    )
    if not known:
        first, last = options["pages"] or (1, None)
        chosen = ["--pages", f"{first}-{last or ''}"] if options["pages"] else []
        again = shlex.join(["bookrag", "index", str(file), *chosen])
        lines = [line, *spent_lines(book.models), *left_lines(book, again)]
        return {"known": False, **book.to_json()}, lines
    changed = list(changes(shelf.index(book.id), shelf.settings))
    lines = [line, *known_lines(book, changed, cached=shelf.settings.cache.enabled)]
    return {"known": True, "changes": changed, **book.to_json()}, lines


def _estimated(shelf: Library, file: Path, **options: Any) -> tuple[dict[str, Any], list[str]]:
    """An estimate as JSON and in words."""
    estimate = shelf.estimate(file, **options)
    return estimate.to_json(), list(estimate_lines(file.name, estimate))


@contextmanager
def _unwritten(library: Path, dry_run: bool) -> Iterator[Path]:
    """The shelf's folder; for a dry run of one that is not there a passing one, since opening a
    shelf makes it."""
    if not dry_run or library.exists():
        yield library
        return
    with TemporaryDirectory() as passing:
        yield Path(passing)
