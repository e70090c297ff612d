"""Batching across callers: what every caller gets is what it would get alone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast.errors import ModelError
from bookrag_fast.models.onnx.batching import Batcher, RunLimits
from waiting import eventually

LIMITS = RunLimits(items=8, padded=64, padding=6)


class Machine:
    """Doubles numbers, fails on negative ones, counts its runs; may be held still."""

    def __init__(self) -> None:
        self.runs: list[list[int]] = []
        self.free = threading.Event()
        self.free.set()
        self.running = threading.Event()

    def __call__(self, items: list[int]) -> list[int]:
        self.runs.append(list(items))
        self.running.set()
        assert self.free.wait(20)
        if min(items) < 0:
            raise ValueError(f"negative: {sorted(i for i in items if i < 0)}")
        return [2 * i for i in items]

    def hold(self) -> None:
        self.free.clear()
        self.running.clear()

    def ran(self, *items: int) -> bool:
        return any(item in run for run in self.runs for item in items)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def batcher(machine: Machine) -> Iterator[Batcher[int, int]]:
    made = make(machine)
    yield made
    machine.free.set()
    made.close()


def make(machine: Machine, **options: Any) -> Batcher[int, int]:
    return Batcher(machine, lambda item: abs(item) % 16 + 1, limits=LIMITS, **options)


def blocking(batcher: Batcher[int, int], *chunks: Sequence[int]) -> list[int]:
    return [result for results in batcher.map(chunks) for result in results]


async def awaited(batcher: Batcher[int, int], *chunks: Sequence[int]) -> list[int]:
    async def chunk(items: Sequence[int]) -> Sequence[int]:
        return items

    return [r async for results in batcher.amap(chunk(c) for c in chunks) for r in results]


CALLS = st.lists(
    st.lists(st.lists(st.integers(-3, 60), max_size=12), max_size=3), min_size=1, max_size=10
)


@settings(max_examples=60)
@given(calls=CALLS, tasks=st.integers(0, 10), workers=st.integers(1, 3), room=st.integers(1, 20))
def test_any_interleaving_gives_what_each_would_get_alone(
    calls: list[list[list[int]]], tasks: int, workers: int, room: int
) -> None:
    """The first ``tasks`` calls are awaited on one loop, the others block, all at once. A call
    with a negative number fails, and no other does."""
    machine = Machine()
    batcher = make(machine, workers=workers, most_waiting=room)

    async def all_tasks() -> list[Any]:
        made = [awaited(batcher, *chunks) for chunks in calls[:tasks]]
        return await asyncio.gather(*made, return_exceptions=True)

    def thread(chunks: list[list[int]]) -> Any:
        try:
            return blocking(batcher, *chunks)
        except ValueError as error:
            return error

    with ThreadPoolExecutor(12) as pool:
        beside = pool.submit(asyncio.run, all_tasks())
        outcomes = list(pool.map(thread, calls[tasks:]))
        outcomes = beside.result() + outcomes
    batcher.close()
    for chunks, outcome in zip(calls, outcomes, strict=True):
        flat = [item for chunk in chunks for item in chunk]
        if any(item < 0 for item in flat):
            assert isinstance(outcome, ValueError)
            named = str(outcome).removeprefix("negative: ").strip("[]").split(", ")
            assert {int(n) for n in named} <= set(flat), "an error of somebody else"
        else:
            assert outcome == [2 * item for item in flat]
    for run in machine.runs:
        lengths = [abs(item) % 16 + 1 for item in run]
        assert len(run) <= LIMITS.items
        padded = max(lengths) * len(lengths)
        assert len(run) == 1 or padded <= LIMITS.padded
        assert padded - sum(lengths) <= LIMITS.padding


def test_a_lone_caller_is_run_at_once(batcher: Batcher[int, int], machine: Machine) -> None:
    assert blocking(batcher, [1]) == [2]
    start = time.monotonic()
    for i in range(50):
        assert blocking(batcher, [i]) == [2 * i]
    assert len(machine.runs) == 51
    assert time.monotonic() - start < 5, "something waits for company"


def test_waiting_callers_share_a_run(batcher: Batcher[int, int], machine: Machine) -> None:
    machine.hold()
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(blocking, batcher, [0])
        assert machine.running.wait(20)
        others = [pool.submit(blocking, batcher, [16 * i + 5]) for i in range(8)]
        eventually(lambda: len(batcher._queue) == 8)
        machine.free.set()
        assert [o.result() for o in others] == [[2 * (16 * i + 5)] for i in range(8)]
        assert first.result() == [0]
    assert [len(run) for run in machine.runs] == [1, 8]


def test_a_question_does_not_wait_for_an_index(
    batcher: Batcher[int, int], machine: Machine
) -> None:
    machine.hold()
    with ThreadPoolExecutor(2) as pool:
        index = pool.submit(blocking, batcher, [9] * 400)
        assert machine.running.wait(20)
        question = pool.submit(blocking, batcher, [3])
        eventually(lambda: any(entry.item == 3 for entry in batcher._queue))
        machine.free.set()
        assert question.result() == [6]
        assert index.result() == [18] * 400
    at = next(i for i, run in enumerate(machine.runs) if 3 in run)
    assert at <= 2 < len(machine.runs) // 10


def test_chunks_are_made_as_they_are_needed(batcher: Batcher[int, int], machine: Machine) -> None:
    made = []

    def chunks() -> Iterator[list[int]]:
        for i in range(6):
            made.append(i)
            yield [i]

    machine.hold()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(lambda: [r for results in batcher.map(chunks()) for r in results])
        assert machine.running.wait(20)
        eventually(lambda: len(made) == 2)
        time.sleep(0.05)
        assert made == [0, 1], "a call runs ahead of itself"
        machine.free.set()
        assert call.result() == [0, 2, 4, 6, 8, 10]


def test_a_full_queue_holds_callers_back_in_their_order(machine: Machine) -> None:
    batcher = make(machine, most_waiting=4)
    machine.hold()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(blocking, batcher, [0])
        assert machine.running.wait(20)
        inside = pool.submit(blocking, batcher, [1, 2, 3])
        eventually(lambda: len(batcher._queue) == 3)
        large = pool.submit(blocking, batcher, [4, 5])
        eventually(lambda: len(batcher._outside) == 1)
        small = pool.submit(blocking, batcher, [6])  # there is room for it, but it came later
        eventually(lambda: len(batcher._outside) == 2)
        assert len(batcher._queue) == 3
        assert not small.done()
        machine.free.set()
        assert [f.result() for f in (first, inside, large, small)] == [
            [0],
            [2, 4, 6],
            [8, 10],
            [12],
        ]
    batcher.close()


async def test_a_full_queue_suspends_tasks_and_not_the_loop(machine: Machine) -> None:
    batcher = make(machine, most_waiting=2)
    machine.hold()
    tasks = [asyncio.create_task(awaited(batcher, [i, i])) for i in range(20)]
    for _ in range(20):
        await asyncio.sleep(0.001)  # the loop goes on
    assert len(batcher._queue) <= 2
    assert len(batcher._outside) >= 18
    machine.free.set()
    assert await asyncio.gather(*tasks) == [[2 * i, 2 * i] for i in range(20)]
    batcher.close()


async def test_waiting_tasks_take_no_thread(batcher: Batcher[int, int], machine: Machine) -> None:
    machine.hold()
    tasks = [asyncio.create_task(awaited(batcher, [i])) for i in range(200)]
    await asyncio.sleep(0.05)
    before = threading.active_count()
    # The default executor is free for others, though 200 calls wait.
    assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 20) == 7
    assert threading.active_count() <= before + 1
    machine.free.set()
    await asyncio.gather(*tasks)


async def test_a_cancelled_caller_takes_its_items_along(
    batcher: Batcher[int, int], machine: Machine
) -> None:
    machine.hold()
    first = asyncio.create_task(awaited(batcher, [0]))
    await asyncio.to_thread(machine.running.wait, 20)
    leaves = asyncio.create_task(awaited(batcher, [7] * 30, [8] * 30, [9] * 30))
    stays = asyncio.create_task(awaited(batcher, [5]))
    await asyncio.sleep(0.02)
    leaves.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaves
    assert [entry.item for entry in batcher._queue] == [5]
    machine.free.set()
    assert await first == [0]
    assert await stays == [10]
    assert not machine.ran(7, 8, 9)


async def test_a_caller_cancelled_in_its_run_disturbs_nobody(
    batcher: Batcher[int, int], machine: Machine
) -> None:
    machine.hold()
    leaves = asyncio.create_task(awaited(batcher, [1] * 12))
    await asyncio.to_thread(machine.running.wait, 20)
    stays = asyncio.create_task(awaited(batcher, [2]))
    await asyncio.sleep(0.02)
    leaves.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaves
    machine.free.set()
    assert await stays == [4]
    assert sum(run.count(1) for run in machine.runs) == 8, "more was run than was under way"


def test_what_fails_fails_alone(batcher: Batcher[int, int], machine: Machine) -> None:
    machine.hold()
    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(blocking, batcher, [0])
        assert machine.running.wait(20)
        good = [pool.submit(blocking, batcher, [n]) for n in (1, 17, 33)]
        bad = pool.submit(blocking, batcher, [-1])
        eventually(lambda: len(batcher._queue) == 4)
        machine.free.set()
        assert [g.result() for g in good] == [[2], [34], [66]]
        assert first.result() == [0]
        with pytest.raises(ValueError, match=r"negative: \[-1\]"):
            bad.result()
    assert max(len(run) for run in machine.runs) == 4, "they were not run together"
    assert blocking(batcher, [4]) == [8]


def test_a_wrong_number_of_results_is_an_error_and_not_a_hang() -> None:
    batcher: Batcher[int, int] = Batcher(lambda items: [], lambda item: 1, limits=LIMITS)
    with pytest.raises(ValueError, match="shorter"):
        blocking(batcher, [1])
    batcher.close()


def test_closing_fails_who_waits_and_lets_the_run_end(machine: Machine) -> None:
    batcher = make(machine, name="tiny")
    machine.hold()
    with ThreadPoolExecutor(4) as pool:
        under_way = pool.submit(blocking, batcher, [1])
        assert machine.running.wait(20)
        waits = pool.submit(blocking, batcher, [2])
        eventually(lambda: len(batcher._queue) == 1)
        closing = pool.submit(batcher.close)
        with pytest.raises(ModelError, match="tiny is closed"):
            waits.result()
        assert not closing.done()
        machine.free.set()
        closing.result()
        assert under_way.result() == [2]
    with pytest.raises(ModelError, match="tiny is closed"):
        blocking(batcher, [3])
    assert not machine.ran(2, 3)
    batcher.close()


def test_a_caller_that_stops_half_way_takes_its_items_along() -> None:
    free, runs = threading.Event(), []

    def run(items: list[int]) -> list[int]:
        runs.append(items)
        if 8 in items:
            assert free.wait(20)
        return items

    batcher: Batcher[int, int] = Batcher(run, lambda item: item, limits=LIMITS)
    results = batcher.map(iter([[1], [8] * 40]))  # too unlike for one run
    assert next(results) == [1]
    eventually(lambda: runs[-1] == [8] * 8)
    results.close()  # what an exception in its loop does, a Ctrl-C for one
    assert not batcher._queue
    free.set()
    batcher.close()
    assert runs == [[1], [8] * 8]


def test_a_call_that_is_collected_amid_the_queue_does_not_lock_up(
    batcher: Batcher[int, int], machine: Machine
) -> None:
    machine.hold()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(blocking, batcher, [0])
        assert machine.running.wait(20)
        future = batcher._submit([7] * 40)
        with batcher._work:  # a collection of garbage may happen here
            future.cancel()
        machine.free.set()
        assert first.result() == [0]
    eventually(lambda: not batcher._queue)
    assert not machine.ran(7)


def test_the_worker_ends_when_idle_and_comes_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bookrag_fast.models.onnx.batching._IDLE_S", 0.02)
    batcher = make(machine)
    assert blocking(batcher, [1]) == [2]
    eventually(lambda: not batcher._workers)
    assert blocking(batcher, [2]) == [4]
    batcher.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_begins_anew() -> None:
    """Forked in the middle of a run, with calls waiting: the child works, the parent as well."""
    code = """
