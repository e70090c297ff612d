"""The stack around models, by a clock that jumps: concurrency, cache, streams, vectors."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bookrag_fast.errors import (
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
    guarded,
    later,
    request,
    services,
    settings,
    spent,
    took,
    vector,
)
from virtual_time import virtually

# --- protocols --------------------------------------------------------------------------------


def test_what_is_guarded_implements_the_protocol_that_it_wraps(tmp_path: Path) -> None:
    model, shared = guarded(Inner(), tmp_path)
    assert isinstance(model, LanguageModel)
    embedder = GuardedEmbedder(InnerEmbedder(), embeddings_settings(), shared, name="e5")
    assert isinstance(embedder, Embedder)
    assert isinstance(GuardedReranker(_InnerReranker(), settings(), shared), Reranker)


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

    model, shared = guarded(Endless(), tmp_path)

    async def story() -> None:
        pieces = model.stream(request())
        assert await anext(pieces) == "more "
        await pieces.aclose()
        assert closed == [True]

    virtually(story())
    assert spent(shared) == Spent(cancelled=1)


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
