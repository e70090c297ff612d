"""Estimates: what a run would cost, from one in which no model is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bookrag_fast.errors import ModelError
from bookrag_fast.models.estimate import Estimate, EstimatingModel
from bookrag_fast.models.ledger import Spent
from bookrag_fast.models.middleware.guarded import GuardedLanguageModel
from bookrag_fast.models.protocols import LanguageModel, ModelInfo
from inner_models import Inner, request, services, settings
from virtual_time import virtually


def test_it_counts_and_never_answers(tmp_path: Path) -> None:
    shared = services(tmp_path, cache=True)
    limits = settings(price={"input": 1_000_000, "output": 2_000_000})
    known = GuardedLanguageModel(Inner(), limits, shared)
    virtually(known.complete(request("known")))
    shared.close()

    estimate = Estimate()
    model = EstimatingModel(ModelInfo("m", "served"), limits, shared.cache, estimate)
    assert isinstance(model, LanguageModel)

    async def story() -> None:
        for asked in (request("known"), request("new"), request("new"), request("known", role="x")):
            with pytest.raises(ModelError, match="estimated only"):
                await model.complete(asked)
        (reply,) = await model.complete_batch([request("日本語のテキスト", role="plan")])
        assert isinstance(reply, ModelError)
        with pytest.raises(ModelError):
            await anext(aiter(model.stream(request("z" * 400, role="plan", expected_tokens=7))))

    virtually(story())
    # A message is 4 tokens and a quarter of its characters, or all of them in Japanese.
    assert estimate.by_role() == {
        "extract": Spent(1, 2, 0, 5, 10, 25.0),
        "x": Spent(cached=1),
        "plan": Spent(2, 0, 0, 12 + 104, 10 + 7, 116 + 34.0),
    }
    assert estimate.total().calls == 3


@pytest.mark.parametrize(
    ("asked", "own", "expected"),
    [
        ({"max_tokens": 600, "expected_tokens": 400}, 2048, 400),
        ({"max_tokens": 300, "expected_tokens": 400}, 2048, 300),
        ({"max_tokens": 600, "expected_tokens": 400}, 64, 64),
        ({"max_tokens": 600}, 64, 64),
    ],
)
def test_no_reply_is_expected_to_take_more_than_it_may(
    asked: dict[str, int], own: int, expected: int
) -> None:
    estimate = Estimate()
    limits = settings(max_tokens=own)
    model = EstimatingModel(ModelInfo("m", "served"), limits, None, estimate)
    virtually(model.complete_batch([request(**asked)]))
    assert estimate.total().completion_tokens == expected


@pytest.mark.parametrize("cached", [True, False])
def test_it_expects_as_many_calls_as_are_then_made(tmp_path: Path, cached: bool) -> None:
    shared = services(tmp_path, cache=cached)
    requests: list[Any] = [request(str(i % 7)) for i in range(10)]
    estimate = Estimate()
    model = EstimatingModel(ModelInfo("m", "served"), settings(), shared.cache, estimate)
    virtually(model.complete_batch(requests))
    inner = Inner()
    virtually(GuardedLanguageModel(inner, settings(), shared).complete_batch(requests))
    shared.close()
    assert estimate.total().calls == inner.calls
    assert estimate.total().cached == sum(shared.ledger.totals("role").values(), Spent()).cached
