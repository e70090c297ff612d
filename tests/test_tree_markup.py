"""Trees from levels that the source states, and trees of documents without pages."""

from __future__ import annotations

import pytest

from bookrag_fast.document import BBox, Block, BlockKind, Document, Page, Region
from bookrag_fast.index.model import NodeKind, SectionTree
from bookrag_fast.index.tree import build_tree


def head(level: int | None, text: str) -> Block:
    return Block(BlockKind.TITLE, text, (), level=level)


def para(text: str, page: int = 0) -> Block:
    regions = (Region(page, BBox(10, 10, 90, 20)),) if page else ()
    return Block(BlockKind.TEXT, text, regions)


def document(blocks: list[Block], *, title: str | None = None, pages: int = 0) -> Document:
    sheets = tuple(Page(n, None, 100, 100) for n in range(1, pages + 1))
    return Document("b.md", "0" * 64, title, sheets, tuple(blocks))


def outline(tree: SectionTree) -> list[tuple[int, str]]:
    """Sections below the title node, with the level a reader would give them."""
    return [(n.level - 1, n.title) for n in tree.nodes[2:] if n.kind is NodeKind.SECTION]


@pytest.mark.parametrize(("levels", "wanted"), [
    ([1, 3, 3, 2, 6], [1, 2, 2, 2, 3]),
    ([1, 1, 1], [1, 1, 1]),
    ([3, 2, 1, 4], [1, 1, 1, 2]),
    ([2, 3, 2], [1, 2, 1]),
])  # fmt: skip
def test_stated_levels_nest_sections_and_jumps_close(levels: list[int], wanted: list[int]) -> None:
    heads = [head(level, f"H{k}") for k, level in enumerate(levels)]
    tree = build_tree(document(heads))
    assert outline(tree) == [(level, f"H{k}") for k, level in enumerate(wanted)]
    assert tree.toc_source == "markup"
    assert all(n.evidence == ("markup",) for n in tree.nodes[2:])
    assert all((n.page_first, n.page_last) == (0, 0) for n in tree.nodes)


def test_a_lone_first_heading_that_is_the_title_is_the_title_node() -> None:
    blocks = [head(1, "A Farm"), para("Preface."), head(2, "Cows"), para("Two."), head(2, "Hens")]
    tree = build_tree(document(blocks, title="A Farm"))
    assert outline(tree) == [(1, "Cows"), (1, "Hens")]
    assert [n.title for n in tree.nodes[:2]] == ["A Farm", "A Farm"]
    assert [n.text for n in tree.nodes if n.text] == ["Preface.", "Two."]
    again = [*blocks, head(1, "Other")]  # a second one of its level: both are chapters
    assert outline(build_tree(document(again, title="A Farm")))[0] == (1, "A Farm")


def test_what_the_source_does_not_call_a_heading_is_none() -> None:
    blocks = [head(1, "One"), para("CHAPTER 2 LOOKS LIKE ONE"), para("2. As does this"), para("x")]
    tree = build_tree(document(blocks))
    assert outline(tree) == [(1, "One")]


def test_a_source_that_knows_one_level_only_is_helped_by_numbers() -> None:
    titles = ["Abstract", "1 Start", "1.1 Why", "Aside", "1.2 How", "2 End", "References"]
    tree = build_tree(document([head(1, t) for t in titles]))
    assert [level for level, _ in outline(tree)] == [1, 1, 2, 3, 2, 1, 1]
    plain = build_tree(document([head(1, t) for t in ["Red", "Green", "1 Blue"]]))
    assert [level for level, _ in outline(plain)] == [1, 1, 1]


def test_stated_and_guessed_headings_stand_together() -> None:
    blocks = [
        head(1, "Basics"), para("Some text that is long enough to be running text."),
        head(None, "1.1 Parts"), para("More text that is long enough to be running text."),
        head(None, "1.2 Wholes"), para("Yet more text that is long enough to be running text."),
    ]  # fmt: skip
    tree = build_tree(document(blocks))
    assert outline(tree) == [(1, "Basics"), (2, "1.1 Parts"), (2, "1.2 Wholes")]
    assert {n.evidence for n in tree.nodes[2:] if n.kind is NodeKind.SECTION} == {
        ("markup",), ("numbering",),
    }  # fmt: skip


def test_without_headings_and_pages_all_hangs_under_the_title() -> None:
    tree = build_tree(document([para("lower case text."), para("and more of it.")]))
    assert tree.toc_source == "none"
    assert [n.parent for n in tree.nodes] == [-1, 0, 1]
    assert tree.nodes[2].text == "lower case text.\nand more of it."
    assert build_tree(document([])).toc_source == "none"


def test_blocks_on_no_page_do_not_move_the_pages_of_a_section() -> None:
    blocks = [head(1, "One"), para("a" * 950, 2), para("b" * 950), para("c" * 950, 3)]
    tree = build_tree(document(blocks, pages=4))
    section = tree.nodes[2]
    assert (section.page_first, section.page_last) == (2, 3)
    assert [(n.page_first, n.page_last) for n in tree.nodes[3:]] == [(2, 2), (0, 0), (3, 3)]
    pages = build_tree(document(blocks[1:], pages=4))
    assert pages.toc_source == "pages"
    assert [title for _, title in outline(pages)] == ["Page 2", "Page 3"]


def test_a_caption_belongs_to_what_it_follows() -> None:
    def table(text: str) -> Block:
        return Block(BlockKind.TABLE, text, ())

    def caption(text: str) -> Block:
        return Block(BlockKind.CAPTION, text, ())

    cow = Block(BlockKind.IMAGE, "a cow", ())
    blocks = [table("a | b"), caption("Prices"), table("c | d"), caption("Table 2: Costs")]
    blocks += [cow, caption("The farm"), caption("Alone")]
    nodes = build_tree(document(blocks)).nodes[2:]
    assert [(n.kind, n.title, n.text) for n in nodes] == [
        (NodeKind.TABLE, "Prices", "a | b"), (NodeKind.TABLE, "Table 2: Costs", "c | d"),
        (NodeKind.IMAGE, "The farm", "a cow"), (NodeKind.IMAGE, "Alone", ""),
    ]  # fmt: skip
