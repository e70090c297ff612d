"""A library whose embedder is a server that comes, goes, or becomes another one."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from bookrag_fast import Library
from bookrag_fast.config import CacheSettings, Settings
from bookrag_fast.errors import (
    ModelMismatchError,
    ModelReplyError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.endpoints import EmbeddingsEndpoint
from bookrag_fast.models.ledger import UsageLedger
from endpoint_settings import embeddings_settings
from fake_endpoint import FakeEndpoint, ok, sequence
from fake_faults import hang, status
from server_helpers import make_pdf

QUESTION = "At which pressure does the relief valve open?"


def embedding(url: str, **values: Any) -> Settings:
    model = {"kind": "embeddings", "base_url": url, "model": "fake-e", "retries": 0, **values}
    return Settings.model_validate(
        {"models": {"e": model}, "embedder": "e", "isolate_reader": False}
    )


def indexed(folder: Path, url: str) -> Path:
    with Library.open(folder / "shelf", settings=embedding(url)) as library:
        library.add(make_pdf(folder / "bench.pdf"))
    return folder / "shelf"


def test_a_server_that_is_down_leaves_words(tmp_path: Path) -> None:
    """Also where no setting names the dimension, which only the server could tell."""
    with FakeEndpoint(ok()) as server:
        shelf = indexed(tmp_path, server.base_url)
        server.behaviour = status(503)
        with Library.open(shelf, settings=embedding(server.base_url)) as library:
            answer = library.ask(QUESTION)
            found = library.search(QUESTION)
    assert "12 bar" in answer.text
    assert any("12 bar" in evidence.text for evidence in found)
    assert any("ranked by words alone" in note for note in answer.notes)


def test_a_server_that_comes_back_with_another_model_mixes_nothing(tmp_path: Path) -> None:
    with FakeEndpoint(ok()) as server:
        shelf = indexed(tmp_path, server.base_url)
        server.behaviour = sequence(status(503), ok(dimension=6))
        with Library.open(shelf, settings=embedding(server.base_url)) as library:
            answer = library.ask(QUESTION)
            assert any("it gives 6 dimensions, the books have 8" in n for n in answer.notes)
            with pytest.raises(ModelMismatchError):
                library.ask(QUESTION)


def test_a_book_that_is_known_needs_no_server(tmp_path: Path) -> None:
    with FakeEndpoint(ok()) as server:
        shelf = indexed(tmp_path, server.base_url)
        server.behaviour = status(503)
        asked = len(server.calls)
        with Library.open(shelf, settings=embedding(server.base_url)) as library:
            assert library.estimate(tmp_path / "bench.pdf").known
            assert [library.add(tmp_path / "bench.pdf")] == library.books()
        assert len(server.calls) == asked


@pytest.mark.parametrize(
    "other", [{"model": "fake-f"}, {"dimension": 4}, {"passage_prefix": "passage: "}]
)
def test_a_book_of_other_settings_is_made_anew(tmp_path: Path, other: dict[str, Any]) -> None:
    with FakeEndpoint(ok()) as server:
        shelf = indexed(tmp_path, server.base_url)
        with Library.open(shelf, settings=embedding(server.base_url, **other)) as library:
            server.behaviour = status(503)
            before = library.books()
            assert not library.estimate(tmp_path / "bench.pdf").known
            with pytest.raises(ModelUnavailableError):
                library.add(tmp_path / "bench.pdf")
            assert library.books() == before
            server.behaviour = ok()
            library.add(tmp_path / "bench.pdf")
            assert library.check() == []
            assert library.index("bench.pdf").meta.embedder == library.embedder.info
            assert len(library.books()) == 1


def test_a_book_of_vectors_that_only_the_server_changed(tmp_path: Path) -> None:
    """It is known until a question shows what has changed, and then says what to do."""
    file = tmp_path / "bench.pdf"
    with FakeEndpoint(ok()) as server:
        shelf = indexed(tmp_path, server.base_url)
        server.behaviour = ok(dimension=6)
        settings = embedding(server.base_url)
        with Library.open(shelf, settings=settings) as library:
            assert [library.add(file)] == library.books()
            with pytest.raises(ModelMismatchError, match="8 dimensions") as caught:
                library.ask(QUESTION)
            (problem,) = library.check()
            assert "8 dimensions" in problem.what
            assert problem.remedy == caught.value.hint
            assert "remove bench.pdf" in problem.remedy
            settings = settings.model_copy(update={"cache": CacheSettings(enabled=False)})
        with Library.open(shelf, settings=settings) as library:
            library.remove("bench.pdf")
            library.add(file)
            assert library.ask(QUESTION).citations


def test_who_waits_to_hear_of_the_dimension_waits_once() -> None:
    with FakeEndpoint(hang()) as server:
        settings = embeddings_settings(server.base_url).model_copy(update={"timeout_s": 0.5})
        endpoint = EmbeddingsEndpoint("e", settings, LoopRunner())
        failed = []

        def look() -> None:
            try:
                _ = endpoint.info
            except ModelTimeoutError as error:
                failed.append(error)

        threads = [threading.Thread(target=look) for _ in range(8)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(failed) == 8
        assert time.monotonic() - began < 1.5
        server.behaviour = ok()
        assert endpoint.info.dimension == 8  # a later look is a new one


def test_what_it_took_to_hear_of_the_dimension_is_in_the_ledger(tmp_path: Path) -> None:
    with FakeEndpoint(ok()) as server:
        shelf = indexed(tmp_path, server.base_url)
        with Library.open(shelf, settings=embedding(server.base_url)) as library:
            library.ask(QUESTION)
        ledger = UsageLedger(shelf / "usage.sqlite")
        assert ledger.totals("role")["embed"].calls == len(server.calls)
        ledger.close()


def test_vectors_that_were_kept_of_another_model_make_no_book(tmp_path: Path) -> None:
    """The server tells of 6 dimensions, and the cache has all texts of the book in 8."""
    with FakeEndpoint(ok()) as server:
        shelf = indexed(tmp_path, server.base_url)
        server.behaviour = ok(dimension=6)
        with Library.open(shelf, settings=embedding(server.base_url)) as library:
            library.remove("bench.pdf")
            with pytest.raises(ModelReplyError, match=r"8 dimensions.* 6") as caught:
                library.add(tmp_path / "bench.pdf")
            assert "--no-cache" in caught.value.hint
            assert library.books() == []
