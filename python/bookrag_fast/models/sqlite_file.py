"""A SQLite file that processes share: one writer at a time, readers that wait for nobody."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bookrag_fast.errors import NewerIndexError
from bookrag_fast.forks import begins_anew, keep, rests

__all__ = ["AddedColumn", "SqliteFile", "is_damage"]

_WRITE_WAIT_S = 5.0  # for other processes that write; writers are threads of their own
_READ_WAIT_S = 0.05  # readers sit on an event loop; in WAL mode they hardly ever wait


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is broken, rather than locked, full or out of reach."""
    return type(error) is sqlite3.DatabaseError  # all others are subclasses of it


class AddedColumn(NamedTuple):
    """That came into a table later. Its declaration has a default, so that older versions go on
    reading and writing past it, and the file keeps its version."""

    table: str
    name: str
    declared: str  # "INTEGER NOT NULL DEFAULT 0"


class SqliteFile:
    """Opened at first use, in WAL mode. Safe to share between threads, and to use after a fork.

    Args:
        path: the file; its folder is made.
        schema: statements that make the tables where they are not there yet.
        version: of the schema, kept as ``user_version``.
        added: columns of the schema that files of this version may lack; they get them as they are
            opened.

    Methods raise sqlite3.Error or OSError, and NewerIndexError for the file of a newer version.
    """

    def __init__(
        self, path: Path, schema: str, version: int, *, added: Sequence[AddedColumn] = ()
    ) -> None:
        self.path = path
        self._schema = schema
        self._version = version
        self._added = added
        self._inode = 0
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self.forked()
        begins_anew(self)
        rests(self)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Has nothing open while the process forks. SQLite keeps a process's locks in its memory: a
        child would take those of its parent for its own, be locked out for ever by one that writes,
        and lose what it writes when the parent closes the file."""
        with contextlib.ExitStack() as held:
            for guard in (self._write_guard, self._read_guard):
                # Not for ever: better such a child than a parent that hangs.
                if not guard.acquire(timeout=_WRITE_WAIT_S):
                    break
                held.callback(guard.release)
            else:
                self._disconnect()
            yield

    def forked(self) -> None:
        # What could not be closed in time is neither used nor closed here: both damage the file.
        keep(self._reader, self._writer)
        self._reader = self._writer = None
        self._write_guard, self._read_guard = threading.RLock(), threading.Lock()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing. Waits for other writers, so not for an event loop's thread."""
        with self._write_guard:
            if self._writer is None:
                self._writer = self._opened()
            db = self._writer
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise

    def read(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of what is committed. Some ten microseconds for a row by its key."""
        if self._reader is None:
            with self._write_guard:
                if self._writer is None:
                    self._writer = self._opened()  # makes the tables
        with self._read_guard:
            if self._reader is None:
                self._reader = self._connection(_READ_WAIT_S)
            return self._reader.execute(sql, parameters).fetchall()

    def set_aside(self) -> Path | None:
        """Rename a broken file so that the next use begins a new one; None if another process has
        done so already."""
        with self._write_guard:
            self.close()
            with contextlib.suppress(OSError):
                if self._inode and self.path.stat().st_ino != self._inode:
                    return None
            aside = self.path.with_name(f"{self.path.name}.broken-{int(time.time())}")
            for ending in ("-wal", "-shm"):
                with contextlib.suppress(OSError):
                    self.path.with_name(self.path.name + ending).unlink()
            self.path.replace(aside)
            return aside

    def close(self) -> None:
        """Use after it opens the file anew."""
        with self._write_guard, self._read_guard:
            self._disconnect()

    def _disconnect(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
        self._reader = self._writer = None

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            self.path.touch()
        self._inode = self.path.stat().st_ino
        db = self._connection(_WRITE_WAIT_S)
        try:
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if found > self._version:
                raise NewerIndexError(
                    f"{self.path} has version {found}; this version reads up to {self._version}",
                    "upgrade with `pip install -U bookrag_fast`",
                )
            if found < self._version:
                with contextlib.suppress(sqlite3.OperationalError):  # another process is at it
                    db.execute("PRAGMA journal_mode = WAL")
                db.execute("BEGIN IMMEDIATE")
                for statement in self._schema.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {self._version}")
                db.execute("COMMIT")
            if any(_lacks(db, column) for column in self._added):
                db.execute("BEGIN IMMEDIATE")
                for column in self._added:
                    if _lacks(db, column):  # still: another process may have been at it
                        db.execute(
                            f"ALTER TABLE {column.table} ADD COLUMN {column.name} {column.declared}"
                        )
                db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
        return db

    def _connection(self, wait_s: float) -> sqlite3.Connection:
        # Used from several threads, one at a time: the guards see to that.
        db = sqlite3.connect(
            self.path, timeout=wait_s, isolation_level=None, check_same_thread=False
        )
        # With WAL, NORMAL loses at most the last transactions when the machine (not the process)
        # dies, and never damages the file.
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA journal_size_limit = 16777216")
        return db


def _lacks(db: sqlite3.Connection, column: AddedColumn) -> bool:
    found = db.execute("SELECT name FROM pragma_table_info(?)", (column.table,)).fetchall()
    return (column.name,) not in found
