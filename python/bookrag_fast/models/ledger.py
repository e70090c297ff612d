"""What models took: by role, book, model and day, kept in a file that several processes add to."""

from __future__ import annotations

import datetime
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

from bookrag_fast.errors import NewerIndexError
from bookrag_fast.forks import begins_anew
from bookrag_fast.models.sqlite_file import AddedColumn, SqliteFile, is_damage
from bookrag_fast.models.write_behind import WriteBehind

__all__ = ["Spent", "UsageLedger"]

_log = logging.getLogger(__name__)

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS usage (
    day TEXT NOT NULL,  -- ISO 8601, UTC
    role TEXT NOT NULL,
    book TEXT NOT NULL,
    model TEXT NOT NULL,
    calls INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    usd REAL NOT NULL,
    cancelled INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, role, book, model)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS usage_book ON usage (book);
CREATE TABLE IF NOT EXISTS steps (
    day TEXT NOT NULL,
    role TEXT NOT NULL,
    step TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (day, role, step)
) WITHOUT ROWID
"""
_ADDED = (AddedColumn("usage", "cancelled", "INTEGER NOT NULL DEFAULT 0"),)
_DELAY_S = 0.05  # what a killed process loses, and how late other processes hear of it
_WATCHED = 64  # books and days of which `spent` knows at most; the longest known go first
_AMOUNTS = ("calls", "cached", "failures", "prompt_tokens", "completion_tokens", "usd", "cancelled")
_SUMS = ", ".join(f"coalesce(sum({name}), 0)" for name in _AMOUNTS)
_ADD_USAGE = (
    f"INSERT INTO usage (day, role, book, model, {', '.join(_AMOUNTS)})"  # noqa: S608
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in _AMOUNTS)
)
_ADD_STEPS = (
    "INSERT INTO steps (day, role, step, count) VALUES (?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET count = count + excluded.count"
)

Facet = Literal["role", "book", "day", "model"]
_Key = tuple[str, str, str, str]  # day, role, book, model
_Step = tuple[str, str, str]  # day, role, step
_Watch = tuple[Literal["book", "day"], str]


@dataclass(frozen=True, slots=True)
class Spent:
    """What calls took.

    ``calls`` went out and brought a reply, ``failures`` went out (once for each attempt) and
    brought none that could be used, ``cancelled`` went out and were given up by whoever made them
    (what these took nobody knows), ``cached`` did not go out. ``usd`` is by the price in the
    settings.
    """

    calls: int = 0
    cached: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    cancelled: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.cached + other.cached,
            self.failures + other.failures,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.usd + other.usd,
            self.cancelled + other.cancelled,
        )


class UsageLedger:
    """Sums in SQLite. Safe for several threads and processes. Adding never blocks and never fails:
    it is done in memory, and written behind 50 ms later, on another thread.

    What cannot be written (the disk is full, the file locked for long) is kept in memory, told
    once in the log, and tried again with the next.

    Args:
        path: the file; made at first use.
        today: the day that usage is booked on, ISO 8601; the UTC date unless given.
    """

    def __init__(self, path: Path, *, today: Callable[[], str] | None = None) -> None:
        self._file = SqliteFile(path, _SCHEMA, _VERSION, added=_ADDED)
        self._behind = WriteBehind(self._write, _DELAY_S)
        self.today = today or _utc_day
        self._warned = False
        self.forked()
        begins_anew(self)

    def forked(self) -> None:
        # What waits here is the parent's to write.
        self._guard = threading.Lock()
        self._writing = threading.RLock()
        self._usage: dict[_Key, Spent] = {}
        self._steps: dict[_Step, int] = {}
        self._leaving: dict[_Key, Spent] = {}  # what is being written
        # Sums as of the last write, of what `spent` was asked about.
        self._written: dict[_Watch, Spent] = {}

    def add(self, spent: Spent, *, role: str, book: str, model: str) -> None:
        key = (self.today(), role, book, model)
        with self._guard:
            known = self._usage.get(key)
            self._usage[key] = spent if known is None else known + spent
        self._behind.due()

    def step(self, role: str, step: str, count: int = 1) -> None:
        """Count what it took to make use of replies: "repaired", "asked again", "offline" …"""
        key = (self.today(), role, step)
        with self._guard:
            self._steps[key] = self._steps.get(key, 0) + count
        self._behind.due()

    def totals(self, by: Facet, *, book: str | None = None) -> dict[str, Spent]:
        """Sums of all processes, by role, book, day or model; of one book if it is named.
        Blocking. Raises sqlite3.Error, OSError or NewerIndexError when the file cannot be
        read."""
        if by not in ("role", "book", "day", "model"):
            raise ValueError(f"by must be role, book, day or model, not {by!r}")
        self.flush()
        rows = self._file.read(
            f"SELECT {by}, {_SUMS} FROM usage WHERE ?1 IS NULL OR book = ?1"  # noqa: S608
            f" GROUP BY {by} ORDER BY {by}",
            (book,),
        )
        sums = {str(name): Spent(*amounts) for name, *amounts in rows}
        with self._guard:  # what could not be written
            waiting = list(self._usage.items())
        for (day, role, of_book, model), spent in waiting:
            if book is None or of_book == book:
                name = {"role": role, "book": of_book, "day": day, "model": model}[by]
                sums[name] = sums.get(name, Spent()) + spent
        return sums

    def step_counts(self) -> dict[str, dict[str, int]]:
        """Role → step → count, over all days. Blocking, as `totals`."""
        self.flush()
        rows = self._file.read("SELECT role, step, sum(count) FROM steps GROUP BY role, step")
        counts: dict[str, dict[str, int]] = {}
        for role, step, count in rows:
            counts.setdefault(role, {})[step] = count
        return counts

    def spent(self, facet: Literal["book", "day"], name: str) -> Spent | None:
        """What a book or a day took so far: that of all processes as of this one's last write,
        and all of this one since. Never blocks; None where `watch` has to be called (again)."""
        with self._guard:
            known = self._written.get((facet, name))
            if known is None:
                return None
            place = 0 if facet == "day" else 2
            for unwritten in (self._usage, self._leaving):
                for key, spent in unwritten.items():
                    if key[place] == name:
                        known += spent
            return known

    def watch(self, facet: Literal["book", "day"], name: str) -> None:
        """Have `spent` know of a book or a day. Blocking. A file that cannot be read counts as
        empty, and is told in the log."""
        with self._writing:
            self.flush()
            try:
                (amounts,) = self._file.read(*_sum_of((facet, name)))
                found = Spent(*amounts)
            except (sqlite3.Error, OSError, NewerIndexError) as error:
                self._unwritten(error)
                found = Spent()
            with self._guard:
                while len(self._written) >= _WATCHED:
                    del self._written[next(iter(self._written))]
                self._written[(facet, name)] = found

    def flush(self) -> None:
        """Write now what is waiting. Blocking."""
        self._behind.now()

    def close(self) -> None:
        """Write what is waiting and close the file."""
        self.flush()
        self._file.close()

    def _write(self) -> None:
        with self._writing:
            with self._guard:
                usage, steps, watched = self._usage, self._steps, list(self._written)
                if not usage and not steps:
                    return
                self._leaving, self._usage, self._steps = usage, {}, {}
            try:
                sums = self._add_up(usage, steps, watched)
            except (sqlite3.Error, OSError, NewerIndexError) as error:
                with self._guard:
                    for key, spent in self._usage.items():
                        usage[key] = usage.get(key, Spent()) + spent
                    for step, count in self._steps.items():
                        steps[step] = steps.get(step, 0) + count
                    self._leaving, self._usage, self._steps = {}, usage, steps
                self._unwritten(error)
                return
            with self._guard:  # at one stroke: nothing is ever missing or counted twice
                self._leaving = {}
                self._written.update((k, v) for k, v in sums.items() if k in self._written)

    def _add_up(
        self,
        usage: dict[_Key, Spent],
        steps: dict[_Step, int],
        watched: Iterable[_Watch],
    ) -> dict[_Watch, Spent]:
        with self._file.transaction() as db:
            db.executemany(_ADD_USAGE, ((*key, *astuple(spent)) for key, spent in usage.items()))
            db.executemany(_ADD_STEPS, ((*key, count) for key, count in steps.items()))
            return {watch: Spent(*db.execute(*_sum_of(watch)).fetchone()) for watch in watched}

    def _unwritten(self, error: Exception) -> None:
        path = self._file.path
        what = f"usage of models cannot be written to {path}: {error}; it is kept in memory"
        if isinstance(error, sqlite3.Error) and is_damage(error):
            try:
                aside = self._file.set_aside()
            except OSError as failed:
                what += f"; moving the broken file aside failed: {failed}"
            else:
                self._warned = False
                what = f"the usage ledger {path} is broken ({error}) and begun anew"
                what += f"; the old one is {aside}" if aside else ""
        if not self._warned:
            self._warned = True
            _log.warning("%s", what)


def _sum_of(watch: _Watch) -> tuple[str, tuple[str]]:
    facet, name = watch
    return f"SELECT {_SUMS} FROM usage WHERE {facet} = ?", (name,)  # noqa: S608


def _utc_day() -> str:
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()
