"""The stack around models when they fail: retries, the circuit breaker, deadlines."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bookrag_fast.errors import (
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelReplyError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from bookrag_fast.models.interactive import interactively
from bookrag_fast.models.ledger import Spent
from bookrag_fast.models.protocols import (
    Completion,
    TokenUsage,
)
from inner_models import (
    Inner,
    guarded,
    later,
    request,
    spent,
    took,
)
from virtual_time import virtually

# --- retry ------------------------------------------------------------------------------------


def test_a_failure_in_passing_is_tried_again_and_counted(tmp_path: Path) -> None:
    inner = Inner(lambda n, _: ModelUnavailableError("down") if n < 2 else "up")
    model, shared = guarded(inner, tmp_path)
    completion = virtually(model.complete(request()))
    assert completion == Completion("up", TokenUsage(10, 5, 1))
    assert spent(shared) == Spent(1, 0, 2, 10, 5)
    first, second, third = inner.started
    assert 0 < second - first <= 0.5
    assert 0 < third - second <= 1.0


def test_retries_end(tmp_path: Path) -> None:
    inner = Inner(lambda n, _: ModelUnavailableError("down"))
    model, shared = guarded(inner, tmp_path, retries=3)
    with pytest.raises(ModelUnavailableError, match="down"):
        virtually(model.complete(request()))
    assert inner.calls == 4
    assert spent(shared) == Spent(failures=4)


@pytest.mark.parametrize(
    ("error", "calls"),
    [(ModelRefusedError("no"), 1), (ModelTimeoutError("slow"), 1), (ModelReplyError("odd"), 2)],
)
def test_what_no_retry_mends_is_not_tried_again(
    tmp_path: Path, error: ModelError, calls: int
) -> None:
    inner = Inner(lambda n, _: error)
    model, shared = guarded(inner, tmp_path)
    with pytest.raises(type(error)):
        virtually(model.complete(request()))
    assert inner.calls == calls
    assert spent(shared).failures == calls


def test_a_useless_reply_costs_what_its_server_stated(tmp_path: Path) -> None:
    error = ModelReplyError("odd")
    error.prompt_tokens, error.completion_tokens = 7, 100
    inner = Inner(lambda n, _: error if n == 0 else "fine")
    model, shared = guarded(inner, tmp_path, price={"input": 0, "output": 1_000_000})
    virtually(model.complete(request()))
    assert spent(shared) == Spent(1, 0, 1, 17, 105, 105.0)


def test_a_server_that_asks_for_a_pause_is_left_alone_by_all(tmp_path: Path) -> None:
    def does(n: int, _: Any) -> Any:
        return ModelRateLimitError("slow down", retry_after=7.0) if n == 0 else "ok"

    inner = Inner(does)
    model, _ = guarded(inner, tmp_path)

    async def two() -> None:
        first = asyncio.ensure_future(model.complete(request("a")))
        await asyncio.sleep(1)
        await asyncio.gather(first, model.complete(request("b")))

    virtually(two())
    start, *others = inner.started
    assert len(others) == 2
    assert all(7.0 <= at - start <= 7.6 for at in others)


def test_a_pause_beyond_the_deadline_is_not_waited_for(tmp_path: Path) -> None:
    inner = Inner(lambda n, _: ModelRateLimitError("quota", retry_after=3600.0))
    model, _ = guarded(inner, tmp_path, timeout_s=60)

    async def twice() -> None:
        error, seconds = await took(model.complete(request()))
        assert isinstance(error, ModelRateLimitError)
        assert seconds == 0
        error, seconds = await took(model.complete(request("another")))
        assert isinstance(error, ModelUnavailableError)
        assert error.retry_after == pytest.approx(600)
        assert seconds == 0

    virtually(twice())
    assert inner.calls == 1


def test_a_retry_queues_at_the_rate_limit_again_and_holds_no_place_meanwhile(
    tmp_path: Path,
) -> None:
    def does(n: int, _: Any) -> Any:
        return ModelUnavailableError("x", retry_after=5.0) if n == 0 else later(1)

    inner = Inner(does)
    model, _ = guarded(inner, tmp_path, requests_per_minute=30, concurrency=1)

    async def four() -> list[Any]:
        return await model.complete_batch([request(str(i)) for i in range(6)])

    assert all(isinstance(reply, Completion) for reply in virtually(four()))
    assert inner.calls == 7
    assert inner.most_at_once == 1
    for start in inner.started:
        assert sum(start <= at < start + 60 for at in inner.started) <= 30


class _Limited(Inner):
    """A server that lets ``rpm`` calls a minute through, and says so to the others."""

    def __init__(self, rpm: float, *, burst: int, retry_after: float | None) -> None:
        super().__init__(lambda n, _: self._answer())
        self.rpm, self.burst, self.retry_after = rpm, burst, retry_after
        self.level, self.at, self.refused = float(burst), 0.0, 0

    async def _answer(self) -> str:
        now = asyncio.get_running_loop().time()
        self.level = min(self.burst, self.level + (now - self.at) * self.rpm / 60)
        self.at = now
        if self.level < 1 - 1e-6:
            await asyncio.sleep(0.02)
            self.refused += 1
            raise ModelRateLimitError("429", retry_after=self.retry_after)
        self.level -= 1
        await asyncio.sleep(1)
        return "ok"


@pytest.mark.parametrize("retry_after", [None, 1.0, 5.0])
@pytest.mark.parametrize(("rpm", "burst"), [(60, 1), (60, 6), (500, 50)])
def test_a_limit_that_nobody_has_told_is_found_and_no_call_lost(
    tmp_path: Path, rpm: int, burst: int, retry_after: float | None
) -> None:
    inner = _Limited(rpm, burst=burst, retry_after=retry_after)
    model, _ = guarded(inner, tmp_path, concurrency=64)
    replies, seconds = virtually(took(model.complete_batch([request(str(i)) for i in range(300)])))
    assert all(isinstance(reply, Completion) for reply in replies)
    assert seconds < 1.3 * (300 - burst) / rpm * 60 + 30 * (retry_after or 0.0)
    assert inner.refused < 64 + 0.25 * 300


def test_a_server_that_never_lets_anybody_in_is_given_up(tmp_path: Path) -> None:
    inner = _Limited(0, burst=0, retry_after=None)
    model, shared = guarded(inner, tmp_path, timeout_s=20, concurrency=8)
    replies, seconds = virtually(took(model.complete_batch([request(str(i)) for i in range(300)])))
    assert all(isinstance(reply, ModelUnavailableError) for reply in replies)
    assert seconds < 60
    assert inner.refused < 100
    assert spent(shared).failures == inner.refused


def test_a_pause_holds_those_who_wait_for_a_place_too(tmp_path: Path) -> None:
    def does(n: int, _: Any) -> Any:
        return ModelRateLimitError("slow down", retry_after=7.0) if n == 0 else "ok"

    inner = Inner(does)
    model, _ = guarded(inner, tmp_path, concurrency=1)
    virtually(model.complete_batch([request(str(i)) for i in range(5)]))
    start, *others = inner.started
    assert len(others) == 5
    assert min(others) - start >= 7.0


# --- somebody waits ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "calls"),
    [(ModelUnavailableError("refused", unreachable=True), 2), (ModelUnavailableError("503"), 5)],
)
def test_a_server_that_is_not_there_is_tried_twice_for_who_waits(
    tmp_path: Path, error: ModelError, calls: int
) -> None:
    """And as often as ever for the work of an index."""
    inner = Inner(lambda n, _: error)
    model, _ = guarded(inner, tmp_path, retries=4)

    async def waits() -> tuple[Any, float]:
        with interactively():
            return await took(model.complete(request()))

    failed, seconds = virtually(waits())
    assert failed is error
    assert inner.calls == calls
    assert seconds <= 0.5 or calls > 2
    inner = Inner(lambda n, _: error)
    model, _ = guarded(inner, tmp_path, retries=4)
    with pytest.raises(ModelUnavailableError):
        virtually(model.complete(request()))
    assert inner.calls == 5


def test_who_waits_is_not_kept_by_an_open_circuit_but_by_its_probe(tmp_path: Path) -> None:
    gone = ModelUnavailableError("refused", unreachable=True)
    inner = Inner(lambda n, _: later(1, "up") if n >= 9 else "up" if n == 0 else gone)
    model, _ = guarded(inner, tmp_path, retries=0)

    async def story() -> None:
        await model.complete(request("it worked"))
        await model.complete_batch([request(str(i)) for i in range(8)])
        with interactively():
            error, seconds = await took(model.complete(request()))
            assert "left alone" in str(error)
            assert seconds == 0
            await asyncio.sleep(2.01)
            both = [took(model.complete(request(text))) for text in ("probe", "other")]
            (probe, _), (other, _) = await asyncio.gather(*both)
        assert probe.text == other.text == "up"

    virtually(story())


# --- circuit breaker --------------------------------------------------------------------------


def test_a_dead_server_is_left_alone_then_probed(tmp_path: Path) -> None:
    up = False

    def does(n: int, _: Any) -> Any:
        return "up" if up else ModelUnavailableError("refused")

    inner = Inner(does)
    model, _ = guarded(inner, tmp_path, retries=0)

    async def story() -> None:
        nonlocal up
        for i in range(8):
            assert isinstance((await took(model.complete(request(str(i)))))[0], ModelError)
        assert inner.calls == 8
        # Open for two seconds; the probe fails, then for four, which is all that calls wait for.
        error, seconds = await took(model.complete(request()))
        assert isinstance(error, ModelUnavailableError)
        assert seconds == pytest.approx(6.0, abs=0.6)
        assert np.diff(inner.started)[-2:].tolist() == pytest.approx([2.0, 4.0], abs=0.6)
        error, seconds = await took(model.complete(request()))
        assert isinstance(error, ModelUnavailableError)
        assert "8 s more" in str(error)
        assert seconds == 0
        assert inner.calls == 10
        await asyncio.sleep(8.01)
        up = True
        assert (await model.complete(request("probe"))).text == "up"
        assert (await model.complete(request("other"))).text == "up"

    virtually(story())


class _Outage(Inner):
    """A server that is down from its fifth second on, for some time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(lambda n, _: self._answer())
        self.seconds = seconds

    async def _answer(self) -> str:
        if 5 <= asyncio.get_running_loop().time() - self.started[0] < 5 + self.seconds:
            await asyncio.sleep(0.01)
            raise ModelUnavailableError("refused")
        await asyncio.sleep(1)
        return "up"


