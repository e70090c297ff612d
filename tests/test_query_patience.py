"""Questions that cannot wait for ever: what a silent model costs, and what the rules are left."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from asking import EMBEDDER, THICK, ask, executor
from bookrag_fast import Library
from bookrag_fast.config import Settings
from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.models.create import LEDGER_FILE
from bookrag_fast.models.ledger import UsageLedger
from bookrag_fast.models.roles import USUAL, Outcome, Role
from bookrag_fast.prompts import RenderedPrompt
from bookrag_fast.server import Client
from fake_endpoint import FakeEndpoint
from fake_faults import hang, refuse
from scripted_model import ScriptedModel
from server_helpers import make_pdf, running

ROLES = (Role.PLAN, Role.EXTRACT, Role.ANSWER)


async def _never(prompt: RenderedPrompt) -> str:
    await asyncio.sleep(3600)
    return ""


def _hanging() -> dict[Role, Any]:
    return {role: ScriptedModel(role, _never) for role in ROLES}


@pytest.mark.parametrize("streamed", [False, True])
def test_the_rules_answer_in_time_where_models_do_not(streamed: bool) -> None:
    by_rules = ask(executor(), THICK)
    heard: list[str] = []
    more: dict[str, Any] = {"on_text": heard.append} if streamed else {}
    started = time.monotonic()
    answer = ask(executor(_hanging()), THICK, timeout_s=1.0, **more)
    assert time.monotonic() - started < 1.0
    assert answer.text == by_rules.text
    assert answer.citations == by_rules.citations
    assert any("no time left" in note for note in answer.notes)


def test_a_stream_that_stops_is_given_up_in_time() -> None:
    class Stopping(ScriptedModel):
        async def stream(self, prompt: RenderedPrompt, terms: Any = USUAL) -> Any:
            yield "The plate"
            await asyncio.sleep(3600)

    heard: list[str] = []
    model = Stopping(Role.ANSWER, lambda _: "")
    answer = ask(executor({Role.ANSWER: model}), THICK, timeout_s=0.6, on_text=heard.append)
    assert heard[0] == "The plate"
    assert answer.text.startswith("The plate")
    assert answer.citations  # by the book's own sentences


def test_a_model_that_is_not_to_be_had_is_waited_for_once() -> None:
    class Silent(ScriptedModel):
        async def ask(self, prompt: RenderedPrompt, schema: Any, terms: Any = USUAL) -> Any:
            self.asked.append(prompt)
            return Outcome(None, problem="it did not answer", silent=True)

    models = {role: Silent(role, lambda _: None) for role in ROLES}
    answer = ask(executor(models), THICK)
    assert sum(len(model.asked) for model in models.values()) == 1
    assert answer.text == ask(executor(), THICK).text
    assert sum("not to be had" in note for note in answer.notes) >= 1


def test_a_server_that_is_down_is_hardly_waited_for(tmp_path: Path) -> None:
    """Two models of the settings on it, in all roles of a question: no role goes through all its
    retries, and what the model did not write is counted."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # and does not listen: connections are refused
        at = {"base_url": f"http://127.0.0.1:{deaf.getsockname()[1]}/v1", "model": "m"}
        settings = Settings.model_validate(
            {
                "models": {"small": {**at, "retries": 20}, "seeing": {**at, "retries": 20}},
                "roles": {"plan": "small", "extract": "small", "answer": "seeing"},
                "isolate_reader": False,
            }
        )
        with Library.open(tmp_path / "shelf", settings=settings) as lib:
            lib.add(make_pdf(tmp_path / "bench.pdf"))
            answer = lib.ask("At which pressure does the relief valve open?")
    assert "12 bar" in answer.text
    assert any("cannot be reached" in note for note in answer.notes)
    ledger = UsageLedger(tmp_path / "shelf" / LEDGER_FILE)
    spent, steps = ledger.totals("role"), ledger.step_counts()
    ledger.close()
    assert spent["answer"].failures == 2
    assert all(role.failures <= 2 for role in spent.values())
    assert steps["answer"] == {"offline": 1}


@pytest.mark.parametrize("timeout_s", [None, 0.6])
def test_what_a_model_was_not_asked_counts_as_answered_by_rules(
    tmp_path: Path, timeout_s: float | None
) -> None:
    """Because it failed before in this question, or there was no time."""
    with FakeEndpoint(hang() if timeout_s else refuse()) as server:
        one = {"base_url": server.base_url, "model": "m", "retries": 0}
        settings = Settings.model_validate(
            {
                "models": {"one": one},
                "roles": {"plan": "one", "answer": "one"},
                "isolate_reader": False,
            }
        )
        with Library.open(tmp_path / "shelf", settings=settings) as lib:
            lib.add(make_pdf(tmp_path / "bench.pdf"))
            answer = lib.ask("At which pressure does the relief valve open?", timeout_s=timeout_s)
    assert any("quoted from the book instead" in note for note in answer.notes)
    ledger = UsageLedger(tmp_path / "shelf" / LEDGER_FILE)
    steps = ledger.step_counts()
    ledger.close()
    assert steps == {"answer": {"offline": 1}, "plan": {"offline": 1}}


def test_a_deadline_over_grpc_leaves_the_rules_time(tmp_path: Path) -> None:
    with FakeEndpoint(hang()) as server:
        small = {"base_url": server.base_url, "model": "m"}
        settings = Settings.model_validate(
            {"models": {"small": small}, "roles": {role.value: "small" for role in ROLES}}
        )
        with Library.open(tmp_path / "shelf", settings=settings) as lib:
            lib.add(make_pdf(tmp_path / "bench.pdf"))
            with running(lib) as address, Client(address) as client:
                answer = client.ask("At which pressure does the relief valve open?", timeout=3.0)
    assert "12 bar" in answer.text
    assert len(server.calls) <= 2  # the plan and the look-up, at once; nothing after them
    assert any("planned by rules" in note for note in answer.notes)


def test_a_length_of_time_is_above_zero(tmp_path: Path) -> None:
    with Library.open(tmp_path / "shelf", embedder=EMBEDDER) as lib:
        for wrong in (0, -1.0, float("nan"), "2", True):
            with pytest.raises(InvalidArgumentError, match="timeout_s"):
                lib.ask(THICK, timeout_s=wrong)  # type: ignore[arg-type]
