"""A library with language models: one loop for all calls, streams, deadlines, cancellation."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bookrag_fast import Library
from bookrag_fast.config import Settings
from bookrag_fast.errors import LibraryError
from bookrag_fast.library.types import AnswerEvent
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.create import create_models
from bookrag_fast.models.roles import USUAL, ModelSet, Role
from bookrag_fast.prompts import RenderedPrompt
from bookrag_fast.query.plan import Answer
from bookrag_fast.server import Client
from conftest import HANDBOOK
from endpoint_settings import embeddings_settings
from fake_endpoint import FakeEndpoint
from scripted_model import Script, ScriptedModel
from server_helpers import make_pdf, running
from waiting import eventually

QUESTION = "At which pressure does the relief valve open?"
Opened = Callable[[dict[Role, Script]], Library]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Libraries with models and a small book, over one shelf."""
    libraries: list[Library] = []

    def make(scripts: dict[Role, Script]) -> Library:
        runner, settings = LoopRunner(), Settings(isolate_reader=False)
        plain = create_models(settings, folder=tmp_path / "shelf", runner=runner)
        roles = {role: ScriptedModel(role, script) for role, script in scripts.items()}
        models = ModelSet(plain.embedder, None, roles)
        libraries.append(Library(tmp_path / "shelf", models, settings, runner))
        libraries[-1].add(make_pdf(tmp_path / "bench.pdf"))
        return libraries[-1]

    yield make
    for library in libraries:
        library.close()


class Hanging:
    """A script that never ends by itself and knows whether it was cancelled."""

    def __init__(self) -> None:
        self.begun, self.cancelled = threading.Event(), threading.Event()

    async def __call__(self, prompt: RenderedPrompt) -> str:
        self.begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return ""


def valve(prompt: RenderedPrompt) -> str:
    """Prose and JSON alike: the mark of the passage that tells."""
    passage = next(p for p in prompt.user.split("<passage ")[1:] if "12 bar" in p)
    return f"It opens at 12 bar [{passage.partition(chr(34))[2].partition(chr(34))[0]}]."


def test_calls_run_on_the_librarys_loop_whoever_asks(opened: Opened) -> None:
    threads = []

    def reply(prompt: RenderedPrompt) -> str:
        threads.append(threading.current_thread().name)
        return json.dumps({"answer": valve(prompt)})

    library = opened({Role.ANSWER: reply})
    answers = [
        library.ask(QUESTION),
        asyncio.run(library.aask(QUESTION)),
        asyncio.run(asyncio.wait_for(library.aask(QUESTION), 20)),
    ]
    assert {answer.text for answer in answers} == {"It opens at 12 bar [1]."}
    assert threads == ["bookrag-loop"] * 3
    assert answers[0].citations[0].pages == (3,)


def test_a_models_answer_streams(opened: Opened) -> None:
    library = opened({Role.ANSWER: valve})

    async def stream() -> list[AnswerEvent]:
        return [event async for event in library.aask_stream(QUESTION)]

    events = asyncio.run(stream())
    kinds = [event.kind for event in events]
    assert kinds[:2] == ["plan", "evidence"]
    assert kinds.count("text") > 3
    answer = events[-1].answer
    assert answer is not None
    assert "".join(e.text for e in events) == answer.text == "It opens at 12 bar [1]."


def test_text_comes_before_the_answer_is_complete(opened: Opened) -> None:
    """The first piece is there while the model still writes."""
    gate = threading.Event()

    class Slow(ScriptedModel):
        async def stream(self, prompt, terms=USUAL):  # type: ignore[no-untyped-def]
            async for piece in super().stream(prompt, terms):
                yield piece
                if isinstance(piece, str):
                    while not gate.is_set():
                        await asyncio.sleep(0.005)

    library = opened({Role.ANSWER: valve})
    library._models.roles[Role.ANSWER].__class__ = Slow

    async def stream() -> bool:
        early = False
        async for event in library.aask_stream(QUESTION):
            early = early or (event.kind == "text" and not gate.is_set())
            if event.kind == "text":
                gate.set()
        return early

    assert asyncio.run(stream())


def test_a_cancelled_question_ends_its_call(opened: Opened) -> None:
    hanging = Hanging()
    library = opened({Role.ANSWER: hanging})

    async def ask() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(library.aask(QUESTION), 1)

    asyncio.run(ask())
    assert hanging.cancelled.wait(10)


def test_a_reader_who_leaves_the_stream_ends_its_call(opened: Opened) -> None:
    hanging = Hanging()
    library = opened({Role.ANSWER: hanging})

    async def leave() -> None:
        events = library.aask_stream(QUESTION)
        async for event in events:
            if event.kind == "evidence":
                break
        await asyncio.to_thread(hanging.begun.wait, 10)
        await events.aclose()  # type: ignore[attr-defined]

    asyncio.run(leave())
    assert hanging.cancelled.wait(10)