@pytest.mark.parametrize("concurrency", [4, 64])
@pytest.mark.parametrize("seconds", [1, 4, 10, 25])
def test_an_outage_shorter_than_the_deadline_loses_no_call(
    tmp_path: Path, seconds: float, concurrency: int
) -> None:
    model, _ = guarded(_Outage(seconds), tmp_path, concurrency=concurrency)
    requests = [request(str(i)) for i in range(400)]
    replies, all_of_it = virtually(took(model.complete_batch(requests)))
    assert all(isinstance(reply, Completion) for reply in replies)
    assert all_of_it < 400 / concurrency + 2 * seconds + 10


def test_a_longer_outage_is_waited_for_once_then_calls_fail_at_once(tmp_path: Path) -> None:
    inner = _Outage(1e6)
    model, shared = guarded(inner, tmp_path, concurrency=4, timeout_s=30)
    requests = [request(str(i)) for i in range(400)]
    replies, seconds = virtually(took(model.complete_batch(requests)))
    done = [reply for reply in replies if isinstance(reply, Completion)]
    assert len(done) == 20
    assert seconds < 5 + 30 + 2
    assert inner.calls < 20 + 20
    total = spent(shared)
    assert (total.calls, total.calls + total.failures) == (20, inner.calls)


def test_only_one_call_probes_and_a_cancelled_one_leaves_that_to_another(tmp_path: Path) -> None:
    def does(n: int, _: Any) -> Any:
        return ModelUnavailableError("refused") if n < 8 else later(1, "up")

    inner = Inner(does)
    model, _ = guarded(inner, tmp_path, retries=0)

    async def story() -> None:
        await model.complete_batch([request(str(i)) for i in range(8)])
        await asyncio.sleep(2.01)
        probe = asyncio.ensure_future(model.complete(request("probe")))
        others = [asyncio.ensure_future(model.complete(request(f"o{i}"))) for i in range(3)]
        await asyncio.sleep(0.5)
        assert inner.calls == 9
        probe.cancel()
        await asyncio.gather(*others)
        assert inner.most_at_once <= 8
        assert inner.calls == 12

    virtually(story())


