"""The shelf's catalogue: which books there are and which folder holds each. SQLite in WAL mode.

A book exists from the moment its row is committed; folders without a row are leftovers. Each
call opens its own short transaction, so that threads and processes can share a shelf.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bookrag_fast.errors import LibraryError, NewerIndexError, ShelfBusyError
from bookrag_fast.forks import begins_anew, keep, rests
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.library.types import Book

__all__ = ["Catalogue"]

_SCHEMA_VERSION = 1
_BUSY_TIMEOUT_S = 10.0
_REST_WAIT_S = 5.0  # of a fork and of closing, for transactions under way
_SCHEMA = """
CREATE TABLE IF NOT EXISTS books (
    id TEXT PRIMARY KEY,
    folder TEXT NOT NULL UNIQUE,
    sha256 TEXT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    created TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    summary TEXT NOT NULL  -- JSON: the rest of `Book`
);
CREATE INDEX IF NOT EXISTS books_sha256 ON books (sha256);
"""


class _Handle:
    """A thread's connection, closed when the thread ends or the catalogue is."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.process = os.getpid()
        self.closed = False

    def close(self) -> None:
        self.closed = True
        if self.process == os.getpid():
            with contextlib.suppress(sqlite3.Error):
                self.connection.close()
        else:  # forked: to use it damages the file, and so may to close it
            keep(self.connection)

    __del__ = close


