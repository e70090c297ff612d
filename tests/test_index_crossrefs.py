"""Cross-references: finding them in text, numbers of targets, and resolving."""

from __future__ import annotations

import pytest

from bookrag_fast.index.crossrefs import canonical, caption_number, find_references, section_numbers
from bookrag_fast.index.extraction import extract_graph
from bookrag_fast.index.model import Node, NodeKind
from graph_trees import TreeBuilder, relation, relations


def found(text: str) -> list[tuple[str, str]]:
    return [(r.kind, r.number) for r in find_references(text)]


@pytest.mark.parametrize(
    ("text", "references"),
    [
        ("see Section 3.2 for more", [("section", "3.2")]),
        ("see Sec. 3.2, and § 4", [("section", "3.2"), ("section", "4")]),
        ("Table 4 shows", [("table", "4")]),
        ("Tables 3 and 4 and Fig. 2", [("table", "3"), ("table", "4"), ("image", "2")]),
        ("in Figures 2, 3 and 5a", [("image", "2"), ("image", "3"), ("image", "5A")]),
        ("Chapter IV and Chapter 5", [("chapter", "4"), ("chapter", "5")]),
        ("Appendix A and appendix B.2", [("appendix", "A"), ("appendix", "B.2")]),
        ("by Eq. (3)", [("equation", "3")]),
        ("第3章と図1、表2を参照", [("chapter", "3"), ("image", "1"), ("table", "2")]),
        ("第十二章、3.2節", [("chapter", "12"), ("section", "3.2")]),
        ("(項5.4.1参照) と 2.3 項", [("section", "5.4.1"), ("section", "2.3")]),
        ("付録Aに示す", [("appendix", "A")]),
        ("см. раздел 3.2 и таблицу, рис. 2", [("section", "3.2"), ("image", "2")]),
        ("the table 4you said and section a", []),
        ("part I took home", []),
        ("Section 13 of the Exchange Act", []),
        ("Section 4(a) or 5 under the Securities Act", []),
        ("Section 3 of this handbook", [("section", "3")]),
        ("a tablet 5 and a figurehead 6", []),
    ],
)
def test_references(text: str, references: list[tuple[str, str]]) -> None:
    assert found(text) == references


def test_numbers_have_one_spelling() -> None:
    assert [canonical(n) for n in ("III", "三", "十", "二十一", "2-1", "a.1", "３", "IX")] == [
        "3", "3", "10", "21", "2.1", "A.1", "3", "9"
    ]  # fmt: skip


def test_numbers_of_captions() -> None:
    captions = {
        "Table 3: Results": "3",
        "Figure 2.1. The tree": "2.1",
        "図1 構成": "1",
        "表 2-1: 結果": "2.1",
        "Fig. A2 Details": "A2",
        "Рис. 4 Схема": "4",
        "The table of results": "",
        "": "",
    }
    assert {caption: caption_number(caption) for caption in captions} == captions


@pytest.mark.parametrize(
    ("numbering", "title", "numbers"),
    [
        ("3.2", "Graph", [("section", "3.2")]),
        ("", "3.2 Graph", [("section", "3.2")]),
        ("Appendix A", "Tables", [("appendix", "A")]),
        ("A", "Tables", [("section", "A"), ("appendix", "A")]),
        ("第3章", "検索", [("chapter", "3")]),
        ("", "第３章 検索", [("chapter", "3")]),
        ("IV", "Results", [("section", "4")]),
        ("", "Chapter 2 Trees", [("chapter", "2")]),
        ("", "Item 1A. Risk Factors", [("item", "1A")]),
        ("", "Results", []),
        ("", "2015 was good", []),
        ("", "A tree grows", []),
        ("", "I think so", []),
        ("", "B. Limits", [("section", "B"), ("appendix", "B")]),
        ("", "Appendix C Tables", [("appendix", "C")]),
        ("", "Part II. Use", [("part", "2")]),
    ],
)
def test_numbers_of_sections(numbering: str, title: str, numbers: list[tuple[str, str]]) -> None:
    node = Node(1, 0, NodeKind.SECTION, 1, title, "", (), 1, 1, numbering)
    assert section_numbers(node) == numbers


def test_references_become_relations() -> None:
    book = TreeBuilder()
    trees = book.section("Trees", numbering="1")
    graphs = book.section("Graphs", numbering="2")
    said = book.text("As Section 1 says, see Table 1 and Section 9. See Section 2.", parent=graphs)
    again = book.text("Section 1 again.", parent=graphs)
    book.table("Table 1: Results", [["a", "b"], ["c", "1"]], parent=trees)
    graph = extract_graph(book.tree())
    # Section 9 does not exist and is dropped; a section does not refer to itself.
    assert relations(graph, "RefersTo") == {("Graphs", "Trees"), ("Graphs", "Table 1: Results")}
    twice = relation(graph, "RefersTo", "Graphs", "Trees")
    assert twice.nodes == (said, again)
    assert twice.weight > relation(graph, "RefersTo", "Graphs", "Table 1: Results").weight


def test_numbers_that_restart_mean_the_nearest() -> None:
    book = TreeBuilder()
    for part in ("One", "Two"):
        above = book.section(f"Part {part}")
        book.section(f"Basics {part}", parent=above, numbering="1")
        use = book.section(f"Use {part}", parent=above, numbering="2")
        book.text("Read Section 1 first.", parent=use)
    graph = extract_graph(book.tree())
    assert relations(graph, "RefersTo") == {("Use One", "Basics One"), ("Use Two", "Basics Two")}