def test_a_server_that_hangs_is_left_alone_after_two_calls(tmp_path: Path) -> None:
    up = False

    def does(n: int, _: Any) -> Any:
        return "up" if up else later(1e6)

    inner = Inner(does)
    model, _ = guarded(inner, tmp_path, timeout_s=30)

    async def story() -> None:
        nonlocal up
        for i in range(2):
            error, seconds = await took(model.complete(request(str(i))))
            assert isinstance(error, ModelTimeoutError)
            assert seconds == pytest.approx(30, abs=0.3)
        error, seconds = await took(model.complete(request("third")))
        assert isinstance(error, ModelUnavailableError)
        assert "left alone for 2 s more" in str(error)
        assert (seconds, inner.calls) == (0, 2)
        await asyncio.sleep(2.01)
        up = True
        assert (await model.complete(request("probe"))).text == "up"
        up = False  # the answer is a new beginning
        error, _ = await took(model.complete(request("once more")))
        assert isinstance(error, ModelTimeoutError)
        up = True
        assert (await model.complete(request("last"))).text == "up"

    virtually(story())


def test_a_batch_does_not_wait_for_a_server_that_hangs(tmp_path: Path) -> None:
    inner = Inner(lambda n, _: later(1e6))
    model, _ = guarded(inner, tmp_path, timeout_s=30, concurrency=4)
    requests = [request(str(i)) for i in range(100)]
    replies, seconds = virtually(took(model.complete_batch(requests)))
    assert all(isinstance(reply, ModelError) for reply in replies)
    assert inner.calls <= 4 + 1  # one goes out between the ends of the first two
    assert seconds < 2 * 30 + 1


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_slow_server_that_answers_in_between_is_not_left_alone(
    tmp_path: Path, concurrency: int
) -> None:
    """Three of four calls are too long for it, and end two at a time, or one after the other."""
    slow = [40, 25, 40, 40]

    def does(n: int, _: Any) -> Any:
        seconds = slow[n % 4] if concurrency > 1 else (40, 25)[n % 2]
        return later(seconds)

    inner = Inner(does)
    model, _ = guarded(inner, tmp_path, timeout_s=30, concurrency=concurrency)
    requests = [request(str(i)) for i in range(24)]
    replies = virtually(model.complete_batch(requests))
    assert inner.calls == 24
    assert not any(isinstance(reply, ModelUnavailableError) for reply in replies)
    assert sum(isinstance(r, Completion) for r in replies) == (6 if concurrency > 1 else 12)


