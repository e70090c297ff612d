"""The offline planner: global and multi-hop only when the question's form says so."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookrag_fast import Library
from bookrag_fast.query.plan import Category, FilterType, Operation
from bookrag_fast.query.planner import plan_question


@pytest.mark.parametrize(
    ("question", "thing", "others"),
    [
        ("How many tables are there?", "table", []),
        ("How many tables are in the document?", "table", []),
        ("How many figures are there in chapter 3?", "image", [("section", "chapter 3")]),
        ("How many figures are on pages 3-10?", "image", [("page", "3-10")]),
        ("How many images appear from page 3 to 10 ", "image", [("page", "3-10")]),
        ("How many images are there from Page 3 to Page 10?", "image", [("page", "3-10")]),
        ("How many figures are on pages 3,5,8-?", "image", [("page", "3,5,8-")]),
        ("How many figures are on pages 2 and 4?", "image", [("page", "2,4")]),
        ("How many figures are on pages 2, 4 and 6 to 9?", "image", [("page", "2, 4,6-9")]),
        ("How many chapters does this report have?", "section", []),
        ("What is the total number of pages in the book?", "page", []),
        ("count the tables in Appendix B", "table", [("section", "Appendix B")]),
        ('How many tables are in the "Limits of operation" section?', "table",
         [("section", "Limits of operation")]),
        ("この文書に表はいくつありますか", "table", []),
        ("3〜10ページにある図はいくつ？", "image", [("page", "3-10")]),
        ("第3章に表は何個ありますか", "table", [("section", "第3章")]),
    ],
)  # fmt: skip
def test_counts_of_structure_are_global(
    question: str, thing: str, others: list[tuple[str, str]] | None
) -> None:
    plan = plan_question(question)
    assert plan.category is Category.GLOBAL, plan
    assert plan.operation is Operation.COUNT
    assert plan.filters[-1].type is FilterType(thing)
    if others is not None:
        assert [(f.type.value, f.value) for f in plan.filters[:-1]] == others


@pytest.mark.parametrize(
    "question",
    ["List all tables", "What are the chapters of this book?", "list the figures in Section 2.1"],
)
def test_lists_of_structure_are_global(question: str) -> None:
    assert plan_question(question).operation is Operation.LIST


@pytest.mark.parametrize(
    "question",
    [
        "How many participants took part in the survey?",
        "How many tables mention the word pressure?",
        "How many figures show a red line?",
        "What are the main tables used by the planner to decide on joins?",
        "What is the default damping?",
        "Where was Gestalt psychology conceived?",
        "How many pages of evidence did the court read in 1954?",
        "How many Chapters of Rotary are in Kenya?",
        "What is the difference?",
        "Who compared the two methods?",
        "How many tables or chairs does the office have?",
        "How many sections list tables?",
        "日本の人口は何人ですか",
    ],
)
def test_everything_else_stays_single_hop(question: str) -> None:
    assert plan_question(question).category is Category.SINGLE_HOP


def test_a_page_that_the_question_names_becomes_a_filter() -> None:
    plan = plan_question("What is the title of the chart on page 12?")
    assert plan.category is Category.SINGLE_HOP
    assert [(f.type, f.value) for f in plan.filters] == [(FilterType.PAGE, "12")]
    assert "Filter_Range" in [s.operator for s in plan.steps]


def test_a_comparison_is_decomposed_into_its_two_sides() -> None:
    plan = plan_question("What is the difference between Map and Reduce?")
    assert plan.category is Category.MULTI_HOP
    assert [p.question for p in plan.sub_plans] == ["What is Map?", "What is Reduce?"]
    assert plan.synthesis == ("What is the difference between Map and Reduce?",)


@given(st.text(max_size=300))
def test_no_text_breaks_the_planner(text: str) -> None:
    plan = plan_question(text)
    assert plan.steps
    assert plan.to_json()["category"] in {c.value for c in Category}


@pytest.mark.parametrize(
    "question",
    [
        "1" * 9900,
        "1-" * 4900,
        "how many tables " + "in a " * 1900,
        "what does it mean " + "A" * 9900 + "_",
        " ".join(f"page {i}" for i in range(1000)),
        "summarize pages " + ",".join(map(str, range(2000))),
        " ".join(f"fig{i}" for i in range(1200)),
        "mean " + " ".join(f"A{chr(65 + i % 26)}{chr(65 + i // 26)}" for i in range(600)),
    ],
)
def test_no_question_takes_long(question: str, shelf: Library) -> None:
    started = time.process_time()
    shelf.ask(question)
    assert time.process_time() - started < 3  # generous: it took minutes on large books
