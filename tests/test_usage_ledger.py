"""The ledger of usage: sums that are right whoever adds, whenever the process dies."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sqlite3
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bookrag_fast.models.ledger import Spent, UsageLedger

_SPAWN = multiprocessing.get_context("spawn")
_FORK = multiprocessing.get_context("fork")
ONE = Spent(1, 0, 0, 10, 5, 0.25)


def test_totals_by_each_facet(tmp_path: Path) -> None:
    day = "2026-01-01"
    ledger = UsageLedger(tmp_path / "usage.sqlite3", today=lambda: day)
    ledger.add(ONE, role="plan", book="", model="small")
    ledger.add(ONE, role="extract", book="b1", model="small")
    day = "2026-01-02"
    ledger.add(ONE + ONE, role="extract", book="b2", model="large")
    ledger.add(Spent(cached=3, failures=2), role="extract", book="b2", model="large")
    two = Spent(2, 0, 0, 20, 10, 0.5)
    last = Spent(2, 3, 2, 20, 10, 0.5)
    assert ledger.totals("role") == {"plan": ONE, "extract": ONE + last}
    assert ledger.totals("book") == {"": ONE, "b1": ONE, "b2": last}
    assert ledger.totals("day") == {"2026-01-01": two, "2026-01-02": last}
    assert ledger.totals("model") == {"small": two, "large": last}
    assert ledger.totals("role", book="b1") == {"extract": ONE}
    ledger.step("extract", "repaired")
    ledger.step("extract", "repaired", 2)
    ledger.step("plan", "offline")
    assert ledger.step_counts() == {"extract": {"repaired": 3}, "plan": {"offline": 1}}
    ledger.close()


def test_an_unknown_facet_is_an_error(tmp_path: Path) -> None:
    ledger = UsageLedger(tmp_path / "usage.sqlite3")
    with pytest.raises(ValueError, match="role"):
        ledger.totals("usd; DROP TABLE usage")  # type: ignore[arg-type]


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "flush", "reopen", "watch"]), st.sampled_from("ab")),
        max_size=25,
    )
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_spent_is_known_at_any_time(tmp_path: Path, steps: list[tuple[str, str]]) -> None:
    path = tmp_path / f"{time.time_ns()}.sqlite3"
    ledger = UsageLedger(path, today=lambda: "d")
    twin = {"a": Spent(), "b": Spent()}
    watched: set[str] = set()
    for step, book in steps:
        if step == "add":
            ledger.add(ONE, role="r", book=book, model="m")
            twin[book] += ONE
        elif step == "flush":
            ledger.flush()
        elif step == "reopen":
            ledger.close()
            ledger, watched = UsageLedger(path, today=lambda: "d"), set()
        else:
            ledger.watch("book", book)
            watched.add(book)
        for name, spent in twin.items():
            assert ledger.spent("book", name) == (spent if name in watched else None)
    ledger.watch("day", "d")
    assert ledger.spent("day", "d") == twin["a"] + twin["b"]
    ledger.close()


# The ledger as it was before cancelled calls were counted, and as it is written to by that version.
_BEFORE = """
CREATE TABLE usage (day TEXT NOT NULL, role TEXT NOT NULL, book TEXT NOT NULL, model TEXT NOT NULL,
    calls INTEGER NOT NULL, cached INTEGER NOT NULL, failures INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, usd REAL NOT NULL,
    PRIMARY KEY (day, role, book, model)) WITHOUT ROWID;
CREATE INDEX usage_book ON usage (book);
CREATE TABLE steps (day TEXT NOT NULL, role TEXT NOT NULL, step TEXT NOT NULL,
    count INTEGER NOT NULL, PRIMARY KEY (day, role, step)) WITHOUT ROWID;
