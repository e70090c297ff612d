"""Options that commands share, and what they stand for."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from bookrag_fast.errors import InvalidArgumentError

if TYPE_CHECKING:
    from bookrag_fast.library import Library

__all__ = [
    "BooksOption",
    "DebugOption",
    "EmbedderOption",
    "JsonOption",
    "LayoutOption",
    "LibraryOption",
    "NoCacheOption",
    "OcrOption",
    "PagesOption",
    "PasswordOption",
    "SummariesOption",
    "chosen_books",
    "is_file",
    "layout_flag",
    "opened",
    "page_span",
    "secret",
    "spoken",
]


class OcrMode(str, Enum):
    AUTO = "auto"
    OFF = "off"
    ALWAYS = "always"


LibraryOption = Annotated[
    Path,
    typer.Option(
        "--library",
        "-L",
        metavar="DIR",
        envvar="BOOKRAG_LIBRARY",
        help="The shelf; made if absent.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
EmbedderOption = Annotated[
    Optional[str],  # noqa: UP045  (typer reads it at run time, on Python 3.10 too)
    typer.Option(
        "--embedder",
        metavar="SPEC",
        help="wordllama, onnx:SOURCE (a folder, package or hub name), or the name of a "
        "configured model.",
    ),
]
OcrOption = Annotated[
    Optional[OcrMode],  # noqa: UP045
    typer.Option(
        "--ocr",
        help="Read pictures of text: on pages without a usable text layer, never, or on every "
        "page. Needs the extra `ocr`.",
        show_default="auto",
    ),
]
PagesOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--pages",
        metavar="A-B",
        help="Only these pages of PDFs; 5-20, 7 or 5-. Each choice is a book of its own.",
    ),
]
LayoutOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--layout/--no-layout",
        help="Show pages to a layout model as well. Needs a model: see layout.model.",
        show_default="no-layout",
    ),
]
NoCacheOption = Annotated[
    bool,
    typer.Option("--no-cache", help="Ask models anew, whatever replies of theirs are kept."),
]
SummariesOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--summaries/--no-summaries",
        help="Summarise sections: by the model of the role `summarise`, else in their own words.",
        show_default="no-summaries",
    ),
]
PasswordOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--password", help='Of an encrypted PDF; "-" asks for it.'),
]
BooksOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--book",
        "-b",
        metavar="ID|FILE",
        help="A book's id, title or file; repeatable. A file not yet on the shelf is indexed "
        "first. Without it every book is asked.",
    ),
]


_ASK_FOR_IT = "-"


@contextmanager
def opened(
    folder: Path,
    embedder: str | None = None,
    ocr: OcrMode | None = None,
    layout: bool | None = None,
    no_cache: bool = False,
    *,
    summaries: bool | None = None,
) -> Iterator[Library]:
    """The library of the options, closed at the end."""
    from bookrag_fast.config import load_settings
    from bookrag_fast.library import Library

    chosen = None if ocr is None else {"mode": ocr.value}
    settings = load_settings(
        embedder=embedder,
        ocr=chosen,
        layout=layout_flag(layout),
        cache={"enabled": False} if no_cache else None,
        summaries=summaries,
    )
    with Library.open(folder, settings=settings) as library:
        yield library


def layout_flag(wanted: bool | None) -> dict[str, str] | None:
    """--layout as a setting."""
    return None if wanted is None else {"mode": "on" if wanted else "off"}


def secret(password: str | None) -> str | None:
    """The password. For "-" it is asked for, or read from standard input where that is no
    terminal: the command line of a process is no secret."""
    if password is None:
        return None
    if password != _ASK_FOR_IT:
        return spoken(password)
    if sys.stdin.isatty():
        answer: str = typer.prompt("Password", hide_input=True, err=True)
        return spoken(answer)
    typer.echo("Password: ", nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        raise InvalidArgumentError(
            "--password - found no password on standard input", "pipe it in, or use a terminal"
        )
    return spoken(line.rstrip("\r\n"))


def spoken(argument: str) -> str:
    """An argument as text. Bytes that the locale cannot decode reach Python as lone surrogates,
    which nothing after us can store or encode; the bytes are nearly always UTF-8."""
    return os.fsencode(argument).decode("utf-8", "replace")


def is_file(path: Path) -> bool:
    """Whether a path that may be a title is one of a file."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # a title too long for a path, or with a NUL
        return False


def chosen_books(
    library: Library, references: Sequence[str] | None, password: str | None
) -> list[str] | None:
    """Ids of the books asked for; files are indexed if their content is not on the shelf."""
    from bookrag_fast.cli.progress import shown_progress

    if not references:
        return None
    password = secret(password)
    ids = []
    for reference in references:
        path = Path(reference)
        # A file stands for its content, whatever an older book of the same name on the shelf.
        if is_file(path) and all(b.id != reference for b in library.books()):
            with shown_progress(path.name) as progress:
                ids.append(library.add(path, password=password, progress=progress).id)
        else:
            ids.append(library.book(spoken(reference)).id)
    return list(dict.fromkeys(ids))


def page_span(text: str | None) -> tuple[int, int | None] | None:
    """First and last page of "5-20", "7" or "5-" (to the file's last); None for all."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,9})\s*(?:(-)\s*(\d{1,9})?\s*)?", text)
    if match is None:
        raise InvalidArgumentError(f"{text!r} is no range of pages", "write 5-20, 7 or 5-")
    first = int(match[1])
    if match[3]:
        return first, int(match[3])
    return first, None if match[2] else first
