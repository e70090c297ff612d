"""The stack around models, by a clock that jumps: limits, retries, deadlines, streams."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
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
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.ledger import Spent
from bookrag_fast.models.middleware.guarded import (
    GuardedEmbedder,
    GuardedLanguageModel,
    GuardedReranker,
)
from bookrag_fast.models.middleware.stack import Services
from bookrag_fast.models.protocols import (
    Completion,
    Embedder,
    LanguageModel,
    ModelInfo,
    Reranker,
    Scores,
    TokenUsage,
)
from bookrag_fast.models.twins import AwaitedReranker
from inner_models import (
    Inner,
    InnerEmbedder,
    embeddings_settings,
    request,
    services,
    settings,
    vector,
)
from virtual_time import virtually


def guarded(
    inner: Inner, folder: Path, *, cache: bool = False, **more: Any
) -> tuple[GuardedLanguageModel, Services]:
    roles = more.pop("roles", None)
    shared = services(folder, cache=cache)
    return GuardedLanguageModel(inner, settings(**more), shared, role_limits=roles), shared


def spent(shared: Services) -> Spent:
    return sum(shared.ledger.totals("role").values(), Spent())


async def took(work: Coroutine[Any, Any, Any]) -> tuple[Any, float]:
    """What it returned or raised, and how long it took by the loop's clock."""
    now = asyncio.get_running_loop().time
    start = now()
    try:
        return await work, now() - start
    except ModelError as error:
        return error, now() - start


async def later(seconds: float, text: str = "late") -> str:
    await asyncio.sleep(seconds)
    return text


# --- protocols --------------------------------------------------------------------------------


def test_what_is_guarded_implements_the_protocol_that_it_wraps(tmp_path: Path) -> None:
    model, shared = guarded(Inner(), tmp_path)
    assert isinstance(model, LanguageModel)
    embedder = GuardedEmbedder(InnerEmbedder(), embeddings_settings(), shared, name="e5")
    assert isinstance(embedder, Embedder)
    assert isinstance(GuardedReranker(_InnerReranker(), settings(), shared), Reranker)


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
    model, _ = guarded(inner, tmp_path, concurrency=2, roles={"extract": 1})

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


# --- concurrency ------------------------------------------------------------------------------


def test_calls_at_once_are_bounded_by_model_and_role(tmp_path: Path) -> None:
    running: dict[str, int] = {}
    most: dict[str, int] = {}

    async def call(role: str) -> str:
        running[role] = running.get(role, 0) + 1
        most[role] = max(most.get(role, 0), running[role])
        await asyncio.sleep(1)
        running[role] -= 1
        return role

    inner = Inner(lambda n, asked: call(asked.role))
    model, _ = guarded(inner, tmp_path, concurrency=5, roles={"plan": 2})
    requests = [request(str(i), role="plan" if i % 2 else "extract") for i in range(40)]
    replies, seconds = virtually(took(model.complete_batch(requests)))
    assert [reply.text for reply in replies] == [r.role for r in requests]
    assert inner.most_at_once == 5
    assert most["plan"] == 2
    assert 10 <= seconds <= 13  # 20 of plan by two at a time, never fewer for long


def test_calls_of_a_burst_start_one_after_another_but_do_not_wait_for_a_quick_server(
    tmp_path: Path,
) -> None:
    slow = Inner(lambda n, _: later(1))
    model, _ = guarded(slow, tmp_path, concurrency=64)
    virtually(model.complete_batch([request(str(i)) for i in range(64)]))
    gaps = np.diff(slow.started)
    assert gaps.min() >= 0.000999
    assert gaps.max() < 0.0011

    quick = Inner()
    model, _ = guarded(quick, tmp_path, concurrency=64)
    virtually(model.complete_batch([request(str(i)) for i in range(64)]))
    assert quick.started[-1] - quick.started[0] < 0.01


def test_one_bad_request_of_a_batch_fails_alone(tmp_path: Path) -> None:
    def does(_: int, asked: Any) -> Any:
        return ModelRefusedError("bad") if asked.messages[0].text == "3" else "fine"

    model, _ = guarded(Inner(does), tmp_path)
    replies = virtually(model.complete_batch([request(str(i)) for i in range(6)]))
    assert [type(reply) for reply in replies] == [
        ModelRefusedError if i == 3 else Completion for i in range(6)
    ]


# --- cache ------------------------------------------------------------------------------------


def test_the_second_of_the_same_calls_is_free(tmp_path: Path) -> None:
    inner = Inner()
    model, shared = guarded(inner, tmp_path, cache=True)

    async def story() -> None:
        first = await model.complete(request())
        again = await model.complete(request(role="plan", book="b"))
        assert (again.text, again.finish) == (first.text, first.finish)
        assert again.usage == TokenUsage(cached=1)
        for other in (
            request("hello!"),
            request(max_tokens=21),
            request(temperature=0.5),
            request(prompt="x@2/en"),
            request(schema={"type": "object"}),
        ):
            assert (await model.complete(other)).usage.calls == 1
        anew = await model.complete(request(fresh=True))
        assert anew.text != first.text
        assert (await model.complete(request())).text == anew.text

    virtually(story())
    shared.close()
    assert spent(shared) == Spent(7, 2, 0, 70, 35)


