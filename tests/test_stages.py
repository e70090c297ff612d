"""Async work in stages: on threads, side by side, on another loop; and that nothing of it goes on
once it is cancelled."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bookrag_fast.errors import SpendingLimitError
from bookrag_fast.index.embedding import AT_ONCE, BATCH, embedded
from bookrag_fast.index.stages import Stages, side_by_side
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.protocols import EmbedderInfo, Embeddings, FloatMatrix, TokenUsage


async def test_results_are_in_the_order_of_the_items_and_few_at_once() -> None:
    under_way = most = 0

    async def work(item: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001 * (10 - item))
        under_way -= 1
        return item * item

    assert await side_by_side(range(10), work, limit=3) == [k * k for k in range(10)]
    assert most == 3
    assert await side_by_side([], work, limit=3) == []


async def test_work_that_waits_for_a_thread_is_never_begun_once_it_is_cancelled() -> None:
    leave, begun = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as workers:
        busy = asyncio.ensure_future(Stages(workers).run(lambda: leave.wait(30)))
        waiting = asyncio.ensure_future(Stages(workers).run(begun.set))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting  # and not for the thread
        leave.set()
        assert await busy
    assert not begun.is_set()


async def test_a_failure_ends_the_others_before_it_is_raised() -> None:
    ended: list[int] = []

    async def work(item: int) -> None:
        if item == 1:
            await asyncio.sleep(0.01)
            raise ValueError("one")
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)  # takes its time to end
            ended.append(item)

    with pytest.raises(ValueError, match="one"):
        await side_by_side(range(8), work, limit=4)
    assert sorted(ended) == [0, 2, 3]  # the rest never began


async def test_when_the_budget_is_spent_what_is_under_way_ends_in_its_own_time() -> None:
    ended: list[int] = []

    async def work(item: int) -> None:
        if item == 1:
            raise SpendingLimitError("spent")
        await asyncio.sleep(0.01)
        ended.append(item)

    with pytest.raises(SpendingLimitError):
        await side_by_side(range(8), work, limit=4)
    assert sorted(ended) == [0, 2, 3]  # the rest never began


async def test_a_cancellation_returns_when_all_have_ended() -> None:
    ended: list[int] = []

    async def work(item: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(item)

    task = asyncio.create_task(side_by_side(range(8), work, limit=4))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == [0, 1, 2, 3]


async def test_a_cancelled_thread_stops_at_its_next_check_and_is_waited_for() -> None:
    stages = Stages()
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        try:
            for _ in range(1000):
                time.sleep(0.01)
                stages.check()
        finally:
            time.sleep(0.05)
            ended.set()

    task = asyncio.create_task(stages.run(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


def test_work_on_another_loop_is_waited_for_when_its_caller_is_cancelled() -> None:
    runner = LoopRunner()
    begun, ended = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            ended.set()

    async def caller() -> None:
        task = asyncio.create_task(runner.arun(work()))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(caller())
    runner.close()


def test_work_that_is_cancelled_before_it_begins_never_begins() -> None:
    runner = LoopRunner()
    begun = threading.Event()

    async def work() -> None:
        begun.set()

    async def caller() -> None:
        busy = threading.Event()
        block = asyncio.create_task(runner.arun(_blocks(busy)))  # its loop has no time for others
        await asyncio.to_thread(busy.wait)
        task = asyncio.create_task(runner.arun(work()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await block

    asyncio.run(caller())
    runner.close()
    assert not begun.is_set()


async def _blocks(busy: threading.Event) -> None:
    busy.set()
    time.sleep(0.1)


# --- embedding ----------------------------------------------------------------------------------


class _Endpoint:
    """An embedder that is only awaited, and does not know its dimension beforehand."""

    def __init__(self) -> None:
        self.under_way = self.most = 0
        self.batches: list[list[str]] = []

    @property
    def info(self) -> EmbedderInfo:
        assert threading.current_thread() is not threading.main_thread()  # it may block
        return EmbedderInfo("endpoint", 2)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        raise NotImplementedError

    async def aembed(self, texts: Sequence[str], *, query: bool = False) -> Embeddings:
        assert all(texts)  # servers refuse empty ones
        self.batches.append(list(texts))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0.01 if len(self.batches) % 2 else 0.02)
        self.under_way -= 1
        vectors = np.array([[int(text), 1] for text in texts], dtype=np.float32)
        return Embeddings(vectors, TokenUsage(len(texts), 0, 1))


async def test_batches_are_embedded_side_by_side_and_come_back_in_order() -> None:
    embedder = _Endpoint()
    count = 10 * BATCH + 7
    texts = [str(k) if k % 5 else " " * (k % 2) for k in range(count)]
    vectors, usage = await embedded(texts, embedder, Stages(), stage="embed", unit="nodes")
    assert vectors.shape == (count, 2)
    assert vectors[:, 0].tolist() == [k if k % 5 else 0 for k in range(count)]
    assert vectors[:, 1].tolist() == [float(k % 5 > 0) for k in range(count)]
    assert embedder.most == AT_ONCE
    assert max(map(len, embedder.batches)) == BATCH
    assert (usage.prompt_tokens, usage.calls) == (count - len(range(0, count, 5)), 9)


async def test_nothing_to_embed_asks_for_nothing() -> None:
    embedder = _Endpoint()
    for texts in ([], ["", " "]):
        vectors, usage = await embedded(texts, embedder, Stages(), stage="embed", unit="nodes")
        assert vectors.shape == (len(texts), 2)
        assert (vectors == 0).all()
        assert usage == TokenUsage()
    assert embedder.batches == []
