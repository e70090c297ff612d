"""The cache of replies as a file: several processes, kills, full disks, damage, its bound."""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bookrag_fast.models.reply_cache import ReplyCache

_SPAWN = multiprocessing.get_context("spawn")
_FORK = multiprocessing.get_context("fork")


def key(name: object) -> bytes:
    return sha256(str(name).encode()).digest()


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["put", "get", "forget", "reopen"]),
            st.integers(0, 5),
            st.binary(max_size=20),
        ),
        max_size=30,
    )
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_cache_is_a_dict_that_lasts(tmp_path: Path, steps: list[tuple[str, int, bytes]]) -> None:
    path = tmp_path / f"{time.time_ns()}.sqlite3"
    cache, twin = ReplyCache(path), dict[bytes, bytes]()
    for step, name, value in steps:
        if step == "put":
            cache.put({key(name): value})
            twin[key(name)] = value
        elif step == "forget":
            cache.forget(key(name))
            twin.pop(key(name), None)
        elif step == "reopen":
            cache.close()
            cache = ReplyCache(path)
        assert cache.get(map(key, range(6))) == twin
    cache.close()


def _puts(path: Path, who: int, count: int) -> None:
    cache = ReplyCache(path)
    for i in range(count):
        cache.put({key((who, i)): b"%d" % i})
        if i % 100 == 0:
            time.sleep(0.06)  # several transactions
    cache.close()


