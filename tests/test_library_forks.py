"""A process that has a library open forks: parent and child go on, apart from each other."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookrag_fast import Library
from forking import held_by_a_thread, in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")


def book(folder: Path, name: str) -> Path:
    file = folder / f"{name}.md"
    file.write_text(f"# {name}\n\nThe {name} is made of steel and weighs ten tons.\n")
    return file


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "shelf") as library:
        library.add(book(tmp_path, "crane"))
        yield library


def titles(library: Library) -> list[str]:
    return sorted(b.title for b in library.books())


def test_what_a_child_adds_outlives_its_parents_library(small: Library, tmp_path: Path) -> None:
    """SQLite would take away the log under it, where the child holds no lock of its own."""
    (opened, opens), (closed, closes) = os.pipe(), os.pipe()

    def child() -> None:
        small.books()
        os.write(opens, b"!")
        os.read(closed, 1)
        small.add(book(tmp_path, "dredger"))
        small.close()

    result = in_child(child, 60)
    os.read(opened, 1)
    small.close()
    os.write(closes, b"!")
    assert result() is None
    with Library.open(small.folder) as library:
        assert titles(library) == ["crane", "dredger"]
    for pipe in (opened, opens, closed, closes):
        os.close(pipe)


def test_a_child_is_not_locked_out_by_what_its_parent_was_writing(
    small: Library, tmp_path: Path
) -> None:
    catalogue = small._shelf.catalogue
    written = threading.Event()

    def write_slowly() -> None:
        with catalogue._transaction(write=True):
            written.set()
            threading.Event().wait(0.2)  # as a slow disk

    writer = threading.Thread(target=write_slowly)
    writer.start()
    written.wait()
    assert in_child(lambda: small.add(book(tmp_path, "dredger")).title, 60)() == "dredger"
    writer.join()
    assert titles(small) == ["crane", "dredger"]


def test_a_process_forks_though_the_catalogue_is_locked_for_long(
    small: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bookrag_fast.library.catalogue._REST_WAIT_S", 0.05)
    with held_by_a_thread(small._shelf.catalogue._transaction(write=True)):
        assert in_child(lambda: "forked")() == "forked"
    assert titles(small) == ["crane"]


def test_locks_that_threads_hold_are_free_in_the_child(small: Library, tmp_path: Path) -> None:
    def child() -> list[str]:
        small.add(book(tmp_path, "dredger"))
        return [small.search("crane")[0].book, *titles(small)]

    shelf, reader = small._shelf._guard, small._adder._reader._guard
    with held_by_a_thread(shelf), held_by_a_thread(reader):
        found = in_child(child, 60)()
    assert isinstance(found, list)
    assert found[1:] == ["crane", "dredger"]


def test_forks_while_threads_read_and_write(small: Library, tmp_path: Path) -> None:
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            assert "crane" in titles(small)

    def write() -> None:
        for name in ("dredger", "tug", "ferry"):
            small.add(book(tmp_path, name))

    threads = [threading.Thread(target=work) for work in (read, read, write)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        assert in_child(lambda: "crane" in titles(small))() is True
    threads[-1].join()
    over.set()
    for thread in threads:
        thread.join()
    assert titles(small) == ["crane", "dredger", "ferry", "tug"]
