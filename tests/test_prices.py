"""What budgets in dollars cannot bound, and how sums are told."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bookrag_fast import Library
from bookrag_fast.cli.checks import OK, WARNING, examine
from bookrag_fast.cli.main import app
from bookrag_fast.cli.spending_view import estimate_lines
from bookrag_fast.config import Settings
from bookrag_fast.config.prices import unbounded
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.library.types import Estimate
from bookrag_fast.models.create import LEDGER_FILE
from bookrag_fast.models.ledger import Spent, UsageLedger
from bookrag_fast.models.money import usd_text
from bookrag_fast.models.protocols import TokenUsage


def settings_of(budget: dict[str, Any], **small: Any) -> Settings:
    server = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}
    return Settings.model_validate(
        {
            "models": {"small": {**server, **small}, "unused": server},
            "roles": {"plan": "small", "answer": "small"},
            "budget": budget,
        }
    )


@pytest.mark.parametrize(
    ("budget", "small", "limits"),
    [
        ({"usd_per_day": 2}, {}, "budget.usd_per_day"),
        ({"usd_per_day": 2, "usd_per_book": 1}, {}, "budget.usd_per_day and budget.usd_per_book"),
        ({"usd_per_day": 2, "usd_per_book": 1, "tokens_per_day": 9}, {}, "budget.usd_per_book"),
        ({"usd_per_day": 2}, {"price": {"input": 1}}, None),
        ({"usd_per_day": 2}, {"price": {"input": 0, "output": 0}}, None),  # free, as is said
        ({"usd_per_day": 2, "tokens_per_day": 9}, {}, None),
        ({"tokens_per_day": 9}, {}, None),
    ],
)
def test_models_that_a_budget_cannot_bound(
    budget: dict[str, Any], small: dict[str, Any], limits: str | None
) -> None:
    found = list(unbounded(settings_of(budget, **small)))
    if limits is None:
        assert found == []
    else:
        remedy = f"set models.small.price or {limits.replace('usd', 'tokens')}"
        assert found == [(f"{limits} cannot bound model small: it has no price", remedy)]


def test_opening_a_library_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bookrag_fast"):
        Library.open(tmp_path / "shelf", settings=settings_of({"usd_per_day": 2})).close()
    (told,) = (record.message for record in caplog.records)
    assert "cannot bound model small" in told
    assert "models.small.price" in told


def test_doctor_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "bookrag.toml"
    config.write_text(
        '[models.small]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
        '[roles]\nplan = "small"\n[budget]\nusd_per_day = 2.0\n'
    )
    monkeypatch.setenv("BOOKRAG_CONFIG", str(config))
    found = {f.check: f for f in examine(tmp_path / "shelf", None)}
    assert found["configuration"].level == OK
    assert found["budget"].level == WARNING
    assert found["budget"].remedy == "set models.small.price or budget.tokens_per_day"


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (0.0, "0.0000"),
        (12.5, "12.5000"),
        (0.0123, "0.0123"),
        (0.00012, "0.00012"),
        (0.0000347, "0.000035"),
        (1e-8, "0.000000010"),
    ],
)
def test_a_small_sum_is_not_told_as_none(usd: float, text: str) -> None:
    assert usd_text(usd) == text


def test_usage_tells_a_cost_that_is_not_known_from_none(tmp_path: Path) -> None:
    ledger = UsageLedger(tmp_path / LEDGER_FILE)
    for model, spent in {
        "unpriced": Spent(1, 0, 0, 10, 5),
        "cheap": Spent(1, 0, 0, 10, 5, usd=0.0000347),
        "cached": Spent(0, 1),
    }.items():
        ledger.add(spent, role="plan", book="b", model=model)
    ledger.close()
    shown = CliRunner().invoke(app, ["usage", "-L", str(tmp_path), "--by", "model"]).stdout
    usd = {line.split()[0]: line.split()[-1] for line in shown.splitlines()[1:]}
    assert usd == {
        "unpriced": "–", "cheap": "0.000035", "cached": "0.0000", "total": "0.000035",
    }  # fmt: skip


@pytest.mark.parametrize(("usd", "told"), [(0.0, "no price is set"), (0.0000347, "$0.000035")])
def test_a_dry_run_tells_small_sums_and_unknown_ones(usd: float, told: str) -> None:
    use = ModelUse("sections", "small", "m", TokenUsage(100, 10, 1), usd)
    line, *_ = estimate_lines("a.pdf", Estimate("a.pdf", 1, 2, (use,)))
    assert line.endswith(f"about 1 call, {told}")
