"""`bookrag doctor`"""

from __future__ import annotations

from pathlib import Path

import typer

from bookrag_fast.cli.checks import ERROR, WARNING, examine
from bookrag_fast.cli.options import DebugOption, EmbedderOption, JsonOption, LibraryOption
from bookrag_fast.cli.output import clean, emit_json

__all__ = ["doctor"]

_MARKS = {"ok": ("ok     ", "green"), "warning": ("warning", "yellow"), "error": ("error  ", "red")}


def doctor(
    embedder: EmbedderOption = None,
    library: LibraryOption = Path("shelf"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Check the installation and the shelf; each fault comes with what repairs it.

    The exit code is 0 without errors, 1 with some; warnings do not count.
    """
    findings = list(examine(library, embedder))
    failed = any(f.level == ERROR for f in findings)
    if as_json:
        emit_json({"ok": not failed, "findings": [f.to_json() for f in findings]})
    else:
        for finding in findings:
            mark, colour = _MARKS[finding.level]
            typer.secho(mark, fg=colour, nl=False)
            typer.echo(clean(f"  {finding.check}: {finding.detail}"))
            if finding.remedy and finding.level in (ERROR, WARNING):
                typer.echo(clean(f"         → {finding.remedy}"))
    if failed:
        raise typer.Exit(1)