import os, threading, time
from bookrag_fast.models.onnx.batching import Batcher, RunLimits
free = threading.Event()
def run(items):
    free.wait()
    return items
batcher = Batcher(run, lambda item: 1, limits=RunLimits(4, 4, 0))
found = []
callers = [
    threading.Thread(target=lambda: found.extend(next(batcher.map([[1]])))) for _ in range(9)
]
for caller in callers:
    caller.start()
while batcher._serial < 9:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    free = threading.Event()  # the lock of the other may be held by a thread that is not here
    free.set()
    os._exit(0 if next(batcher.map([[5, 6]])) == [5, 6] and not batcher._queue else 1)
free.set()
for caller in callers:
    caller.join()
assert found == [1] * 9
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], timeout=60, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_interpreter_ends_in_the_middle_of_a_run() -> None:
    code = """
import threading, time
from bookrag_fast.models.onnx.batching import Batcher, RunLimits
def run(items):
    time.sleep(0.3)
    return items
batcher = Batcher(run, lambda item: 1, limits=RunLimits(4, 4, 0))
def call():
    for _ in batcher.map([[1] * 400]):
        pass
threading.Thread(target=call, daemon=True).start()
time.sleep(0.1)
"""
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)
    assert done.returncode == 0
    assert "Fatal" not in done.stderr
    assert time.monotonic() - start < 20  # the run under way ends; the hundred others do not begin
