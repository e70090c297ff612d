"""The sample book on a shelf: its tree, its graph, and what is found and answered in it."""

from __future__ import annotations

import json

import pytest

from bookrag_fast import Book, Library
from bookrag_fast.library import TreeNode
from conftest import TRUTH


def test_the_book_says_what_it_is(handbook: Book) -> None:
    assert handbook.title == "The bookrag_fast Handbook"
    assert handbook.name == "handbook.pdf"
    assert handbook.pages == TRUTH["pages"]
    assert handbook.toc_source == "outline"
    assert handbook.nodes > handbook.pages
    assert handbook.entities > 100
    assert handbook.relations > 100


def walk(node: TreeNode) -> list[TreeNode]:
    return [node, *(n for child in node.children for n in walk(child))]


def test_the_tree_is_the_handbooks_own(shelf: Library, handbook: Book) -> None:
    nodes = walk(shelf.tree(handbook.id))
    assert [n.node_id for n in nodes] == list(range(handbook.nodes))
    sections = [(n.title, n.level - 1, n.page) for n in nodes if n.kind == "section"][1:]
    truth = [(e["title"], e["level"], e["page"]) for e in TRUTH["entries"]]
    assert sections == truth
    for parent in nodes:
        for child in parent.children:
            assert child.level == parent.level + 1
            assert parent.page <= child.page or parent.kind == "root"


def test_every_table_and_figure_is_there(shelf: Library, handbook: Book) -> None:
    nodes = walk(shelf.tree(handbook.id))
    for kind, word in (("table", "tables"), ("image", "figures")):
        mine = [n for n in nodes if n.kind == kind]
        assert all(n.title for n in mine)
        assert [n.page for n in mine] == [t["page"] for t in TRUTH[word]]


@pytest.mark.parametrize("question", TRUTH["questions"], ids=lambda q: q["question"][:40])
def test_the_evidence_for_known_questions_holds_the_right_page(
    shelf: Library, handbook: Book, question: dict[str, object]
) -> None:
    right = {*question["pages"], *question.get("also", [])}  # type: ignore[misc]
    evidence = shelf.search(str(question["question"]), books=[handbook.id])
    assert right & {p for e in evidence for p in e.pages}
    assert sum(e.tokens for e in evidence) <= 2000


def test_extractive_answers_cite_the_right_page_nine_times_in_ten(
    shelf: Library, handbook: Book
) -> None:
    wrong = []
    for question in TRUTH["questions"]:
        answer = shelf.ask(question["question"], books=[handbook.id])
        if not {*question["pages"], *question["also"]} & {
            p for c in answer.citations for p in c.pages
        }:
            wrong.append((question["question"], answer.text))
    assert len(wrong) <= len(TRUTH["questions"]) // 10, wrong


def test_evidence_is_complete(shelf: Library, handbook: Book) -> None:
    hit = shelf.search("What is the default damping?", books=[handbook.id])[0]
    assert hit.book == handbook.id
    assert hit.pages
    assert all(r.page in hit.pages and r.bbox.width > 0 for r in hit.boxes)
    assert hit.section
    assert hit.tokens > 0
    assert set(hit.scores) >= {"relevance", "text"}
    node = shelf.node(handbook.id, hit.node_id)
    assert node["pages"] == list(hit.pages)
    assert node["text"] in hit.text


def test_stats_and_graph(shelf: Library, handbook: Book) -> None:
    stats = shelf.stats(handbook.id)
    assert sum(stats["nodes"].values()) == handbook.nodes
    assert stats["entities"] == handbook.entities
    assert 0 < stats["mean_degree"] < 50
    graph = shelf.graph(handbook.id, limit=10)
    assert len(graph["entities"]) == 10
    shown = {e["id"] for e in graph["entities"]}
    assert all({r["source"], r["target"]} <= shown for r in graph["relations"])
    json.dumps([stats, graph])
