"""Small files of the formats that are read, made by code."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CONTAINER = (
    '<?xml version="1.0"?><container version="1.0"'
    ' xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/>'
    "</rootfiles></container>"
)
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def make_zip(path: Path, parts: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def xhtml(body: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html>'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">'
        f"<head><title/></head><body>{body}</body></html>"
    )


def make_epub(
    path: Path,
    chapters: Mapping[str, str],
    *,
    title: str = "A Farm",
    nav: str = "",
    extra: Mapping[str, str | bytes] | None = None,
    spine: Sequence[str] | None = None,
) -> Path:
    """``chapters``: file name → body. ``nav`` is the inside of the table of contents."""
    names = list(chapters)
    items = "".join(
        f'<item id="c{k}" href="{name}" media-type="application/xhtml+xml"/>'
        for k, name in enumerate(names)
    )
    if nav:
        items += (
            '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
        )
    order = names if spine is None else spine
    refs = "".join(f'<itemref idref="c{names.index(name)}"/>' for name in order)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title></metadata>"
        f"<manifest>{items}</manifest><spine>{refs}</spine></package>"
    )
    parts: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OEBPS/book.opf": package,
        **{f"OEBPS/{name}": xhtml(body) for name, body in chapters.items()},
    }
    if nav:
        parts["OEBPS/nav.xhtml"] = xhtml(f'<nav epub:type="toc"><ol>{nav}</ol></nav>')
    return make_zip(path, {**parts, **(extra or {})})


def make_docx(path: Path, body: str, parts: Mapping[str, str] | None = None) -> Path:
    """A DOCX of raw WordprocessingML, for what no library writes."""
    document = f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
    return make_zip(path, {"word/document.xml": document, **(parts or {})})


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def write_json(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), "utf-8")
    return path


def docling_document() -> dict[str, Any]:
    """A book of two pages: title, three sections, a list, a table, a picture, furniture."""

    def place(page: int, left: float, top: float, right: float, bottom: float) -> dict[str, Any]:
        box = {"l": left, "t": top, "r": right, "b": bottom, "coord_origin": "BOTTOMLEFT"}
        return {"page_no": page, "bbox": box, "charspan": [0, 1]}

    def text(at: int, label: str, words: str, page: int = 1, **more: Any) -> dict[str, Any]:
        return {
            "self_ref": f"#/texts/{at}", "parent": {"$ref": "#/body"}, "children": [],
            "content_layer": "body", "label": label, "orig": words, "text": words,
            "prov": [place(page, 72, 720 - 20 * at, 540, 705 - 20 * at)], **more,
        }  # fmt: skip

    def cell(row: int, column: int, words: str, **more: Any) -> dict[str, Any]:
        return {
            "row_span": 1, "col_span": 1, "start_row_offset_idx": row,
            "end_row_offset_idx": row + 1, "start_col_offset_idx": column,
            "end_col_offset_idx": column + 1, "text": words, "column_header": row == 0,
            "row_header": False, "row_section": False, **more,
        }  # fmt: skip

    texts = [
        text(0, "page_header", "RUNNING HEAD", content_layer="furniture"),
        text(1, "title", "The Dairy Farm"),
        text(2, "section_header", "1 Cows", level=1),
        text(3, "text", "Daisy is the best cow of the farm and gives thirty litres of milk."),
        text(4, "section_header", "1.1 Feed", level=2),
        text(5, "list_item", "hay", marker="-", enumerated=False),
        text(6, "list_item", "oats", marker="-", enumerated=False),
        text(7, "section_header", "2 Hens", 2, level=1),
        text(8, "caption", "Table 1: Eggs by month", 2),
        text(9, "text", "Hens lay fewer eggs in winter than in summer.", 2),
        text(10, "caption", "Figure 1: The hen house", 2),
        text(11, "footnote", "1 Counted by hand.", 2),
    ]
    cells = [
        cell(0, 0, "Month"), cell(0, 1, "Eggs"),
        cell(1, 0, "May"), cell(1, 1, "310"),
        cell(2, 0, "Winter", col_span=2, end_col_offset_idx=2),
    ]  # fmt: skip
    wide = cells[-1]
    table = {
        "self_ref": "#/tables/0", "children": [], "label": "table", "content_layer": "body",
        "prov": [place(2, 72, 500, 300, 400)], "captions": [{"$ref": "#/texts/8"}],
        "data": {
            "table_cells": cells, "num_rows": 3, "num_cols": 2,
            "grid": [cells[:2], cells[2:4], [wide, wide]],
        },
    }  # fmt: skip
    picture = {
        "self_ref": "#/pictures/0", "children": [{"$ref": "#/texts/10"}], "label": "picture",
        "content_layer": "body", "captions": [{"$ref": "#/texts/10"}],
        "prov": [place(2, 72, 380, 300, 300)],
        "annotations": [{"kind": "description", "text": "A red house."}],
    }  # fmt: skip
    order = ["texts/0", "texts/1", "texts/2", "texts/3", "texts/4", "groups/0", "texts/7",
             "texts/8", "tables/0", "texts/9", "pictures/0", "texts/11"]  # fmt: skip
    return {
        "schema_name": "DoclingDocument", "version": "1.5.0", "name": "farm",
        "furniture": {"self_ref": "#/furniture", "children": []},
        "body": {"self_ref": "#/body", "children": [{"$ref": f"#/{r}"} for r in order]},
        "groups": [{
            "self_ref": "#/groups/0", "label": "list", "name": "list",
            "children": [{"$ref": "#/texts/5"}, {"$ref": "#/texts/6"}],
        }],
        "texts": texts, "tables": [table], "pictures": [picture], "key_value_items": [],
        "pages": {
            str(n): {"page_no": n, "size": {"width": 612.0, "height": 792.0}} for n in (1, 2)
        },
    }  # fmt: skip


def mineru_list() -> list[dict[str, Any]]:
    table = (
        "<html><body><table><tr><td rowspan='2'>Site</td><td colspan='2'>Litres</td></tr>"
        "<tr><td>May</td><td>June</td></tr><tr><td>North</td><td>10</td><td>12</td></tr>"
        "</table></body></html>"
    )
    return [
        {"type": "header", "text": "RUNNING HEAD", "page_idx": 0, "bbox": [0, 0, 1000, 30]},
        {"type": "text", "text": "The Dairy Farm ", "text_level": 1, "page_idx": 0,
         "bbox": [100, 50, 900, 90]},
        {"type": "text", "text": "1. Cows", "text_level": 2, "page_idx": 0,
         "bbox": [100, 120, 400, 140]},
        {"type": "text", "text": "Daisy gives milk.", "page_idx": 0, "bbox": [100, 150, 900, 200]},
        {"type": "equation", "text": "$$\nm = 2c\n$$", "text_format": "latex", "page_idx": 0},
        {"type": "table", "table_body": table, "table_caption": ["Table 1 Milk by site"],
         "table_footnote": ["by weight"], "page_idx": 2, "bbox": [100, 100, 900, 300]},
        {"type": "image", "img_path": "images/a.jpg", "image_caption": ["Fig. 1. Daisy"],
         "image_footnote": [], "page_idx": 2, "bbox": [100, 400, 900, 700]},
        {"type": "list", "list_items": ["hay", "oats"], "page_idx": 2, "bbox": [1, 2, 3, 4]},
        {"type": "code", "code_body": "feed(cow)", "code_caption": ["Listing 1"], "page_idx": 2},
        {"type": "page_number", "text": "3", "page_idx": 2},
    ]  # fmt: skip
