"""`bookrag show BOOK pages`: pages drawn with what was read from them."""

from __future__ import annotations

from pathlib import Path

import typer

from bookrag_fast.cli.errors import describe, report
from bookrag_fast.cli.options import is_file, opened, spoken
from bookrag_fast.cli.output import clean, emit_json
from bookrag_fast.errors import InvalidArgumentError

__all__ = ["show_pages"]


def show_pages(
    book: str,
    library: Path,
    *,
    out: Path | None,
    pages: str | None,
    dpi: int,
    pdf: Path | None,
    password: str | None,
    as_json: bool,
) -> None:
    """Draws the pages of a book of the shelf, or of a PDF as it is read now, without indexing it.

    With --json: {"pages": [{"page", "label", "file", "boxes"}], "errors": [{"page", "error"}]},
    and "error", the first one.
    """
    from bookrag_fast.document.pictures.render import check_dpi
    from bookrag_fast.library import pictures

    if out is None:
        raise InvalidArgumentError("`show BOOK pages` needs a folder to draw into", "add --out DIR")
    check_dpi(dpi)
    path = Path(book)
    if is_file(path):
        from bookrag_fast.config import load_settings
        from bookrag_fast.document import IsolatedReader
        from bookrag_fast.index.tree import build_tree

        settings = load_settings()
        reader = IsolatedReader(
            memory_mb=settings.reader_memory_mb, workers=settings.reader_workers
        )
        try:
            document = reader.read(path, password=password)
        finally:
            reader.close()
        all_pages = document.pages
        marks = pictures.marks_of_document(document, build_tree(document))
    else:
        with opened(library) as shelf:
            index = shelf.index(spoken(book))
        path = pictures.source_of(index, pdf)
        all_pages = index.pages
        marks = pictures.marks_of_book(index)
    numbers = pictures.page_range(pages, len(all_pages))
    drawn, errors, code = [], [], 0
    for page in pictures.draw_pages(
        path, all_pages, marks, numbers, out, dpi=dpi, password=password
    ):
        if page.error is not None:
            problem, its_code = describe(page.error)
            code = code or its_code
            errors.append({"page": page.page, "error": problem})
            if not as_json:
                report(problem, as_json=False)
            continue
        drawn.append(
            {"page": page.page, "label": page.label, "file": str(page.file), "boxes": page.marks}
        )
        if not as_json:
            typer.echo(clean(str(page.file)))
    if as_json:
        first = {"error": errors[0]["error"]} if errors else {}
        emit_json({"pages": drawn, "errors": errors, **first})
    if code:
        raise typer.Exit(code)
