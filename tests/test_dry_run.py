"""`--dry-run` against what indexing then takes, budgets that stop it, and going on from there: with
models behind a real socket, through all of the middleware."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reportlab.pdfgen import canvas
from typer.testing import CliRunner

from bookrag_fast import Library
from bookrag_fast.cli.main import app
from bookrag_fast.config import BudgetSettings, PriceSettings, RolesSettings, Settings
from bookrag_fast.errors import SpendingLimitError
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.library import Estimate
from endpoint_settings import chat_settings, embeddings_settings
from factories import HashEmbedder
from fake_endpoint import Exchange, FakeEndpoint, after, ok
from fake_faults import hang, status
from pdf_factory import LOREM

PRICE = PriceSettings(input=1.0, output=3.0)
CHAPTERS = 30  # with a heading and a slogan each: two batches


def _line(page: canvas.Canvas, y: float, text: str, font: str, size: float) -> float:
    page.setFont(font, size)
    page.drawString(72, y, text)
    return y - 1.25 * size


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chapters without numbers, each with a slogan set like a chapter's title."""
    path = tmp_path_factory.mktemp("book") / "farm.pdf"
    page = canvas.Canvas(str(path))
    page.setTitle("A Farm")
    words = LOREM.split()
    for k in range(CHAPTERS):
        y = _line(page, 740, f"The field behind hill {k}", "Helvetica-Bold", 16) - 20
        for row in range(26):
            text = " ".join(words[(row * 9 + k) % 40 :][:9])
            y = _line(page, y, f"{text} year {1900 + k} of sowing.", "Helvetica", 10)
        y = _line(page, y - 20, f"Buy the oats of hill {k}", "Helvetica-Bold", 16) - 20
        for row in range(6):
            y = _line(page, y, " ".join(words[(row * 7 + k) % 40 :][:9]), "Helvetica", 10)
        page.showPage()
    page.save()
    return path


def _reply(body: dict[str, Any]) -> str:
    """Of a good model."""
    user = body["messages"][-1]["content"]
    shown = [json.loads(line) for line in user.splitlines() if line.startswith('{"id"')]
    if not shown:
        return "About a field, and what was sown there. " * 10
    levels = [{"id": c["id"], "level": int("field" in c["text"])} for c in shown]
    return json.dumps({"levels": levels})


@pytest.fixture
def server() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(ok(_reply)) as running:
        yield running


def _settings(server: FakeEndpoint, **more: Any) -> Settings:
    small = chat_settings(server.base_url, price=PRICE)
    return Settings(
        models={"small": small, "vectors": embeddings_settings(server.base_url, price=PRICE)},
        embedder="vectors",
        roles=RolesSettings(sections={"model": "small"}, summarise={"model": "small"}),
        summaries=True,
        **more,
    )


def _by_role(uses: tuple[ModelUse, ...]) -> dict[str, ModelUse]:
    return {use.role: use for use in uses}


def _near(estimated: float, spent: float, share: float = 0.25) -> bool:
    return abs(estimated - spent) <= share * spent


def test_what_was_estimated_is_what_is_then_spent(
    tmp_path: Path, book: Path, server: FakeEndpoint
) -> None:
    with Library.open(tmp_path / "shelf", settings=_settings(server)) as lib:
        estimate = lib.estimate(book)
        assert server.calls == []  # nothing was asked …
        assert lib.books() == []  # … and nothing made
        assert list((lib.folder / "books").iterdir()) == []
        made = lib.add(book)
    expected, spent = _by_role(estimate.models), _by_role(made.models)
    assert {*expected} == {*spent} == {"sections", "summarise", "embed"}
    assert expected["sections"].usage.calls == spent["sections"].usage.calls == 2
    assert _near(expected["sections"].usage.prompt_tokens, spent["sections"].usage.prompt_tokens)
    # The estimate goes by the tree of the rules, which takes the slogans for chapters as well.
    assert spent["summarise"].usage.calls <= expected["summarise"].usage.calls
    assert expected["summarise"].usage.calls <= 2 * spent["summarise"].usage.calls + 1
    assert _near(expected["embed"].usage.prompt_tokens, spent["embed"].usage.prompt_tokens)
    assert estimate.usd > 0
    assert estimate.calls > 30
    assert all(use.fallbacks == 0 for use in made.models)
    assert made.toc_source == "model"


