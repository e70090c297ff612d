"""`bookrag config show` and `bookrag config init`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bookrag_fast.cli.options import DebugOption, JsonOption
from bookrag_fast.cli.output import clean, emit, emit_json
from bookrag_fast.errors import InvalidArgumentError

__all__ = ["app"]

app = typer.Typer(
    help="Show the settings that hold, or write a file to set them in.", no_args_is_help=True
)


@app.command()
def show(as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """Print every setting that holds, with its source; secrets are left out.

    With --json: {"settings": [{"key", "value", "source", "file"}]}, "source" being "default",
    "file", "environment" or "command line".
    """
    from bookrag_fast.config.loading import load_sourced
    from bookrag_fast.config.shown import as_toml, shown_settings

    settings = list(shown_settings(load_sourced()))
    if as_json:
        emit_json({
            "settings": [
                {"key": s.key, "value": s.value, "source": s.origin.kind, "file": s.origin.file}
                for s in settings
            ]
        })  # fmt: skip
        return
    lines = [f"{s.key} = {as_toml(s.value)}" for s in settings]
    width = min(max(map(len, lines)), 60)
    emit(
        f"{line:<{width}}  # {s.origin.file or s.origin.kind}"
        for line, s in zip(lines, settings, strict=True)
    )


@app.command()
def init(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The file to write; an existing one is kept.")
    ] = Path("bookrag.toml"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a bookrag.toml with every setting, explained, and examples of models.

    With --json: {"file"}.
    """
    from bookrag_fast.config.template import settings_file

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(settings_file())
    except FileExistsError:
        raise InvalidArgumentError(
            f"{path} is there already, and is left as it is", "name another file"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InvalidArgumentError(f"cannot write {path}: {why}", "choose another place") from error
    if as_json:
        emit_json({"file": str(path)})
    else:
        typer.echo(clean(f"wrote {path}; `bookrag config show` prints what holds"))