def test_the_work_of_a_stream_has_ended_when_its_reader_is_cancelled(opened: Opened) -> None:
    hanging = Hanging()
    library = opened({Role.ANSWER: hanging})

    async def read() -> None:
        async for _ in library.aask_stream(QUESTION):
            pass

    async def leave() -> set[asyncio.Task[object]]:
        reading = asyncio.create_task(read())
        await asyncio.to_thread(hanging.begun.wait, 10)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(leave()) == set()
    assert hanging.cancelled.is_set()


def test_closing_the_library_ends_its_calls(opened: Opened) -> None:
    hanging = Hanging()
    library = opened({Role.ANSWER: hanging})
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            library.ask(QUESTION)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert hanging.begun.wait(10)
    library.close()
    thread.join(10)
    assert hanging.cancelled.is_set()
    assert isinstance(failed[0], LibraryError)


def test_who_awaits_when_the_library_is_closed_is_told_so(opened: Opened) -> None:
    hanging = Hanging()
    library = opened({Role.ANSWER: hanging})

    async def ask() -> None:
        asking = asyncio.create_task(library.aask(QUESTION))
        await asyncio.to_thread(hanging.begun.wait, 10)
        await asyncio.to_thread(library.close)
        with pytest.raises(LibraryError, match="closed"):  # not CancelledError: nobody did that
            await asking

    asyncio.run(ask())


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.ask(QUESTION, timeout=1),
        lambda client: list(client.ask_stream(QUESTION, timeout=1))[-1].answer,
    ],
    ids=["ask", "stream"],
)
def test_a_deadline_over_grpc_ends_the_call_of_the_model(
    opened: Opened, call: Callable[[Client], Answer]
) -> None:
    hanging = Hanging()
    library = opened({Role.ANSWER: hanging})
    with running(library) as address, Client(address, timeout=20) as client:
        answer = call(client)
        eventually(hanging.cancelled.is_set)
    assert "12 bar" in answer.text  # by the rules, in time
    assert any("no time left" in note for note in answer.notes)


def test_a_models_answer_streams_over_grpc(opened: Opened) -> None:
    library = opened({Role.ANSWER: valve})
    with running(library) as address, Client(address, timeout=20) as client:
        events = list(client.ask_stream(QUESTION))
    answer = events[-1].answer
    assert sum(event.kind == "text" for event in events) > 3
    assert "".join(event.text for event in events) == answer.text == "It opens at 12 bar [1]."
    assert answer.usage.model_calls == 1
    assert answer.usage.completion_tokens > 0


def test_a_figure_of_the_pdf_is_shown_to_a_model_that_sees(tmp_path: Path) -> None:
    file = tmp_path / "handbook.pdf"
    shutil.copy(HANDBOOK, file)
    runner, settings = LoopRunner(), Settings(isolate_reader=False)
    plain = create_models(settings, folder=tmp_path / "shelf", runner=runner)
    vision = ScriptedModel(
        Role.VISION, lambda p: json.dumps({"description": "Boxes and arrows."}), max_images=1
    )
    answer = ScriptedModel(
        Role.ANSWER, lambda p: json.dumps({"answer": "Not told.", "enough": False})
    )
    models = ModelSet(plain.embedder, None, {Role.VISION: vision, Role.ANSWER: answer})
    with Library(tmp_path / "shelf", models, settings, runner) as library:
        library.add(file)
        seen = library.ask("What does Figure 1 show?")
        assert vision.images[0][0].data.startswith(b"\x89PNG")
        assert "Boxes and arrows." in answer.asked[0].user
        assert seen.notes == ()
        file.unlink()
        unseen = library.ask("What does Figure 1 show?")
        assert any("could not be looked at" in note for note in unseen.notes)
        assert "Boxes and arrows." not in answer.asked[1].user


def test_an_embedding_server_that_is_down_leaves_a_question_to_words(tmp_path: Path) -> None:
    """Also one that has never said how long its vectors are."""
    with FakeEndpoint() as server:
        settings = Settings(
            models={"vectors": embeddings_settings(server.base_url, retries=0)},
            embedder="vectors",
            isolate_reader=False,
        )
        with Library.open(tmp_path / "shelf", settings=settings) as library:
            library.add(make_pdf(tmp_path / "bench.pdf"))
    with Library.open(tmp_path / "shelf", settings=settings) as library:
        answer = library.ask(QUESTION)
        assert [problem.where for problem in library.check()] == ["embedder"]
        next((tmp_path / "shelf").glob("books/*/nodes.arrow")).unlink()
        assert len(library.check()) == 2  # what is wrong with books is seen all the same
    assert "12 bar" in answer.text
    assert all("ranked by words alone" in note for note in answer.notes)
    assert "cannot be reached" in answer.notes[0]