def test_replies_that_are_kept_are_free(tmp_path: Path, book: Path, server: FakeEndpoint) -> None:
    with Library.open(tmp_path / "shelf", settings=_settings(server)) as lib:
        first = lib.add(book)
        lib.remove(first.id)
        asked = len(server.calls)
        estimate = lib.estimate(book)
        again = lib.add(book)
        known = lib.estimate(book)
    assert len(server.calls) == asked
    assert estimate.calls == 0
    assert estimate.usd == 0
    assert {u.role: u.usage.cached for u in estimate.models} == {
        u.role: u.usage.cached for u in again.models
    }
    assert all(use.usage.calls == 0 and use.usage.cached for use in again.models)
    assert (again.nodes, again.toc_source) == (first.nodes, first.toc_source)
    assert known == Estimate(first.name, first.pages, first.nodes, known=True)


def test_an_estimate_leaves_every_file_as_it_was(
    tmp_path: Path, book: Path, server: FakeEndpoint
) -> None:
    """Replies that it finds in the cache do not even count as used."""

    def files() -> dict[Path, tuple[int, bytes]]:
        found = [p for p in (tmp_path / "shelf").rglob("*") if p.is_file()]
        return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in found}

    with Library.open(tmp_path / "shelf", settings=_settings(server)) as lib:
        lib.remove(lib.add(book).id)
    before = files()
    with Library.open(tmp_path / "shelf", settings=_settings(server)) as lib:
        assert lib.estimate(book).calls == 0
    assert files() == before


def test_a_spent_budget_stops_cleanly_and_the_next_run_goes_on_from_there(
    tmp_path: Path, book: Path, server: FakeEndpoint
) -> None:
    folder = tmp_path / "shelf"
    little = _settings(server, budget=BudgetSettings(usd_per_book=0.012))
    with Library.open(folder, settings=little) as lib:
        with pytest.raises(SpendingLimitError):
            lib.add(book)
        assert lib.books() == []
        assert list((folder / "books").iterdir()) == []
        assert lib.check() == []
    before = len(server.calls)
    assert before > 2
    with Library.open(folder, settings=_settings(server)) as lib:
        left = lib.estimate(book)
        made = lib.add(book)
        whole = _settings(server)
    with Library.open(tmp_path / "other", settings=whole) as lib:
        at_once = lib.add(book)
        unspoilt = lib.estimate(book)
    assert unspoilt.known
    uses = _by_role(made.models)
    assert uses["sections"].usage.calls == 0
    assert uses["sections"].usage.cached == 2
    done = _by_role(at_once.models)
    assert uses["summarise"].usage.calls < done["summarise"].usage.calls
    # Known replies are answered in the estimate too, so that it is right about the rest.
    assert _by_role(left.models)["summarise"].usage.calls == uses["summarise"].usage.calls
    assert (made.nodes, made.entities) == (at_once.nodes, at_once.entities)


def test_however_often_the_budget_ends_nothing_is_paid_for_twice(
    tmp_path: Path, book: Path
) -> None:
    """Calls that are under way when it is spent come to their end, and their replies are kept."""
    asked: Counter[str] = Counter()
    talk = ok(lambda body: 3 * _reply(body) if "summar" in str(body) else _reply(body))

    async def uneven(x: Exchange) -> None:
        await after(0.01 + 0.02 * (x.number % 4), talk)(x)

    with FakeEndpoint(uneven) as server:
        for cents in range(1, 30):
            limit = BudgetSettings(usd_per_book=cents / 100)
            with Library.open(tmp_path / "shelf", settings=_settings(server, budget=limit)) as lib:
                try:
                    lib.add(book)
                    break
                except SpendingLimitError:
                    assert lib.books() == []
        for call in server.calls:
            said = call.body.get("messages") or call.body["input"]
            asked.update([json.dumps(said)] if "messages" in call.body else said)
    assert cents > 3
    del asked["dimension"]  # of the vectors, asked once a process
    assert set(asked.values()) == {1}


