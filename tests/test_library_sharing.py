"""One library for threads, loops, streams and forked children, until it is closed."""

from __future__ import annotations

import asyncio
import gc
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bookrag_fast import Book, Library
from bookrag_fast.config import Settings
from bookrag_fast.document import Document, read_document
from bookrag_fast.errors import (
    LibraryError,
    UnknownBookError,
)
from bookrag_fast.library import adding
from conftest import HANDBOOK, TRUTH
from waiting import WORKER_THREADS


def test_sync_calls_work_inside_a_running_loop(shelf: Library, handbook: Book) -> None:
    async def inside() -> int:
        return len(shelf.search("damping", books=[handbook.id]))

    assert asyncio.run(inside()) > 0


def test_async_and_sync_agree(shelf: Library) -> None:
    question = "What does PPR stand for?"
    assert asyncio.run(shelf.asearch(question)) == shelf.search(question)
    assert asyncio.run(shelf.aask(question)).text == shelf.ask(question).text


def test_a_streamed_answer_adds_up(shelf: Library) -> None:
    async def stream() -> list[object]:
        return [event async for event in shelf.aask_stream("What is the gradient drop?")]

    events = asyncio.run(stream())
    kinds = [e.kind for e in events]  # type: ignore[attr-defined]
    assert kinds[:2] == ["plan", "evidence"]
    assert kinds[-1] == "answer"
    text = "".join(e.text for e in events)  # type: ignore[attr-defined]
    assert text == events[-1].answer.text  # type: ignore[attr-defined]


def test_a_streamed_error_arrives(shelf: Library) -> None:
    async def stream() -> None:
        async for _ in shelf.aask_stream("x", books=["nothing"]):
            pass

    with pytest.raises(UnknownBookError):
        asyncio.run(stream())


def test_many_threads_get_the_same_answers(shelf: Library) -> None:
    questions = [q["question"] for q in TRUTH["questions"]]
    alone = [[e.node_id for e in shelf.search(q)] for q in questions]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            together = pool.map(lambda q: [e.node_id for e in shelf.search(q)], questions)
            assert list(together) == alone


def test_one_book_added_by_many_threads_is_one_book(tmp_path: Path) -> None:
    with Library.open(tmp_path / "shelf") as lib:
        with ThreadPoolExecutor(4) as pool:
            books = list(pool.map(lambda _: lib.add(HANDBOOK), range(4)))
        assert len({b.id for b in books}) == 1
        assert len(lib.books()) == 1
        assert lib.check() == []


def test_questions_do_not_wait_for_files_that_are_being_read(
    tmp_path: Path, shelf: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "shelf"
    shutil.copytree(shelf.folder, target)
    reading, goes_on = threading.Semaphore(0), threading.Event()

    def read(*args: Any, **options: Any) -> Document:
        reading.release()
        assert goes_on.wait(60)
        return read_document(*args, **options)

    monkeypatch.setattr(adding, "read_document", read)
    files = [tmp_path / f"{k}.md" for k in range(WORKER_THREADS)]
    for file in files:
        file.write_text(f"# Hill {file.stem}\n\nSteep.\n")
    with (
        Library.open(target, settings=Settings(isolate_reader=False)) as lib,
        ThreadPoolExecutor(len(files) + 1) as pool,
    ):
        books = [pool.submit(lib.add, file) for file in files]
        try:
            for _ in files:
                assert reading.acquire(timeout=60)
            assert pool.submit(lib.search, "damping", books=["handbook.pdf"]).result(60)
        finally:
            goes_on.set()
        assert len({book.result().id for book in books}) == len(files)


def test_reading_while_books_come_and_go(own: Library) -> None:
    stop = threading.Event()
    wrong: list[BaseException] = []

    def read() -> None:
        while not stop.is_set():
            try:
                assert own.search("damping")
            except UnknownBookError:
                pass  # between removal and return
            except BaseException as error:
                wrong.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(3):
        own.remove(own.books()[0].id)
        own.add(HANDBOOK)
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files in /proc")
def test_ended_threads_and_forgotten_libraries_keep_no_files_open(own: Library) -> None:
    own.search("damping")
    before = _open_files()
    for _ in range(20):
        thread = threading.Thread(target=own.books)
        thread.start()
        thread.join()
    for _ in range(5):
        asyncio.run(own.asearch("damping"))
    gc.collect()
    assert _open_files() <= before + 8
    for _ in range(10):
        Library.open(own.folder, embedder=own.embedder).search("damping")
    gc.collect()
    time.sleep(0.5)
    assert _open_files() <= before + 16


def test_a_closed_library_says_so(own: Library) -> None:
    own.search("damping")
    own.close()
    own.close()
    for use in (lambda: own.search("damping"), own.books, lambda: own.remove("handbook.pdf")):
        with pytest.raises(LibraryError, match="closed"):
            use()


def test_closing_while_in_use_ends_every_call(own: Library) -> None:
    def ask_on() -> None:
        while True:
            own.search("damping")

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask_on) for _ in range(4)]
        time.sleep(0.3)
        own.close()
        for work in asking:
            with pytest.raises(LibraryError):
                work.result(20)


def test_closing_waits_for_what_reads_the_catalogue(tmp_path: Path) -> None:
    """A connection that is closed under a thread takes the process down."""

    def list_on(library: Library) -> None:
        while True:
            library.books()

    with ThreadPoolExecutor(4) as pool:
        for number in range(20):
            library = Library.open(tmp_path / str(number))
            listing = [pool.submit(list_on, library) for _ in range(4)]
            time.sleep(0.01)
            library.close()
            for work in listing:
                with pytest.raises(LibraryError, match="closed"):
                    work.result(20)


def test_a_forked_child_can_go_on(own: Library) -> None:
    script = (
        "import os, signal\n"
        "from bookrag_fast import Library\n"
        f"library = Library.open({str(own.folder)!r})\n"
        "library.search('damping')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(20)\n"
        "    os._exit(0 if library.search('damping') and library.books() else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert library.search('damping')\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
