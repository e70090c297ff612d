"""The app and what holds for every command: errors, exit codes, interrupts, closed pipes.

Exit codes: 0 success; 1 unexpected error, or a broken installation found by doctor; 2 wrong
usage; 3 and above as in `bookrag_fast.errors`, 6 for input and output that failed; 130
interrupted.

With ``--json`` standard output carries exactly one JSON document, also when the command fails:
then it is ``{"error": {"code", "message", "hint"}}``. Standard error is for people.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from bookrag_fast.cli import (
    ask_cmd,
    config_cmd,
    doctor_cmd,
    eval_cmd,
    index_cmd,
    serve_cmd,
    shelf_cmd,
    show_cmd,
    usage_cmd,
)
from bookrag_fast.cli.errors import INTERRUPTED, describe, report

__all__ = ["app"]


class _Bookrag(TyperGroup):
    """Turns whatever a command raises into one message and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        code = self._run(args, prog_name, complete_var, windows_expand_args, extra)
        if standalone_mode:
            sys.exit(code)
        return code

    def _run(
        self,
        args: Sequence[str] | None,
        prog_name: str | None,
        complete_var: str | None,
        windows_expand_args: bool,
        extra: dict[str, Any],
    ) -> int:
        given = list(sys.argv[1:] if args is None else args)
        # Read from the arguments, not from the parsed options: they may be what is wrong.
        options = given[: given.index("--")] if "--" in given else given
        as_json, debug = "--json" in options, "--debug" in options
        _connect()
        _printable()
        try:
            code = super().main(
                args=args,
                prog_name=prog_name,
                complete_var=complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )
            sys.stdout.flush()
        except (KeyboardInterrupt, typer.Abort):
            if as_json:
                _tell({"code": "interrupted", "message": "interrupted", "hint": ""}, as_json=True)
            return INTERRUPTED
        except BrokenPipeError:
            # The reader has seen enough. Python would complain once more when it flushes at exit.
            _abandon(sys.stdout)
            return 1
        except Exception as error:
            problem, code = describe(error)
            _tell(problem, as_json=as_json, error=error if debug else None)
            return code
        return code if isinstance(code, int) else 0


def _tell(problem: dict[str, str], *, as_json: bool, error: Exception | None = None) -> None:
    """`report`, to whoever still listens."""
    try:
        report(problem, as_json=as_json, error=error)
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # a full disk, or a reader that has gone
        _abandon(sys.stdout)
        _abandon(sys.stderr)


def _abandon(stream: TextIO) -> None:
    """What is left in the stream goes nowhere; Python would fail once more when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _connect() -> None:
    """Standard streams that the caller closed lead nowhere, instead of to the next file that is
    opened: the catalogue must not get what a library prints."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _printable() -> None:
    """A book's text may hold what the terminal's encoding does not; that is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


app = typer.Typer(
    name="bookrag",
    cls=_Bookrag,
    help="Index books, ask them, and get answers with the page they stand on.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,  # plain help: it starts faster, and [brackets] in it stay
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from bookrag_fast._version import __version__

        typer.echo(f"bookrag {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_version),
    ] = False,
) -> None:
    pass


app.command("index")(index_cmd.index)
app.command("ask")(ask_cmd.ask)
app.command("search")(ask_cmd.search)
app.command("show")(show_cmd.show)
app.command("list")(shelf_cmd.list_books)
app.command("rm")(shelf_cmd.remove)
app.command("usage")(usage_cmd.usage)
app.command("serve")(serve_cmd.serve)
app.command("doctor")(doctor_cmd.doctor)
app.add_typer(config_cmd.app, name="config")
app.add_typer(eval_cmd.app, name="eval")
