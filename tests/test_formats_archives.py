"""EPUB and DOCX: structure, and archives that mean harm."""

from __future__ import annotations

import contextlib
import struct
import zipfile
from pathlib import Path
from typing import Any

import docx
import pytest

from bookrag_fast.document import BlockKind, read_document
from bookrag_fast.document.formats import archive as archives
from bookrag_fast.document.formats.archive import Archive, inside
from bookrag_fast.errors import (
    DamagedDocumentError,
    DocumentError,
    EmptyDocumentError,
    TooLargeError,
    UnsupportedFormatError,
)
from format_factory import CONTAINER, W, make_docx, make_epub, make_zip, paragraph, xhtml

LAUGHS = "<!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefghi", "bcdefghij", strict=True)
) + "]>"  # fmt: skip


def blocks(path: Path) -> list[tuple[str, int | None, str]]:
    return [(b.kind.value, b.level, b.text) for b in read_document(path).blocks]


# --- EPUB --------------------------------------------------------------------------------------


def test_epub_follows_the_spine(tmp_path: Path) -> None:
    path = make_epub(
        tmp_path / "b.epub",
        {"b.xhtml": "<h1>Two</h1><p>second</p>", "text/a.xhtml": "<h1>One</h1><p>first</p>",
         "c.xhtml": "<p>never shown</p>"},
        spine=["text/a.xhtml", "b.xhtml"],
    )  # fmt: skip
    document = read_document(path)
    assert (document.title, document.pages) == ("A Farm", ())
    assert blocks(path) == [
        ("title", 1, "One"), ("text", None, "first"), ("title", 1, "Two"), ("text", None, "second"),
    ]  # fmt: skip


def test_epub_parts_without_headings_are_named_by_the_contents(tmp_path: Path) -> None:
    nav = (
        '<li><a href="a.xhtml">The <b>Cows</b></a><ol><li><a href="b.xhtml#x">Feed</a></li></ol>'
        '</li><li><a href="c.xhtml">Named</a></li>'
    )
    path = make_epub(
        tmp_path / "b.epub",
        {"a.xhtml": "<p>The Cows</p><p>moo</p>", "b.xhtml": "<p>hay</p>",
         "c.xhtml": "<h2>Own</h2>x"},
        nav=nav,
    )  # fmt: skip
    assert blocks(path) == [
        ("title", 1, "The Cows"), ("text", None, "moo"), ("title", 2, "Feed"),
        ("text", None, "hay"), ("title", 2, "Own"), ("text", None, "x"),
    ]  # fmt: skip


def test_epub_2_is_named_by_its_ncx(tmp_path: Path) -> None:
    package = (
        "<package xmlns='http://www.idpf.org/2007/opf'><metadata/><manifest>"
        "<item id='n' href='toc.ncx' media-type='application/x-dtbncx+xml'/>"
        "<item id='a' href='a%20b.html' media-type='application/xhtml+xml'/></manifest>"
        "<spine toc='n'><itemref idref='a'/><itemref idref='gone'/></spine></package>"
    )
    ncx = (
        "<ncx xmlns='http://www.daisy.org/z3986/2005/ncx/'><navMap><navPoint><navLabel><text>Cows"
        "</text></navLabel><content src='a%20b.html'/></navPoint></navMap></ncx>"
    )
    path = make_zip(tmp_path / "b.epub", {
        "META-INF/container.xml": CONTAINER, "OEBPS/book.opf": package, "OEBPS/toc.ncx": ncx,
        "OEBPS/a b.html": "<html><body><p>caf&eacute;&nbsp;au lait</body></html>",
    })  # fmt: skip
    assert blocks(path) == [("title", 1, "Cows"), ("text", None, "café au lait")]
    assert read_document(path).title is None


def test_a_part_that_leads_out_of_the_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.xhtml").write_text(xhtml("<p>secret</p>"))
    path = make_epub(tmp_path / "b.epub", {"a.xhtml": "<p>fine</p>"})
    with zipfile.ZipFile(path) as old:
        parts: dict[str, Any] = {n: old.read(n) for n in old.namelist()}
    package = parts["OEBPS/book.opf"].decode()
    for href in ("../../secret.xhtml", "file:///etc/passwd", "/etc/passwd", "http://x.y/z",
                 "%2e%2e/%2e%2e/secret.xhtml"):  # fmt: skip
        parts["OEBPS/book.opf"] = package.replace(
            "</manifest>",
            f'<item id="z" href="{href}" media-type="application/xhtml+xml"/></manifest>',
        ).replace("<spine>", '<spine><itemref idref="z"/>')
        document = read_document(make_zip(tmp_path / "c.epub", parts))
        assert [b.text for b in document.blocks] == ["fine"]
        assert "is not in the archive" in document.warnings[0]


