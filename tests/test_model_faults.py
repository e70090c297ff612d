"""Whatever a model's server does, the run goes on, the ledger is right, and nothing hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fault_cases import CASES, TIMEOUT_S, Case, run

_SLACK_S = 1.0  # of a busy machine


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.way}: {case.name}")
async def test_a_fault_ends_in_a_value_or_the_offline_answer(case: Case, tmp_path: Path) -> None:
    seen = await run(case, tmp_path)
    assert seen.outcome == case.outcome, seen.problem
    assert seen.steps == case.steps
    assert seen.spent.calls == case.calls
    assert seen.spent.failures == case.failures or case.failures is None
    if not case.tls:
        assert seen.requests == seen.spent.calls + seen.spent.failures + case.uncounted
    if case.way in ("ask", "stream"):
        assert seen.spent.prompt_tokens == seen.stated + case.wasted
    assert case.least_s <= seen.seconds < TIMEOUT_S + _SLACK_S
    if seen.outcome != "value":
        assert seen.problem
    if not case.tls:
        works_again = case.name != "429, Retry-After: 3600"  # which is not so soon
        assert (seen.again == "value") == works_again
