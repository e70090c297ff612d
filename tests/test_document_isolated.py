"""Reading in a process of its own: the same document, and no file takes the caller down."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bookrag_fast import Library
from bookrag_fast.config import Settings
from bookrag_fast.document import IsolatedReader, isolated, read_document
from bookrag_fast.document.transfer import from_json, to_json
from bookrag_fast.errors import (
    BookragError,
    DamagedPdfError,
    EncryptedPdfError,
    NotAPdfError,
    UnreadablePagesError,
    WrongPasswordError,
)
from conftest import HANDBOOK
from pdf_factory import make_pdf, text_lines


def self_calling_form(path: Path) -> Path:
    """A form XObject that draws itself three times: PDFium ends the process over it."""
    form = b"/X Do /X Do /X Do"
    bodies = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources 7 0 R>>",
        b"<</Length 41>>stream\nBT /F1 12 Tf 72 700 Td (Hello) Tj ET /X Do\nendstream",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<</XObject<</X 6 0 R>>"
        + b"/Font<</F1 5 0 R>>>>/Length %d>>stream\n%s\nendstream" % (len(form), form),
        b"<</XObject<</X 6 0 R>>/Font<</F1 5 0 R>>>>",
    ]
    data, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(data))
        data += b"%d 0 obj%s endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>startxref\n%d\n%%%%EOF"
    path.write_bytes(data + end % (len(bodies) + 1, table, len(bodies) + 1, len(data)))
    return path


@pytest.fixture
def reader():  # type: ignore[no-untyped-def]
    reader = IsolatedReader(memory_mb=2048)
    yield reader
    reader.close()


def test_the_document_is_the_same_as_in_this_process(reader: IsolatedReader) -> None:
    here = read_document(HANDBOOK)
    told: list[tuple[int, int]] = []
    there = reader.read(HANDBOOK, progress=lambda done, total: told.append((done, total)))
    assert there == here
    assert told[-1] == (len(here.pages), len(here.pages))
    assert from_json(to_json(here)) == here


def test_errors_cross_over_as_themselves(reader: IsolatedReader, tmp_path: Path) -> None:
    secret = make_pdf(tmp_path / "s.pdf", [lambda c: text_lines(c, ["Hello"])], password="pass")
    with pytest.raises(EncryptedPdfError):
        reader.read(secret)
    with pytest.raises(WrongPasswordError) as caught:
        reader.read(secret, password="wrong")
    assert "wrong" not in str(caught.value).replace("wrong password", "")
    assert reader.read(secret, password="pass").blocks
    text = tmp_path / "not.pdf"
    text.write_text("plain")
    with pytest.raises(NotAPdfError):
        reader.read(text)


def test_one_worker_serves_many_documents(
    reader: IsolatedReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    real = isolated._Worker

    def counted(memory_mb: int) -> isolated._Worker:
        started.append(memory_mb)
        return real(memory_mb)

    monkeypatch.setattr(isolated, "_Worker", counted)
    for _ in range(3):
        reader.read(HANDBOOK)
    assert len(started) == 1
    monkeypatch.setattr(isolated, "_DOCUMENTS", 3)
    reader.read(HANDBOOK)
    reader.read(HANDBOOK)
    assert len(started) == 2


def test_a_file_that_kills_the_pdf_library_is_an_error(
    reader: IsolatedReader, tmp_path: Path
) -> None:
    bad = self_calling_form(tmp_path / "recursive.pdf")
    with pytest.raises(UnreadablePagesError, match=r"page 1: it ended its reader \(status -"):
        reader.read(bad)
    assert len(reader.read(HANDBOOK).pages) > 30  # the next one is read as ever


def test_a_library_survives_it(tmp_path: Path) -> None:
    settings = Settings(reader_memory_mb=1024)
    with Library.open(tmp_path / "shelf", settings=settings) as lib:
        with pytest.raises(BookragError):
            lib.add(self_calling_form(tmp_path / "recursive.pdf"))
        assert lib.add(HANDBOOK).pages > 30
        assert len(lib.books()) == 1


def test_a_worker_that_ended_while_idle_is_replaced(reader: IsolatedReader) -> None:
    reader.read(HANDBOOK)
    os.kill(reader._idle[0]._process.pid, signal.SIGKILL)
    reader._idle[0]._process.wait()
    assert reader.read(HANDBOOK).pages


def test_a_worker_that_is_killed_at_work_is_replaced_once(
    reader: IsolatedReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = reader.read(HANDBOOK)
    killed: list[int] = []
    real = isolated._Worker.read

    def watched(self: isolated._Worker, path, request, progress, check):  # type: ignore[no-untyped-def]
        def kill(done: int, total: int) -> None:
            if done == 3 and len(killed) < deaths:
                killed.append(self._process.pid)
                os.kill(self._process.pid, signal.SIGKILL)

        return real(self, path, request, kill, check)

    monkeypatch.setattr(isolated._Worker, "read", watched)
    deaths = 1
    assert reader.read(HANDBOOK) == whole
    assert len(killed) == 1
    deaths = 99
    with pytest.raises(DamagedPdfError, match=r"page \d+ of handbook.* ended its reader"):
        reader.read(HANDBOOK)
    assert len(killed) == 3
    deaths = 0
    assert reader.read(HANDBOOK) == whole


def test_a_page_that_never_ends_is_given_up(
    reader: IsolatedReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.read(HANDBOOK)
    os.kill(reader._idle[0]._process.pid, signal.SIGSTOP)
    monkeypatch.setattr(isolated, "_SILENCE_S", 0.3)
    with pytest.raises(DamagedPdfError, match="not read within"):
        reader.read(HANDBOOK)


def test_cancelling_is_heeded_at_once(reader: IsolatedReader) -> None:
    reader.read(HANDBOOK)
    os.kill(reader._idle[0]._process.pid, signal.SIGSTOP)  # it would never answer
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()

    def check() -> None:
        if stop.is_set():
            raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        reader.read(HANDBOOK, check=check)
    assert time.monotonic() - start < 30  # not the silence limit
    assert reader._idle == []


def test_threads_read_side_by_side(reader: IsolatedReader) -> None:
    with ThreadPoolExecutor(3) as pool:
        documents = list(pool.map(lambda _: reader.read(HANDBOOK), range(6)))
    assert all(d == documents[0] for d in documents)
    assert len(reader._idle) <= 1