@pytest.mark.parametrize(("base", "reference", "wanted"), [
    ("OEBPS/a.opf", "b.xhtml#x", "OEBPS/b.xhtml"), ("OEBPS/a.opf", "../b", "b"),
    ("OEBPS/a.opf", "#x", "OEBPS/a.opf"), ("a", "../b", None), ("a", "//host/b", None),
    ("a", "file:b", None), ("a", "/b", None), ("a/b", "x%20y", "a/x y"),
    ("a", "http://[::1", None), ("a", "//[x]/b", None),
])  # fmt: skip
def test_references(base: str, reference: str, wanted: str | None) -> None:
    assert inside(base, reference) == wanted


def test_a_protected_book_says_so_and_encrypted_fonts_do_not_matter(tmp_path: Path) -> None:
    def encryption(part: str) -> str:
        return f"<encryption><x><CipherReference URI='{part}'/></x></encryption>"

    for part in ("OEBPS/font.otf", "OEBPS/a.xhtml"):
        path = make_epub(tmp_path / "b.epub", {"a.xhtml": "<p>text</p>"},
                         extra={"META-INF/encryption.xml": encryption(part)})  # fmt: skip
        if part.endswith("otf"):
            assert read_document(path).blocks
        else:
            with pytest.raises(DocumentError, match="protected"):
                read_document(path)


@pytest.mark.parametrize("parts", [
    {"META-INF/container.xml": "<container/>"},
    {"META-INF/container.xml": "no xml"},
    {"META-INF/container.xml": CONTAINER},
    {"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": "<package/>"},
    {"META-INF/container.xml": CONTAINER.replace("OEBPS/", "../../")},
])  # fmt: skip
def test_an_epub_without_a_book_is_damaged(tmp_path: Path, parts: dict[str, str]) -> None:
    with pytest.raises(DamagedDocumentError):
        read_document(make_zip(tmp_path / "b.epub", parts))


# --- DOCX --------------------------------------------------------------------------------------


def test_docx_as_a_word_processor_writes_it(tmp_path: Path) -> None:
    made = docx.Document()
    made.add_heading("The Farm", 0)
    made.add_paragraph("Preface.")
    made.add_heading("Cows", 1)
    made.add_paragraph("Daisy ").add_run("gives").bold = True
    made.add_heading("Feed", 3)
    for style in ("List Bullet", "List Bullet", "List Number", "List Number"):
        made.add_paragraph("item", style)
    table = made.add_table(3, 3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"{row}{column}"
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 2).merge(table.cell(2, 2)).text = "tall"
    made.add_paragraph("Last.")
    path = tmp_path / "b.docx"
    made.save(str(path))
    document = read_document(path)
    assert document.title == "The Farm"
    assert blocks(path) == [
        ("title", 1, "The Farm"), ("text", None, "Preface."), ("title", 2, "Cows"),
        ("text", None, "Daisy gives"), ("title", 4, "Feed"),
        ("list", None, "- item\n- item\n1. item\n2. item"),
        ("table", None, "wide | 02\n10 | 11 | tall\n20 | 21"), ("text", None, "Last."),
    ]  # fmt: skip
    found = next(b for b in document.blocks if b.kind is BlockKind.TABLE)
    assert {(c.row, c.column, c.row_span, c.column_span) for c in found.cells} == {
        (0, 0, 1, 2), (0, 2, 1, 1), (1, 0, 1, 1), (1, 1, 1, 1), (1, 2, 2, 1), (2, 0, 1, 1),
        (2, 1, 1, 1),
    }  # fmt: skip


