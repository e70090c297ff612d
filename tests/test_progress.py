"""Callbacks that are told of indexing: what they may do, and how many at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from bookrag_fast import Book, Library
from bookrag_fast.config import Settings
from bookrag_fast.document import Document, read_document
from bookrag_fast.errors import LibraryError
from bookrag_fast.library import Progress, adding
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.roles import ModelSet, Role
from conftest import HANDBOOK, TRUTH
from factories import HashEmbedder
from pdf_factory import make_pdf, text_lines
from scripted_model import ScriptedModel
from waiting import WORKER_THREADS, eventually

STUCK_S = 60.0
QUESTION = "What does the kestrel strike?"
Calls = Callable[[Library, Path], object]


def page_of(path: Path, text: str) -> Path:
    return make_pdf(path, [lambda canvas: text_lines(canvas, [text], top=100)], title=path.stem)


def with_models(folder: Path) -> Library:
    """Its questions go through the loop and the worker threads that indexing uses."""
    answers = ScriptedModel(Role.ANSWER, lambda prompt: "A vole.")
    models = ModelSet(HashEmbedder(), None, {Role.ANSWER: answers})
    return Library(folder, models, Settings(isolate_reader=False), LoopRunner())


def without_models(folder: Path) -> Library:
    return Library.open(folder, embedder=HashEmbedder(), settings=Settings(isolate_reader=False))


@pytest.fixture(params=[without_models, with_models])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Library]:
    """With a book on birds."""
    opened: Library = request.param(tmp_path / "shelf")
    opened.add(page_of(tmp_path / "birds.pdf", "The kestrel strikes a vole in open ground."))
    yield opened
    opened.close()


def pages_of_hills(folder: Path) -> list[Path]:
    return [page_of(folder / f"hill{k}.pdf", f"Hill {k}.") for k in range(WORKER_THREADS)]


USES: list[Calls] = [
    lambda library, _: library.search(QUESTION, books=["birds.pdf"]),
    lambda library, _: library.ask(QUESTION, books=["birds.pdf"]),
    lambda library, other: library.add(other),
]


@pytest.mark.parametrize("stage", ["parse", "extract", "save"])
@pytest.mark.parametrize("use", USES, ids=["search", "ask", "add"])
def test_callbacks_of_many_adds_may_all_use_the_library(
    library: Library, tmp_path: Path, use: Calls, stage: str
) -> None:
    all_there = threading.Barrier(WORKER_THREADS)
    files = pages_of_hills(tmp_path)
    others = [page_of(tmp_path / f"other{k}.pdf", f"Valley {k}.") for k in range(WORKER_THREADS)]
    found: list[object] = []

    def add(file: Path, other: Path) -> Book:
        def progress(step: Progress) -> None:
            if step.stage == stage:
                all_there.wait(STUCK_S)
                found.append(use(library, other))

        return library.add(file, progress=progress)

    with ThreadPoolExecutor(WORKER_THREADS) as pool:
        adding = [pool.submit(add, *both) for both in zip(files, others, strict=True)]
        if wait(adding, STUCK_S).not_done:
            library.close()  # ends those that wait for each other
        assert len({work.result().id for work in adding}) == WORKER_THREADS
    assert len(found) == WORKER_THREADS
    assert all(found)


def test_callbacks_of_many_tasks_may_wait_for_their_loop(library: Library, tmp_path: Path) -> None:
    """Its worker threads, too, are left to what the callbacks wait for."""
    all_there = threading.Barrier(WORKER_THREADS)
    found: list[object] = []

    async def add_all() -> list[Book]:
        loop = asyncio.get_running_loop()

        def progress(step: Progress) -> None:
            if step.stage == "extract":
                all_there.wait(STUCK_S)
                asking = library.asearch(QUESTION, books=["birds.pdf"])
                found.append(asyncio.run_coroutine_threadsafe(asking, loop).result(STUCK_S))

        files = pages_of_hills(tmp_path)
        return await asyncio.gather(*(library.aadd(f, progress=progress) for f in files))

    assert len({book.id for book in asyncio.run(add_all())}) == WORKER_THREADS
    assert len(found) == WORKER_THREADS
    assert all(found)


@pytest.mark.parametrize("isolated", [False, True])
def test_a_callback_that_raises_at_a_page_ends_the_work(tmp_path: Path, isolated: bool) -> None:
    told: list[Progress] = []

    class Enough(Exception):
        pass

    def progress(step: Progress) -> None:
        told.append(step)
        raise Enough

    file = make_pdf(
        tmp_path / "hills.pdf",
        [lambda canvas: text_lines(canvas, ["Hill after hill."], top=100)] * 3,
    )
    settings = Settings(isolate_reader=isolated)
    with Library.open(tmp_path / "shelf", embedder=HashEmbedder(), settings=settings) as library:
        with pytest.raises(Enough):
            library.add(file, progress=progress)
        assert library.books() == []
    assert [step.stage for step in told] == ["parse"]


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("stage", ["parse", "extract"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, StopIteration, SystemExit])
def test_a_callback_may_raise_what_ends_programs_and_loops(
    tmp_path: Path, error: type[BaseException], stage: str, awaited: bool
) -> None:
    def progress(step: Progress) -> None:
        if step.stage == stage:
            raise error("enough")

    file = page_of(tmp_path / "hill.pdf", "Hill after hill.")
    with without_models(tmp_path / "shelf") as library:
        add = (lambda *a, **k: asyncio.run(library.aadd(*a, **k))) if awaited else library.add
        # RuntimeError is what a coroutine makes of StopIteration.
        with pytest.raises((error, RuntimeError)) as raised:
            add(file, progress=progress)
        assert "enough" in (str(raised.value), str(raised.value.__cause__))
        assert library.add(file) in library.books()  # the loop goes on


def test_a_slow_callback_is_told_of_the_last_page_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Progress] = []
    read = threading.Event()

    def progress(step: Progress) -> None:
        if not told:
            assert read.wait(STUCK_S)  # the reading goes on without it
        told.append(step)

    def reading(*args: Any, **options: Any) -> Document:
        try:
            return read_document(*args, **options)
        finally:
            read.set()

    monkeypatch.setattr(adding, "read_document", reading)
    count = 20
    file = make_pdf(
        tmp_path / "hills.pdf",
        [lambda canvas: text_lines(canvas, ["Hill after hill."], top=100)] * count,
    )
    with without_models(tmp_path / "shelf") as library:
        library.add(file, progress=progress)
    pages = [step for step in told if step.stage == "parse"]
    assert told[: len(pages)] == pages
    assert len(pages) <= 2  # the first that it heard of, and the last
    assert (pages[-1].done, pages[-1].total) == (count, count)


def test_the_thread_of_a_callback_ends_with_the_work(tmp_path: Path) -> None:
    threads: set[threading.Thread] = set()

    def progress(step: Progress) -> None:
        threads.add(threading.current_thread())

    with without_models(tmp_path / "shelf") as library:
        library.add(page_of(tmp_path / "hill.pdf", "A hill."), progress=progress)
        (thread,) = threads
        eventually(lambda: not thread.is_alive())


def test_progress_is_told_stage_by_stage(tmp_path: Path) -> None:
    told: list[Progress] = []
    with Library.open(tmp_path / "shelf") as lib:
        lib.add(HANDBOOK, progress=told.append)
    stages = list(dict.fromkeys(p.stage for p in told))
    assert stages == ["parse", "tree", "extract", "resolve", "embed", "save", "done"]
    pages = [p for p in told if p.stage == "parse"]
    assert pages[-1].done == pages[-1].total == TRUTH["pages"]
    assert pages[-1].rate is not None


def test_a_callback_cannot_close_its_library(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "shelf", embedder=HashEmbedder())
    with pytest.raises(LibraryError, match="callback"):
        library.add(HANDBOOK, progress=lambda step: library.close())
    library.close()
