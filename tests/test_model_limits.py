"""Rates and budgets: never more than was allowed, nobody overtaken, nothing lost by cancelling."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bookrag_fast.config.models import BudgetSettings
from bookrag_fast.errors import ModelError, ModelUnavailableError, SpendingLimitError
from bookrag_fast.models.ledger import Spent, UsageLedger
from bookrag_fast.models.middleware.call import Call
from bookrag_fast.models.middleware.concurrency import Slots
from bookrag_fast.models.middleware.guarded import GuardedLanguageModel
from bookrag_fast.models.middleware.rate import RateLimit
from bookrag_fast.models.protocols import Completion, TokenUsage
from inner_models import Inner, request, services
from inner_models import settings as endpoint
from virtual_time import virtually

_FOLDER_TOO = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def call(tokens: int = 0) -> Call:
    return Call("chat", (None,), prompt_tokens=(tokens,))


async def gone(limit: RateLimit, waits: list[tuple[float, int]]) -> list[tuple[float, int, int]]:
    """When each call went, in order: time, tokens, which."""
    now = asyncio.get_running_loop().time
    went: list[tuple[float, int, int]] = []

    async def one(which: int, tokens: int) -> None:
        await limit.take(call(tokens))
        went.append((now(), tokens, which))

    tasks = []
    for which, (wait, tokens) in enumerate(waits):
        await asyncio.sleep(wait)
        tasks.append(asyncio.ensure_future(one(which, tokens)))
    await asyncio.gather(*tasks)
    return went


_ARRIVALS = st.lists(st.tuples(st.floats(0, 20), st.integers(0, 100)), min_size=1, max_size=60)


@given(limit=st.integers(1, 50), arrivals=_ARRIVALS)
@settings(max_examples=60)
def test_no_minute_sees_more_requests_than_allowed(
    limit: int, arrivals: list[tuple[float, int]]
) -> None:
    went = virtually(gone(RateLimit(requests_per_minute=limit), arrivals))
    assert [which for *_, which in went] == list(range(len(arrivals)))  # first come, first served
    for start, *_ in went:
        assert sum(start <= at < start + 60 - 1e-6 for at, *_ in went) <= limit


@given(limit=st.integers(100, 1000), arrivals=_ARRIVALS)
@settings(max_examples=60)
def test_no_minute_sees_more_tokens_than_allowed(
    limit: int, arrivals: list[tuple[float, int]]
) -> None:
    went = virtually(gone(RateLimit(tokens_per_minute=limit), arrivals))
    assert len(went) == len(arrivals)
    for first in range(len(went)):
        minute = [n for at, n, _ in went[first:] if at < went[first][0] + 60]
        over = max(0, minute[-1] - limit / 10)  # of one that is larger than what goes at once
        assert sum(minute) <= limit + over + 1e-6


def test_a_steady_stream_gets_nearly_all_of_its_rate() -> None:
    went = virtually(gone(RateLimit(requests_per_minute=60), [(0.0, 0)] * 300))
    minutes = (went[-1][0] - went[0][0]) / 60
    assert 300 / minutes > 0.9 * 60


@given(
    arrivals=st.lists(st.booleans(), min_size=2, max_size=30),
    after=st.floats(0, 30),
)
@settings(max_examples=40)
def test_cancelled_waiters_leave_no_trace(arrivals: list[bool], after: float) -> None:
    async def story() -> None:
        now = asyncio.get_running_loop().time
        limit = RateLimit(requests_per_minute=60)
        await gone(limit, [(0, 0)] * 6)  # what may go at once
        start = now()
        went: list[float] = []

        async def one() -> None:
            await limit.take(call())
            went.append(now())

        tasks = [asyncio.ensure_future(one()) for _ in arrivals]
        await asyncio.sleep(0)
        early = [task for task, stays in zip(tasks, arrivals, strict=True) if not stays]
        await asyncio.sleep(after)
        for task in early:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        slowest = start + after + len(went) / 0.9 + 2
        assert not went or went[-1] <= slowest  # nobody waits for who is gone

    virtually(story())


def test_what_was_estimated_too_high_is_given_back(tmp_path: Path) -> None:
    inner = Inner()  # 15 tokens a call
    model = GuardedLanguageModel(
        inner, endpoint(tokens_per_minute=1000, concurrency=1), services(tmp_path)
    )

    async def story() -> float:
        for i in range(40):
            await model.complete(request(str(i), expected_tokens=500))
        return inner.started[-1] - inner.started[0]

    # 40 × 15 tokens fit into a minute; 40 × 500 would have taken twenty.
    assert virtually(story()) < 60


def test_slots_go_by_who_came_first_and_survive_cancelling() -> None:
    async def story() -> None:
        slots = Slots(1)
        order: list[int] = []

        async def one(came: int) -> None:
            await slots.take(came)
            order.append(came)
            await asyncio.sleep(1)
            slots.give_back()

        tasks = {came: asyncio.ensure_future(one(came)) for came in (5, 9, 7, 6, 8)}
        await asyncio.sleep(0.5)
        tasks[7].cancel()
        await asyncio.sleep(0.5)  # at the very moment at which a slot is given on
        tasks[6].cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        assert order[0] == 5
        assert [came for came in order if came not in (6, 7)] == [5, 8, 9]
        await asyncio.wait_for(slots.take(10), 0.1)

    virtually(story())


# --- budgets ----------------------------------------------------------------------------------


def budgeted(inner: Inner, folder: Path, budget: dict[str, Any], **more: Any) -> Any:
    shared = services(
        folder,
        budget=BudgetSettings.model_validate(budget),
        cache=more.pop("cache", False),
        day=more.pop("day", "2026-01-01"),
    )
    price = {"input": 1000.0, "output": 2000.0}  # a call of 10 + 5 tokens: 0.02 USD
    return GuardedLanguageModel(inner, endpoint(price=price, **more), shared), shared


def ask(n: int, **more: Any) -> Any:
    # As dear as what the inner model then takes: 4 + 6 tokens, and 5.
    return request(f"{n:020}" + "words", **{"expected_tokens": 5, "book": "b", **more})


def test_estimates_of_these_tests_are_right(tmp_path: Path) -> None:
    model, _ = budgeted(Inner(), tmp_path, {})
    assert model._call(ask(1)).expected == TokenUsage(11, 5, 1)


@pytest.mark.parametrize(
    ("budget", "allowed"),
    [
        ({"tokens_per_book": 160}, 10),
        ({"tokens_per_day": 160}, 10),
        ({"usd_per_book": 0.2005}, 9),
        ({"usd_per_day": 0.2005}, 9),
        ({"usd_per_day": 0.0}, 0),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_work_stops_at_the_limit(
    tmp_path: Path, budget: dict[str, Any], allowed: int, at_once: bool
) -> None:
    async def does() -> str:
        await asyncio.sleep(1)
        return "ok"

    model, shared = budgeted(Inner(lambda n, _: does()), tmp_path, budget, concurrency=50)
    requests = [ask(i) for i in range(30)]

    async def story() -> list[Any]:
        if at_once:
            return await model.complete_batch(requests)
        return [(await model.complete_batch([one]))[0] for one in requests]

    replies = virtually(story())
    went = [reply for reply in replies if isinstance(reply, Completion)]
    stopped = [reply for reply in replies if isinstance(reply, SpendingLimitError)]
    assert len(went) + len(stopped) == 30
    assert len(went) == allowed
    name = next(iter(budget))
    assert f"budget.{name}" in stopped[0].hint
    assert "goes on from there" in stopped[0].hint
    total = sum(shared.ledger.totals("book").values(), Spent())
    assert total.calls == allowed


def test_a_budget_is_of_its_day_or_book_and_raising_it_goes_on(tmp_path: Path) -> None:
    async def stopped(model: Any, n: int, **more: Any) -> bool:
        (reply,) = await model.complete_batch([ask(n, **more)])
        return isinstance(reply, SpendingLimitError)

    async def first() -> None:
        model, shared = budgeted(Inner(), tmp_path, {"tokens_per_book": 40, "tokens_per_day": 80})
        assert [await stopped(model, n) for n in range(4)] == [False, False, True, True]
        assert not await stopped(model, 5, book="other")
        assert not await stopped(model, 6, book="")
        assert [await stopped(model, n, book="") for n in (7, 8)] == [False, True]
        shared.close()

    async def next_day() -> None:
        limits = {"tokens_per_book": 62, "tokens_per_day": 80}
        model, shared = budgeted(Inner(), tmp_path, limits, day="2026-01-02")
        assert [await stopped(model, n) for n in range(10, 13)] == [False, False, True]
        shared.close()

    virtually(first())
    virtually(next_day())


def test_the_budget_of_a_day_holds_over_any_number_of_books(tmp_path: Path) -> None:
    """More than the ledger knows the sums of at a time."""
    model, shared = budgeted(Inner(), tmp_path, {"tokens_per_day": 20})

    async def story() -> list[Any]:
        return [(await model.complete_batch([ask(n, book=f"b{n}")]))[0] for n in range(150)]

    first, *others = virtually(story())
    assert isinstance(first, Completion)
    assert all(isinstance(reply, SpendingLimitError) for reply in others)
    shared.close()


def test_another_process_spends_while_calls_wait_in_line(tmp_path: Path) -> None:
    """What is out is lost to the budget, not all that was reserved."""
    other = UsageLedger(tmp_path / "usage.sqlite3", today=lambda: "2026-01-01")

    def does(n: int, _: Any) -> Any:
        if n == 2:
            other.add(Spent(prompt_tokens=1600), role="r", book="b", model="m")
            other.flush()
        shared.ledger.flush()  # what time does behind
        return asyncio.sleep(1, "ok")

    inner = Inner(does)
    model, shared = budgeted(inner, tmp_path, {"tokens_per_day": 1600}, concurrency=1)
    replies = virtually(model.complete_batch([ask(n) for n in range(50)]))
    assert sum(isinstance(reply, SpendingLimitError) for reply in replies) >= 46
    other.close()
    shared.close()


def test_kept_replies_pass_when_the_budget_is_spent(tmp_path: Path) -> None:
    model, shared = budgeted(Inner(), tmp_path, {"tokens_per_book": 20}, cache=True)

    async def story() -> None:
        await model.complete(ask(1))
        with pytest.raises(SpendingLimitError):
            await model.complete(ask(2))
        assert (await model.complete(ask(1))).usage.cached == 1

    virtually(story())
    shared.close()


def test_failed_and_cancelled_calls_leave_nothing_reserved(tmp_path: Path) -> None:
    def does(n: int, _: Any) -> Any:
        return ModelUnavailableError("down") if n == 0 else asyncio.sleep(5, "ok")

    model, _ = budgeted(Inner(does), tmp_path, {"tokens_per_book": 20}, retries=0)

    async def story() -> None:
        (reply,) = await model.complete_batch([ask(0)])
        assert isinstance(reply, ModelError)
        task = asyncio.ensure_future(model.complete(ask(1)))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await model.complete(ask(2))).text == "ok"

    virtually(story())


@given(
    takes=st.lists(st.integers(1, 10), min_size=1, max_size=30),
    limit=st.integers(20, 300),
    concurrency=st.integers(1, 30),
)
@_FOLDER_TOO
def test_calls_at_once_do_not_spend_beyond_the_limit(
    tmp_path_factory: pytest.TempPathFactory, takes: list[int], limit: int, concurrency: int
) -> None:
    """Whatever is spent, when no call takes more than was expected of it."""
    folder = tmp_path_factory.mktemp("budget")

    class Takes(Inner):
        async def complete(self, asked: Any) -> Completion:
            await asyncio.sleep(takes[int(asked.messages[0].text[:20])])
            tokens = takes[int(asked.messages[0].text[:20])]
            return Completion("ok", TokenUsage(6, tokens, 1))

    model, shared = budgeted(Takes(), folder, {"tokens_per_book": limit}, concurrency=concurrency)
    requests = [ask(n, expected_tokens=10) for n in range(len(takes))]
    replies = virtually(model.complete_batch(requests))
    shared.close()
    total = sum(shared.ledger.totals("book").values(), Spent())
    assert total.tokens <= limit
    left_out = [n for n, reply in enumerate(replies) if isinstance(reply, SpendingLimitError)]
    if left_out:  # only what would not have fitted
        assert total.tokens + 21 > limit
