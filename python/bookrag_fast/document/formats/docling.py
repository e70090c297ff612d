"""A DoclingDocument as JSON → blocks, in the order of its body tree.

Texts, tables and pictures lie in lists; the body and its groups refer to them. Furniture (running
heads, page numbers) is referred to as well, and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bookrag_fast.document.formats.boxes import MAX_PAGES, box_of, number_of, sheets, whole_of
from bookrag_fast.document.formats.building import MAX_COLUMNS, Reading, block, heading, table
from bookrag_fast.document.model import BBox, Block, BlockKind, Cell, Region

__all__ = ["read_docling"]

Item = dict[str, Any]

_LISTS = ("texts", "groups", "tables", "pictures", "key_value_items", "form_items", "field_items")
_FURNITURE = frozenset({"page_header", "page_footer"})
_LAYERS = frozenset({"furniture", "background", "invisible"})  # of content that is none
_KINDS = {
    "code": BlockKind.CODE,
    "formula": BlockKind.EQUATION,
    "footnote": BlockKind.FOOTNOTE,
    "caption": BlockKind.CAPTION,
}
_MAX_LEVEL = 99
_MAX_INDENT = 20


def read_docling(document: Item) -> Reading:
    """Content of a document. References that lead nowhere, or in a circle, are passed over."""
    reader = _Reader(document)
    reader.walk()
    title = next((b.text for b in reader.blocks if b.level == 0), None)
    if title is not None:  # it stands above the chapters
        blocks = [
            b if b.level is None else heading(b.text, b.level + 1, b.regions) for b in reader.blocks
        ]
        return Reading(blocks, title, reader.pages, reader.warnings())
    first = reader.blocks[0] if reader.blocks else None
    if first is not None and first.level == 1 and not first.numbering:
        title = first.text
    return Reading(reader.blocks, title, reader.pages, reader.warnings())


class _Reader:
    def __init__(self, document: Item) -> None:
        self._document = document
        self._seen: set[int] = set()  # ids of items, each told once
        self._lost = 0
        self._heights = _page_sizes(document.get("pages"))
        self.pages = sheets(self._heights)
        self.blocks: list[Block] = []
        self._tied = self._captions()
        self._items: list[str] = []  # lines of the open list
        self._item_regions: list[Region] = []
        self._titled = False

    def warnings(self) -> tuple[str, ...]:
        return (f"{self._lost} references lead nowhere",) if self._lost else ()

    def walk(self) -> None:
        """Tells the body, without recursion: groups nest as deep as a file says."""
        body = self._document.get("body")
        waiting = [(child, 0) for child in reversed(self._children(body))]
        while waiting:
            item, depth = waiting.pop()
            if id(item) in self._seen:
                continue
            self._seen.add(id(item))
            if _word(item, "content_layer") in _LAYERS or _word(item, "label") in _FURNITURE:
                continue
            in_list = _word(item, "label") in ("list", "ordered_list")
            if not self._tell(item, depth):
                children = self._children(item)
                waiting += ((child, depth + in_list) for child in reversed(children))
        self._close()

    def _captions(self) -> dict[int, list[tuple[BlockKind, Item]]]:
        """Table or picture (by id) → its captions and notes, which are told with it, wherever the
        body refers to them."""
        out: dict[int, list[tuple[BlockKind, Item]]] = {}
        for name in ("tables", "pictures"):
            items = self._document.get(name)
            for item in items if isinstance(items, list) else ():
                if isinstance(item, dict):
                    tied = [(BlockKind.CAPTION, c) for c in self._referred(item, "captions")]
                    tied += [(BlockKind.FOOTNOTE, c) for c in self._referred(item, "footnotes")]
                    out[id(item)] = tied
                    self._seen.update(id(said) for _, said in tied)
        return out

    # --- items --------------------------------------------------------------------------------

    def _tell(self, item: Item, depth: int) -> bool:
        """Makes blocks of an item; True when its children belong to it and are told with it."""
        label = _word(item, "label")
        if isinstance(item.get("data"), dict):
            self._table(item)
        elif label in ("picture", "chart"):
            self._picture(item)
        elif label == "inline":
            self._add(block(BlockKind.TEXT, self._inside(item, " "), self._regions(item)))
        elif label == "list_item":
            self._list_item(item, depth)
            return False
        elif isinstance(item.get("graph"), dict):
            cells = item["graph"].get("cells")
            texts = (
                (_text(c) for c in cells if isinstance(c, dict)) if isinstance(cells, list) else ()
            )
            self._add(block(BlockKind.TEXT, "\n".join(t for t in texts if t), self._regions(item)))
        else:
            self._text(item, label)
            return False
        return True

    def _text(self, item: Item, label: str) -> None:
        text, regions = _text(item), self._regions(item)
        if not text:
            return
        if label == "title" and not self._titled:
            self._titled = True
            self._add(heading(" ".join(text.split()), 0, regions))
        elif label in ("section_header", "title"):
            level = whole_of(item.get("level")) or 1
            self._add(heading(" ".join(text.split()), min(max(level, 1), _MAX_LEVEL), regions))
        else:
            self._add(block(_KINDS.get(label, BlockKind.TEXT), text, regions))

    def _list_item(self, item: Item, depth: int) -> None:
        # An item of several styles keeps its words in an inline group.
        inline = [c for c in self._children(item) if _word(c, "label") == "inline"]
        self._seen.update(id(c) for c in inline)
        text = _text(item) or " ".join(self._inside(c, " ") for c in inline).strip()
        if text:
            marker = item.get("marker")
            lead = marker.strip() if isinstance(marker, str) and marker.strip() else "-"
            # Where the marker has not been taken off the text, it need not be said again.
            line = text if text.startswith(lead) else f"{lead} {text}"
            self._items.append("  " * min(max(depth - 1, 0), _MAX_INDENT) + line)
            self._item_regions += self._regions(item)

    def _picture(self, item: Item) -> None:
        said = [self._inside(item, "\n"), *_descriptions(item)]
        text = "\n".join(t for t in said if t)
        self._add(block(BlockKind.IMAGE, text, self._regions(item)), keep_empty=True)
        self._around(item)

    def _table(self, item: Item) -> None:
        regions = self._regions(item)
        height = self._heights.get(regions[0].page, (0.0, 0.0))[1] if regions else 0.0
        made = table(list(_cells(item["data"], height)), regions)
        if _word(item, "label") == "document_index":  # a printed table of contents
            made = block(BlockKind.LIST, made.text.replace(" | ", "  "), regions)
        self._add(made)
        self._around(item)

    def _around(self, item: Item) -> None:
        """Captions and notes of a table or picture."""
        for kind, said in self._tied.get(id(item), ()):
            self._add(block(kind, _text(said), self._regions(said)))

    def _inside(self, item: Item, glue: str) -> str:
        """Texts of all that hangs below an item and was not told elsewhere."""
        out: list[str] = []
        waiting = list(reversed(self._children(item)))
        while waiting:
            child = waiting.pop()
            if id(child) not in self._seen:
                self._seen.add(id(child))
                out.append(_text(child))
                waiting += reversed(self._children(child))
        return glue.join(t for t in out if t)

    # --- order and places -----------------------------------------------------------------------

    def _add(self, made: Block, *, keep_empty: bool = False) -> None:
        if made.text or keep_empty:
            self._close()
            self.blocks.append(made)

    def _close(self) -> None:
        if self._items:
            regions = tuple(self._item_regions)
            self.blocks.append(block(BlockKind.LIST, "\n".join(self._items), regions))
            self._items, self._item_regions = [], []

    def _children(self, item: Any) -> list[Item]:
        return self._referred(item, "children") if isinstance(item, dict) else []

    def _referred(self, item: Item, key: str) -> list[Item]:
        references = item.get(key)
        found = [self._resolve(r) for r in references] if isinstance(references, list) else []
        return [f for f in found if f is not None]

    def _resolve(self, reference: Any) -> Item | None:
        """The item of a reference {"$ref": "#/texts/3"}."""
        path = reference.get("$ref", reference.get("cref")) if isinstance(reference, dict) else None
        parts = path.split("/") if isinstance(path, str) else []
        if len(parts) == 3 and parts[0] == "#" and parts[1] in _LISTS and parts[2].isdecimal():
            items = self._document.get(parts[1])
            at = int(parts[2][:9])
            if isinstance(items, list) and at < len(items) and isinstance(items[at], dict):
                found: Item = items[at]
                return found
        self._lost += 1
        return None

    def _regions(self, item: Item) -> tuple[Region, ...]:
        places = item.get("prov")
        out = []
        for place in places if isinstance(places, list) else ():
            page = whole_of(place.get("page_no")) if isinstance(place, dict) else None
            if page in self._heights:
                box = _box(place.get("bbox"), self._heights[page][1])
                if box is not None:
                    out.append(Region(page, box))
        return tuple(out)


def _page_sizes(pages: Any) -> dict[int, tuple[float, float]]:
    """Page number → width and height in points."""
    out: dict[int, tuple[float, float]] = {}
    for page in pages.values() if isinstance(pages, dict) else ():
        number = whole_of(page.get("page_no")) if isinstance(page, dict) else None
        if number is not None and 1 <= number <= MAX_PAGES:
            size = page.get("size") if isinstance(page.get("size"), dict) else {}
            width, height = number_of(size.get("width")), number_of(size.get("height"))
            out[number] = (max(width or 0.0, 0.0), max(height or 0.0, 0.0))
    return out


def _box(stated: Any, height: float) -> BBox | None:
    """In points from the top left, whichever corner it is stated from."""
    if not isinstance(stated, dict):
        return None
    box = box_of([stated.get(side) for side in "ltrb"])
    if box is None or stated.get("coord_origin") != "BOTTOMLEFT":
        return box
    return BBox(box.x0, height - box.y1, box.x1, height - box.y0)


def _word(item: Item, key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _text(item: Item) -> str:
    for key in ("text", "orig"):
        value = item.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _descriptions(item: Item) -> Iterator[str]:
    """What a model said of a picture."""
    notes = item.get("annotations")
    for note in notes if isinstance(notes, list) else ():
        if isinstance(note, dict) and note.get("kind") == "description":
            yield _text(note)


def _cells(data: Item, height: float) -> Iterator[Cell]:
    """Each cell once: `grid` repeats those that span."""
    cells = data.get("table_cells")
    if not isinstance(cells, list) or not cells:
        grid = data.get("grid")
        cells = (
            [c for row in grid if isinstance(row, list) for c in row]
            if isinstance(grid, list)
            else []
        )
    seen: set[tuple[int, int]] = set()
    for cell in cells:
        if not isinstance(cell, dict):
            continue
        row, column = (whole_of(cell.get(f"start_{side}_offset_idx")) for side in ("row", "col"))
        if row is None or column is None or row < 0 or not 0 <= column < MAX_COLUMNS:
            continue
        if (row, column) in seen:
            continue
        seen.add((row, column))
        spans = [whole_of(cell.get(f"{side}_span")) or 1 for side in ("row", "col")]
        yield Cell(
            row,
            column,
            _text(cell),
            max(spans[0], 1),
            min(max(spans[1], 1), MAX_COLUMNS - column),
            cell.get("column_header") is True or cell.get("row_header") is True,
            _box(cell.get("bbox"), height),
        )
