"""`bookrag usage`"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bookrag_fast.cli.options import DebugOption, JsonOption, LibraryOption
from bookrag_fast.cli.output import clean, emit, emit_json, shorten
from bookrag_fast.errors import LibraryError

if TYPE_CHECKING:
    from bookrag_fast.models.ledger import Spent

__all__ = ["usage"]

_COLUMNS = ("calls", "cached", "failed", "cancelled", "prompt", "completion", "USD")
_NAME = 32  # characters of the first column
# What it took to make use of replies, as the ledger calls it, and in words.
_STEPS = {
    "offline": "by rules",
    "cleaned": "cleaned of thoughts",
    "images dropped": "with fewer images",
}


class By(str, Enum):
    ROLE = "role"
    BOOK = "book"
    DAY = "day"
    MODEL = "model"


def usage(
    by: Annotated[By, typer.Option("--by", help="What to add up by.")] = By.ROLE,
    library: LibraryOption = Path("shelf"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what models were asked and what it took; USD by the prices in the settings, – where
    none is set.

    "failed" are attempts that brought no reply, "cancelled" those that were given up before one
    came, "cached" calls that were not made because the reply was known. The lines below tell
    replies that had to be repaired, asked for again, or cut short, and what was left to the rules.

    With --json: {"by", "usage": [{"name", "calls", "cached", "failures", "prompt_tokens",
    "completion_tokens", "usd", "cancelled"}], "steps": {role: {step: count}}}; steps are what it
    took to make use of replies.
    """
    from dataclasses import asdict

    totals, steps = _read(library, by)
    if as_json:
        rows = [{"name": name, **asdict(spent)} for name, spent in totals.items()]
        emit_json({"by": by.value, "usage": rows, "steps": steps})
        return
    if not totals:
        typer.echo(clean(f"No model was asked for books on the shelf {library}."))
        return
    emit(_lines(by.value, totals, steps))


def _read(folder: Path, by: By) -> tuple[Mapping[str, Spent], Mapping[str, Mapping[str, int]]]:
    from bookrag_fast.models.create import LEDGER_FILE
    from bookrag_fast.models.ledger import UsageLedger

    path = folder / LEDGER_FILE
    if not path.is_file():  # looking must not make one
        return {}, {}
    ledger = UsageLedger(path)
    try:
        return ledger.totals(by.value), ledger.step_counts()
    except (sqlite3.Error, OSError) as error:
        raise LibraryError(f"the usage ledger {path} cannot be read: {error}") from error
    finally:
        ledger.close()


def _lines(
    by: str, totals: Mapping[str, Spent], steps: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    first, *others = totals.values()
    rows = [(name or "–", spent) for name, spent in totals.items()]
    rows.append(("total", sum(others, first)))
    table = [(by, *_COLUMNS), *((shorten(name, _NAME), *_cells(spent)) for name, spent in rows)]
    width, *widths = (max(map(len, column)) for column in zip(*table, strict=True))
    for name, *cells in table:
        numbers = zip(cells, widths, strict=True)
        yield f"{name:<{width}}" + "".join(f"  {cell:>{wide}}" for cell, wide in numbers)
    for role, counts_of in steps.items():
        told = ", ".join(f"{count:,} {_STEPS.get(step, step)}" for step, count in counts_of.items())
        yield f"{role}: {told}"


def _cells(spent: Spent) -> tuple[str, ...]:
    """Of a row, in the order of the columns."""
    counts = (
        spent.calls, spent.cached, spent.failures, spent.cancelled,
        spent.prompt_tokens, spent.completion_tokens,
    )  # fmt: skip
    return *(f"{count:,}" for count in counts), _usd(spent)


def _usd(spent: Spent) -> str:
    """What took tokens and cost nothing has no price."""
    from bookrag_fast.models.money import usd_text

    return "–" if spent.tokens and not spent.usd else usd_text(spent.usd)
