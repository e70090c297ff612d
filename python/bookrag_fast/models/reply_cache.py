"""Replies of models kept in a file, so that nothing is paid for twice.

What is kept goes by the hash of everything that shaped it (`middleware.keys`). A cache is a
convenience: whatever is wrong with its file is told once in the log, and calls go on without it.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from bookrag_fast.errors import NewerIndexError
from bookrag_fast.forks import begins_anew
from bookrag_fast.models.sqlite_file import SqliteFile, is_damage
from bookrag_fast.models.write_behind import WriteBehind

__all__ = ["ReplyCache"]

_log = logging.getLogger(__name__)

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY,  -- SHA-256
    used INTEGER NOT NULL,  -- nanoseconds since 1970
    size INTEGER NOT NULL,
    value BLOB NOT NULL  -- CRC-32 of the rest, 4 bytes
);
CREATE INDEX IF NOT EXISTS replies_used ON replies (used, size)
"""
_DELAY_S = 0.05  # what a killed process loses of its replies
_ROW_BYTES = 150  # of key, index and frame, about
_KEEP = 0.9  # of the bound, after some were dropped
_WAITING_BYTES = 64 << 20  # of replies to be written; more are not kept
_AT_ONCE = 500  # keys of one query


class ReplyCache:
    """Bytes by key, in SQLite. Safe for several threads and processes; no method ever raises.

    Reading is quick enough for an event loop; writing is done behind, on another thread.

    Args:
        path: the file; made if it is not there.
        max_mb: its bound in MiB. Beyond it the least recently used replies go.
        marking: whether a reply that is read counts as used, which is written to the file.
    """

    def __init__(self, path: Path, max_mb: int = 1024, *, marking: bool = True) -> None:
        self._marking = marking
        self._file = SqliteFile(path, _SCHEMA, _VERSION)
        self._max_bytes = max_mb << 20
        self._behind = WriteBehind(self._write, _DELAY_S)
        self._warned = False
        self.forked()
        begins_anew(self)
        self.get([b""])  # opens the file here rather than on a loop

    def forked(self) -> None:
        # What waits here is the parent's to write.
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[bytes, bytes] = {}
        self._waiting_bytes = 0
        self._touched: dict[bytes, int] = {}

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Those of the values that there are."""
        found: dict[bytes, bytes] = {}
        missing = []
        with self._guard:
            for key in keys:
                value = self._waiting.get(key)
                if value is None:
                    missing.append(key)
                else:
                    found[key] = value
        try:
            for start in range(0, len(missing), _AT_ONCE):
                part = missing[start : start + _AT_ONCE]
                places = ",".join("?" * len(part))
                rows = self._file.read(
                    f"SELECT key, value FROM replies WHERE key IN ({places})",  # noqa: S608
                    part,
                )
                for key, framed in rows:
                    value = _unframed(framed)
                    if value is not None:
                        found[key] = value
        except (sqlite3.Error, OSError, NewerIndexError) as error:
            self._passed_over(error)
            return found
        if self._marking and found and missing:
            now = time.time_ns()
            with self._guard:
                self._touched.update((key, now) for key in missing if key in found)
            self._behind.due()
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep values, in place of earlier ones of the same keys. They can be had at once, and are
        in the file 50 ms later."""
        with self._guard:
            for key, value in values.items():
                size = len(value)
                if size + self._waiting_bytes <= _WAITING_BYTES and size <= self._max_bytes // 8:
                    self._waiting_bytes += size - len(self._waiting.get(key, b""))
                    self._waiting[key] = value
        self._behind.due()

    def forget(self, key: bytes) -> None:
        """Drop a value. Blocks while others write."""
        with self._writing, self._guard:
            self._waiting_bytes -= len(self._waiting.pop(key, b""))
            self._touched.pop(key, None)
        try:
            with self._file.transaction() as db:
                db.execute("DELETE FROM replies WHERE key = ?", (key,))
        except (sqlite3.Error, OSError, NewerIndexError) as error:
            self._passed_over(error)

    def close(self) -> None:
        """Write what is waiting and close the file."""
        self._behind.now()
        self._file.close()

    def _write(self) -> None:
        with self._writing:
            with self._guard:
                values, touched = dict(self._waiting), self._touched
                self._touched = {}
            if not values and not touched:
                return
            try:
                self._store(values, touched)
            except (sqlite3.Error, OSError, NewerIndexError) as error:
                self._passed_over(error)
            with self._guard:  # only now: until they were in the file they were to be had here
                for key, value in values.items():
                    if self._waiting.get(key) is value:
                        del self._waiting[key]
                        self._waiting_bytes -= len(value)

    def _store(self, values: Mapping[bytes, bytes], touched: Mapping[bytes, int]) -> None:
        now = time.time_ns()
        with self._file.transaction() as db:
            db.executemany(
                "UPDATE replies SET used = ?2 WHERE key = ?1 AND used < ?2", touched.items()
            )
            db.executemany(
                "INSERT OR REPLACE INTO replies (key, used, size, value) VALUES (?, ?, ?, ?)",
                (
                    # One later than the other, so that "least recently" is never a tie.
                    (key, now + turn, len(value), _framed(value))
                    for turn, (key, value) in enumerate(values.items())
                ),
            )
            if values:
                self._shrink(db)

    def _shrink(self, db: sqlite3.Connection) -> None:
        if _used_bytes(db) <= self._max_bytes:
            return
        while (excess := _used_bytes(db) - int(_KEEP * self._max_bytes)) > 0:
            rows = db.execute("SELECT used, size FROM replies ORDER BY used")
            freed = 0
            oldest = []
            for used, size in rows:
                oldest.append((used,))
                freed += size + _ROW_BYTES
                if freed >= excess:
                    break
            if not oldest:
                return
            rows.close()
            db.executemany("DELETE FROM replies WHERE used = ?", oldest)

    def _passed_over(self, error: Exception) -> None:
        path = self._file.path
        what = f"the cache of replies {path} is passed over: {error}"
        if isinstance(error, sqlite3.Error) and is_damage(error):
            try:
                aside = self._file.set_aside()
            except OSError as failed:
                what += f"; moving it aside failed: {failed}"
            else:
                self._warned = aside is None  # a new file, a new warning
                what = f"the cache of replies {path} is broken ({error}) and begun anew"
                what += f"; the old one is {aside}" if aside else ""
        if not self._warned:
            self._warned = True
            _log.warning("%s", what)


def _used_bytes(db: sqlite3.Connection) -> int:
    page, pages, free = (
        int(db.execute(f"PRAGMA {what}").fetchone()[0])
        for what in ("page_size", "page_count", "freelist_count")
    )
    return page * (pages - free)


def _framed(value: bytes) -> bytes:
    return zlib.crc32(value).to_bytes(4, "little") + value


def _unframed(framed: object) -> bytes | None:
    """The value, or None for what a failing disk or another program made of it."""
    if not isinstance(framed, bytes) or len(framed) < 4:
        return None
    value = framed[4:]
    return value if zlib.crc32(value) == int.from_bytes(framed[:4], "little") else None
