"""Which candidates are headings: continued ones, units, steady styles, ties to a contents page."""

from __future__ import annotations

from bookrag_fast.document import BBox, Block, BlockKind, Document, Page, Region, Style
from bookrag_fast.index.model import NodeKind, SectionTree
from bookrag_fast.index.tree import build_tree
from pdf_factory import LOREM


class _Book:
    """Blocks under each other on pages that are begun by hand."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.page, self.y = 0, 0.0

    def new_page(self) -> _Book:
        self.page, self.y = self.page + 1, 60.0
        return self

    def heading(self, text: str, size: float = 10, *, gap: float = 20, bold: bool = True) -> _Book:
        style = Style(size=size, bold=bold, family="F", gap_before=gap if self.y > 60 else None)
        return self._add(BlockKind.TITLE, text, style)

    def text(self, text: str = LOREM * 3) -> _Book:
        return self._add(BlockKind.TEXT, text, Style(size=10, family="F", gap_before=8))

    def _add(self, kind: BlockKind, text: str, style: Style) -> _Book:
        box = BBox(72, self.y, 72 + min(5 * len(text), 450), self.y + 12)
        self.blocks.append(Block(kind, text, (Region(self.page, box),), style))
        self.y += 30
        return self

    def tree(self) -> SectionTree:
        pages = tuple(Page(k + 1, None, 600, 800) for k in range(self.page))
        return build_tree(Document("b.pdf", "0" * 64, "A Book", pages, tuple(self.blocks)))


def _titles(tree: SectionTree) -> list[str]:
    return [n.title for n in tree.nodes if n.kind is NodeKind.SECTION and n.node_id > 1]


def test_a_heading_said_again_on_the_next_page_goes_on() -> None:
    book = _Book().new_page()
    for name in ("Is it safe?", "Is it caring?", "Is it led well?"):
        book.heading(name, 20).text().text()
        book.new_page().heading(f"{name} (continued)" if "led" in name else name, 20).text()
        book.new_page()
    tree = book.text().tree()
    assert _titles(tree) == ["Is it safe?", "Is it caring?", "Is it led well?"]
    first = next(n for n in tree.nodes if n.title == "Is it safe?")
    assert (first.page_first, first.page_last) == (1, 2)


def test_the_same_heading_in_another_chapter_is_a_section_of_its_own() -> None:
    book = _Book()
    for name in ("Oats", "Rye", "Wheat"):
        book.new_page().heading(name, 20).text().heading("Yields", 14).text()
    assert _titles(book.tree()) == ["Oats", "Yields", "Rye", "Yields", "Wheat", "Yields"]


def test_the_unit_of_the_figures_is_no_part_of_a_title() -> None:
    book = _Book()
    for name in ("BALANCE SHEETS (In millions, except par value)", "INCOME (unaudited)",
                 "CASH FLOWS (of all kinds)"):  # fmt: skip
        book.new_page().heading(name, 12).text()
    tree = book.tree()
    assert _titles(tree) == ["BALANCE SHEETS", "INCOME", "CASH FLOWS (of all kinds)"]
    assert any(n.text.startswith("(In millions, except par value)") for n in tree.nodes)


def _numbered(plain_gap: float) -> list[str]:
    """Ten numbered sections with a smaller heading without a number in each."""
    book = _Book()
    for k in range(1, 11):
        book.new_page().heading(f"{k} Chapter", 14).text()
        book.heading(f"{k}.1 Part of it", 12).text().heading(
            f"The mill of {'ABCDEFGHIJ'[k - 1]}", gap=plain_gap
        ).text()
    return [title for title in _titles(book.tree()) if title.startswith("The mill")]


def test_lowest_headings_may_go_without_numbers_where_they_stand_apart() -> None:
    assert len(_numbered(plain_gap=20)) == 10
    assert _numbered(plain_gap=3) == []


def test_a_listed_title_is_tied_to_the_block_that_prints_its_number_too() -> None:
    names = ["Service", "Grain", "Tools", "Mills", "Fields", "Barns", "Roads", "Wells", "Carts"]
    book = _Book().new_page().heading("Contents", 14)
    for k, name in enumerate(names, 1):
        book.text(f"Goal 1.{k} {name} " + ". " * 30 + str(k + 1))
    for k, name in enumerate(names, 1):
        book.new_page().heading(name.upper(), bold=False).text()
        book.heading(f"Goal 1.{k} {name}", 14).text()
    listed = [n.title for n in book.tree().nodes if "contents-page" in n.evidence]
    assert listed == [f"Goal 1.{k} {name}" for k, name in enumerate(names, 1)]
