"""How results look: pages, trees, progress, and text that must not drive the terminal."""

from __future__ import annotations

import dataclasses

import pytest

from bookrag_fast.cli import output
from bookrag_fast.cli.errors import describe
from bookrag_fast.cli.progress import counts
from bookrag_fast.errors import UnknownBookError
from bookrag_fast.library.types import Progress
from bookrag_fast.query.plan import SearchResult
from server_helpers import ANSWER, BOOK, EVIDENCE, PLAN, TRACE


@pytest.mark.parametrize(("pages", "labels", "text"), [
    ((), (), ""),
    ((12,), ("12",), "p. 12"),
    ((12,), (None,), "p. 12"),
    ((12,), ("x",), "p. 12 (printed x)"),
    ((4, 5, 6, 9), (None,) * 4, "pp. 4-6, 9"),
    ((4, 5), ("iv", None), "pp. 4-5 (printed iv)"),
    ((5, 4, 4), ("5", "4", "4"), "pp. 4-5"),
])  # fmt: skip
def test_pages_are_physical_with_the_printed_label_beside_them(pages, labels, text):
    assert output.pages_text(pages, labels) == text


def test_control_characters_of_a_book_do_not_reach_the_terminal():
    assert output.clean("a\x1b[31mb\x07\u009b\u202ec\r") == "a [31mb   c "
    assert output.clean("第3章　α\n\té") == "第3章　α\n\té"


def test_a_long_text_is_cut_to_one_line():
    assert output.shorten("a\n b   c", 10) == "a b c"
    assert output.shorten("x" * 11, 10) == "x" * 9 + "…"


def test_an_answer_is_followed_by_where_it_stands():
    text = "\n".join(output.answer_lines(ANSWER, {BOOK.id: BOOK.title}))
    assert text.startswith("There are 2.\n\nSources\n")
    assert "[1] pp. 4-5 (printed iv) · 3 Results › 3.1 Tables · node 7" in text
    assert "“第3章”" in text
    assert BOOK.title not in text  # one book: its title would only be noise


def test_titles_are_shown_when_several_books_were_asked():
    titles = {BOOK.id: BOOK.title, "other": "Other"}
    assert BOOK.title in "\n".join(output.answer_lines(ANSWER, titles))
    result = SearchResult((EVIDENCE,), PLAN, TRACE)
    assert BOOK.title in "\n".join(output.search_lines(result, titles))


def test_an_answer_that_the_evidence_does_not_carry_says_so():
    poor = dataclasses.replace(ANSWER, enough=False, text="", citations=())
    text = "\n".join(output.answer_lines(poor, {}))
    assert "No answer was found." in text
    assert "may not be enough" in text
    assert "Sources" not in text


def test_a_search_hit_shows_place_scores_and_text():
    long = dataclasses.replace(EVIDENCE, text="word " * 400)
    text = "\n".join(output.search_lines(SearchResult((EVIDENCE, long), PLAN, TRACE), {}))
    assert "1. pp. 4-5 (printed iv) · table · 3 Results › 3.1 Tables" in text
    assert "text 0.750 graph 0.125" in text
    assert "   第3章 α" in text
    assert text.count("…") == 1
    assert "Nothing" in "\n".join(output.search_lines(SearchResult((), PLAN, TRACE), {}))


def test_an_explanation_names_operators_sub_questions_and_times():
    text = "\n".join(output.explain_lines(PLAN, TRACE))
    assert "Plan: global (rule: how many): Filter_Modal → Map" in text
    assert "“a sub-question”" in text
    assert "1.25 ms  Map  in=3" in text


@pytest.mark.parametrize(("step", "text"), [
    (Progress("parse", 3, None, "pages"), "3 pages"),
    (Progress("parse", 3, 25, "pages", 40.06, 0.55), "3/25 pages · 40.1/s · 0:01 left"),
    (Progress("embed", 5, 500, "nodes", 2.0, 3725.0), "5/500 nodes · 2.0/s · 62:05 left"),
    (Progress("embed", 5, 5, "nodes", 2.0, 0.0), "5/5 nodes · 2.0/s"),
])  # fmt: skip
def test_progress_shows_amount_rate_and_time_left(step, text):
    assert counts(step) == text


def test_errors_are_described_by_code_message_hint_and_exit_code():
    assert describe(UnknownBookError("no book", "list them")) == (
        {"code": "unknown_book", "message": "no book", "hint": "list them"}, 21,
    )  # fmt: skip
    problem, code = describe(ValueError("a\n  b"))
    assert (problem["code"], problem["message"], code) == (
        "internal", "unexpected ValueError: a b", 1,
    )  # fmt: skip
    assert describe(KeyError())[0]["message"] == "unexpected KeyError"