def test_keys_go_by_the_server_and_what_shapes_replies_not_by_limits(tmp_path: Path) -> None:
    def calls(**more: Any) -> int:
        inner = Inner()
        model, shared = guarded(inner, tmp_path, cache=True, **more)
        virtually(model.complete(request()))
        shared.close()
        return inner.calls

    assert calls() == 1
    assert calls(retries=9, concurrency=2, api_key="secret", timeout_s=5) == 0
    assert calls(model="other") == 1
    assert calls(extra_body={"thinking": False}) == 1


def test_the_same_calls_at_once_go_out_once(tmp_path: Path) -> None:
    inner = Inner(lambda n, _: later(1))
    model, shared = guarded(inner, tmp_path, cache=True)
    replies = virtually(model.complete_batch([request()] * 10))
    assert [reply.text for reply in replies] == ["late"] * 10
    assert inner.calls == 1
    assert spent(shared) == Spent(1, 9, 0, 10, 5)


def test_who_waits_for_anothers_reply_shares_its_failure_but_not_its_cancellation(
    tmp_path: Path,
) -> None:
    inner = Inner(lambda n, _: later(1) if n < 2 else ModelRefusedError("no"))
    model, _ = guarded(inner, tmp_path, cache=True)

    async def story() -> None:
        leader = asyncio.ensure_future(model.complete(request()))
        await asyncio.sleep(0.5)
        follower = asyncio.ensure_future(model.complete(request()))
        await asyncio.sleep(0.1)
        leader.cancel()
        assert (await follower).text == "late"
        replies = await model.complete_batch([request("other")] * 3)
        assert [type(reply) for reply in replies] == [ModelRefusedError] * 3
        assert inner.calls == 3

    virtually(story())


# --- streams ----------------------------------------------------------------------------------


async def read(model: GuardedLanguageModel, asked: Any) -> tuple[list[str], Completion]:
    *pieces, whole = [piece async for piece in model.stream(asked)]
    assert isinstance(whole, Completion)
    assert all(isinstance(piece, str) for piece in pieces)
    return pieces, whole


def test_pieces_come_as_they_are_made_and_the_whole_is_kept(tmp_path: Path) -> None:
    inner = Inner(lambda n, _: "a few words")
    model, shared = guarded(inner, tmp_path, cache=True)

    async def story() -> None:
        now = asyncio.get_running_loop().time
        start = now()
        times = [round(now() - start, 1) async for _ in model.stream(request())]
        assert times == [0.1, 0.2, 0.3, 0.3]
        pieces, whole = await read(model, request())
        assert pieces == ["a few words"]
        assert whole == Completion("a few words", TokenUsage(cached=1))
        assert (await model.complete(request())).usage.cached == 1

    virtually(story())
    assert inner.calls == 1
    assert spent(shared) == Spent(1, 2, 0, 10, 5)


class _Breaks(Inner):
    """Its first stream ends with an error, after some pieces."""

    def __init__(self, pieces: int) -> None:
        super().__init__()
        self.pieces = pieces

    async def stream(self, asked: Any) -> Any:
        self.calls += 1
        for i in range(self.pieces if self.calls == 1 else 3):
            yield f"{i} "
        if self.calls == 1:
            raise ModelUnavailableError("disconnected")
        yield Completion("0 1 2 ", TokenUsage(10, 3, 1))


def test_a_stream_that_broke_is_begun_again_only_before_its_first_piece(tmp_path: Path) -> None:
    model, _ = guarded(_Breaks(0), tmp_path)
    pieces, whole = virtually(read(model, request()))
    assert "".join(pieces) == whole.text

    broken = _Breaks(2)
    model, _ = guarded(broken, tmp_path)
    with pytest.raises(ModelUnavailableError, match="disconnected"):
        virtually(read(model, request()))
    assert broken.calls == 1


def test_a_stream_that_drips_ends_at_the_deadline(tmp_path: Path) -> None:
    inner = Inner(lambda n, _: "drip " * 1000)
    model, _ = guarded(inner, tmp_path, timeout_s=5)
    error, seconds = virtually(took(read(model, request())))
    assert isinstance(error, ModelTimeoutError)
    assert seconds == pytest.approx(5, abs=0.01)


def test_a_reader_that_leaves_ends_the_call(tmp_path: Path) -> None:
    closed = []

    class Endless(Inner):
        async def stream(self, asked: Any) -> Any:
            try:
                while True:
                    await asyncio.sleep(1)
                    yield "more "
            finally:
                closed.append(True)

    model, _ = guarded(Endless(), tmp_path)

    async def story() -> None:
        pieces = model.stream(request())
        assert await anext(pieces) == "more "
        await pieces.aclose()
        assert closed == [True]

    virtually(story())


