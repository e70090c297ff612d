"""JSON of layout parsers: structure, pages and boxes, and JSON of other kinds."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast.document import BBox, BlockKind, Document, PageStatus, read_document
from bookrag_fast.document.formats.docling import read_docling
from bookrag_fast.document.formats.layout_json import read_layout_json
from bookrag_fast.errors import (
    DamagedDocumentError,
    DocumentError,
    EmptyDocumentError,
    UnsupportedFormatError,
)
from format_factory import docling_document, mineru_list, write_json


def read(tmp_path: Path, content: Any) -> Document:
    return read_document(write_json(tmp_path / "book.json", content))


def blocks(document: Document) -> list[tuple[str, int | None, str, int]]:
    return [(b.kind.value, b.level, b.text, b.page) for b in document.blocks]


# --- docling -----------------------------------------------------------------------------------


def test_docling_in_the_order_of_its_body(tmp_path: Path) -> None:
    document = read(tmp_path, docling_document())
    assert document.title == "The Dairy Farm"
    assert blocks(document) == [
        ("title", 1, "The Dairy Farm", 1), ("title", 2, "1 Cows", 1),
        ("text", None, "Daisy is the best cow of the farm and gives thirty litres of milk.", 1),
        ("title", 3, "1.1 Feed", 1), ("list", None, "- hay\n- oats", 1), ("title", 2, "2 Hens", 2),
        ("table", None, "Month | Eggs\nMay | 310\nWinter", 2),
        ("caption", None, "Table 1: Eggs by month", 2),
        ("text", None, "Hens lay fewer eggs in winter than in summer.", 2),
        ("image", None, "A red house.", 2), ("caption", None, "Figure 1: The hen house", 2),
        ("footnote", None, "1 Counted by hand.", 2),
    ]  # fmt: skip
    assert [(p.number, p.width, p.height) for p in document.pages] == [(1, 612, 792), (2, 612, 792)]
    table = document.blocks[6]
    assert [(c.row, c.column, c.column_span, c.header, c.text) for c in table.cells] == [
        (0, 0, 1, True, "Month"), (0, 1, 1, True, "Eggs"), (1, 0, 1, False, "May"),
        (1, 1, 1, False, "310"), (2, 0, 2, False, "Winter"),
    ]  # fmt: skip


@pytest.mark.parametrize(("origin", "box"), [
    ("BOTTOMLEFT", BBox(72, 792 - 700, 540, 792 - 685)), ("TOPLEFT", BBox(72, 685, 540, 700)),
])  # fmt: skip
def test_docling_boxes_from_either_corner(tmp_path: Path, origin: str, box: BBox) -> None:
    content = docling_document()
    content["texts"][1]["prov"][0]["bbox"]["coord_origin"] = origin
    assert read(tmp_path, content).blocks[0].regions[0].bbox == box


def test_docling_tables_of_a_grid_alone(tmp_path: Path) -> None:
    content = docling_document()
    del content["tables"][0]["data"]["table_cells"]
    assert len(read(tmp_path, content).blocks[6].cells) == 5


def test_docling_lists_inline_groups_and_contents(tmp_path: Path) -> None:
    content = docling_document()
    content["texts"] += [
        {"label": "list_item", "text": "", "children": [{"$ref": "#/groups/2"}], "marker": "2."},
        {"label": "text", "text": "two"}, {"label": "text", "text": "words"},
        {"label": "list_item", "text": "inner", "marker": "a)"},
    ]  # fmt: skip
    content["groups"] += [
        {"label": "ordered_list", "children": [{"$ref": "#/texts/12"}, {"$ref": "#/groups/3"}]},
        {"label": "inline", "children": [{"$ref": "#/texts/13"}, {"$ref": "#/texts/14"}]},
        {"label": "list", "children": [{"$ref": "#/texts/15"}]},
    ]
    content["tables"][0]["label"] = "document_index"
    content["body"]["children"].append({"$ref": "#/groups/1"})
    found = blocks(read(tmp_path, content))
    assert found[-1] == ("list", None, "2. two words\n  a) inner", 0)
    assert found[6][:3] == ("list", None, "Month  Eggs\nMay  310\nWinter")


def test_docling_circles_and_lost_references(tmp_path: Path) -> None:
    content = docling_document()
    content["groups"][0]["children"] += [{"$ref": "#/groups/0"}, {"$ref": "#/texts/99"}, 7, {}]
    document = read(tmp_path, content)
    assert len(document.blocks) == 12
    assert document.warnings == ("book.json: 3 references lead nowhere",)


def test_docling_deep_groups(tmp_path: Path) -> None:
    content = docling_document()
    count = 20_000
    content["groups"] = [
        {"label": "list", "children": [{"$ref": f"#/groups/{k + 1}"}]} for k in range(count)
    ]
    content["groups"].append({"label": "list", "children": [{"$ref": "#/texts/5"}]})
    found = [b.text for b in read(tmp_path, content).blocks]
    assert any(text.strip() == "- hay" and len(text) < 100 for text in found)


def test_docling_of_many_titles_and_items_takes_linear_time() -> None:
    count = 40_000
    place = [{"page_no": 1, "bbox": {"l": 0, "t": 0, "r": 1, "b": 1}}]
    texts = [{"label": "text", "text": "a"} for _ in range(count)]
    texts += [{"label": "title", "text": "b"} for _ in range(count)]
    texts += [{"label": "list_item", "text": "c", "prov": place} for _ in range(count)]
    start = time.process_time()
    reading = read_docling({
        "body": {"children": [{"$ref": f"#/texts/{k}"} for k in range(3 * count)]},
        "pages": {"1": {"page_no": 1, "size": {"width": 9, "height": 9}}},
        "texts": texts,
    })  # fmt: skip
    assert time.process_time() - start < 15  # seconds; of quadratic time it were 40
    assert len(reading.blocks) == 2 * count + 1
    assert len(reading.blocks[-1].regions) == count


def test_docling_pages_that_are_missing_say_so(tmp_path: Path) -> None:
    content = docling_document()
    content["pages"] = {"2": content["pages"]["2"]}
    document = read(tmp_path, content)
    assert [p.status for p in document.pages] == [PageStatus.NO_TEXT, PageStatus.OK]
    assert document.blocks[0].regions == ()
    assert document.blocks[5].page == 2


# --- MinerU ------------------------------------------------------------------------------------


def test_mineru(tmp_path: Path) -> None:
    document = read(tmp_path, mineru_list())
    assert document.title == "The Dairy Farm"
    assert blocks(document) == [
        ("title", 1, "The Dairy Farm", 1), ("title", 2, "1. Cows", 1),
        ("text", None, "Daisy gives milk.", 1), ("equation", None, "m = 2c", 1),
        ("table", None, "Site | Litres\nMay | June\nNorth | 10 | 12", 3),
        ("caption", None, "Table 1 Milk by site", 3), ("footnote", None, "by weight", 3),
        ("image", None, "", 3), ("caption", None, "Fig. 1. Daisy", 3),
        ("list", None, "hay\noats", 3), ("code", None, "feed(cow)", 3),
        ("text", None, "Listing 1", 3),
    ]  # fmt: skip
    assert document.blocks[1].regions[0].bbox == BBox(100, 120, 400, 140)
    assert document.blocks[3].regions[0].bbox == BBox(0, 0, 1000, 1000)  # somewhere on the page
    assert [(p.width, p.status) for p in document.pages] == [
        (1000, PageStatus.OK), (0, PageStatus.NO_TEXT), (1000, PageStatus.OK),
    ]  # fmt: skip
    assert "thousandths" in document.pages[0].note
    cells = document.blocks[4].cells
    assert [(c.row, c.column, c.row_span, c.column_span) for c in cells[:3]] == [
        (0, 0, 2, 1), (0, 1, 1, 2), (1, 1, 1, 1),
    ]  # fmt: skip


def test_mineru_of_older_versions_and_unknown_types(tmp_path: Path) -> None:
    items = [
        {"type": "title", "text": "Cows", "page_idx": 0},
        {"type": "image", "img_caption": ["Fig. 2 Milk"], "img_footnote": ["n"], "page_idx": 0},
        {"type": "table", "table_body": "no html", "table_caption": "Table 3", "page_idx": 0},
        {"type": "hologram", "text": "shines", "page_idx": 0},
        {"type": "hologram", "page_idx": 0}, {"type": "text", "text": "lost", "page_idx": -1},
        {"type": "text", "text": "far", "page_idx": 10**12}, {"type": "text", "text": "nowhere"},
    ]  # fmt: skip
    document = read(tmp_path, items)
    assert [(b.kind.value, b.text, b.page) for b in document.blocks] == [
        ("title", "Cows", 1), ("image", "", 1), ("caption", "Fig. 2 Milk", 1), ("footnote", "n", 1),
        ("text", "no html", 1), ("caption", "Table 3", 1), ("text", "shines", 1),
        ("text", "lost", 0), ("text", "far", 0), ("text", "nowhere", 0),
    ]  # fmt: skip
    assert document.warnings == ("book.json: 1 items of type 'hologram' have nothing to read",)


def test_mineru_of_unknown_types_without_end(tmp_path: Path) -> None:
    items = [{"type": f"{k:0500}", "page_idx": 0} for k in range(1000)]
    found = read(tmp_path, [*items, {"type": "text", "text": "words"}]).warnings
    assert len(found) == 13
    assert max(map(len, found)) < 200
    assert "988 other types" in found[-1]


def test_halves_of_characters_are_replaced(tmp_path: Path) -> None:
    items = [
        {"type": "table", "table_body": "<table><tr><td>a\ud800b</table>", "page_idx": 0},
        {"type": "text", "page_idx": 0,
         "text": "\udc00 \U0001f404 \\ud800 \\\ud800\"\n\ud801\ud801\udc01"},
    ]  # fmt: skip
    path = write_json(tmp_path / "book.json", [])
    path.write_text(json.dumps(items))  # escapes all that is not ASCII
    assert [b.text for b in read_document(path).blocks] == [
        "a\ufffdb", "\ufffd \U0001f404 \\ud800 \\\ufffd\"\n\ufffd\U00010401",
    ]  # fmt: skip


# --- other JSON --------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "error"), [
    ("{}", UnsupportedFormatError), ("[]", UnsupportedFormatError), ("3", UnsupportedFormatError),
    ('[{"type": 3, "page_idx": 0}]', UnsupportedFormatError), ("[1, 2]", UnsupportedFormatError),
    ('{"body": [], "texts": {}}', UnsupportedFormatError), ('{"a": ', DamagedDocumentError),
    ("[" * 100_000, DamagedDocumentError), ("nonsense", DamagedDocumentError),
    ('{"schema_name": "DoclingDocument"}', EmptyDocumentError),
    ('[{"type": "text", "page_idx": 0}]', EmptyDocumentError),
    (" ", DamagedDocumentError),
])  # fmt: skip
def test_json_of_another_kind(tmp_path: Path, text: str, error: type[DocumentError]) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(error) as caught:
        read_document(path)
    assert "b.json" in caught.value.message
    assert caught.value.hint


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.just({"$ref": "#/texts/3"}),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = list(value) if isinstance(value, dict) else range(len(value))
    out = []
    for key in keys:
        out.append((*path, key))
        if isinstance(value[key], (dict, list)):
            out += _places(value[key], (*path, key))
    return out


@given(st.data(), st.sampled_from([docling_document, mineru_list]))
@settings(max_examples=400)
def test_any_value_anywhere_is_survived(data: st.DataObject, make: Any) -> None:
    content = copy.deepcopy(make())
    for place in data.draw(st.lists(st.sampled_from(_places(content)), min_size=1, max_size=4)):
        at: Any = content
        try:
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = copy.deepcopy(data.draw(VALUES))  # drawn values may be shared
        except (KeyError, IndexError, TypeError):  # an earlier change took the place away
            continue
    try:
        reading = read_layout_json(json.dumps(content).encode(), "b.json", None)
    except DocumentError:
        return
    last = len(reading.pages)
    for block in reading.blocks:
        assert all(1 <= r.page <= last for r in block.regions)
        assert block.kind is BlockKind.IMAGE or block.text
