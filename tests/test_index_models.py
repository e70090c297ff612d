"""Indexing with models through a Library: what is told, what is kept, what survives a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bookrag_fast import Library
from bookrag_fast.config import Settings
from bookrag_fast.library import Progress
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.ledger import UsageLedger
from bookrag_fast.models.roles import ModelSet, Role
from bookrag_fast.prompts import RenderedPrompt
from conftest import heed_interrupts
from factories import HashEmbedder
from fake_endpoint import FakeEndpoint, ok
from pdf_factory import LOREM, make_pdf
from scripted_model import ScriptedModel


def _chapters(path: Path, count: int) -> Path:
    """A page with a heading and text for each chapter; none is numbered."""

    def draw(k: int) -> Callable[[Any], None]:
        def page(canvas: Any) -> None:
            canvas.setFont("Helvetica-Bold", 16)
            canvas.drawString(72, 740, f"The mill of valley {k}")
            canvas.setFont("Helvetica", 10)
            words = f"{LOREM} of valley {k} ".split()
            for row in range(40):
                canvas.drawString(72, 700 - 14 * row, " ".join((words * 20)[row * 9 :][:9]))

        return page

    return make_pdf(path, [draw(k) for k in range(count)], title="The Mills")


def _levels(prompt: RenderedPrompt) -> str:
    lines = [line for line in prompt.user.splitlines() if line.startswith('{"id"')]
    return json.dumps({"levels": [{"id": json.loads(c)["id"], "level": 1} for c in lines]})


def _library(folder: Path, *, sections: Any = _levels) -> Library:
    models = {
        Role.SECTIONS: ScriptedModel(Role.SECTIONS, sections),
        Role.SUMMARISE: ScriptedModel(Role.SUMMARISE, lambda _: "It has a waterwheel."),
    }
    settings = Settings(summaries=True)
    return Library(folder, ModelSet(HashEmbedder(), None, models), settings, LoopRunner())


def test_work_of_models_is_told_on_a_thread_beside_their_loop(tmp_path: Path) -> None:
    told: list[Progress] = []
    threads: set[str] = set()
    file = _chapters(tmp_path / "mills.pdf", 5)

    with _library(tmp_path / "shelf") as lib:

        def progress(step: Progress) -> None:
            told.append(step)
            threads.add(threading.current_thread().name)
            # What blocks the callback blocks no call of a model.
            assert lib.books() == [] or step.stage == "done"

        book = lib.add(file, progress=progress)
        found = lib.index(book.id).lexicon.scores(["waterwheel"])
        stages = list(dict.fromkeys(p.stage for p in told if p.stage != "done"))
        node = lib.node(book.id, 1)
        nodes = lib.index(book.id).nodes
        tree = lib.tree(book.id).to_json()
    assert stages == ["parse", "tree", "sections", "summarise", "extract", "resolve", "embed",
                      "save"]  # fmt: skip
    ends = [p for p in told if p.stage == "sections"]
    assert (ends[0].done, ends[-1].done, ends[-1].total) == (0, 5, 5)
    assert "bookrag-loop" not in threads
    assert [(use.role, use.usage.calls, use.fallbacks) for use in book.models] == [
        ("sections", 1, 0), ("summarise", 6, 0),
    ]  # fmt: skip
    assert node["summary"] == "It has a waterwheel."
    assert tree["children"][0]["summary"] == "It has a waterwheel."
    assert "summary" not in tree
    assert np.flatnonzero(found).tolist() == [  # a section is found by its summary
        n.node_id for n in nodes if n.summary
    ]


def test_steps_are_told_one_at_a_time_and_in_order(tmp_path: Path) -> None:
    told: list[int] = []
    at_once = most = 0
    guard = threading.Lock()

    def progress(step: Progress) -> None:
        nonlocal at_once, most
        with guard:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.05)  # a slow one is not told everything, and keeps no call waiting
        if step.stage == "summarise":
            told.append(step.done)
        with guard:
            at_once -= 1

    with _library(tmp_path / "shelf") as lib:
        lib.add(_chapters(tmp_path / "mills.pdf", 30), progress=progress)
    assert most == 1
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0, 31)
    assert len(told) < 10


def test_a_callback_that_raises_ends_the_work(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def progress(step: Progress) -> None:
        if step.stage == "sections" and step.done:
            raise Enough

    with _library(tmp_path / "shelf") as lib:
        with pytest.raises(Enough):
            lib.add(_chapters(tmp_path / "mills.pdf", 5), progress=progress)
        assert lib.books() == []
        assert list((lib.folder / "books").iterdir()) == []


def test_a_book_is_not_made_anew_because_models_changed(tmp_path: Path) -> None:
    file = _chapters(tmp_path / "mills.pdf", 5)
    with _library(tmp_path / "shelf") as lib:
        made = lib.add(file)
    plain = Library(tmp_path / "shelf", ModelSet(HashEmbedder()), Settings(), LoopRunner())
    with plain as lib:
        assert lib.add(file) == made
        assert lib.stats(made.id)["models"] == [use.to_json() for use in made.models]


def test_vectors_of_an_endpoint_are_booked_on_their_book(tmp_path: Path) -> None:
    file, shelf = _chapters(tmp_path / "mills.pdf", 5), tmp_path / "shelf"
    with FakeEndpoint(ok(dimension=16)) as server:
        vectors = {"kind": "embeddings", "base_url": server.base_url, "model": "m"}
        settings = Settings.model_validate({"embedder": "far", "models": {"far": vectors}})
        with Library.open(shelf, settings=settings) as lib:
            book = lib.add(file)
        indexed = UsageLedger(shelf / "usage.sqlite").totals("book")[book.id]
        with Library.open(shelf, settings=settings) as lib:
            lib.search("Which mill is it?")
        asked = UsageLedger(shelf / "usage.sqlite").totals("book")
    (use,) = book.models
    assert (indexed.calls, indexed.prompt_tokens) == (use.usage.calls, use.usage.prompt_tokens)
    asked.pop("")  # a word, to see how long its vectors are before the books are opened
    assert list(asked) == [book.id]
    assert asked[book.id].prompt_tokens > indexed.prompt_tokens


def test_after_a_kill_the_replies_that_came_are_not_asked_for_again(tmp_path: Path) -> None:
    file, shelf, config = tmp_path / "mills.pdf", tmp_path / "shelf", tmp_path / "bookrag.toml"
    chapters = 24
    _chapters(file, chapters)

    def reply(body: dict[str, Any]) -> str:
        user = body["messages"][-1]["content"]
        return _levels(RenderedPrompt("", "", user)) if '{"id"' in user else "It has a wheel."

    with FakeEndpoint(ok(reply, delay=0.2)) as server:
        config.write_text(
            f'summaries = true\n[models.small]\nbase_url = "{server.base_url}"\nmodel = "m"\n'
            'concurrency = 2\n[roles]\nsections = "small"\nsummarise = "small"\n'
        )
        command = [sys.executable, "-m", "bookrag_fast.cli", "index", str(file), "--json"]
        environment = {"BOOKRAG_CONFIG": str(config), "BOOKRAG_LIBRARY": str(shelf)}

        def run() -> subprocess.Popen[str]:
            return subprocess.Popen(
                command, env={**_environment(), **environment}, stdout=subprocess.PIPE, text=True,
                preexec_fn=heed_interrupts,
            )  # fmt: skip

        killed = run()
        assert server.wait_until(lambda s: len(s.calls) >= 10, timeout=60)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=60)
        before = len(server.calls)
        with Library.open(shelf, settings=Settings()) as lib:
            assert lib.books() == []
            assert lib.check() == []
        again = run()
        (made,) = json.loads(again.communicate(timeout=60)[0])["books"]
        uses = {use["role"]: use for use in made["models"]}
        whole = 1 + chapters + 1  # the sections, their summaries, the book's
        # What was under way or not yet written when the kill came is asked again.
        assert whole <= len(server.calls) <= whole + 4
        assert uses["sections"]["cached"] == 1
        assert uses["summarise"]["cached"] >= before - 5


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("BOOKRAG_")}
