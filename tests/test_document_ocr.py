"""Pages that are pictures of text, read by OCR."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from rapidfuzz import fuzz
from reportlab.pdfgen.canvas import Canvas
from typer.testing import CliRunner

from bookrag_fast.cli.main import app
from bookrag_fast.config import OcrSettings, Settings, load_settings
from bookrag_fast.document import BlockKind, Document, IsolatedReader, PageStatus, read_document
from bookrag_fast.document.ocr import stage
from bookrag_fast.document.ocr.legible import fault_of
from bookrag_fast.document.pictures.pool import PicturePool, UnavailableError
from bookrag_fast.errors import ConfigError, NoTextLayerError
from pdf_factory import HEIGHT, LOREM, WIDTH, make_pdf, paragraph, text_lines

pytest.importorskip("rapidocr")

from scan_factory import japanese_scan, picture_page, scan_pdf, scanned

ONE = OcrSettings(workers=1)


def two_columns(canvas: Canvas) -> None:
    heading = "Helvetica-Bold"
    text_lines(canvas, ["A Study of Mills"], top=70, size=20, font=heading)
    y = text_lines(canvas, ["1 Introduction"], top=110, size=13, font=heading)
    y = paragraph(canvas, LOREM * 2, top=y + 6, width=44)
    y = text_lines(canvas, ["2 Methods"], top=y + 10, size=13, font=heading)
    paragraph(canvas, LOREM * 2, top=y + 6, width=44)
    y = text_lines(canvas, ["2.1 Sampling of flour"], x=310, top=110, size=11, font=heading)
    y = paragraph(canvas, LOREM * 2, top=y + 6, width=44, x=310)
    y = text_lines(canvas, ["3 Results"], x=310, top=y + 10, size=13, font=heading)
    paragraph(canvas, LOREM * 2, top=y + 6, width=44, x=310)


def short(canvas: Canvas) -> None:
    paragraph(canvas, LOREM, top=100)


def words(document: Document, page: int = 1) -> list[str]:
    return " ".join(b.text for b in document.blocks if b.page == page).split()


def says_lorem(document: Document, page: int = 1) -> bool:
    """But for a letter or two."""
    return fuzz.ratio(" ".join(words(document, page)), LOREM.strip()) > 98


def headings(document: Document) -> list[str]:
    return [b.text for b in document.blocks if b.kind is BlockKind.TITLE]


# --- what is read -------------------------------------------------------------------------------


@pytest.mark.parametrize("wear", [{}, {"tilt": 0.7}, {"quarter_turns": 2}])
def test_headings_and_columns_of_a_scan_are_found(tmp_path: Path, wear: dict[str, float]) -> None:
    document = read_document(scan_pdf(tmp_path / "scan.pdf", [two_columns], **wear), ocr=ONE)
    (page,) = document.pages
    assert page.status is PageStatus.OCR
    assert "confidence 0.9" in page.note
    assert headings(document) == [
        "A Study of Mills", "1 Introduction", "2 Methods", "2.1 Sampling of flour", "3 Results",
    ]  # fmt: skip
    bodies = [b for b in document.blocks if b.kind is BlockKind.TEXT]
    assert len(bodies) == 4
    assert all(fuzz.ratio(b.text, (LOREM * 2).strip()) > 99 for b in bodies)
    title, first = document.blocks[0], bodies[0]
    assert title.style.size == pytest.approx(20, rel=0.15)
    assert first.style.size == pytest.approx(10, rel=0.12)
    assert not document.warnings


def test_boxes_are_where_the_text_layer_has_them(tmp_path: Path) -> None:
    layer = read_document(make_pdf(tmp_path / "layer.pdf", [two_columns]))
    scan = read_document(scan_pdf(tmp_path / "scan.pdf", [two_columns]), ocr=ONE)
    assert len(layer.blocks) == len(scan.blocks)
    for drawn, read in zip(layer.blocks, scan.blocks, strict=True):
        assert read.regions[0].page == 1
        assert read.regions[0].bbox == pytest.approx(drawn.regions[0].bbox, abs=5)


@pytest.mark.parametrize("turns", [1, 3])
def test_a_page_on_its_side_is_read(tmp_path: Path, turns: int) -> None:
    path = scan_pdf(tmp_path / "side.pdf", [two_columns], quarter_turns=turns)
    document = read_document(path, ocr=ONE)
    assert headings(document)[1:3] == ["1 Introduction", "2 Methods"]
    assert fuzz.ratio(" ".join(words(document)[6:18]), " ".join(LOREM.split()[:12])) > 95
    box = document.blocks[0].regions[0].bbox
    assert (document.pages[0].width, document.pages[0].height) == (HEIGHT, WIDTH)
    assert box.height > box.width  # as displayed: on its side
    assert box.x0 > 0.9 * HEIGHT - 120 if turns == 1 else box.x1 < 120


def test_japanese_with_kana_is_read(tmp_path: Path) -> None:
    pytest.importorskip("noto_cjk_sans_jp_regular")
    lines = [
        ("第1章 はじめに", 18.0),
        ("本書は、酒類を販売する場所における管理者の役割について説明します。", 10.5),
        ("カタカナの用語（データベース、プログラム）もそのまま読み取ります。", 10.5),
    ]
    path = make_pdf(tmp_path / "ja.pdf", [picture_page(japanese_scan(lines))])
    document = read_document(path, ocr=ONE)
    read = [unicodedata.normalize("NFKC", b.text.replace(" ", "")) for b in document.blocks]
    true = [unicodedata.normalize("NFKC", text.replace(" ", "")) for text, _ in lines]
    assert read == [true[0], true[1] + true[2]]
    assert document.blocks[0].kind is BlockKind.TITLE


def test_a_script_that_the_models_do_not_know_is_reported(tmp_path: Path) -> None:
    pytest.importorskip("noto_cjk_sans_jp_regular")
    lines = [("Съешь же ещё этих мягких французских булок, да выпей же чаю", 12.0)] * 5
    russian = japanese_scan([*lines, ("In English only this", 12.0)])
    path = make_pdf(tmp_path / "ru.pdf", [picture_page(russian)])
    document = read_document(path, ocr=ONE)
    assert words(document) == "In English only this".split()
    assert "a script that the OCR models do not know: 1" in document.warnings[0]


def test_a_blank_page_gives_no_text(tmp_path: Path) -> None:
    path = scan_pdf(tmp_path / "blank.pdf", [short, lambda c: None])
    document = read_document(path, ocr=ONE)
    assert [p.status for p in document.pages] == [PageStatus.OCR, PageStatus.NO_TEXT]
    assert document.pages[1].note == "OCR found no text"
    assert [b.kind for b in document.blocks if b.page == 2] == [BlockKind.IMAGE]


# --- which pages are read -----------------------------------------------------------------------


def test_a_mixed_file_is_read_page_by_page(tmp_path: Path) -> None:
    scan = picture_page(scanned(short, tmp_path))
    pages = [lambda c: text_lines(c, ["First of all."]), scan, lambda c: text_lines(c, ["Last."])]
    path = make_pdf(tmp_path / "mixed.pdf", pages)
    seen: list[tuple[int, int]] = []
    document = read_document(path, ocr=ONE, progress=lambda *pages: seen.append(pages))
    assert [p.status.value for p in document.pages] == ["ok", "ocr", "ok"]
    assert says_lorem(document, 2)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == ((1, 3), (3, 3))


def _over(layer: str, mode: int) -> object:
    """A scan with a text layer in the given render mode."""

    def page(canvas: Canvas) -> None:
        text = canvas.beginText(72, HEIGHT - 100)
        text.setFont("Helvetica", 10)
        text.setTextRenderMode(mode)
        for k in range(0, len(layer), 90):
            text.textLine(layer[k : k + 90])
        canvas.drawText(text)

    return page


def test_a_good_invisible_layer_is_kept(tmp_path: Path) -> None:
    scan = picture_page(scanned(short, tmp_path))
    layer = _over("Somebody else has read this page before. " * 8, 3)
    path = make_pdf(tmp_path / "made.pdf", [lambda c: (scan(c), layer(c))])  # type: ignore[operator]
    document = read_document(path, ocr=ONE)
    assert document.pages[0].status is PageStatus.OK
    assert words(document)[:3] == ["Somebody", "else", "has"]


def test_a_garbage_invisible_layer_is_not(tmp_path: Path) -> None:
    scan = picture_page(scanned(short, tmp_path))
    shifted = LOREM.translate({ord(c): chr(ord(c) - 29) for c in map(chr, range(61, 123))})
    layer = _over(shifted * 2, 3)
    path = make_pdf(tmp_path / "made.pdf", [lambda c: (scan(c), layer(c))])  # type: ignore[operator]
    document = read_document(path, ocr=ONE)
    assert document.pages[0].status is PageStatus.OCR
    assert says_lorem(document)


def test_a_stamp_on_a_scan_does_not_pass_for_its_text(tmp_path: Path) -> None:
    scan = picture_page(scanned(short, tmp_path))
    stamp = _over("Downloaded on 3 May", 0)
    path = make_pdf(tmp_path / "stamp.pdf", [lambda c: (scan(c), stamp(c))])  # type: ignore[operator]
    (page,) = read_document(path, ocr=ONE).pages
    assert page.status is PageStatus.OCR


def test_a_strange_layer_that_says_what_the_page_says_is_kept(tmp_path: Path) -> None:
    """Code has odd letters and is right all the same; OCR would make it worse."""
    code = ["xx = fx(xx, yy, zz); // phy", "ky = gx(kk, jj); wz = kk; vx = ky"] * 8
    path = make_pdf(tmp_path / "code.pdf", [lambda c: text_lines(c, code, size=12, leading=18)])
    assert fault_of("\n".join(code))
    assert read_document(path, ocr=ONE).pages[0].status is PageStatus.OK


def test_faults_of_text_layers() -> None:
    assert fault_of(LOREM * 3) == ""
    assert fault_of("12,345 (678) $9.10 " * 40) == ""
    assert fault_of("Съешь же ещё этих мягких французских булок да выпей чаю. " * 5) == ""
    assert fault_of("本書は酒類を販売する場所の管理者について説明します。" * 5) == ""
    assert "characters" in fault_of("\ue012\ue034\ue056 " * 30 + "page 4")
    assert "characters" in fault_of("\ufffd\ufffd the \ufffd\ufffd" * 20)
    assert "no words" in fault_of("Wkh txlfn eurzq ira mxpsv ryhu wkh odcb grj zkloh " * 8)


def test_always_reads_pages_with_a_layer_too(tmp_path: Path) -> None:
    path = make_pdf(tmp_path / "layer.pdf", [short])
    document = read_document(path, ocr=OcrSettings(mode="always", workers=1))
    assert document.pages[0].status is PageStatus.OCR
    assert says_lorem(document)


# --- without it ---------------------------------------------------------------------------------


def test_without_the_extra_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "is_installed", lambda: False)
    scan = picture_page(scanned(short, tmp_path))
    with pytest.raises(NoTextLayerError) as caught:
        read_document(make_pdf(tmp_path / "scan.pdf", [scan]))
    assert "pip install 'bookrag-fast[ocr]'" in caught.value.hint
    document = read_document(make_pdf(tmp_path / "mixed.pdf", [short, scan]))
    assert [p.status for p in document.pages] == [PageStatus.OK, PageStatus.NO_TEXT]
    assert "not installed" in document.pages[1].note
    (warning,) = document.warnings
    assert "pip install 'bookrag-fast[ocr]'" in warning


def test_off_reads_none(tmp_path: Path) -> None:
    scan = picture_page(scanned(short, tmp_path))
    document = read_document(
        make_pdf(tmp_path / "mixed.pdf", [short, scan]), ocr=OcrSettings(mode="off")
    )
    assert document.pages[1].status is PageStatus.NO_TEXT
    assert "switched off" in document.warnings[0]


def test_a_folder_without_models_is_said(tmp_path: Path) -> None:
    scan = picture_page(scanned(short, tmp_path))
    path = make_pdf(tmp_path / "mixed.pdf", [short, scan])
    document = read_document(path, ocr=OcrSettings(models=str(tmp_path), workers=1))
    assert "one is needed" in document.warnings[0]


def test_models_are_those_of_the_package_and_nothing_is_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import rapidocr
    import requests

    from bookrag_fast.document.ocr import recogniser

    def refused(*arguments: object, **named: object) -> None:
        raise AssertionError(f"a download: {arguments}")

    monkeypatch.setattr(requests.sessions.Session, "request", refused)
    folder = Path(rapidocr.__file__).parent / "models"
    for part in ("det", "rec"):
        assert recogniser._model(None, part).parent == folder
    blank = np.full((200, 400), 255, np.uint8)
    assert recogniser.Recogniser().read(blank, 1.0) == []


def test_models_of_ones_own(tmp_path: Path) -> None:
    import rapidocr

    for part in ("det_small", "rec_small"):
        name = f"PP-OCRv6_{part}.onnx"
        (tmp_path / name).symlink_to(Path(rapidocr.__file__).parent / "models" / name)
    path = scan_pdf(tmp_path / "scan.pdf", [short])
    document = read_document(path, ocr=OcrSettings(models=str(tmp_path), workers=1))
    assert says_lorem(document)


# --- failures -----------------------------------------------------------------------------------


def _workers_of(pid: int) -> list[int]:
    """Processes below one that read pictures."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if b"document.ocr.worker" in command and state[0] != "Z":
            parents = [int(state[1])]
            if parents[0] != pid:
                try:
                    above = Path(f"/proc/{parents[0]}/stat").read_text().rpartition(")")[2]
                    parents.append(int(above.split()[1]))
                except OSError:
                    pass
            if pid in parents:
                found.append(int(entry.name))
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@needs_proc
def test_a_killed_worker_costs_its_page_only(tmp_path: Path) -> None:
    image = scanned(two_columns, tmp_path)
    path = make_pdf(tmp_path / "scan.pdf", [picture_page(image)] * 3)
    killed = 0

    def kill_once(done: int, total: int) -> None:
        nonlocal killed
        if done == 1 and not killed:
            killed = _workers_of(os.getpid())[0]
            os.kill(killed, signal.SIGKILL)

    document = read_document(path, ocr=ONE, progress=kill_once)
    assert killed
    assert [p.status.value for p in document.pages] == ["ocr", "no_text", "ocr"]
    assert "status -9" in document.pages[1].note
    assert len(document.warnings) == 1
    assert not _workers_of(os.getpid())


