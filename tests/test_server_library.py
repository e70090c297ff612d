"""The service over a real Library: the client's values are those of the library in process."""

from __future__ import annotations

from pathlib import Path

import pytest

from bookrag_fast.library import Library
from bookrag_fast.server import Client
from server_helpers import make_pdf, running

QUESTIONS = [
    "When should the impeller of the primary pump be replaced?",
    "At what pressure does the relief valve open?",
    "How many sections are in the handbook?",
    "ポンプ？",
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with Library.open(folder / "shelf") as library:
        library.add(make_pdf(folder / "small.pdf"))
        yield library


@pytest.fixture(scope="module")
def client(library):
    with running(library) as target, Client(target, timeout=30) as client:
        yield client


def without_times(trace):
    return [(op.operator, sorted(op.detail)) for op in trace.operators]


def test_the_catalogue_and_the_tree_are_the_same(client, library):
    (book,) = library.books()
    assert client.books() == [book]
    assert client.tree(book.id) == library.tree(book.id)


@pytest.mark.parametrize("question", QUESTIONS)
def test_search_is_the_same(client, library, question):
    here, there = library.search_result(question), client.search_result(question)
    assert there.evidence == here.evidence
    assert there.plan.to_json() == here.plan.to_json()
    assert without_times(there.trace) == without_times(here.trace)


@pytest.mark.parametrize("question", QUESTIONS)
def test_ask_is_the_same_unary_and_streamed(client, library, question):
    here = library.ask(question)
    for there in (client.ask(question), list(client.ask_stream(question))[-1].answer):
        assert there.text == here.text
        assert there.citations == here.citations
        assert there.plan.to_json() == here.plan.to_json()
        assert (there.usage, there.enough) == (here.usage, here.enough)
    events = list(client.ask_stream(question))
    assert events[0].kind == "plan"
    assert "".join(event.text for event in events if event.kind == "text") == here.text


def test_a_book_comes_and_goes_over_the_wire(client, library, tmp_path):
    stages = []
    file = make_pdf(tmp_path / "second.pdf", title="Second")
    book = client.add(file, progress=lambda step: stages.append(step.stage))
    assert "parse" in stages
    assert {b.id for b in client.books()} == {b.id for b in library.books()}
    assert client.add(file) == book
    assert client.remove(book.id[:6]) == book
    assert book.id not in {b.id for b in library.books()}


def test_a_real_book_is_the_same_over_the_wire(client, library):
    steps = []
    handbook = Path(__file__).parent / "data" / "handbook.pdf"
    book = client.add(handbook, progress=steps.append)
    parse = [step for step in steps if step.stage == "parse"]
    assert parse
    assert all(step.unit == "pages" and step.total == book.pages for step in parse)
    assert client.tree(book.id) == library.tree(book.id)
    for question in ("What does PPR stand for?", "How many tables are there?", "g = 0.6"):
        here = library.search_result(question, books=[book.id])
        there = client.search_result(question, books=[book.id])
        assert there.evidence == here.evidence
        assert there.plan.to_json() == here.plan.to_json()
        assert (
            client.ask(question, books=[book.id]).text
            == library.ask(question, books=[book.id]).text
        )