def test_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite3"
    both = [_SPAWN.Process(target=_puts, args=(path, who, 500)) for who in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
        assert process.exitcode == 0
    cache = ReplyCache(path)
    for who in range(2):
        assert len(cache.get(key((who, i)) for i in range(500))) == 500
    cache.close()


def _puts_for_ever(path: Path) -> None:
    cache = ReplyCache(path)
    for i in range(10**9):
        cache.put({key(i): b"%d" % i})
        time.sleep(0.0005)


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite3"
    process = _SPAWN.Process(target=_puts_for_ever, args=(path,))
    process.start()
    mine = ReplyCache(path)
    until = time.monotonic() + 30
    while not mine.get([key(200)]) and time.monotonic() < until:
        time.sleep(0.02)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    found = mine.get(map(key, range(201)))
    assert found == {key(i): b"%d" % i for i in range(201)}
    mine.put({key("after"): b"fine"})
    mine.close()
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert db.execute("SELECT 1 FROM replies WHERE key = ?", (key("after"),)).fetchone() == (1,)
    db.close()


def _fills_the_disk(path: Path, said: multiprocessing.queues.Queue[str]) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as SQLite sees it: a write that fails
    handler = logging.Handler()
    handler.emit = lambda record: said.put(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("bookrag_fast").addHandler(handler)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    cache = ReplyCache(path)
    for i in range(20):
        cache.put({key(i): os.urandom(50_000)})
        time.sleep(0.06)
    cache.get(map(key, range(20)))
    cache.close()
    said.put("done")


def test_a_full_disk_is_told_once_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite3"
    said = _SPAWN.Queue()
    process = _SPAWN.Process(target=_fills_the_disk, args=(path, said))
    process.start()
    warning, done = said.get(timeout=60), said.get(timeout=60)
    process.join()
    assert process.exitcode == 0
    assert "passed over" in warning
    assert done == "done"
    cache = ReplyCache(path)
    cache.put({key("room"): b"again"})
    cache.close()
    assert ReplyCache(path).get([key("room")]) == {key("room"): b"again"}


def test_a_locked_file_is_told_once_and_delays_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bookrag_fast.models.sqlite_file._WRITE_WAIT_S", 0.05)
    path = tmp_path / "replies.sqlite3"
    cache = ReplyCache(path)
    cache.put({key("old"): b"kept"})
    cache.close()
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    for i in range(3):
        start = time.perf_counter()
        cache.put({key(i): b"new"})
        assert cache.get([key("old")]) == {key("old"): b"kept"}
        assert time.perf_counter() - start < 1.0
        cache.close()
    lock.execute("ROLLBACK")
    lock.close()
    assert len(caplog.records) == 1
    assert "locked" in caplog.text


@pytest.mark.parametrize("harm", ["not SQLite", "cut", "pages"])
def test_a_broken_file_is_moved_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: str
) -> None:
    path = tmp_path / "replies.sqlite3"
    cache = ReplyCache(path)
    cache.put({key(i): os.urandom(3000) for i in range(200)})
    cache.close()
    data = path.read_bytes()
    if harm == "not SQLite":
        path.write_bytes(b"something else entirely, " * 100)
    elif harm == "cut":
        path.write_bytes(data[: len(data) // 3])
    else:
        path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))
    cache = ReplyCache(path)
    cache.get(map(key, range(200)))
    cache.put({key("new"): b"one"})
    cache.close()
    cache = ReplyCache(path)
    assert cache.get([key("new")]) == {key("new"): b"one"}
    cache.close()
    assert len(list(tmp_path.glob("*.broken-*"))) == 1
    assert "begun anew" in caplog.text


def test_two_processes_move_a_broken_file_aside_once(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite3"
    one, two = ReplyCache(path), ReplyCache(path)
    for cache in (one, two):
        cache.put({key("x"): b"x"})
        cache.close()
    path.write_bytes(b"something else entirely, " * 100)
    one = ReplyCache(path)
    one.put({key("kept"): b"by one"})
    one.close()
    two._file._inode = 1  # the other one had the old file open
    assert two._file.set_aside() is None
    assert two.get([key("kept")]) == {key("kept"): b"by one"}
    two.close()


def test_changed_bytes_are_no_reply(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite3"
    cache = ReplyCache(path)
    cache.put({key("a"): b"good", key("b"): b"good"})
    cache.close()
    db = sqlite3.connect(path)
    value = db.execute("SELECT value FROM replies WHERE key = ?", (key("a"),)).fetchone()[0]
    changed = value[:-1] + b"\x00"
    db.execute("UPDATE replies SET value = ? WHERE key = ?", (changed, key("a")))
    db.commit()
    db.close()
    assert cache.get([key("a"), key("b")]) == {key("b"): b"good"}
    cache.close()


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite3"
    cache = ReplyCache(path, max_mb=1)
    for i in range(300):
        cache.put({key(i): os.urandom(5_000)})
        if i % 10 == 0:
            assert cache.get([key(0)])  # used all the time
            cache._behind.now()
    cache.close()
    assert path.stat().st_size < 1.3 * 2**20
    found = [i for i in range(300) if cache.get([key(i)])]
    assert found[0] == 0
    assert found[1:] == list(range(found[1], 300))  # the latest, without a gap
    assert 0.85 * 2**20 < len(found) * 5_000 < 2**20
    cache.close()


def test_a_fork_writes_its_own_replies_only(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite3"
    cache = ReplyCache(path)
    cache.put({key("parent"): b"p"})
    cache.get([key("parent")])

    def child() -> None:
        cache.put({key("child"): b"c"})
        cache.close()

    process = _FORK.Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0
    cache.close()
    found = cache.get([key("parent"), key("child")])
    assert found == {key("parent"): b"p", key("child"): b"c"}
    cache.close()


def _leaves_without_closing(path: Path, daemon: bool) -> None:
    cache = ReplyCache(path)
    thread = threading.Thread(target=lambda: cache.put({key("x"): b"x"}), daemon=daemon)
    thread.start()
    thread.join()


@pytest.mark.parametrize("daemon", [False, True])
def test_a_process_that_ends_without_closing_loses_nothing(tmp_path: Path, daemon: bool) -> None:
    """Also what came from a daemon's thread, as those of loops are."""
    path = tmp_path / "replies.sqlite3"
    process = _SPAWN.Process(target=_leaves_without_closing, args=(path, daemon))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert ReplyCache(path).get([key("x")]) == {key("x"): b"x"}


@pytest.mark.parametrize("method", ["get", "put", "forget", "close"])
def test_a_folder_that_cannot_be_made_is_no_obstacle(tmp_path: Path, method: str) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = ReplyCache(tmp_path / "file" / "replies.sqlite3")
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: cache.get([key(1)]),
        "put": lambda: cache.put({key(1): b"1"}),
        "forget": lambda: cache.forget(key(1)),
        "close": lambda: None,
    }
    assert not calls[method]()
    cache.close()
