"""Which reader a file goes to: by content, its extension only where the content is silent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bookrag_fast.document import IsolatedReader, read_document
from bookrag_fast.document.formats import kinds
from bookrag_fast.document.formats.kinds import Format, detect_format
from bookrag_fast.document.transfer import from_json, to_json
from bookrag_fast.errors import (
    BookragError,
    DocumentError,
    EmptyDocumentError,
    NotAPdfError,
    TooLargeError,
    UnsupportedFormatError,
)
from conftest import HANDBOOK
from format_factory import (
    docling_document,
    make_docx,
    make_epub,
    mineru_list,
    paragraph,
    write_json,
)

MARKDOWN = "# Head\n\nSome text.\n"


def everything(folder: Path) -> dict[str, Path]:
    """A file of each format."""
    (folder / "b.md").write_text(MARKDOWN)
    (folder / "b.html").write_text("<h1>Head</h1><p>Some text.")
    (folder / "b.txt").write_text("Head\n====\n\nSome text.\n")
    return {
        "markdown": folder / "b.md", "html": folder / "b.html", "text": folder / "b.txt",
        "epub": make_epub(folder / "b.epub", {"a.xhtml": "<h1>Head</h1><p>Some text."}),
        "docx": make_docx(folder / "b.docx", paragraph("Some text.")),
        "docling": write_json(folder / "d.json", docling_document()),
        "mineru": write_json(folder / "m.json", mineru_list()),
    }  # fmt: skip


@pytest.mark.parametrize(("name", "content", "wanted"), [
    ("b.md", MARKDOWN, Format.MARKDOWN), ("B.MARKDOWN", MARKDOWN, Format.MARKDOWN),
    ("b.txt", MARKDOWN, Format.TEXT), ("b", MARKDOWN, Format.TEXT), ("b.csv", "a,b", Format.TEXT),
    ("b.html", "plain words", Format.HTML), ("b.htm", "<p>x", Format.HTML),
    ("b", "<!-- x -->\n<!DOCTYPE html><p>x", Format.HTML), ("b.txt", "<html>x", Format.HTML),
    ("b.php", '<?xml version="1.0"?>\n<html xmlns="">x</html>', Format.HTML),
    ("b.md", "<html>as an example</html>", Format.MARKDOWN),
    ("b.json", "{}", Format.JSON), ("b", '{"schema_name": "DoclingDocument"}', Format.JSON),
    ("b.txt", '{"schema_name": "DoclingDocument"}', Format.TEXT),
    ("b", "[a link](x) and so on", Format.TEXT), ("b", "%PDF-1.4", Format.PDF),
    ("b.md", "how a PDF starts: %PDF-1.4", Format.MARKDOWN), ("b.md", "%PDF-1.4", Format.PDF),
    ("b.bin", "\n\n%PDF-1.4", Format.PDF), ("b.pdf", "words", Format.PDF),
])  # fmt: skip
def test_formats(tmp_path: Path, name: str, content: str, wanted: Format) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert detect_format(path) is wanted


def test_archives_are_told_apart_whatever_their_name(tmp_path: Path) -> None:
    files = everything(tmp_path)
    for kind, wanted in (("epub", Format.EPUB), ("docx", Format.DOCX)):
        for name in ("x.zip", "x.md", "x"):
            other = tmp_path / name
            other.write_bytes(files[kind].read_bytes())
            assert detect_format(other) is wanted


@pytest.mark.parametrize(("name", "data", "what"), [
    ("b.md", os.urandom(64) + bytes(64), "binary data"), ("b.txt", b"\x7fELF\0\0", "binary data"),
    ("b.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(9), "old Office"),
    ("b.rtf", b"{\\rtf1 x}", "RTF"), ("b.gif", b"GIF89a", "GIF"), ("b", b"%!PS-Adobe", "Post"),
    ("b.xml", b"<?xml version='1.0'?><rss/>", "XML"), ("b.md", b"\x1f\x8b\x08", "gzip"),
])  # fmt: skip
def test_other_formats_are_named_with_what_can_be_read(
    tmp_path: Path, name: str, data: bytes, what: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UnsupportedFormatError, match=what) as caught:
        read_document(path)
    assert name in caught.value.message
    assert all(kind.value in caught.value.hint for kind in Format)


@pytest.mark.parametrize("name", ["b.md", "b.html", "b.txt", "b.json", "b.epub", "b.docx", "b.pdf"])
def test_empty_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    with pytest.raises(EmptyDocumentError):
        read_document(path)


@pytest.mark.parametrize(("name", "content"), [
    ("b.md", " \n\n"), ("b.md", "---\ntitle: x\n---\n"), ("b.html", "<!-- x -->"),
    ("b.html", "<script>x</script>"), ("b.txt", "\n\f\n"), ("b.md", "\ufeff"),
])  # fmt: skip
def test_files_without_text_are_empty(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    with pytest.raises(EmptyDocumentError, match="no text"):
        read_document(path)


def test_what_claims_to_be_a_pdf_is_judged_as_one(tmp_path: Path) -> None:
    path = tmp_path / "b.pdf"
    path.write_text(MARKDOWN)
    with pytest.raises(NotAPdfError):
        read_document(path)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    for path in (tmp_path, tmp_path / "gone.md", tmp_path / "pipe.md"):
        with pytest.raises(DocumentError):
            read_document(path)


def test_sizes_are_checked_before_memory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.md"
    with path.open("wb") as file:
        file.write(b"# Head\n" + b"words " * 1000)
        file.truncate(300 << 20)  # a sparse file
    with pytest.raises(TooLargeError, match="limit"):
        read_document(path)
    monkeypatch.setattr(kinds, "MAX_BYTES", 1000)
    with pytest.raises(TooLargeError):
        detect_format(path)


def test_documents_without_pages_say_so(tmp_path: Path) -> None:
    for kind, path in everything(tmp_path).items():
        document = read_document(path)
        has_pages = kind in ("docling", "mineru")
        assert bool(document.pages) is has_pages
        assert any(b.regions for b in document.blocks) is has_pages
        assert document.label_of(1) is None
        assert len(document.sha256) == 64


def test_every_format_is_read_in_a_process_of_its_own(tmp_path: Path) -> None:
    reader = IsolatedReader(memory_mb=2048)
    told: list[tuple[int, int]] = []
    for path in (*everything(tmp_path).values(), HANDBOOK):
        here = read_document(path)
        assert from_json(to_json(here)) == here
        assert reader.read(path, progress=lambda *step: told.append(step)) == here
    bad = tmp_path / "bad.md"
    bad.write_bytes(bytes(100))
    with pytest.raises(UnsupportedFormatError) as caught:
        reader.read(bad)
    assert "Markdown" in caught.value.hint
    reader.close()
    assert told[:2] == [(2, 2), (3, 3)]  # docling and MinerU; the others have no pages to count


def test_too_little_memory_is_an_error_of_ours(tmp_path: Path) -> None:
    reader = IsolatedReader(memory_mb=512)
    path = tmp_path / "b.md"
    path.write_text("- item **bold** [x](y)\n" * 3_000_000)
    with pytest.raises(BookragError) as caught:
        reader.read(path)
    assert "page" not in caught.value.message
    assert caught.value.code in ("too_large", "damaged_document")
    small = tmp_path / "s.md"
    small.write_text(MARKDOWN)
    assert len(reader.read(small).blocks) == 2
    reader.close()
