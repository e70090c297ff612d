"""Pages read side by side: the same document, and a page that ends its process fails alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from bookrag_fast.config import OcrSettings
from bookrag_fast.document import IsolatedReader, PageStatus
from bookrag_fast.document.analysis.blocks import Body
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.analysis.ruled import Grid
from bookrag_fast.document.model import BBox, Page
from bookrag_fast.document.pdf.pages import RawPage, page_drafts, read_page
from bookrag_fast.document.pdf.parallel import PagePool
from bookrag_fast.document.pdf.parallel import pool as pool_module
from bookrag_fast.document.pdf.parallel.wire import (
    body_of,
    drafts_from,
    drafts_to,
    layout_to,
    page_from,
    page_to,
)
from bookrag_fast.document.pdf.pdfium import PageGeometry, open_pdf
from bookrag_fast.document.pdf.reader import read_pdf
from bookrag_fast.errors import BookragError, DamagedPdfError, DocumentError
from conftest import HANDBOOK
from pdf_factory import LOREM, heading, make_pdf, paragraph, text_lines

DATA = os.environ.get("BOOKRAG_TEST_DATA")
MEMORY_MB = 2048


@pytest.fixture
def pool() -> Iterator[PagePool]:
    with PagePool(2, MEMORY_MB, least=1) as pool:
        yield pool


def book(path: Path, pages: int) -> Path:
    """Headings, paragraphs that run over pages, tables, running heads, an empty page."""

    def page(k: int) -> Callable[[Canvas], None]:
        def draw(c: Canvas) -> None:
            if k and k == pages // 2:
                return
            text_lines(c, [f"A Book of Mills   {k + 1}"], x=72, top=30, size=8)
            top = heading(c, f"{k + 1}. Mill {k + 1}", top=80) if k % 3 == 0 else 80.0
            for j in range(4 + k % 5):
                top = paragraph(c, f"Part {k}-{j}: " + LOREM[: 150 + 37 * (k + j) % 120], top=top)
            if k % 4 == 1:
                for column in range(4):
                    cells = [f"Y{column}", *(str(k * r + column) for r in range(5))]
                    text_lines(c, cells, x=72 + 100 * column, top=top + 20)

        return draw

    return make_pdf(path, [page(k) for k in range(pages)])


def with_loops(path: Path, pages: int, bad: set[int]) -> Path:
    """Pages of text; the ``bad`` ones, 1-based, draw a form that draws itself three times."""
    form = b"/X Do /X Do /X Do"
    kids = b" ".join(b"%d 0 R" % (6 + 2 * k) for k in range(pages))
    bodies = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, pages),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<</XObject<</X 4 0 R>>"
        + b"/Font<</F1 3 0 R>>>>/Length %d>>stream\n%s\nendstream" % (len(form), form),
        b"<</XObject<</X 4 0 R>>/Font<</F1 3 0 R>>>>",
    ]
    for k in range(1, pages + 1):
        drawn = b"BT /F1 12 Tf 72 700 Td (Words of page %d) Tj ET" % k + b" /X Do" * (k in bad)
        bodies.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R/Resources 5 0 R>>"
            % (5 + 2 * k)
        )
        bodies.append(b"<</Length %d>>stream\n%s\nendstream" % (len(drawn), drawn))
    data, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(data))
        data += b"%d 0 obj%s endobj\n" % (number, body)
    rows = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>startxref\n%d\n%%%%EOF"
    path.write_bytes(data + end % (len(bodies) + 1, rows, len(bodies) + 1, len(data)))
    return path


# --- the same document ------------------------------------------------------------------------


@pytest.mark.parametrize("pages", [1, 2, 9, 41])
def test_a_book_is_the_same(pool: PagePool, tmp_path: Path, pages: int) -> None:
    path = book(tmp_path / "b.pdf", pages)
    told: list[tuple[int, int]] = []
    there = read_pdf(path, pool=pool, progress=lambda done, total: told.append((done, total)))
    assert there == read_pdf(path)
    assert told == [(k + 1, pages) for k in range(pages)]


def test_one_pool_reads_book_after_book(pool: PagePool, tmp_path: Path) -> None:
    paths = [HANDBOOK, book(tmp_path / "a.pdf", 20), book(tmp_path / "b.pdf", 3), HANDBOOK]
    for path in paths:
        assert read_pdf(path, pool=pool) == read_pdf(path)
    assert len(pool._workers) == 2


def test_a_password_reaches_the_workers(pool: PagePool, tmp_path: Path) -> None:
    path = make_pdf(tmp_path / "s.pdf", [lambda c: text_lines(c, [LOREM[:80]])], password="pass")
    assert read_pdf(path, password="pass", pool=pool).blocks[0].text == LOREM[:80].strip()


@pytest.mark.skipif(not DATA, reason="BOOKRAG_TEST_DATA names no folder of real documents")
def test_real_documents_are_the_same(pool: PagePool) -> None:
    off = OcrSettings(mode="off")
    read = 0
    for path in sorted(Path(str(DATA)).rglob("*.pdf")):
        try:
            here = read_pdf(path, ocr=off)
        except BookragError as error:
            with pytest.raises(type(error)):
                read_pdf(path, ocr=off, pool=pool)
            continue
        assert read_pdf(path, ocr=off, pool=pool) == here, path.name
        read += 1
    assert read > 0


def test_short_documents_start_no_processes(tmp_path: Path) -> None:
    with PagePool(2, MEMORY_MB) as pool:
        read_pdf(book(tmp_path / "a.pdf", pool_module.WARM + 1), pool=pool)
        assert not pool._workers
        read_pdf(book(tmp_path / "b.pdf", pool_module.COLD), pool=pool)
        assert len(pool._workers) == 2
        assert pool.takes(pool_module.WARM)


# --- the wire ---------------------------------------------------------------------------------


def test_pages_and_drafts_cross_the_wire_unchanged() -> None:
    body = Body(10.5, bold=False, mono=True)
    with open_pdf(HANDBOOK, None) as pdf:
        for index in range(pdf.page_count):
            raw = read_page(pdf, index + 1)
            assert page_from(page_to(raw)) == raw
            assert body_of(layout_to(raw, body)) == (raw, body)
            drafts = page_drafts(raw, body)
            back = drafts_from(drafts_to(drafts))
            assert [d.block() for d in back] == [d.block() for d in drafts]
            assert [d.column for d in back] == [d.column for d in drafts]


def test_odd_values_cross_the_wire() -> None:
    line = Line(
        "\ud800 \n\x00 ü 字", 0.1, -1e-30, 1e30, float(2**0.5), 3, 1 / 3, True, False, True,
        "Fam\nily", 0xFFFFFF, 3, True,
    )  # fmt: skip
    grid = Grid((0.5, 1.25), (1.0, 2.0, 3.5), frozenset({(1, 0), (1, 1)}))
    raw = RawPage(
        Page(7, "vii", 595.3, 842.0, PageStatus.OK, "note\n"),
        PageGeometry((0.0, 0.0, 595.3, 842.0), 3),
        [line, line],
        [BBox(1, 2, 3, 4)],
        [],
        [grid],
        [BBox(0.1, 0.2, 0.3, 0.4)],
        True,
    )
    assert page_from(page_to(raw)) == raw
    assert page_from(page_to(RawPage(Page(1, None, 0.0, 0.0)))) == RawPage(Page(1, None, 0.0, 0.0))


# --- what goes wrong --------------------------------------------------------------------------


def test_only_the_pages_that_end_their_process_fail(pool: PagePool, tmp_path: Path) -> None:
    bad = {1, 17, 18}
    document = read_pdf(with_loops(tmp_path / "loops.pdf", 30, bad), pool=pool)
    failed = {p.number for p in document.pages if p.status is PageStatus.FAILED}
    assert failed == bad
    assert all("ended its reader" in document.pages[k - 1].note for k in bad)
    assert {b.page for b in document.blocks} == set(range(1, 31)) - bad
    assert sum("not read" in w for w in document.warnings) == len(bad)


def test_a_short_file_that_ends_its_reader_is_read_again_with_care(tmp_path: Path) -> None:
    reader = IsolatedReader(memory_mb=MEMORY_MB, workers=1)
    try:
        document = reader.read(with_loops(tmp_path / "loops.pdf", 4, {3}))
    finally:
        reader.close()
    assert [p.status is PageStatus.FAILED for p in document.pages] == [False, False, True, False]


def test_a_file_of_such_pages_is_given_up(
    pool: PagePool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "MOST_LOST", 1)
    path = with_loops(tmp_path / "loops.pdf", 20, set(range(2, 21)))
    with pytest.raises(DamagedPdfError, match="ended its reader on 2 pages"):
        read_pdf(path, pool=pool)
    assert read_pdf(HANDBOOK, pool=pool) == read_pdf(HANDBOOK)


def test_a_page_that_never_ends_fails_alone(
    pool: PagePool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = book(tmp_path / "b.pdf", 60)
    read_pdf(path, pool=pool)  # both are at work by now
    pages = pool.pages(path, None, range(1, 61))
    got = [next(pages)]
    monkeypatch.setattr(pool_module, "_PAGE_S", 3.0)
    os.kill(pool._workers[1]._process.pid, signal.SIGSTOP)
    got += pages
    assert [raw.page.number for raw in got] == list(range(1, 61))
    failed = [raw.page.note for raw in got if raw.page.status is PageStatus.FAILED]
    assert failed == ["it was not read within 3 s"]


def test_workers_that_ended_while_idle_cost_no_page(pool: PagePool) -> None:
    here = read_pdf(HANDBOOK)
    assert read_pdf(HANDBOOK, pool=pool) == here
    for worker in pool._workers:
        os.kill(worker._process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, worker._process.pid, os.WEXITED | os.WNOWAIT)
    assert read_pdf(HANDBOOK, pool=pool) == here


def test_a_worker_that_ends_over_a_layout_costs_nothing(pool: PagePool, tmp_path: Path) -> None:
    path = book(tmp_path / "b.pdf", 60)

    def kill(done: int, total: int) -> None:
        if done == total:  # all pages are read
            os.kill(pool._workers[0]._process.pid, signal.SIGKILL)
            pool._workers[0].alive = lambda: True  # type: ignore[method-assign]

    assert read_pdf(path, pool=pool, progress=kill) == read_pdf(path)


def test_a_document_that_is_given_up_leaves_nothing_behind(pool: PagePool, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_pdf(book(tmp_path / "b.pdf", 60), pool=pool, progress=stop)
    assert read_pdf(HANDBOOK, pool=pool) == read_pdf(HANDBOOK)


def test_a_file_that_vanished_meanwhile_has_no_pages(pool: PagePool, tmp_path: Path) -> None:
    pages = list(pool.pages(tmp_path / "gone.pdf", None, range(1, 4)))
    assert [raw.page.status for raw in pages] == [PageStatus.FAILED] * 3
    assert "gone.pdf" in pages[0].page.note


def test_too_little_memory_to_start_is_said(tmp_path: Path) -> None:
    with (
        PagePool(2, 40, least=1) as pool,
        pytest.raises(DocumentError, match="ended at its start"),
    ):
        list(pool.pages(HANDBOOK, None, range(1, 4)))


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(tmp_path: Path, sign: signal.Signals) -> None:
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from bookrag_fast.document.pdf.parallel import PagePool\n"
        f"pool = PagePool(2, {MEMORY_MB}, least=1)\n"
        f"pages = pool.pages(Path({str(HANDBOOK)!r}), None, range(1, 31))\n"
        "next(pages)\n"
        "print(*(w._process.pid for w in pool._workers), flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(workers) == 2
    parent.send_signal(sign)
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + 60
    while any(_runs(pid) for pid in workers):
        assert time.monotonic() < end, "workers outlive their parent"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
