"""An exception as people and programs are told of it."""

from __future__ import annotations

import json
import traceback
from typing import Any

import typer

from bookrag_fast.cli.output import clean
from bookrag_fast.errors import BookragError

__all__ = ["INTERRUPTED", "describe", "report"]

INTERRUPTED = 130  # 128 + SIGINT, as a shell has it
_USAGE = 2
_IO = 6  # nothing of ours in errors.py has it


def describe(error: Exception) -> tuple[dict[str, str], int]:
    """{"code", "message", "hint"} and the exit code."""
    if isinstance(error, BookragError):
        return _problem(error.code, error.message, error.hint), error.exit_code
    usage = getattr(error, "format_message", None)
    if usage is not None:  # a ClickException, of click or of typer's own copy of it
        context = getattr(error, "ctx", None)
        hint = f"see `{context.command_path} --help`" if context is not None else ""
        return _problem("usage", usage(), hint), int(getattr(error, "exit_code", _USAGE))
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename!r}" if error.filename is not None else ""
        hint = "check the free space and the permissions"
        return _problem("io", f"{error.strerror}{where}", hint), _IO
    message = f"unexpected {type(error).__name__}: {error}".strip().rstrip(":")
    hint = "run it again with --debug for the traceback, and report it as a bug"
    return _problem("internal", " ".join(message.split()), hint), 1


def _problem(code: str, message: str, hint: str) -> dict[str, str]:
    return {"code": code, "message": message, "hint": hint}


def report(problem: dict[str, Any], *, as_json: bool, error: Exception | None = None) -> None:
    """One message; the traceback of ``error`` on standard error when it is given."""
    if error is not None:
        typer.echo("".join(traceback.format_exception(error)), err=True)
    if as_json:
        typer.echo(json.dumps({"error": problem}, ensure_ascii=False))
        return
    typer.secho("error: ", fg="red", bold=True, nl=False, err=True)
    # Names of files and books stand in it: they must not drive the terminal, nor break the line.
    typer.echo(" ".join(clean(problem["message"]).split("\n")), err=True)
    if problem["hint"]:
        typer.echo(f"  {clean(problem['hint'])}", err=True)
