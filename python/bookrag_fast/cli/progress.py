"""Progress of indexing on standard error, when that is a terminal; nothing otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bookrag_fast.library.types import Progress, ProgressCallback

__all__ = ["counts", "shown_progress"]


@contextmanager
def shown_progress(name: str) -> Iterator[ProgressCallback | None]:
    """A callback that draws one line a stage, or None where there is no terminal to draw on."""
    if not sys.stderr.isatty():
        yield None
        return
    # Only here: rich costs time that a command without progress should not pay.
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn
    from rich.progress import Progress as Bars

    bars = Bars(
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description:<8}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[counts]}"),
        console=Console(stderr=True),
        transient=True,
    )
    stages: dict[str, TaskID] = {}

    def draw(step: Progress) -> None:
        if step.stage not in stages:
            for earlier in stages.values():
                bars.stop_task(earlier)
            stages[step.stage] = bars.add_task(step.stage, total=step.total, counts="")
        bars.update(stages[step.stage], completed=step.done, total=step.total, counts=counts(step))

    with bars:
        bars.console.print(f"Indexing {escape(name)}")
        yield draw


def counts(step: Progress) -> str:
    """ "12/25 pages · 40.1/s · 0:01 left" """
    amount = f"{step.done}" if step.total is None else f"{step.done}/{step.total}"
    parts = [f"{amount} {step.unit}"]
    if step.rate is not None:
        parts.append(f"{step.rate:.1f}/s")
    if step.eta_s is not None and step.total is not None and step.done < step.total:
        minutes, seconds = divmod(round(step.eta_s), 60)
        parts.append(f"{minutes}:{seconds:02d} left")
    return " · ".join(parts)