STYLES = (
    f'<w:styles xmlns:w="{W}">'
    '<w:style w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="7"/>'
    "</w:numPr></w:pPr></w:style>"
    '<w:style w:styleId="H2"><w:name w:val="Heading 2"/><w:pPr><w:numPr><w:ilvl w:val="1"/>'
    '<w:numId w:val="7"/></w:numPr></w:pPr></w:style>'
    '<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="H2"/></w:style>'
    '<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style>'
    '<w:style w:styleId="Out"><w:name w:val="Out"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr>'
    "</w:style>"
    '<w:style w:styleId="Cap"><w:name w:val="caption"/></w:style></w:styles>'
)
NUMBERS = (
    f'<w:numbering xmlns:w="{W}"><w:abstractNum w:abstractNumId="0">'
    '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/>'
    '<w:lvlText w:val="%1"/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/>'
    '<w:lvlText w:val="%1.%2"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="7"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
)


def test_docx_headings_carry_the_numbers_that_word_shows(tmp_path: Path) -> None:
    body = "".join(
        paragraph(text, style)
        for text, style in [("Cows", "H1"), ("Feed", "Mine"), ("Milk", "H2"), ("Hens", "H1"),
                            ("Eggs", "H2"), ("Deep", "Out"), ("plain", "Loop")]
    )  # fmt: skip
    path = make_docx(
        tmp_path / "b.docx", body, {"word/styles.xml": STYLES, "word/numbering.xml": NUMBERS}
    )
    assert blocks(path) == [
        ("title", 1, "1 Cows"), ("title", 2, "1.a Feed"), ("title", 2, "1.b Milk"),
        ("title", 1, "2 Hens"), ("title", 2, "2.a Eggs"), ("title", 3, "Deep"),
        ("text", None, "plain"),
    ]  # fmt: skip


def test_docx_reads_what_stands_in_controls_boxes_notes_and_insertions(tmp_path: Path) -> None:
    box = f"<w:r><w:pict><w:txbxContent>{paragraph('boxed')}</w:txbxContent></w:pict></w:r>"
    body = (
        f"<w:sdt><w:sdtContent>{paragraph('controlled')}</w:sdtContent></w:sdt>"
        "<w:p><w:ins><w:r><w:t>in</w:t></w:r></w:ins><w:del><w:r><w:delText>out</w:delText></w:r>"
        "</w:del><w:r><w:t>serted</w:t><w:tab/><w:t>tab</w:t><w:br/><w:t>line</w:t></w:r>"
        f'<w:r><w:footnoteReference w:id="2"/></w:r>{box}</w:p>'
        f"{paragraph('Table 1: Prices', 'Cap')}"
        f"<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr><w:tc>{paragraph('A')}</w:tc>"
        f"<w:tc>{paragraph('B')}{paragraph('b')}</w:tc></w:tr>"
        f"<w:tr><w:tc>{paragraph('1')}</w:tc><w:tc>{paragraph('2')}</w:tc></w:tr></w:tbl>"
        f"<w:tbl><w:tr><w:tc>{paragraph('Head', 'H1')}</w:tc>"
        f"<w:tc>{paragraph('side')}</w:tc></w:tr></w:tbl>"
    )
    note = f'<w:footnotes xmlns:w="{W}"><w:footnote w:id="2">{paragraph("noted")}</w:footnote>'
    path = make_docx(
        tmp_path / "b.docx", body,
        {"word/styles.xml": STYLES, "word/footnotes.xml": note + "</w:footnotes>"},
    )  # fmt: skip
    assert blocks(path) == [
        ("text", None, "controlled"), ("text", None, "inserted tab\nline[1]"),
        ("footnote", None, "[1] noted"), ("text", None, "boxed"),
        ("table", None, "A | B b\n1 | 2"), ("caption", None, "Table 1: Prices"),
        ("title", 1, "Head"), ("text", None, "side"),
    ]  # fmt: skip
    table = read_document(path).blocks[4]
    assert [c.header for c in table.cells] == [True, True, False, False]


def test_a_docx_without_text_is_empty(tmp_path: Path) -> None:
    with pytest.raises(EmptyDocumentError):
        read_document(make_docx(tmp_path / "b.docx", "<w:p/>"))


