"""A process that has called models forks: parent and child go on, apart from each other."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bookrag_fast.config import Settings
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.create import create_models
from bookrag_fast.models.endpoints import ChatEndpoint
from bookrag_fast.models.middleware.guarded import GuardedLanguageModel
from bookrag_fast.models.middleware.stack import Services
from endpoint_settings import chat_settings, request
from fake_endpoint import FakeEndpoint, after, chat

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")


def repeated(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


@pytest.fixture
def server() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(after(0.02, chat(repeated))) as server:
        yield server


@pytest.fixture
def model(server: FakeEndpoint, tmp_path: Path) -> Iterator[GuardedLanguageModel]:
    from bookrag_fast.models.ledger import UsageLedger

    settings = chat_settings(server.base_url, concurrency=2)
    services = Services(LoopRunner(), UsageLedger(tmp_path / "usage.sqlite"))
    yield GuardedLanguageModel(ChatEndpoint("m", settings), settings, services)
    services.runner.close()
    services.close()


def asked(model: GuardedLanguageModel, *texts: str) -> list[str]:
    return [model.runner.run(model.complete(request(text))).text for text in texts]


def in_child(work: Callable[[], object], seconds: float = 10.0) -> Callable[[], object]:
    """Starts work in a forked child; what it returned can be called for."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            threading.Timer(seconds, os._exit, (1,)).start()  # it hangs
            os.write(writing, json.dumps(work()).encode())
        except BaseException as error:
            os.write(writing, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.close(writing)

    def result() -> object:
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read()
        os.waitpid(process, 0)
        assert said, "the child hangs"
        return json.loads(said)

    return result


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
