"""The models of a library from its settings: shared, counted, kept, and closed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bookrag_fast import Library
from bookrag_fast.cli.main import app
from bookrag_fast.config import Settings
from bookrag_fast.errors import ConfigError
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.create import CACHE_FILE, LEDGER_FILE, create_models
from bookrag_fast.models.ledger import Spent, UsageLedger
from bookrag_fast.models.roles import ModelSet, Role, RoleModel, Terms
from bookrag_fast.prompts import RenderedPrompt
from fake_endpoint import FakeEndpoint, after, by_path, chat, embeddings, ok, rerank
from fake_faults import status

PROMPT = RenderedPrompt("test@1/en", "Be brief.", "What is the capital of France?")


@pytest.fixture
def runner() -> Iterator[LoopRunner]:
    runner = LoopRunner()
    yield runner
    runner.close()


def settings_of(server: FakeEndpoint, **values: Any) -> Settings:
    small = {"base_url": server.base_url, "model": "fake-1", **values.pop("small", {})}
    models = {"small": small, **values.pop("models", {})}
    return Settings.model_validate(
        {"models": models, "roles": {"plan": "small", "answer": "small"}, **values}
    )


def role_of(models: ModelSet, role: Role) -> RoleModel:
    model = models.role(role)
    assert model is not None
    return model


def test_without_models_there_are_no_files_and_nothing_to_close(
    tmp_path: Path, runner: LoopRunner
) -> None:
    models = create_models(Settings(), folder=tmp_path, runner=runner)
    assert (models.reranker, dict(models.roles), models.closers) == (None, {}, ())
    assert list(tmp_path.iterdir()) == []


def test_without_models_no_client_is_imported(tmp_path: Path) -> None:
    """Nor for models that no role uses."""
    (tmp_path / "bookrag.toml").write_text(
        '[models.unused]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
    )
    code = (
        "import sys; from bookrag_fast import Library; Library.open('shelf').close();"
        "print([m for m in ('openai', 'httpx', 'json_repair') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "[]"


def test_roles_share_a_model_and_its_limits(tmp_path: Path, runner: LoopRunner) -> None:
    with FakeEndpoint(after(0.05, chat(lambda body: body["messages"][-1]["content"]))) as server:
        settings = settings_of(server, small={"concurrency": 2}, cache={"enabled": False})
        models = create_models(settings, folder=tmp_path, runner=runner)

        async def ask_much() -> None:
            roles = [role_of(models, role) for role in (Role.PLAN, Role.ANSWER)]
            done = await asyncio.gather(*(model.write(PROMPT) for model in roles * 4))
            assert all(outcome.value == PROMPT.user for outcome in done)

        runner.run(ask_much())
        assert server.most_at_once == 2
        runner.close(models.aclose)
    ledger = UsageLedger(tmp_path / LEDGER_FILE)
    totals = ledger.totals("role")
    ledger.close()
    assert {name: spent.calls for name, spent in totals.items()} == {"plan": 4, "answer": 4}
    assert not (tmp_path / CACHE_FILE).exists()


def test_a_role_has_its_own_limit(tmp_path: Path, runner: LoopRunner) -> None:
    with FakeEndpoint(after(0.02, chat("Paris"))) as server:
        roles = {"plan": {"model": "small", "concurrency": 1}}
        settings = settings_of(server, roles=roles, cache={"enabled": False})
        models = create_models(settings, folder=tmp_path, runner=runner)
        plan = role_of(models, Role.PLAN)

        async def ask_much() -> None:
            await asyncio.gather(*(plan.write(PROMPT) for _ in range(4)))

        runner.run(ask_much())
        assert (server.most_at_once, len(server.calls)) == (1, 4)
        runner.close(models.aclose)


def test_replies_are_kept_over_a_restart(tmp_path: Path) -> None:
    with FakeEndpoint(chat("Paris")) as server:
        settings = settings_of(server)
        for calls in (1, 1):
            runner = LoopRunner()
            models = create_models(settings, folder=tmp_path, runner=runner)
            outcome = runner.run(role_of(models, Role.PLAN).write(PROMPT))
            runner.close(models.aclose)
            assert outcome.value == "Paris"
            assert len(server.calls) == calls
        assert outcome.usage.cached == 1


def test_steps_are_counted(tmp_path: Path, runner: LoopRunner) -> None:
    with FakeEndpoint(chat("<think>hm</think>Paris")) as server:
        models = create_models(settings_of(server), folder=tmp_path, runner=runner)
        assert runner.run(role_of(models, Role.PLAN).write(PROMPT)).value == "Paris"
        runner.close(models.aclose)
    ledger = UsageLedger(tmp_path / LEDGER_FILE)
    assert ledger.step_counts() == {"plan": {"cleaned": 1}}
    ledger.close()


def test_an_embedder_and_a_reranker_behind_endpoints(tmp_path: Path, runner: LoopRunner) -> None:
    behaviour = by_path({"/embeddings": embeddings(6), "/rerank": rerank()})
    with FakeEndpoint(behaviour) as server:
        address = {"base_url": server.base_url, "model": "fake"}
        settings = Settings.model_validate({
            "embedder": "vectors",
            "reranker": "ranks",
            "models": {
                "vectors": {"kind": "embeddings", **address},
                "ranks": {"kind": "rerank", **address},
            },
        })  # fmt: skip
        models = create_models(settings, folder=tmp_path, runner=runner)
        assert models.reranker is not None
        assert models.embedder.embed(["a", "b"]).shape == (2, 6)
        scores = models.reranker.rerank("red apple", ["green tree", "red apple"])
        assert scores.argmax() == 1
        runner.close(models.aclose)
    assert (tmp_path / CACHE_FILE).exists()


def test_without_its_key_a_model_leaves_its_work_to_the_rules(tmp_path: Path) -> None:
    """And nobody else has to care: not the index, whose roles are played by rules."""
    book = tmp_path / "book.md"
    book.write_text("# Fruit\n\nThe apple is a red fruit of autumn.\n")
    with FakeEndpoint(ok()) as server:
        settings = settings_of(server, small={"api_key_env": "BOOKRAG_TEST_NO_SUCH_KEY"})
        with Library.open(tmp_path / "shelf", settings=settings) as library:
            added = library.add(book)
            assert [b.id for b in library.books()] == [added.id]
            answer = library.ask("Which fruit is red?")
            assert answer.citations
            assert any("BOOKRAG_TEST_NO_SUCH_KEY" in note for note in answer.notes)
            library.remove(added.id)
        assert server.calls == []


def test_commands_that_call_no_model_need_no_key(tmp_path: Path) -> None:
    book, other = tmp_path / "book.md", tmp_path / "other.md"
    book.write_text("# Fruit\n\nThe apple is a red fruit of autumn.\n")
    other.write_text("# Trees\n\nThe apple tree is a tree.\n")
    config = tmp_path / "bookrag.toml"
    env = {"BOOKRAG_CONFIG": str(config), "BOOKRAG_LIBRARY": str(tmp_path / "shelf")}

    def run(*args: str) -> str:
        result = CliRunner().invoke(app, args, env=env)
        assert result.exit_code == 0, result.output
        return result.output

    with FakeEndpoint(ok()) as server:
        keyless = f'base_url = "{server.base_url}"\nmodel = "m"\napi_key_env = "NO_SUCH_KEY"\n'
        chat_only = f'[models.small]\n{keyless}[roles]\nanswer = "small"\n'
        config.write_text(chat_only)
        run("index", str(book))
        assert "Fruit" in run("show", "book.md", "tree")
        assert "apple" in run("search", "Which fruit is red?")
        config.write_text(
            f'embedder = "vectors"\nreranker = "ranks"\n{chat_only}'
            f'[models.vectors]\nkind = "embeddings"\n{keyless}'
            f'[models.ranks]\nkind = "rerank"\n{keyless}'
        )
        assert "other.md" in run("index", "--dry-run", str(other))
        assert "book" in run("list")
        run("rm", "book.md")
        assert server.calls == []


def test_settings_made_by_hand_are_checked_too(tmp_path: Path, runner: LoopRunner) -> None:
    with pytest.raises(ConfigError, match="'nobody', which is not configured"):
        create_models(
            Settings.model_validate({"roles": {"plan": "nobody"}}), folder=tmp_path, runner=runner
        )


def test_closing_a_library_closes_its_connections(tmp_path: Path) -> None:
    with FakeEndpoint(ok(dimension=4)) as server:
        settings = settings_of(
            server,
            embedder="vectors",
            models={
                "vectors": {"kind": "embeddings", "base_url": server.base_url, "model": "fake"}
            },
        )
        library = Library.open(tmp_path, settings=settings)
        assert library.embedder.embed(["text"]).shape == (1, 4)
        library.close()
        library.close()
        assert server.connections >= 1
    ledger = UsageLedger(tmp_path / LEDGER_FILE)
    assert ledger.totals("model")["vectors"].calls >= 1
    ledger.close()


def test_usage_is_shown(tmp_path: Path, runner: LoopRunner) -> None:
    shelf = tmp_path / "shelf"
    for options in ([], ["--json"]):
        result = CliRunner().invoke(app, ["usage", "-L", str(shelf), *options])
        assert result.exit_code == 0
        told = f"No model was asked for books on the shelf {shelf}."
        assert told in result.stdout or '"usage": []' in result.stdout
    assert not shelf.exists()
    with FakeEndpoint(chat("Paris")) as server:
        settings = settings_of(server, small={"price": {"input": 1e6, "output": 0.0}})
        models = create_models(settings, folder=shelf, runner=runner)
        runner.run(role_of(models, Role.PLAN).write(PROMPT, Terms("b1")))
        runner.run(role_of(models, Role.PLAN).write(PROMPT, Terms("b1")))
        server.behaviour = status(401)
        other = RenderedPrompt("test@1/en", "", "And of Spain?")
        runner.run(role_of(models, Role.ANSWER).write(other, Terms("b2")))
        runner.close(models.aclose)
    lines = CliRunner().invoke(app, ["usage", "-L", str(shelf)]).stdout.splitlines()
    assert lines[0].split() == "role calls cached failed cancelled prompt completion USD".split()
    rows = {line.split()[0]: line.split()[1:] for line in lines[1:4]}
    assert rows["plan"][:4] == ["1", "1", "0", "0"]
    assert rows["answer"][:4] == ["0", "0", "1", "0"]
    assert rows["total"][:4] == ["1", "1", "1", "0"]
    assert rows["plan"][6] == f"{int(rows['plan'][4]):.4f}"  # 1 USD a token
    assert lines[4] == "answer: 1 by rules"
    by_book = CliRunner().invoke(app, ["usage", "-L", str(shelf), "--by", "book"]).stdout
    assert {line.split()[0] for line in by_book.splitlines()[1:3]} == {"b1", "b2"}


def test_what_replies_took_is_told_in_words(tmp_path: Path) -> None:
    ledger = UsageLedger(tmp_path / LEDGER_FILE)
    ledger.add(Spent(1, cancelled=3), role="plan", book="", model="small")
    for role, step in [("plan", "repaired"), ("plan", "cut short"), ("answer", "offline")]:
        ledger.step(role, step, 1200)
    ledger.close()
    shown = CliRunner().invoke(app, ["usage", "-L", str(tmp_path)]).stdout.splitlines()
    assert shown[:2] == [
        "role   calls  cached  failed  cancelled  prompt  completion     USD",
        "plan       1       0       0          3       0           0  0.0000",
    ]
    assert shown[-2:] == ["answer: 1,200 by rules", "plan: 1,200 cut short, 1,200 repaired"]
    as_json = CliRunner().invoke(app, ["usage", "-L", str(tmp_path), "--json"]).stdout
    assert json.loads(as_json)["steps"]["answer"] == {"offline": 1200}
    assert json.loads(as_json)["usage"][0]["cancelled"] == 3


def test_no_cache_asks_anew(tmp_path: Path) -> None:
    book = tmp_path / "book.md"
    book.write_text("# Fruit\n\nThe apple is a red fruit of autumn.\n")
    with FakeEndpoint(embeddings(16)) as server:
        env = {
            "BOOKRAG_EMBEDDER": "vectors",
            "BOOKRAG_MODELS__VECTORS__KIND": "embeddings",
            "BOOKRAG_MODELS__VECTORS__BASE_URL": server.base_url,
            "BOOKRAG_MODELS__VECTORS__MODEL": "fake",
            "BOOKRAG_LIBRARY": str(tmp_path / "shelf"),
        }

        def calls_of(*args: str) -> int:
            """Texts that the command had embedded, besides the one that shows the dimension."""
            before = len(server.calls)
            result = CliRunner().invoke(app, args, env=env)
            assert result.exit_code == 0, result.output
            asked = [text for call in server.calls[before:] for text in call.body["input"]]
            return len([text for text in asked if text != "dimension"])

        assert calls_of("index", str(book)) > 0
        assert calls_of("search", "Which fruit is red?") > 0
        assert calls_of("search", "Which fruit is red?") == 0
        assert calls_of("search", "Which fruit is red?", "--no-cache") > 0