# --- harm --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["docx", "epub"])
def test_entities_are_not_resolved(tmp_path: Path, suffix: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("TOP SECRET")
    outside = f"<!DOCTYPE x [<!ENTITY j SYSTEM 'file://{secret}'>]>"
    for head in (LAUGHS, outside):
        if suffix == "docx":
            body = "<w:p><w:r><w:t>a&j;b</w:t></w:r></w:p><w:p><w:r><w:t>end</w:t></w:r></w:p>"
            document = f'{head}<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
            path = make_zip(tmp_path / "b.docx", {"word/document.xml": document})
        else:
            chapter = f"{head}<html><body><p>a&j;b</p><p>end</p></body></html>"
            path = make_epub(tmp_path / "b.epub", {"a.xhtml": ""}, title="&j;",
                             extra={"OEBPS/a.xhtml": chapter})  # fmt: skip
            with zipfile.ZipFile(path) as old:
                parts: dict[str, str | bytes] = {n: old.read(n) for n in old.namelist()}
            parts["OEBPS/book.opf"] = head.encode() + parts["OEBPS/book.opf"]  # type: ignore[operator]
            path = make_zip(path, parts)
        try:
            document_read = read_document(path)
        except DamagedDocumentError:
            continue  # the parser's own guard
        text = "".join(b.text for b in document_read.blocks) + str(document_read.title)
        assert "haha" not in text
        assert "TOP SECRET" not in text
        assert "end" in text


@pytest.mark.parametrize("suffix", ["docx", "epub"])
def test_a_bomb_is_refused_before_it_goes_off(tmp_path: Path, suffix: str) -> None:
    bomb = b"<x>" + b"a" * (300 << 20)
    if suffix == "docx":
        path = make_zip(tmp_path / "b.docx", {"word/document.xml": bomb})
    else:
        path = make_epub(tmp_path / "b.epub", {"a.xhtml": ""}, extra={"OEBPS/a.xhtml": bomb})
    with pytest.raises(TooLargeError, match="unpacks to"):
        read_document(path)


def test_a_part_that_lies_about_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_zip(tmp_path / "b.zip", {"a": b"x" * 100_000})
    data = bytearray(path.read_bytes())
    entry = data.rfind(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<I", 10)  # unpacked size in the directory
    path.write_bytes(data)
    monkeypatch.setattr(archives, "MAX_MEMBER", 1000)
    with Archive(path) as archive, pytest.raises((TooLargeError, DamagedDocumentError)):
        archive.read("a")


def test_many_parts_and_much_in_all_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_zip(tmp_path / "b.zip", {f"p{k}": "x" * 600 for k in range(20)})
    monkeypatch.setattr(archives, "MAX_READ", 1000)
    with Archive(path) as archive:
        archive.read("p0")
        with pytest.raises(TooLargeError):
            archive.read("p1")
    monkeypatch.setattr(archives, "MAX_MEMBERS", 19)
    with pytest.raises(TooLargeError, match="20 parts"):
        Archive(path)


@pytest.mark.parametrize("suffix", ["docx", "epub"])
def test_damage_has_its_error(tmp_path: Path, suffix: str) -> None:
    if suffix == "docx":
        path = make_docx(tmp_path / "b.docx", paragraph("some text " * 500))
    else:
        path = make_epub(tmp_path / "b.epub", {"a.xhtml": "<p>some text</p>" * 500})
    whole = path.read_bytes()
    for end in (30, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:end])
        with pytest.raises(DamagedDocumentError):
            read_document(path)
    for at in range(40, len(whole), max(1, len(whole) // 40)):
        data = bytearray(whole)
        data[at : at + 8] = b"\xff" * 8
        path.write_bytes(data)
        with contextlib.suppress(DocumentError, TooLargeError):  # anything else fails the test
            read_document(path)
    path.write_bytes(b"no archive at all")
    with pytest.raises(DamagedDocumentError, match="not an archive"):
        read_document(path)


def test_deep_xml_does_not_exhaust_the_stack(tmp_path: Path) -> None:
    for times, error in ((5_000, DamagedDocumentError), (60_000, TooLargeError)):
        body = f"{'<w:sdt><w:sdtContent>' * times}x{'</w:sdtContent></w:sdt>' * times}"
        with pytest.raises(error):
            read_document(make_docx(tmp_path / "b.docx", body))
    nested = "<w:tbl><w:tr><w:tc>" * 60 + paragraph("deep") + "</w:tc></w:tr></w:tbl>" * 60
    assert blocks(make_docx(tmp_path / "c.docx", nested)) == [("text", None, "deep")]


def test_other_archives_are_named(tmp_path: Path) -> None:
    for part, name in (("xl/workbook.xml", "XLSX"), ("ppt/presentation.xml", "PPTX"),
                       ("x", "a ZIP archive")):  # fmt: skip
        with pytest.raises(UnsupportedFormatError, match=name):
            read_document(make_zip(tmp_path / "b.docx", {part: "x"}))