class Catalogue:
    """Rows of books. Every method may raise ShelfBusyError or LibraryError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._open: weakref.WeakSet[_Handle] = weakref.WeakSet()
        self._closed = False
        self.forked()
        begins_anew(self)
        rests(self)
        with self._transaction() as db:
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if found > _SCHEMA_VERSION:
                raise NewerIndexError(
                    f"{path} has catalogue version {found}; this version reads up to "
                    f"{_SCHEMA_VERSION}",
                    "upgrade with `pip install -U bookrag_fast`",
                )
        if found == _SCHEMA_VERSION:
            return
        with self._transaction(write=True) as db:
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Has no connection open while the process forks, for SQLite keeps a process's locks in its
        memory: a child would take those of its parent for its own."""
        with self._nothing_running() as so:
            if so:  # else: better such a child than a parent that hangs
                self._disconnect()
            yield

    def forked(self) -> None:
        self._change = threading.Condition()
        self._running = 0  # transactions
        self._waited_for = 0  # times that an end of all transactions is waited for

    def books(self) -> list[Book]:
        """All books, oldest first."""
        with self._transaction() as db:
            rows = db.execute("SELECT summary FROM books ORDER BY created, id").fetchall()
        return [_book(row[0]) for row in rows]

    def folders(self) -> dict[str, str]:
        """Book id → folder name."""
        with self._transaction() as db:
            rows = db.execute("SELECT id, folder FROM books").fetchall()
        return {str(book_id): _plain(folder) for book_id, folder in rows}

    def find(self, ref: str) -> list[Book]:
        """Books whose id is or starts with ``ref``, or whose title or file name is ``ref``; an
        exact id alone if there is one."""
        ref = ref.encode("utf-8", "replace").decode()  # SQLite takes no lone surrogates
        with self._transaction() as db:
            exact = db.execute("SELECT summary FROM books WHERE id = ?", (ref,)).fetchall()
            if exact:
                return [_book(exact[0][0])]
            rows = db.execute(
                "SELECT summary FROM books WHERE title = ?1 OR name = ?1"
                " OR (length(?1) >= 4 AND substr(id, 1, length(?1)) = ?1) ORDER BY created, id",
                (ref,),
            ).fetchall()
        return [_book(row[0]) for row in rows]

    def version(self, book_id: str) -> tuple[Book, str] | None:
        """The book of an id and the fingerprint of its embedding model."""
        with self._transaction() as db:
            row = db.execute(
                "SELECT summary, fingerprint FROM books WHERE id = ?", (book_id,)
            ).fetchone()
        return None if row is None else (_book(row[0]), str(row[1]))

    def put(self, book: Book, folder: str, fingerprint: str) -> str | None:
        """Publish a book, in place of an earlier version of it, whose folder is returned."""
        with self._transaction(write=True) as db:
            old = db.execute("SELECT folder FROM books WHERE id = ?", (book.id,)).fetchone()
            db.execute(
                "INSERT OR REPLACE INTO books"
                " (id, folder, sha256, name, title, created, fingerprint, summary)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    book.id,
                    folder,
                    book.sha256,
                    book.name,
                    book.title,
                    book.created,
                    fingerprint,
                    json.dumps(book.to_json(), ensure_ascii=False),
                ),
            )
        return None if old is None else _plain(old[0])

    def delete(self, book_id: str) -> str | None:
        """Take a book out; its folder, or None if it was not there (any more)."""
        with self._transaction(write=True) as db:
            row = db.execute("SELECT folder FROM books WHERE id = ?", (book_id,)).fetchone()
            db.execute("DELETE FROM books WHERE id = ?", (book_id,))
        return None if row is None else _plain(row[0])

    def check(self) -> str:
        """SQLite's own verdict on the file: "ok" or what is wrong."""
        with self._transaction() as db:
            return str(db.execute("PRAGMA quick_check(1)").fetchone()[0])

    def close(self) -> None:
        """Returns when the transactions under way have ended; none begins after it."""
        with self._nothing_running() as so:
            self._closed = True
            if so:  # else each is closed when its thread lets go of it
                self._disconnect()
            self._local = threading.local()

    def _disconnect(self) -> None:
        for handle in list(self._open):
            handle.close()
        self._open.clear()

    @contextmanager
    def _nothing_running(self) -> Iterator[bool]:
        """Whether all transactions have ended, in time; none begins meanwhile."""
        with self._change:
            self._waited_for += 1
            try:
                yield self._change.wait_for(lambda: not self._running, _REST_WAIT_S)
            finally:
                self._waited_for -= 1
                self._change.notify_all()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._change:
            self._change.wait_for(lambda: not self._waited_for)
            if self._closed:
                raise LibraryError("the library is closed", "open it again with Library.open")
            self._running += 1
        try:
            yield
        finally:
            with self._change:
                self._running -= 1
                self._change.notify_all()

    @contextmanager
    def _transaction(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            with self._counted():
                handle = self._handle()  # held: to let go of it would close it
                db = handle.connection
                db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield db
                    db.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back already
                        db.execute("ROLLBACK")
                    raise
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise ShelfBusyError(
                    f"{self._path} stayed locked by another process for {_BUSY_TIMEOUT_S:.0f} s",
                    "try again when it has finished",
                ) from error
            raise self._broken(error) from error
        except sqlite3.DatabaseError as error:
            raise self._broken(error) from error

    def _broken(self, error: sqlite3.Error) -> LibraryError:
        return LibraryError(
            f"the catalogue {self._path} cannot be used: {error}",
            "check the folder's permissions and free space; if the file is damaged, move it away "
            "and index the books again",
        )

    def _handle(self) -> _Handle:
        """One connection a thread: SQLite connections are not to be shared between transactions."""
        handle: _Handle | None = getattr(self._local, "handle", None)
        if handle is None or handle.closed or handle.process != os.getpid():
            connection = sqlite3.connect(
                self._path,
                timeout=_BUSY_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,  # closed by whichever thread closes the library
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a published book survives a power cut
            handle = _Handle(connection)
            with self._change:
                self._open.add(handle)
            self._local.handle = handle
        return handle


def _book(summary: str) -> Book:
    try:
        found = json.loads(summary)
        fields = {f.name: found[f.name] for f in dataclasses.fields(Book) if f.name in found}
        fields["warnings"] = tuple(fields.get("warnings", ()))
        fields["models"] = tuple(map(ModelUse.from_json, fields.get("models", ())))
        return Book(**fields)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise LibraryError(
            f"the catalogue has a damaged entry: {error}",
            "move catalogue.sqlite away and index the books again",
        ) from error


def _plain(folder: object) -> str:
    """A folder name as this module wrote it: what is emptied on its word lies on the shelf."""
    if not isinstance(folder, str) or "/" in folder or folder in ("", ".", ".."):
        raise LibraryError(
            f"the catalogue names the folder {folder!r}, which is none of the shelf's",
            "move catalogue.sqlite away and index the books again",
        )
    return folder
