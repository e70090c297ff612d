"""A book indexed and asked with a real model in every role. The model is weak: what is asserted is
that the work is done, that citations hold, and that everything is counted and kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium
import pytest

from bookrag_fast import Answer, Book, Library
from bookrag_fast.config import RolesSettings, Settings
from bookrag_fast.models.create import LEDGER_FILE
from bookrag_fast.models.ledger import Spent, UsageLedger
from llama_server import llama_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

HANDBOOK = Path(__file__).parent / "data" / "handbook.pdf"
QUESTION = "Which probability of going on is the damping?"


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with llama_server() as url:
        yield url


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pages of the sample book without its outline, so that headings are in question."""
    path = tmp_path_factory.mktemp("pages") / "pages.pdf"
    with pdfium.PdfDocument(HANDBOOK) as whole, pdfium.PdfDocument.new() as part:
        part.import_pages(whole, [23, 24])
        part.save(path)
    return path


def settings(base_url: str, **roles: str) -> Settings:
    """The server's model in every role but in those that are given to another."""
    small: dict[str, Any] = {"model": "gemma", "context_tokens": 4096, "max_tokens": 48}
    small |= {"timeout_s": 60, "concurrency": 2}
    return Settings.model_validate({
        "models": {
            "small": {**small, "base_url": base_url},
            "dead": {**small, "base_url": "http://127.0.0.1:9/v1", "retries": 0},
        },
        "roles": {
            **{r: "small" for r in RolesSettings.model_fields if r != "vision"},  # it is blind
            **roles,
        },
    })  # fmt: skip


def worked(shelf: Path, chosen: Settings, pages: Path) -> tuple[Book, Answer]:
    """The pages indexed, the question asked, all that is said of them checked."""
    with Library.open(shelf, settings=chosen) as library:
        book = library.add(pages)
        assert (book.pages, library.tree(book.id).children != ()) == (2, True)
        answer = library.ask(QUESTION, books=[book.id], budget_tokens=200)
        assert answer.text.strip()
        assert answer.citations
        for cited in answer.citations:
            node = library.node(book.id, cited.node_id)
            assert cited.book == book.id
            assert set(cited.pages) <= set(node["pages"]) <= {1, 2}
            assert " ".join(cited.quote.split()) in " ".join(node["text"].split())
        return book, answer


def told(shelf: Path) -> tuple[dict[str, Spent], dict[str, dict[str, int]]]:
    """What the ledger says: usage and steps by role."""
    ledger = UsageLedger(shelf / LEDGER_FILE)
    try:
        return ledger.totals("role"), ledger.step_counts()
    finally:
        ledger.close()


def test_a_book_is_indexed_and_asked_and_nothing_is_paid_for_twice(
    base_url: str, pages: Path, tmp_path: Path
) -> None:
    chosen = settings(base_url)
    book, answer = worked(tmp_path, chosen, pages)
    spent, _ = told(tmp_path)
    assert {"sections", "plan", "answer"} <= set(spent)
    assert all(s.calls and s.prompt_tokens and s.completion_tokens for s in spent.values())
    assert answer.usage.model_calls == sum(s.calls for r, s in spent.items() if r != "sections")

    with Library.open(tmp_path, settings=chosen) as library:
        library.remove(book.id)
    again, answered = worked(tmp_path, chosen, pages)
    assert (again.nodes, answered.text) == (book.nodes, answer.text)
    assert (answered.usage.model_calls, answered.usage.prompt_tokens) == (0, 0)
    repeated, _ = told(tmp_path)
    for role, before in spent.items():
        after = repeated[role]
        assert (after.calls, after.tokens) == (before.calls, before.tokens)
        assert after.cached == before.cached + before.calls


def test_where_models_are_down_the_rules_stand_in_and_are_counted(
    base_url: str, pages: Path, tmp_path: Path
) -> None:
    _, answer = worked(tmp_path, settings(base_url, sections="dead", plan="dead"), pages)
    spent, steps = told(tmp_path)
    for role in ("sections", "plan"):
        assert (spent[role].calls, spent[role].tokens) == (0, 0)
        assert spent[role].failures >= 1
        assert steps[role]["offline"] >= 1
    assert spent["answer"].calls >= 1
    assert answer.usage.model_calls >= 1