def test_a_scan_that_ocr_could_not_start_on_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise UnavailableError("the process ended", "free some memory")

    monkeypatch.setattr(PicturePool, "read", read)
    path = make_pdf(tmp_path / "scan.pdf", [picture_page(scanned(two_columns, tmp_path))])
    with pytest.raises(NoTextLayerError) as caught:
        read_document(path, ocr=ONE)
    assert caught.value.hint == "free some memory"


def test_a_page_that_takes_too_long_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = picture_page(scanned(two_columns, tmp_path))
    path = make_pdf(tmp_path / "mixed.pdf", [short, scan])
    monkeypatch.setattr("bookrag_fast.document.pictures.pool._START_S", 0.0)
    document = read_document(path, ocr=OcrSettings(workers=1, page_seconds=0.01))
    assert [p.status.value for p in document.pages] == ["ok", "no_text"]
    assert "within 0.01 s" in document.warnings[0]


@needs_proc
def test_cancelling_ends_the_workers(tmp_path: Path) -> None:
    path = make_pdf(tmp_path / "scan.pdf", [picture_page(scanned(two_columns, tmp_path))] * 4)
    reader = IsolatedReader(memory_mb=4096, ocr=ONE)

    class StopError(Exception):
        pass

    seen: list[int] = []

    def check() -> None:
        seen[:] = seen or _workers_of(os.getpid())
        if seen:
            raise StopError

    with pytest.raises(StopError):
        reader.read(path, check=check)
    _gone(seen)
    reader.close()


