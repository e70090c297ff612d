"""The Library on the sample book: adding, finding, asking, removing, sharing."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reportlab.pdfgen import canvas

from bookrag_fast import Book, Library
from bookrag_fast.errors import (
    BudgetError,
    CorruptIndexError,
    DocumentError,
    EmptyDocumentError,
    InvalidArgumentError,
    LibraryError,
    ModelMismatchError,
    NewerIndexError,
    NotAPdfError,
    TooLargeError,
    UnknownBookError,
    UnknownNodeError,
)
from bookrag_fast.library import Progress, TreeNode
from conftest import HANDBOOK
from factories import HashEmbedder

TRUTH = json.loads((HANDBOOK.parent / "handbook.truth.json").read_text("utf-8"))


@pytest.fixture
def own(tmp_path: Path, shelf: Library) -> Library:
    """A copy of the shelf with the sample book, to be changed at will."""
    target = tmp_path / "shelf"
    shutil.copytree(shelf.folder, target)
    return Library.open(target)


# --- the book ---------------------------------------------------------------------------------


def test_the_book_says_what_it_is(handbook: Book) -> None:
    assert handbook.title == "The bookrag_fast Handbook"
    assert handbook.name == "handbook.pdf"
    assert handbook.pages == TRUTH["pages"]
    assert handbook.toc_source == "outline"
    assert handbook.nodes > handbook.pages
    assert handbook.entities > 100
    assert handbook.relations > 100


def walk(node: TreeNode) -> list[TreeNode]:
    return [node, *(n for child in node.children for n in walk(child))]


def test_the_tree_is_the_handbooks_own(shelf: Library, handbook: Book) -> None:
    nodes = walk(shelf.tree(handbook.id))
    assert [n.node_id for n in nodes] == list(range(handbook.nodes))
    sections = [(n.title, n.level - 1, n.page) for n in nodes if n.kind == "section"][1:]
    truth = [(e["title"], e["level"], e["page"]) for e in TRUTH["entries"]]
    assert sections == truth
    for parent in nodes:
        for child in parent.children:
            assert child.level == parent.level + 1
            assert parent.page <= child.page or parent.kind == "root"


def test_every_table_and_figure_is_there(shelf: Library, handbook: Book) -> None:
    nodes = walk(shelf.tree(handbook.id))
    for kind, word in (("table", "tables"), ("image", "figures")):
        mine = [n for n in nodes if n.kind == kind]
        assert all(n.title for n in mine)
        assert [n.page for n in mine] == [t["page"] for t in TRUTH[word]]


@pytest.mark.parametrize("question", TRUTH["questions"], ids=lambda q: q["question"][:40])
def test_the_evidence_for_known_questions_holds_the_right_page(
    shelf: Library, handbook: Book, question: dict[str, object]
) -> None:
    right = {*question["pages"], *question.get("also", [])}  # type: ignore[misc]
    evidence = shelf.search(str(question["question"]), books=[handbook.id])
    assert right & {p for e in evidence for p in e.pages}
    assert sum(e.tokens for e in evidence) <= 2000


def test_extractive_answers_cite_the_right_page_nine_times_in_ten(
    shelf: Library, handbook: Book
) -> None:
    wrong = []
    for question in TRUTH["questions"]:
        answer = shelf.ask(question["question"], books=[handbook.id])
        if not {*question["pages"], *question["also"]} & {
            p for c in answer.citations for p in c.pages
        }:
            wrong.append((question["question"], answer.text))
    assert len(wrong) <= len(TRUTH["questions"]) // 10, wrong


def test_evidence_is_complete(shelf: Library, handbook: Book) -> None:
    hit = shelf.search("What is the default damping?", books=[handbook.id])[0]
    assert hit.book == handbook.id
    assert hit.pages
    assert all(r.page in hit.pages and r.bbox.width > 0 for r in hit.boxes)
    assert hit.section
    assert hit.tokens > 0
    assert set(hit.scores) >= {"relevance", "text"}
    node = shelf.node(handbook.id, hit.node_id)
    assert node["pages"] == list(hit.pages)
    assert node["text"] in hit.text


# --- finding ----------------------------------------------------------------------------------


def test_books_are_found_by_id_prefix_title_name_and_file(shelf: Library, handbook: Book) -> None:
    for ref in (handbook.id, handbook.id[:4], handbook.title, handbook.name, str(HANDBOOK)):
        assert shelf.book(ref) == handbook
    for ref in (handbook.id[:3], "nothing", "/nowhere/at/all.pdf", "a\0b", ""):
        with pytest.raises(UnknownBookError) as caught:
            shelf.book(ref)
        assert "bookrag list" in str(caught.value)


def test_unknown_nodes_and_books(shelf: Library, handbook: Book) -> None:
    with pytest.raises(UnknownNodeError, match="numbered 0 to"):
        shelf.node(handbook.id, handbook.nodes)
    with pytest.raises(UnknownNodeError):
        shelf.node(handbook.id, -1)
    with pytest.raises(UnknownBookError):
        shelf.search("x", books=["nothing"])


def test_an_empty_shelf_says_so(tmp_path: Path) -> None:
    with Library.open(tmp_path / "new") as lib:
        assert lib.books() == []
        with pytest.raises(UnknownBookError, match="has no book"):
            lib.ask("What?")


# --- adding -----------------------------------------------------------------------------------


def test_adding_twice_is_adding_once(own: Library, tmp_path: Path) -> None:
    before = own.books()
    copy = tmp_path / "other name.pdf"
    shutil.copy(HANDBOOK, copy)
    assert own.add(copy) == before[0]
    assert own.books() == before


def test_progress_is_told_stage_by_stage(tmp_path: Path) -> None:
    told: list[Progress] = []
    with Library.open(tmp_path / "shelf") as lib:
        lib.add(HANDBOOK, progress=told.append)
    stages = list(dict.fromkeys(p.stage for p in told))
    assert stages == ["parse", "tree", "extract", "resolve", "embed", "save", "done"]
    pages = [p for p in told if p.stage == "parse"]
    assert pages[-1].done == pages[-1].total == TRUTH["pages"]
    assert pages[-1].rate is not None


def test_two_shelves_of_one_file_are_equal(tmp_path: Path, shelf: Library) -> None:
    with Library.open(tmp_path / "shelf") as lib:
        book = lib.add(HANDBOOK)
        question = "How is the gradient drop decided?"
        mine = [e.to_json() for e in lib.search(question)]
        assert mine == [e.to_json() for e in shelf.search(question)]
        assert lib.graph(book.id) == shelf.graph(book.id)


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"", EmptyDocumentError), (b"hello world, no pdf here", NotAPdfError)],
)
def test_a_bad_file_leaves_the_shelf_as_it_was(
    own: Library, tmp_path: Path, content: bytes, error: type[DocumentError]
) -> None:
    path = tmp_path / "bad.pdf"
    path.write_bytes(content)
    before = sorted(p.relative_to(own.folder) for p in own.folder.rglob("*.arrow"))
    with pytest.raises(error, match=r"bad\.pdf"):
        own.add(path)
    assert sorted(p.relative_to(own.folder) for p in own.folder.rglob("*.arrow")) == before
    assert len(own.books()) == 1


def test_a_missing_file_and_a_folder(own: Library, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="No such file"):
        own.add(tmp_path / "absent.pdf")
    with pytest.raises(DocumentError, match="is a folder"):
        own.add(tmp_path)


def test_files_beyond_the_limit_are_refused_unread(tmp_path: Path) -> None:
    from bookrag_fast.config import Settings

    huge = tmp_path / "huge.pdf"
    with huge.open("wb") as out:
        out.truncate(3 << 20)
    with (
        Library.open(tmp_path / "shelf", settings=Settings(max_file_mb=2)) as lib,
        pytest.raises(TooLargeError, match="max_file_mb"),
    ):
        lib.add(huge)


def test_a_shelf_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(LibraryError):
        Library.open(tmp_path / "file" / "shelf")


def test_a_cancelled_add_leaves_nothing(tmp_path: Path) -> None:
    async def run(lib: Library) -> None:
        started = asyncio.Event()
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(
            lib.aadd(HANDBOOK, progress=lambda p: loop.call_soon_threadsafe(started.set))
        )
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Library.open(tmp_path / "shelf") as lib:
        asyncio.run(run(lib))  # it waits for its worker threads
        assert lib.books() == []
        assert list((lib.folder / "books").iterdir()) == []


def test_all_books_are_asked_unless_some_are_named(own: Library, tmp_path: Path) -> None:
    path = tmp_path / "birds.pdf"
    page = canvas.Canvas(str(path))
    page.setFont("Helvetica", 11)
    page.drawString(72, 700, "The kestrel hovers over open ground before it strikes a vole.")
    page.save()
    birds = own.add(path)
    handbook = own.books()[0]
    assert [b.name for b in own.books()] == ["handbook.pdf", "birds.pdf"]
    assert own.search("What does the kestrel hover over?")[0].book == birds.id
    assert own.search("What is the gradient drop?")[0].book == handbook.id
    assert {e.book for e in own.search("kestrel", books=[handbook.id])} == {handbook.id}
    answer = own.ask("Where does the kestrel hover?")
    assert "open ground" in answer.text
    assert answer.citations[0].book == birds.id
    own.remove("birds.pdf")
    assert {e.book for e in own.search("kestrel")} == {handbook.id}


# --- removing and replacing -------------------------------------------------------------------


def test_removing_takes_the_book_but_not_the_file(own: Library) -> None:
    book = own.books()[0]
    index = own.index(book.id)
    assert own.remove(book.id) == book
    assert own.books() == []
    assert list((own.folder / "books").iterdir()) == []
    assert HANDBOOK.exists()
    assert float(index.node_vectors.sum()) != 0  # whoever reads it goes on reading
    with pytest.raises(UnknownBookError):
        own.remove(book.id)


def test_another_embedder_is_refused_and_converted_by_indexing_again(own: Library) -> None:
    other = Library.open(own.folder, embedder=HashEmbedder())
    with pytest.raises(ModelMismatchError, match="wordllama") as caught:
        other.search("damping")
    assert "again" in caught.value.hint
    assert [p.level for p in other.check()] == ["warning"]
    book = other.add(HANDBOOK)
    assert book.embedder == "hash"
    assert other.search("damping")
    assert len(other.books()) == 1
    assert len(list((own.folder / "books").iterdir())) == 1
    with pytest.raises(ModelMismatchError):
        own.search("damping")


def test_a_damaged_book_is_named_and_mended_by_indexing_again(own: Library) -> None:
    nodes = next((own.folder / "books").glob("*/nodes.arrow"))
    nodes.write_bytes(nodes.read_bytes()[:-100])
    with pytest.raises(CorruptIndexError, match=r"nodes\.arrow"):
        own.search("damping")
    assert [p.level for p in own.check()] == ["error"]
    own.add(HANDBOOK)
    assert own.check() == []
    assert own.search("damping")


def test_a_catalogue_from_the_future_is_refused(own: Library) -> None:
    own.close()
    with sqlite3.connect(own.folder / "catalogue.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerIndexError):
        Library.open(own.folder)


def test_a_catalogue_that_is_no_database(own: Library) -> None:
    own.close()
    for file in own.folder.glob("catalogue.sqlite*"):
        file.unlink()
    (own.folder / "catalogue.sqlite").write_bytes(b"garbage " * 1000)
    with pytest.raises(LibraryError, match="catalogue"):
        Library.open(own.folder)


# --- sharing ----------------------------------------------------------------------------------


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


def test_stats_and_graph(shelf: Library, handbook: Book) -> None:
    stats = shelf.stats(handbook.id)
    assert sum(stats["nodes"].values()) == handbook.nodes
    assert stats["entities"] == handbook.entities
    assert 0 < stats["mean_degree"] < 50
    graph = shelf.graph(handbook.id, limit=10)
    assert len(graph["entities"]) == 10
    shown = {e["id"] for e in graph["entities"]}
    assert all({r["source"], r["target"]} <= shown for r in graph["relations"])
    json.dumps([stats, graph])


# --- threads, forks and closing -----------------------------------------------------------------


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


def test_a_callback_cannot_close_its_library(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "shelf", embedder=HashEmbedder())
    with pytest.raises(LibraryError, match="callback"):
        library.add(HANDBOOK, progress=lambda step: library.close())
    library.close()


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


@pytest.mark.parametrize("summary", ["{", "[]", '{"id": 1}'])
def test_a_damaged_entry_of_the_catalogue_is_named(own: Library, summary: str) -> None:
    with sqlite3.connect(own.folder / "catalogue.sqlite") as db:
        db.execute("UPDATE books SET summary = ?", (summary,))
    with pytest.raises(LibraryError, match="damaged entry"):
        own.books()


def test_a_catalogue_cannot_have_other_folders_removed(own: Library, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    with sqlite3.connect(own.folder / "catalogue.sqlite") as db:
        db.execute("UPDATE books SET folder = '../../precious'")
    with pytest.raises(LibraryError):
        own.remove("handbook.pdf")
    assert (tmp_path / "precious").is_dir()


def test_paths_and_names_that_no_file_can_have(own: Library) -> None:
    with pytest.raises(LibraryError):
        Library.open("a\0b", embedder=own.embedder)
    with pytest.raises(UnknownBookError):
        own.book("\udc80")


@pytest.mark.parametrize("question", [None, 5, b"x"])
def test_a_question_is_a_string(shelf: Library, question: object) -> None:
    with pytest.raises(InvalidArgumentError):
        shelf.search(question)  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", [0, -1, 10**30])
def test_a_budget_is_a_number_within_bounds(shelf: Library, budget: int) -> None:
    with pytest.raises(BudgetError):
        shelf.search("damping", budget_tokens=budget)


WRONG_TYPES: list[tuple[str, Callable[[Any, str], object]]] = [
    ("books", lambda lib, _: lib.search("q", books=3)),
    ("books", lambda lib, _: lib.ask("q", books=b"abcd")),
    ("books[1]", lambda lib, book: lib.search("q", books=[book, 5])),
    ("budget_tokens", lambda lib, _: lib.search("q", budget_tokens="5")),
    ("budget_tokens", lambda lib, _: lib.ask("q", budget_tokens=float("nan"))),
    ("budget_tokens", lambda lib, _: lib.search_result("q", budget_tokens=True)),
    ("path", lambda lib, _: lib.add(5)),
    ("path", lambda lib, _: lib.add(b"handbook.pdf")),
    ("path", lambda lib, _: lib.find_file(None)),
    ("password", lambda lib, _: lib.add("handbook.pdf", password=b"secret")),
    ("progress", lambda lib, _: lib.add("handbook.pdf", progress=5)),
    ("ref", lambda lib, _: lib.remove(None)),
    ("ref", lambda lib, _: lib.tree(5)),
    ("ref", lambda lib, _: lib.index([])),
    ("node_id", lambda lib, book: lib.node(book, "1")),
    ("node_id", lambda lib, book: lib.node(book, 1.0)),
    ("node_id", lambda lib, book: lib.node(book, None)),
    ("limit", lambda lib, book: lib.graph(book, limit="x")),
    ("path", lambda _, __: Library.open(5)),  # type: ignore[arg-type]
    ("settings", lambda _, __: Library.open(settings={})),  # type: ignore[arg-type]
    ("embedder", lambda _, __: Library.open(embedder="static")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("name", "call"), WRONG_TYPES)
def test_a_wrong_type_is_named_where_it_was_given(
    shelf: Library, name: str, call: Callable[[Any, str], object]
) -> None:
    book = shelf.books()[0].id
    with pytest.raises(InvalidArgumentError, match=rf"^{re.escape(name)} is of type") as caught:
        call(shelf, book)
    assert "secret" not in str(caught.value)


def test_integers_and_paths_of_any_kind_will_do(shelf: Library) -> None:
    book = shelf.books()[0]
    assert shelf.node(book.id, np.int64(1)) == shelf.node(book.id, 1)  # type: ignore[arg-type]
    wanted = shelf.search("q", books=[book.id], budget_tokens=500)
    given: list[Any] = [book.id, (book.id,), iter([book.id]), {book.id}, [Path(book.name)]]
    for books in given:
        assert shelf.search("q", books=books, budget_tokens=np.uint16(500)) == wanted  # type: ignore[arg-type]
