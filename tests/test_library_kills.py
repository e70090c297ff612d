"""A killed or interrupted `bookrag index` leaves a shelf that opens and nothing half-done."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pypdfium2 as pdfium
import pytest

from bookrag_fast import Library
from conftest import HANDBOOK, heed_interrupts

COMMAND = [sys.executable, "-m", "bookrag_fast.cli", "index", "--library"]


@pytest.fixture(scope="module")
def long_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The handbook many times over: indexing it takes long enough to be met in its middle."""
    path = tmp_path_factory.mktemp("long") / "long.pdf"
    with pdfium.PdfDocument.new() as book, pdfium.PdfDocument(HANDBOOK) as handbook:
        for _ in range(12):
            book.import_pages(handbook)
        book.save(path)
    return path


def index_and_send(shelf: Path, book: Path, sent: signal.Signals, after_s: float) -> int:
    """Exit status of an index run that gets a signal some time after it began to write."""
    run = subprocess.Popen(
        [*COMMAND, str(shelf), str(book)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    )
    deadline = time.monotonic() + 30
    while not (shelf / "catalogue.sqlite").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(after_s)
    run.send_signal(sent)
    run.communicate(timeout=60)
    return run.returncode


def whole(shelf: Path) -> int:
    """Books on the shelf, each of them whole; no leftovers."""
    with Library.open(shelf) as lib:
        assert lib.check() == []
        books = lib.books()
        for book in books:
            assert lib.search("damping", books=[book.id])
        assert len(list((shelf / "books").iterdir())) == len(books)
        return len(books)


@pytest.mark.parametrize("after_s", [0.0, 0.35])
def test_kill_9(tmp_path: Path, after_s: float) -> None:
    index_and_send(tmp_path / "shelf", HANDBOOK, signal.SIGKILL, after_s)
    assert whole(tmp_path / "shelf") in (0, 1)


@pytest.mark.slow
def test_kill_9_at_every_moment(tmp_path: Path) -> None:
    killed = 0
    for step in range(24):
        shelf = tmp_path / f"shelf{step}"
        killed += index_and_send(shelf, HANDBOOK, signal.SIGKILL, step * 0.06) == -signal.SIGKILL
        before = whole(shelf)
        again = subprocess.run(
            [*COMMAND, str(shelf), str(HANDBOOK)], capture_output=True, check=False
        )
        assert again.returncode == 0, again.stderr
        assert whole(shelf) == 1 >= before
    assert killed > 3  # the delays did meet a run in its middle


def test_an_interrupt_stops_the_work_and_leaves_nothing(tmp_path: Path, long_book: Path) -> None:
    status = index_and_send(tmp_path / "shelf", long_book, signal.SIGINT, 0.1)
    assert status == 130
    assert whole(tmp_path / "shelf") == 0
