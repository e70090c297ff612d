"""`bookrag eval`"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer

from bookrag_fast.cli.errors import describe
from bookrag_fast.cli.options import DebugOption, JsonOption, LayoutOption, layout_flag
from bookrag_fast.cli.output import clean, emit_json
from bookrag_fast.errors import InvalidArgumentError

__all__ = ["app"]

app = typer.Typer(
    help="Measure against known answers.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _group() -> None:
    """Measure against known answers."""


class TruthSource(str, Enum):
    FILES = "files"
    OUTLINE = "outline"


@app.command("trees")
def trees(
    paths: Annotated[list[Path], typer.Argument(metavar="DIR|FILE...", show_default=False)],
    truth: Annotated[
        TruthSource,
        typer.Option("--truth", metavar="files|outline", help="Where the true headings are."),
    ] = TruthSource.FILES,
    withhold: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--withhold",
            metavar="outline,tags",
            help="What of the file the tree builder must not see; repeatable.",
        ),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", metavar="FILE", help="Write the table (Markdown) there as well."),
    ] = None,
    layout: LayoutOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Measure section trees against true ones: headings found (precision, recall, F1), levels and
    parents of those, and parents end to end, a document a row, with the means.

    --truth files (the default): each document has a truth file, one JSON object:
    {"doc": "manual.pdf", "entries": [{"title": "1 Start", "level": 1, "page": 3}, ...]}, headings
    in document order, pages physical and 1-based. "doc" is relative to the file's folder or the
    one above; without it the PDF of the same name is meant. "levels_reliable": false leaves levels
    and parents out. A DIR stands for the *.json in it; a PDF for the truth file beside it.

    --truth outline: the bookmarks of each PDF are the truth, and withheld from the tree builder.

    A document that fails does not stop the rest; the exit code is the first failure's.
    """
    from bookrag_fast.config import load_settings
    from bookrag_fast.document import IsolatedReader
    from bookrag_fast.evaluation.report import markdown, to_json
    from bookrag_fast.evaluation.runner import WITHHELD, evaluate_trees
    from bookrag_fast.evaluation.truth import find_truths

    hidden = [name.strip() for given in withhold or () for name in given.split(",")]
    unknown = [name for name in hidden if name not in WITHHELD]
    if unknown:
        raise InvalidArgumentError(
            f"--withhold {unknown[0]!r} is nothing that a document holds",
            f"it takes: {', '.join(WITHHELD)}",
        )
    if out is not None and not out.parent.is_dir():  # found out before the work, not after it
        raise InvalidArgumentError(f"there is no folder {out.parent} for --out", "make it first")
    truths = find_truths(paths, from_outline=truth is TruthSource.OUTLINE)
    settings = load_settings(layout=layout_flag(layout))
    reader = IsolatedReader(
        memory_mb=settings.reader_memory_mb,
        workers=settings.reader_workers,
        layout=settings.layout,
    )
    results = []
    try:
        for result in evaluate_trees(truths, withhold=hidden, read=reader.read):
            results.append(result)
            if not as_json:
                failed = f"  failed: {result.error}" if result.error else ""
                typer.echo(clean(f"{len(results)}/{len(truths)} {result.name}{failed}"), err=True)
    finally:
        reader.close()
    table = markdown(results)
    if out is not None:
        _write(out, table)
    errors = [r.error for r in results if r.error is not None]
    if as_json:
        first = {"error": describe(errors[0])[0]} if errors else {}
        emit_json({**to_json(results), **first})
    else:
        typer.echo(clean(table), nl=False)
    if errors:
        raise typer.Exit(errors[0].exit_code)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidArgumentError(
            f"cannot write {path}: {error.strerror or error}", "choose another place for --out"
        ) from error