@needs_proc
def test_killing_the_parent_ends_the_workers(tmp_path: Path) -> None:
    path = make_pdf(tmp_path / "scan.pdf", [picture_page(scanned(two_columns, tmp_path))] * 8)
    code = "import sys; from bookrag_fast.document import read_document; read_document(sys.argv[1])"
    parent = subprocess.Popen([sys.executable, "-c", code, str(path)])
    try:
        deadline = time.monotonic() + 60
        while not (workers := _workers_of(parent.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert workers
    finally:
        parent.kill()
        parent.wait()
    _gone(workers)


def _gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 15
    while any(Path(f"/proc/{pid}").exists() and _alive(pid) for pid in pids):
        assert time.monotonic() < deadline, f"still there: {pids}"
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_settings_reach_the_isolated_reader(tmp_path: Path) -> None:
    path = scan_pdf(tmp_path / "scan.pdf", [short])
    # The limit is for the reader; what loads models has its own.
    reading = IsolatedReader(memory_mb=512, ocr=Settings(ocr=ONE).ocr)
    assert says_lorem(reading.read(path))
    reading.close()
    refusing = IsolatedReader(memory_mb=4096, ocr=OcrSettings(mode="off"))
    with pytest.raises(NoTextLayerError, match="scan"):
        refusing.read(path)
    refusing.close()


def test_the_command_line_says_how(tmp_path: Path) -> None:
    path = scan_pdf(tmp_path / "scan.pdf", [two_columns])
    shelf = ["--library", str(tmp_path / "shelf")]
    refused = CliRunner().invoke(app, ["index", str(path), "--ocr", "off", *shelf])
    assert refused.exit_code == NoTextLayerError.exit_code
    assert "--ocr auto" in refused.output
    made = CliRunner().invoke(app, ["index", str(path), *shelf])
    assert made.exit_code == 0
    tree = CliRunner().invoke(app, ["show", path.name, "tree", *shelf])
    for heading in ("1 Introduction", "2.1 Sampling of flour", "3 Results"):
        assert heading in tree.output


def test_a_flag_goes_before_the_environment() -> None:
    environ = {"BOOKRAG_OCR__MODE": "always", "BOOKRAG_OCR__DPI": "150"}
    settings = load_settings(environ=environ, ocr={"mode": "off"})
    assert (settings.ocr.mode, settings.ocr.dpi) == ("off", 150)
    with pytest.raises(ConfigError, match=r"ocr\.mode"):
        load_settings(environ={"BOOKRAG_OCR__MODE": "sometimes"})
