"""What can go wrong with a PDF: a file is refused by an error of its own, a page fails alone."""

from __future__ import annotations

from pathlib import Path

import pypdfium2
import pytest

from bookrag_fast import errors
from bookrag_fast.document import BlockKind, PageStatus, read_document
from bookrag_fast.document.pdf import pages, pdfium
from bookrag_fast.document.pdf.chars import read_chars
from pdf_factory import HEIGHT, LOREM, WIDTH, image, make_pdf, paragraph


def _good(tmp_path: Path, **options: object) -> Path:
    return make_pdf(
        tmp_path / "good.pdf",
        [lambda c: paragraph(c, LOREM * 5, top=100)] * 3,
        **options,  # type: ignore[arg-type]
    )


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(errors.DocumentError, match="there is no file"):
        read_document(tmp_path / "nothing.pdf")
    with pytest.raises(errors.DocumentError, match="folder"):
        read_document(tmp_path)
    with pytest.raises(errors.DocumentError, match="can be no path"):
        read_document(f"{tmp_path}/a\0b.pdf")


def test_a_file_that_goes_while_it_is_read(tmp_path: Path) -> None:
    path = _good(tmp_path)
    with pytest.raises(errors.DocumentError, match="changed while it was being read"):
        read_document(path, progress=lambda done, total: path.unlink(missing_ok=True))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", errors.EmptyDocumentError),
        (b"<html>no pdf</html>", errors.NotAPdfError),
        (b"%PDF-1.7\nrubbish", errors.DamagedPdfError),
    ],
)
def test_no_pdf(tmp_path: Path, content: bytes, error: type[errors.DocumentError]) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        read_document(path)
    assert "x.pdf" in caught.value.message
    assert caught.value.hint


def test_truncated(tmp_path: Path) -> None:
    whole = _good(tmp_path).read_bytes()
    path = tmp_path / "cut.pdf"
    path.write_bytes(whole[: len(whole) // 5])
    with pytest.raises(errors.DamagedPdfError, match="truncated"):
        read_document(path)


def test_zero_pages(tmp_path: Path) -> None:
    path = tmp_path / "zero.pdf"
    empty = pypdfium2.PdfDocument.new()
    empty.save(path)
    empty.close()
    with pytest.raises(errors.ZeroPagesError):
        read_document(path)


def test_encrypted(tmp_path: Path) -> None:
    path = _good(tmp_path, password="secret")
    with pytest.raises(errors.EncryptedPdfError, match="needs a password") as caught:
        read_document(path)
    assert "--password" in caught.value.hint
    for wrong in ("guess", "\udcff"):  # what a byte of a command line becomes that is no UTF-8
        with pytest.raises(errors.WrongPasswordError):
            read_document(path, password=wrong)
    assert len(read_document(path, password="secret").pages) == 3


def test_pictures_only(tmp_path: Path) -> None:
    path = make_pdf(tmp_path / "scan.pdf", [lambda c: c.drawImage(image(), 0, 0, WIDTH, HEIGHT)])
    with pytest.raises(errors.NoTextLayerError):
        read_document(path)


def test_one_page_without_text_is_a_warning(tmp_path: Path) -> None:
    drawn = [
        lambda c: paragraph(c, LOREM, top=100),
        lambda c: c.drawImage(image(), 0, 0, WIDTH, HEIGHT),
    ]
    document = read_document(make_pdf(tmp_path / "mixed.pdf", drawn))
    assert [p.status for p in document.pages] == [PageStatus.OK, PageStatus.NO_TEXT]
    assert len(document.warnings) == 1
    assert [b.kind for b in document.blocks] == [BlockKind.TEXT, BlockKind.IMAGE]


def test_one_bad_page_does_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _good(tmp_path)
    calls = 0

    def failing(page: object, geometry: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 2 or failing.always:  # type: ignore[attr-defined]
            raise OSError("broken stream")
        return read_chars(page, geometry)  # type: ignore[arg-type]

    failing.always = False  # type: ignore[attr-defined]
    monkeypatch.setattr(pages, "read_chars", failing)
    document = read_document(path)
    assert [p.status for p in document.pages] == [PageStatus.OK, PageStatus.FAILED, PageStatus.OK]
    assert "page 2" in document.warnings[0]
    failing.always = True  # type: ignore[attr-defined]
    with pytest.raises(errors.UnreadablePagesError, match="broken stream"):
        read_document(path)


def test_absurd_page_count_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdfium, "MAX_PAGES", 2)
    with pytest.raises(errors.TooLargeError, match="claims 3 pages"):
        read_document(_good(tmp_path))
