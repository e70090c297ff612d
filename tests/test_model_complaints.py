"""What the log says of models that fail."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from bookrag_fast.errors import ModelError, ModelRefusedError, ModelUnavailableError
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.endpoints import ChatEndpoint
from bookrag_fast.models.ledger import UsageLedger
from bookrag_fast.models.middleware.guarded import GuardedLanguageModel
from bookrag_fast.models.middleware.stack import Services
from endpoint_settings import PROMPT, chat_settings
from endpoint_settings import request as chat_request
from fake_endpoint import FakeEndpoint
from fake_faults import status
from inner_models import Inner, request, services, settings
from virtual_time import virtually


def model_of(inner: Inner, folder: Path) -> GuardedLanguageModel:
    return GuardedLanguageModel(inner, settings(retries=0), services(folder))


async def failed(model: GuardedLanguageModel, text: str, role: str = "plan") -> None:
    with pytest.raises(ModelError):
        await model.complete(request(text, role=role))


def test_one_line_a_minute_tells_what_failed_and_how_often(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = model_of(Inner(lambda n, _: ModelRefusedError(f"no {n}\nat all")), tmp_path)

    async def story() -> None:
        for i in range(4):
            await failed(model, str(i))
        await asyncio.sleep(60.1)
        await failed(model, "later", "answer")
        await asyncio.sleep(60.1)
        await failed(model, "last", "answer")

    virtually(story())
    assert [record.getMessage() for record in caplog.records] == [
        "model small failed for plan: no 0 at all",
        "model small failed for answer: no 4 at all (3 more failures were not told)",
        "model small failed for answer: no 5 at all",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert all(record.name.startswith("bookrag_fast.models.") for record in caplog.records)


def test_an_attempt_that_is_made_again_is_not_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inner = Inner(lambda n, _: "up" if n else ModelUnavailableError("refused"))
    model = GuardedLanguageModel(inner, settings(), services(tmp_path))
    virtually(model.complete(request()))
    assert inner.calls == 2
    assert caplog.records == []


def test_the_circuit_is_told_when_it_opens_and_when_it_closes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    up = False

    def does(n: int, _: Any) -> Any:
        return "up" if up else ModelUnavailableError("refused")

    model = model_of(Inner(does), tmp_path)

    async def story() -> None:
        nonlocal up
        for i in range(8):
            await failed(model, str(i))
        await failed(model, "probes")  # which opens it for longer
        await asyncio.sleep(9)
        up = True
        await model.complete(request("probe"))
        await model.complete(request("other"))

    virtually(story())
    assert [r.getMessage() for r in caplog.records if r.name.endswith("breaker")] == [
        "model small is left alone until its server answers again",
        "model small answers again",
    ]


def test_neither_key_nor_question_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also of a server that repeats both."""
    runner = LoopRunner()
    with FakeEndpoint(status(400, f"{PROMPT} is not for plain-and-secret")) as server:
        chosen = chat_settings(server.base_url, api_key="plain-and-secret")
        shared = Services(runner, UsageLedger(tmp_path / "usage.sqlite"))
        endpoint = ChatEndpoint("small", chosen)
        model = GuardedLanguageModel(endpoint, chosen, shared)
        with pytest.raises(ModelRefusedError):
            runner.run(model.complete(chat_request(role="answer")))
        runner.close(endpoint.aclose)
    shared.close()
    (line,) = (record.getMessage() for record in caplog.records)
    assert "model small failed for answer: " in line
    assert "answered 400: … is not for ***" in line
