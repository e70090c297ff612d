"""Paragraphs of a script without case and without spaces, on small PDFs made by code."""

from __future__ import annotations

from pathlib import Path

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

from bookrag_fast.document import read_document
from pdf_factory import HEIGHT, make_pdf

FONT = "HeiseiMin-W3"
LINE = 36  # characters; the column is that wide

TEXT = (
    "総務大臣が納税の対象となる地方団体を指定したときは当該地方団体に通知するとともに直ちに"
    "その旨を告示するものであり指定を受けた団体はその旨を募集のページにおいて表示すること。"
)


def texts(tmp_path: Path, rows: list[tuple[int, str]], size: float = 10) -> list[str]:
    """Blocks of lines with an indent in characters."""
    pdfmetrics.registerFont(UnicodeCIDFont(FONT))

    def draw(c: Canvas) -> None:
        c.setFont(FONT, size)
        for k, (indent, line) in enumerate(rows):
            c.drawString(72 + size * indent, HEIGHT - 100 - 1.8 * size * k, line)

    document = read_document(make_pdf(tmp_path / "cjk.pdf", [draw]))
    return [b.text for b in document.blocks]


def paragraph(text: str, first: int, rest: int) -> list[tuple[int, str]]:
    """Lines of a paragraph whose first line stands further in than the others."""
    rows = [(first, text[: LINE - first])]
    text = text[LINE - first :]
    while text:
        rows.append((rest, text[: LINE - rest]))
        text = text[LINE - rest :]
    return rows


def test_a_numbered_title_is_no_part_of_the_paragraph_below_it(tmp_path: Path) -> None:
    rows = [
        (0, "（２）指定通知及び指定告示"), *paragraph(TEXT, 3, 2),
        (0, "（３）指定を受けた旨の表示等"), *paragraph(TEXT, 3, 2),
    ]  # fmt: skip
    assert texts(tmp_path, rows) == [
        "（２）指定通知及び指定告示", TEXT, "（３）指定を受けた旨の表示等", TEXT,
    ]  # fmt: skip


def test_so_is_one_above_a_paragraph_without_an_indent(tmp_path: Path) -> None:
    rows = [(0, "３．対策内容"), *paragraph(TEXT, 0, 0)]
    assert texts(tmp_path, rows) == ["３．対策内容", TEXT]


def test_an_item_that_fills_its_line_goes_on_below(tmp_path: Path) -> None:
    rows = paragraph(f"（１）{TEXT}", 0, 2)
    assert len(texts(tmp_path, rows)) == 1


def test_a_short_last_line_ends_a_paragraph(tmp_path: Path) -> None:
    assert texts(tmp_path, paragraph(TEXT[1:], 0, 0) + paragraph(TEXT, 1, 0)) == [TEXT[1:], TEXT]
    assert texts(tmp_path, paragraph(TEXT, 0, 0) + paragraph(TEXT, 0, 0)) == [TEXT, TEXT]
