"""Entities that stand for parts of the book: sections, tables and their headers, images."""

from __future__ import annotations

from dataclasses import replace

from bookrag_fast.document.model import Cell
from bookrag_fast.index.extraction import extract_graph
from bookrag_fast.index.model import Node, NodeKind, SectionTree
from bookrag_fast.index.structure import bare_title, headers_of
from graph_trees import TreeBuilder, find, relations


def table(cells: list[Cell]) -> Node:
    return Node(1, 0, NodeKind.TABLE, 2, "", "", (), 1, 1, cells=tuple(cells))


def test_every_section_is_an_entity_with_its_numbers_as_aliases() -> None:
    book = TreeBuilder("A Handbook of Search")
    section = book.section("3.2 Graph construction", numbering="3.2")
    graph = extract_graph(book.tree())
    entity = find(graph, "Section 3.2", "section")
    assert entity is not None
    assert entity.name == "Graph construction"
    assert entity.nodes == (section,)
    assert "3.2 Graph construction" in entity.aliases
    assert find(graph, "A Handbook of Search", "section") is not None


def test_a_whole_number_is_a_chapter_too() -> None:
    book = TreeBuilder()
    book.section("5 Search", numbering="5")
    entity = find(extract_graph(book.tree()), "Chapter 5", "section")
    assert entity is not None
    assert entity.aliases == ("5 Search", "Section 5", "Chapter 5")


def test_headings_that_recur_are_told_apart() -> None:
    book = TreeBuilder()
    for chapter in ("Trees", "Graphs"):
        book.section("Summary", parent=book.section(chapter))
    names = [e.name for e in extract_graph(book.tree()).entities if e.type == "section"]
    assert names == ["Handbook", "Trees", "Summary (Trees)", "Graphs", "Summary (Graphs)"]
    book.section("Summary", parent=2)
    keys = [e.key for e in extract_graph(book.tree()).entities]
    assert len(set(keys)) == len(keys)


def test_pages_as_sections_are_no_entities() -> None:
    page = Node(1, 0, NodeKind.SECTION, 1, "Page 1", "", (), 1, 1, evidence=("page",))
    tree = SectionTree((Node(0, -1, NodeKind.ROOT, 0, "", "", (), 1, 1), page), "pages")
    assert extract_graph(tree).entities == ()
    # A heading whose page an outline confirms is a section like any other.
    told = SectionTree((tree.nodes[0], replace(page, evidence=("outline", "page"))), "outline")
    assert [e.name for e in extract_graph(told).entities if e.type == "section"] == ["Page 1"]


def test_bare_titles() -> None:
    titles = {
        "3.2 Graph construction": "Graph construction",
        "Chapter 4: Skyline": "Skyline",
        "Appendix A. Tables": "Tables",
        "第３章 検索": "検索",
        "IV. Results": "Results",
        "Item 1A. Risk Factors.": "Risk Factors",
        "2312.04350v3": "2312.04350v3",
        "3.2": "3.2",
        "A tree": "A tree",
        "U.S. Plan": "U.S. Plan",
        "I.B.M. story": "I.B.M. story",
        "I think": "I think",
    }
    assert {title: bare_title(title) for title in titles} == titles


def test_concepts_of_a_title_are_linked_to_the_section() -> None:
    book = TreeBuilder()
    book.section("Personalized ranking of entities", numbering="1")
    graph = extract_graph(book.tree())
    assert ("Personalized ranking", "Personalized ranking of entities") in relations(
        graph, "InTitleOf"
    )


def test_a_table_and_its_headers() -> None:
    book = TreeBuilder()
    rows = [["Model", "Recall", "2015"], ["BM25", "57.6", "1"], ["Dense", "63.5", "2"]]
    node = book.table("Table 3: Recall of the baselines", rows)
    graph = extract_graph(book.tree())
    entity = find(graph, "Table 3", "table")
    assert entity is not None
    assert entity.name == "Table 3: Recall of the baselines"
    assert entity.nodes == (node,)
    heads = {a for a, b in relations(graph, "ContainedIn") if b == entity.name}
    assert heads == {"Model", "Recall", "2015", "BM25", "Dense"}
    assert all(e.nodes == (node,) for e in graph.entities if e.type == "header")


def test_a_header_of_two_tables_is_one_entity() -> None:
    book = TreeBuilder()
    first = book.table("Table 1: Cost", [["Item", "Total"], ["Disk", "3"]])
    second = book.table("Table 2: Time", [["Step", "Total"], ["Parse", "4"]])
    graph = extract_graph(book.tree())
    total = find(graph, "Total", "header")
    assert total is not None
    assert total.nodes == (first, second)
    assert {t for h, t in relations(graph, "ContainedIn") if h == "Total"} == {
        "Table 1: Cost",
        "Table 2: Time",
    }


def test_hierarchical_headers_are_joined() -> None:
    cells = [
        Cell(0, 0, "Model", header=True),
        Cell(0, 1, "Recall", column_span=2, header=True),
        Cell(1, 0, "", header=True),
        Cell(1, 1, "text", header=True),
        Cell(1, 2, "tables", header=True),
        Cell(2, 0, "BM25"),
        Cell(2, 1, "57.6"),
        Cell(2, 2, "26.4"),
    ]
    assert headers_of(table(cells)) == ["Model", "Recall / text", "Recall / tables", "BM25"]


def test_numbers_are_no_headers_and_tables_may_be_empty() -> None:
    assert headers_of(table([])) == []
    rows = [Cell(r, c, f"{r * 10 + c}") for r in range(4) for c in range(3)]
    assert headers_of(table(rows)) == []


def test_headers_are_bounded() -> None:
    cells = [Cell(r, c, f"row {r} cell {c}") for r in range(500) for c in range(3)]
    assert len(headers_of(table(cells))) == 64


def test_images_equations_and_tables_without_captions() -> None:
    book = TreeBuilder()
    book.image("Figure 2: The retrieval pipeline")
    book.image("")
    book.equation("s = \\sum_i x_i \\quad (7)")
    book.equation("a = b")
    book.table("", [["Key", "Value"], ["g", "0.6"]])
    graph = extract_graph(book.tree())
    kinds = sorted(e.type for e in graph.entities if e.type in ("image", "equation", "table"))
    assert kinds == ["equation", "image", "table"]
    equation = find(graph, "Equation 7", "equation")
    assert equation is not None
    assert "\\sum_i" in equation.description
    assert find(graph, "The retrieval pipeline", "image") is not None
    assert ("retrieval pipeline", "Figure 2: The retrieval pipeline") in relations(
        graph, "InCaptionOf"
    )