def test_the_command_line_tells_what_it_would_cost_and_what_it_cost(
    tmp_path: Path, book: Path, server: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, config = tmp_path / "shelf", tmp_path / "bookrag.toml"
    config.write_text(
        f'[models.small]\nbase_url = "{server.base_url}"\nmodel = "fake-1"\n'
        'price = {input = 1, output = 3}\n[roles]\nsections = "small"\n'
    )
    monkeypatch.setenv("BOOKRAG_CONFIG", str(config))
    monkeypatch.setenv("BOOKRAG_LIBRARY", str(shelf))

    def run(*more: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["index", str(book), *more])
        assert result.exit_code == code, result.output
        return result.stdout

    told = run("--dry-run")
    assert re.search(r"farm\.pdf: 30 pages, \d+ nodes; about 2 calls, \$0\.00\d\d", told)
    assert re.search(r"sections by small \(fake-1\): 2 calls, [\d,]+ \+ [\d,]+ tokens", told)
    (estimate,) = json.loads(run("--dry-run", "--json"))["estimates"]
    assert (estimate["calls"], estimate["known"]) == (2, False)
    assert not shelf.exists()
    assert server.calls == []
    config.write_text(config.read_text() + "[budget]\ntokens_per_book = 1500\n")
    assert "spending_limit" in run("--json", code=37)
    config.write_text(config.read_text().replace("1500", "90000"))
    told = run()
    assert re.search(r"farm\.pdf indexed: ", told)
    assert re.search(r"sections by small \(fake-1\): \d calls?.* tokens, \$0\.00\d\d", told)
    assert "left to the rules" not in told
    assert "nothing would be asked" in run("--dry-run")
    (made,) = json.loads(run("--json"))["books"]
    assert made["known"]
    assert [use["role"] for use in made["models"]] == ["sections"]
    assert made["changes"] == []
    head, *rest = run().splitlines()
    assert "is already on the shelf" in head
    assert rest == ["  when it was made: sections by small (fake-1)"]


def test_the_command_line_tells_what_would_be_different_now(
    tmp_path: Path, book: Path, server: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "bookrag.toml"
    model = f'[models.small]\nbase_url = "{server.base_url}"\nmodel = "fake-1"\n'
    monkeypatch.setenv("BOOKRAG_CONFIG", str(config))
    monkeypatch.setenv("BOOKRAG_LIBRARY", str(tmp_path / "shelf"))

    def run(settings: str, *more: str) -> list[str]:
        config.write_text(settings, "utf-8")
        result = CliRunner().invoke(app, ["index", str(book), *more])
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()

    (made,) = run(model)
    number = made.split()[2]
    free = "what was paid for comes from the cache"
    asked = model + '[roles]\nsections = "small"\n'
    assert run(asked, "--summaries")[1:] == [
        "  summaries are asked for now, and it has none",
        "  sections would be by small (fake-1) now, and was by the rules",
        f"  to have it made anew: `bookrag rm {number}`, then index it again; {free}",
    ]
    assert len(run(model)) == 1
    assert CliRunner().invoke(app, ["rm", number]).exit_code == 0
    run(asked, "--summaries")
    assert len(run(asked, "--summaries")) == 2
    (change,) = run(asked.replace("fake-1", "fake-2"))[2:-1]
    assert change == "  sections would be by small (fake-2) now, and was by fake-1"


def test_the_command_line_tells_what_to_do_about_a_model_that_was_down(
    tmp_path: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "bookrag.toml"
    monkeypatch.setenv("BOOKRAG_CONFIG", str(config))
    with FakeEndpoint(ok("no idea")) as server:
        config.write_text(
            f'[models.small]\nbase_url = "{server.base_url}"\nmodel = "fake-1"\n'
            '[roles]\nsections = "small"\n'
        )
        command = ["index", str(book), "-L", str(tmp_path / "shelf")]
        first = CliRunner().invoke(app, command)
        part = CliRunner().invoke(app, [*command, "--pages", "5-"])
        (known,) = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)["books"]
    assert first.exit_code == 0
    told, anew = first.stdout.splitlines()[-2:]
    assert told == (
        "  2 heading questions were left to the rules; when the model is back: "
        f"bookrag rm {known['id']} && bookrag index {book}"
    )
    assert "--no-cache" in anew  # it did answer
    assert part.stdout.splitlines()[-2].endswith(f"&& bookrag index {book} --pages 5-")
    assert known["models"][0]["fallbacks"] == 2
    assert known["changes"] == ["2 of its questions for sections were left to the rules"]


@pytest.mark.parametrize("answers", [True, False])
def test_a_model_of_no_use_is_asked_anew_as_it_is_told(
    tmp_path: Path, book: Path, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    """Valid JSON that decides nothing is kept; of a server that fails nothing is."""
    config = tmp_path / "bookrag.toml"
    monkeypatch.setenv("BOOKRAG_CONFIG", str(config))
    shelf = ["-L", str(tmp_path / "shelf")]

    def run(*arguments: str) -> list[str]:
        result = CliRunner().invoke(app, [*arguments, *shelf])
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()

    with FakeEndpoint(ok('{"levels": []}') if answers else status(503)) as server:
        config.write_text(
            f'[models.small]\nbase_url = "{server.base_url}"\nmodel = "fake-1"\nretries = 0\n'
            '[roles]\nsections = "small"\n'
        )
        made = run("index", str(book))
        assert sum("--no-cache" in line for line in made) == answers
        number = made[0].split()[2]
        assert sum("--no-cache" in line for line in run("index", str(book))) == answers
        calls = len(server.calls)
        run("rm", number)
        run("index", str(book), *(["--no-cache"] if answers else []))
        assert len(server.calls) > calls


def test_an_embedder_of_ones_own_costs_nothing(
    tmp_path: Path, book: Path, server: FakeEndpoint
) -> None:
    with Library.open(
        tmp_path / "shelf", settings=_settings(server), embedder=HashEmbedder()
    ) as lib:
        assert {*_by_role(lib.estimate(book).models)} == {"sections", "summarise"}


def test_without_models_an_estimate_is_of_nothing(tmp_path: Path, book: Path) -> None:
    with Library.open(tmp_path / "shelf", settings=Settings(summaries=True)) as lib:
        estimate = lib.estimate(book)
    assert (estimate.models, estimate.calls, estimate.usd) == ((), 0, 0)
    assert estimate.nodes > CHAPTERS


def test_cancelling_while_a_model_is_awaited_ends_at_once_and_leaves_nothing(
    tmp_path: Path, book: Path
) -> None:
    async def run(lib: Library) -> float:
        task = asyncio.create_task(lib.aadd(book))
        while not server.calls:
            await asyncio.sleep(0.01)
        task.cancel()
        began = asyncio.get_running_loop().time()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.get_running_loop().time() - began

    with (
        FakeEndpoint(hang()) as server,
        Library.open(tmp_path / "shelf", settings=_settings(server)) as lib,
    ):
        assert asyncio.run(run(lib)) < 2
        assert lib.books() == []
        assert list((lib.folder / "books").iterdir()) == []
        assert server.wait_until(lambda s: s.disconnects >= 1)


def test_a_model_that_is_down_leaves_the_book_to_the_rules(tmp_path: Path, book: Path) -> None:
    with FakeEndpoint(ok("no idea")) as server:
        settings = _settings(server).model_copy(update={"embedder": "wordllama"})
        with Library.open(tmp_path / "shelf", settings=settings) as lib:
            made = lib.add(book)
    with Library.open(tmp_path / "plain") as lib:
        plain = lib.add(book)
    assert (made.toc_source, made.nodes) == (plain.toc_source, plain.nodes)
    uses = _by_role(made.models)
    assert uses["sections"].fallbacks == 2
    assert any("the rules alone decided on" in warning for warning in made.warnings)