def test_a_stream_that_says_nothing_at_its_end_is_no_reply(tmp_path: Path) -> None:
    class Cut(Inner):
        async def stream(self, asked: Any) -> Any:
            self.calls += 1
            yield "half of"

    model, _ = guarded(Cut(), tmp_path)
    with pytest.raises(ModelReplyError):
        virtually(read(model, request()))


def test_streams_cross_from_the_loop_of_the_models_to_the_readers(tmp_path: Path) -> None:
    runner = LoopRunner()
    shared = services(tmp_path, cache=True)
    on_runner = Services(runner, shared.ledger, shared.cache)
    model = GuardedLanguageModel(Inner(lambda n, _: "one two three"), settings(), on_runner)
    try:
        assert asyncio.run(read(model, request()))[0] == ["one", "two", "three"]
        assert asyncio.run(read(model, request()))[0] == ["one two three"]
        assert asyncio.run(model.complete(request())).usage.cached == 1
    finally:
        runner.close()
        shared.close()


# --- embeddings and reranking -----------------------------------------------------------------


def test_an_edited_book_pays_for_what_is_new(tmp_path: Path) -> None:
    inner = InnerEmbedder()
    shared = services(tmp_path, cache=True)
    embedder = GuardedEmbedder(inner, embeddings_settings(batch_size=3), shared, name="e5")
    texts = ["a", "b", "a", "c", "d", "e"]

    async def story() -> None:
        first = await embedder.aembed(texts)
        assert np.array_equal(first.vectors, np.stack([vector(t) for t in texts]))
        assert sorted(inner.texts) == [["a", "b", "c"], ["d", "e"]]
        assert first.usage == TokenUsage(5, 0, 2)
        again = await embedder.aembed(["e", "new", "a"])
        assert np.array_equal(again.vectors, np.stack([vector(t) for t in ("e", "new", "a")]))
        assert inner.texts[2:] == [["new"]]
        assert (await embedder.aembed(["a"], query=True)).usage.calls == 1
        assert (await embedder.aembed([])).vectors.shape == (0, 4)

    virtually(story())
    shared.close()


def test_a_text_that_is_on_its_way_is_not_sent_again_with_others(tmp_path: Path) -> None:
    inner = InnerEmbedder()  # takes 10 ms
    shared = services(tmp_path, cache=True)
    embedder = GuardedEmbedder(inner, embeddings_settings(), shared, name="e5")

    async def story() -> None:
        first = asyncio.ensure_future(embedder.aembed(["same"]))
        await asyncio.sleep(0.005)
        both = await embedder.aembed(["same", "other"])  # the first ends before this one's own
        assert np.array_equal(both.vectors, np.stack([vector("same"), vector("other")]))
        await first
        assert inner.texts == [["same"], ["other"]]

    virtually(story())
    shared.close()


def test_threads_and_loops_share_one_stack(tmp_path: Path) -> None:
    runner = LoopRunner()
    shared = services(tmp_path, cache=True)
    inner = InnerEmbedder()
    embedder = GuardedEmbedder(
        inner, embeddings_settings(), Services(runner, shared.ledger, shared.cache), name="e5"
    )
    try:
        with ThreadPoolExecutor(4) as pool:
            blocking = [pool.submit(embedder.embed, ["same", str(i)]) for i in range(4)]
            awaited = [pool.submit(asyncio.run, embedder.aembed(["same"])) for _ in range(4)]
            for i, one in enumerate(blocking):
                assert np.array_equal(one.result(), np.stack([vector("same"), vector(str(i))]))
            for other in awaited:
                assert np.array_equal(other.result().vectors[0], vector("same"))
        assert sum(texts.count("same") for texts in inner.texts) == 1
    finally:
        runner.close()
        shared.close()


def test_kept_vectors_of_another_dimension_are_an_error_not_a_mixture(tmp_path: Path) -> None:
    for dimension, texts in ((4, ["a"]), (6, ["a", "b"])):
        shared = services(tmp_path, cache=True)
        inner = InnerEmbedder(dimension)
        embedder = GuardedEmbedder(inner, embeddings_settings(), shared, name="e5")
        if dimension == 4:
            virtually(embedder.aembed(texts))
        else:
            with pytest.raises(ModelReplyError, match="another dimension"):
                virtually(embedder.aembed(texts))
        shared.close()


class _InnerReranker(AwaitedReranker):
    info = ModelInfo("rerank", "served")
    calls = 0

    async def arerank(self, question: str, texts: Any) -> Scores:
        self.calls += 1
        return Scores(np.array([len(t) for t in texts], np.float32), TokenUsage(9, 0, 1))


def test_scores_are_kept_with_all_the_texts_of_their_question(tmp_path: Path) -> None:
    inner = _InnerReranker()
    shared = services(tmp_path, cache=True)
    reranker = GuardedReranker(inner, settings(), shared)

    async def story() -> None:
        for texts, calls in ((["a", "bb"], 1), (["a", "bb"], 1), (["a"], 2)):
            scores = await reranker.arerank("q", texts)
            assert scores.scores.tolist() == [len(t) for t in texts]
            assert inner.calls == calls

    virtually(story())
    shared.close()
