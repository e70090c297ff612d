"""A process that has called models forks: parent and child go on, apart from each other."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bookrag_fast.config import Settings
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.create import create_models
from bookrag_fast.models.endpoints import ChatEndpoint
from bookrag_fast.models.ledger import Spent, UsageLedger
from bookrag_fast.models.middleware.guarded import GuardedLanguageModel
from bookrag_fast.models.middleware.stack import Services
from bookrag_fast.models.reply_cache import ReplyCache
from endpoint_settings import chat_settings, request
from fake_endpoint import FakeEndpoint, after, chat
from forking import held_by_a_thread, in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")


def repeated(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


@pytest.fixture
def server() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(after(0.02, chat(repeated))) as server:
        yield server


@pytest.fixture
def model(server: FakeEndpoint, tmp_path: Path) -> Iterator[GuardedLanguageModel]:
    settings = chat_settings(server.base_url, concurrency=2)
    services = Services(LoopRunner(), UsageLedger(tmp_path / "usage.sqlite"))
    yield GuardedLanguageModel(ChatEndpoint("m", settings), settings, services)
    services.runner.close()
    services.close()


def asked(model: GuardedLanguageModel, *texts: str) -> list[str]:
    return [model.runner.run(model.complete(request(text))).text for text in texts]


def test_parent_and_child_ask_at_the_same_time(model: GuardedLanguageModel) -> None:
    """Over one connection each would read the other's reply."""
    assert asked(model, "before") == ["before"]  # its connection is kept open
    mine, childs = [f"parent {i}" for i in range(5)], [f"child {i}" for i in range(5)]
    result = in_child(lambda: asked(model, *childs))
    assert asked(model, *mine) == mine
    assert result() == childs


def test_a_child_is_awaited_on_a_loop_of_its_own(model: GuardedLanguageModel) -> None:
    asked(model, "before")
    result = in_child(lambda: asyncio.run(model.complete(request("child"))).text)
    assert result() == "child"


def test_calls_of_the_parent_hold_no_place_in_the_child(
    model: GuardedLanguageModel, server: FakeEndpoint
) -> None:
    server.behaviour = after(0.3, chat(repeated))
    threads = [threading.Thread(target=asked, args=(model, f"{i}")) for i in range(4)]
    for thread in threads:
        thread.start()
    assert server.wait_until(lambda s: len(s.calls) == 2)
    assert in_child(lambda: asked(model, "child"))() == ["child"]
    for thread in threads:
        thread.join()


def test_reservations_of_the_parent_are_not_the_childs(
    server: FakeEndpoint, tmp_path: Path
) -> None:
    settings = Settings.model_validate(
        {
            "models": {"m": {"base_url": server.base_url, "model": "fake-1"}},
            "roles": {"answer": "m"},
            "cache": {"enabled": False},
            "budget": {"tokens_per_day": 800},  # one call of 512 expected tokens at a time
        }
    )
    runner = LoopRunner()
    models = create_models(settings, folder=tmp_path, runner=runner)
    (role,) = models.roles.values()
    model = role._model  # type: ignore[attr-defined]
    server.behaviour = after(0.3, chat(repeated))
    thread = threading.Thread(target=asked, args=(model, "parent"))
    thread.start()
    assert server.wait_until(lambda s: len(s.calls) == 1)
    assert in_child(lambda: asked(model, "child"))() == ["child"]
    thread.join()
    runner.close(models.aclose)


# --- the files that processes share ---------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[UsageLedger]:
    ledger = UsageLedger(tmp_path / "usage.sqlite", today=lambda: "d")
    booked(ledger)  # its file is open
    yield ledger
    ledger.close()


def booked(ledger: UsageLedger) -> None:
    ledger.add(Spent(calls=1), role="r", book="b", model="m")
    ledger.flush()


def calls(ledger: UsageLedger) -> int:
    return ledger.totals("book")["b"].calls


def test_what_a_child_writes_outlives_its_parents_file(ledger: UsageLedger) -> None:
    """SQLite would take away the log under it, where the child holds no lock of its own."""
    (opened, opens), (closed, closes) = os.pipe(), os.pipe()

    def child() -> None:
        booked(ledger)
        os.write(opens, b"!")
        os.read(closed, 1)
        booked(ledger)
        ledger.close()

    result = in_child(child)
    os.read(opened, 1)
    ledger.close()
    os.write(closes, b"!")
    assert result() is None
    assert calls(ledger) == 3
    for pipe in (opened, opens, closed, closes):
        os.close(pipe)


def test_a_child_is_not_locked_out_by_what_its_parent_was_writing(ledger: UsageLedger) -> None:
    written = threading.Event()

    def write_slowly() -> None:
        with ledger._file.transaction():
            written.set()
            threading.Event().wait(0.2)  # as a slow disk

    def child() -> int:
        booked(ledger)
        return len(ledger._usage)  # what could not be written

    writer = threading.Thread(target=write_slowly)
    writer.start()
    written.wait()
    assert in_child(child)() == 0
    writer.join()
    assert calls(ledger) == 2


def test_forks_while_threads_write(ledger: UsageLedger) -> None:
    over = threading.Event()
    added = []

    def write() -> None:
        while not over.is_set():
            booked(ledger)
            added.append(1)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for _ in range(10):
        assert in_child(lambda: booked(ledger))() is None
    over.set()
    for writer in writers:
        writer.join()
    assert calls(ledger) == 1 + 10 + len(added)


def test_locks_that_threads_hold_are_free_in_the_child(ledger: UsageLedger, tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    held, over = threading.Event(), threading.Event()
    locks = (ledger._guard, ledger._writing, cache._guard, cache._writing)
    behinds = (ledger._behind._guard, cache._behind._guard)

    def hold() -> None:
        for lock in (*locks, *behinds):
            lock.acquire()
        held.set()
        over.wait()
        for lock in (*locks, *behinds):
            lock.release()

    def child() -> list[str]:
        booked(ledger)
        cache.put({b"key": b"value"})
        cache.close()
        return [value.decode() for value in cache.get([b"key"]).values()]

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    assert in_child(child)() == ["value"]
    over.set()
    holder.join()
    assert calls(ledger) == 2
    cache.close()


def test_a_process_forks_though_a_file_is_locked_for_long(
    ledger: UsageLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bookrag_fast.models.sqlite_file._WRITE_WAIT_S", 0.05)
    with held_by_a_thread(ledger._file.transaction()):
        assert in_child(lambda: "forked")() == "forked"
    booked(ledger)
    assert calls(ledger) == 2