def test_a_stream_that_is_cut_off_in_the_middle_is_of_no_server_that_hangs(tmp_path: Path) -> None:
    inner = Inner(lambda n, _: "word " * 400)  # of 40 s
    model, _ = guarded(inner, tmp_path, timeout_s=30)

    async def story() -> None:
        for i in range(3):
            with pytest.raises(ModelTimeoutError):
                _ = [piece async for piece in model.stream(request(str(i)))]

    virtually(story())
    assert inner.calls == 3


def test_429_does_not_open_the_circuit(tmp_path: Path) -> None:
    def does(n: int, _: Any) -> Any:
        return ModelRateLimitError("429", retry_after=1.0) if n < 12 else "ok"

    model, _ = guarded(Inner(does), tmp_path, concurrency=20)
    replies = virtually(model.complete_batch([request(str(i)) for i in range(40)]))
    assert all(isinstance(reply, Completion) for reply in replies)


# --- deadline ---------------------------------------------------------------------------------


def test_a_hanging_call_is_cancelled_at_the_deadline(tmp_path: Path) -> None:
    inner = Inner(lambda n, _: later(1e6))
    model, shared = guarded(inner, tmp_path, timeout_s=30)
    error, seconds = virtually(took(model.complete(request())))
    assert isinstance(error, ModelTimeoutError)
    assert seconds == pytest.approx(30, abs=0.01)
    assert inner.cancelled == 1
    assert spent(shared) == Spent(failures=1)


def test_a_client_that_ignores_cancellation_is_left_behind(tmp_path: Path) -> None:
    async def stubborn() -> str:
        for _ in range(10):
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                continue
        return "much later"

    model, _ = guarded(Inner(lambda n, _: stubborn()), tmp_path, timeout_s=30)
    error, seconds = virtually(took(model.complete(request())))
    assert isinstance(error, ModelTimeoutError)
    assert seconds < 31


def test_the_deadline_covers_all_attempts(tmp_path: Path) -> None:
    async def fails() -> str:
        await asyncio.sleep(14)
        raise ModelUnavailableError("x")

    inner = Inner(lambda n, _: fails())
    model, _ = guarded(inner, tmp_path, timeout_s=30, retries=20)
    error, seconds = virtually(took(model.complete(request())))
    assert isinstance(error, ModelTimeoutError)
    assert seconds <= 30.01
    assert inner.calls == 3


def test_waiting_for_limits_is_no_time_of_the_model(tmp_path: Path) -> None:
    inner = Inner(lambda n, _: later(25))
    model, _ = guarded(inner, tmp_path, timeout_s=30, concurrency=1)
    replies = virtually(model.complete_batch([request(str(i)) for i in range(10)]))
    assert all(isinstance(reply, Completion) for reply in replies)


def test_a_cancelled_caller_cancels_the_call_and_leaves_no_slot_taken(tmp_path: Path) -> None:
    inner = Inner(lambda n, _: later(20))
    model, shared = guarded(inner, tmp_path, concurrency=2, roles={"extract": 1})

    async def story() -> None:
        tasks = [asyncio.ensure_future(model.complete(request(str(i)))) for i in range(5)]
        await asyncio.sleep(1)
        for task in (tasks[0], tasks[2], tasks[4]):
            task.cancel()
        await asyncio.gather(tasks[1], tasks[3])
        assert inner.cancelled == 1
        assert inner.calls == 3  # those that were still in line never went out
        _, seconds = await took(model.complete(request("after")))
        assert seconds == pytest.approx(20, abs=0.01)

    virtually(story())
    assert spent(shared) == Spent(3, 0, 0, 30, 15, cancelled=1)