PRAGMA journal_mode = WAL;
PRAGMA user_version = 1;
"""
_ADDED_BEFORE = (
    "INSERT INTO usage (day, role, book, model, calls, cached, failures, prompt_tokens,"
    " completion_tokens, usd) VALUES ('d', 'r', ?, 'm', 1, 0, 0, 10, 5, 0.25)"
    " ON CONFLICT DO UPDATE SET calls = calls + 1"
)


def _older(path: Path) -> sqlite3.Connection:
    """Another process of the version before, which made the ledger and goes on with it."""
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(_BEFORE)
    db.execute(_ADDED_BEFORE, ("old",))
    return db


def test_an_older_ledger_and_who_uses_it_go_on(tmp_path: Path) -> None:
    path = tmp_path / "usage.sqlite3"
    older = _older(path)
    ledger = UsageLedger(path, today=lambda: "d")
    assert ledger.totals("book") == {"old": ONE}
    ledger.add(Spent(cancelled=2), role="r", book="old", model="m")
    ledger.flush()
    older.execute(_ADDED_BEFORE, ("old",))
    older.execute(_ADDED_BEFORE, ("new",))
    twice = Spent(2, 0, 0, 10, 5, 0.25, cancelled=2)
    assert ledger.totals("book") == {"new": ONE, "old": twice}
    assert older.execute("PRAGMA user_version").fetchone() == (1,)
    older.close()
    ledger.close()
    fresh = tmp_path / "fresh.sqlite3"
    ledger = UsageLedger(fresh, today=lambda: "d")
    ledger.flush()
    assert ledger.totals("book") == {}
    older = sqlite3.connect(fresh, isolation_level=None)
    older.execute(_ADDED_BEFORE, ("b",))
    older.close()
    assert ledger.totals("book") == {"b": ONE}
    ledger.close()


def _cancels(path: Path, ready: Barrier) -> None:
    ledger = UsageLedger(path, today=lambda: "d")
    ready.wait()
    ledger.add(Spent(cancelled=1), role="r", book="old", model="m")
    ledger.close()


def test_several_processes_open_an_older_ledger_at_once(tmp_path: Path) -> None:
    path = tmp_path / "usage.sqlite3"
    _older(path).close()
    ready = _SPAWN.Barrier(4)
    four = [_SPAWN.Process(target=_cancels, args=(path, ready)) for _ in range(4)]
    for process in four:
        process.start()
    for process in four:
        process.join()
        assert process.exitcode == 0
    ledger = UsageLedger(path)
    assert ledger.totals("book") == {"old": Spent(1, 0, 0, 10, 5, 0.25, cancelled=4)}
    ledger.close()


def _adds(path: Path, count: int) -> None:
    ledger = UsageLedger(path, today=lambda: "d")
    for i in range(count):
        ledger.add(ONE, role=f"r{i % 3}", book="b", model="m")
        if i % 50 == 0:
            ledger.flush()
    ledger.close()


def test_processes_add_up(tmp_path: Path) -> None:
    path = tmp_path / "usage.sqlite3"
    three = [_SPAWN.Process(target=_adds, args=(path, 300)) for _ in range(3)]
    for process in three:
        process.start()
    for process in three:
        process.join()
        assert process.exitcode == 0
    ledger = UsageLedger(path)
    assert ledger.totals("book") == {"b": Spent(900, 0, 0, 9000, 4500, 225.0)}
    ledger.close()


def test_another_process_is_seen_after_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "usage.sqlite3"
    mine, other = (UsageLedger(path, today=lambda: "d") for _ in range(2))
    mine.watch("book", "b")
    other.add(ONE, role="r", book="b", model="m")
    other.close()
    mine.add(ONE, role="r", book="b", model="m")
    mine.flush()
    assert mine.spent("book", "b") == ONE + ONE
    mine.close()


def _adds_for_ever(path: Path, count: multiprocessing.queues.Queue[float]) -> None:
    ledger = UsageLedger(path, today=lambda: "d")
    while True:
        ledger.add(Spent(calls=1), role="r", book="b", model="m")
        count.put(time.monotonic())
        time.sleep(0.01)


def test_a_killed_process_loses_a_second_at_most(tmp_path: Path) -> None:
    path = tmp_path / "usage.sqlite3"
    count = _SPAWN.Queue()
    process = _SPAWN.Process(target=_adds_for_ever, args=(path, count))
    process.start()
    times = [count.get(timeout=60)]
    while times[-1] - times[0] < 2.0:
        times.append(count.get(timeout=60))
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    ledger = UsageLedger(path)
    kept = ledger.totals("book")["b"].calls
    assert kept >= sum(at < times[-1] - 1.0 for at in times)
    ledger.close()


def test_what_cannot_be_written_is_kept_and_written_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bookrag_fast.models.sqlite_file._WRITE_WAIT_S", 0.05)
    path = tmp_path / "usage.sqlite3"
    ledger = UsageLedger(path, today=lambda: "d")
    ledger.add(ONE, role="r", book="b", model="m")
    ledger.watch("book", "b")
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    for _ in range(3):
        ledger.add(ONE, role="r", book="b", model="m")
        ledger.step("r", "offline")
        ledger.flush()
    assert ledger.spent("book", "b") == Spent(4, 0, 0, 40, 20, 1.0)
    assert ledger.totals("book") == {"b": Spent(4, 0, 0, 40, 20, 1.0)}
    lock.execute("ROLLBACK")
    lock.close()
    ledger.close()
    assert len(caplog.records) == 1
    again = UsageLedger(path)
    assert again.totals("book") == {"b": Spent(4, 0, 0, 40, 20, 1.0)}
    assert again.step_counts() == {"r": {"offline": 3}}
    again.close()


def test_a_broken_ledger_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "usage.sqlite3"
    path.write_bytes(b"not a database at all " * 100)
    ledger = UsageLedger(path, today=lambda: "d")
    with caplog.at_level(logging.WARNING):
        ledger.add(ONE, role="r", book="b", model="m")
        ledger.flush()
        ledger.flush()
    assert ledger.totals("book") == {"b": ONE}
    assert len(list(tmp_path.glob("*.broken-*"))) == 1
    assert "begun anew" in caplog.text
    ledger.close()


def test_a_fork_does_not_count_for_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "usage.sqlite3"
    ledger = UsageLedger(path, today=lambda: "d")
    ledger.add(ONE, role="r", book="b", model="m")

    def child() -> None:
        ledger.add(ONE, role="r", book="b", model="m")
        ledger.close()

    process = _FORK.Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0
    assert ledger.totals("book") == {"b": ONE + ONE}
    ledger.close()
