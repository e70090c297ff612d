"""The loop that a library's work and its models' calls share."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from bookrag_fast.errors import LibraryError
from bookrag_fast.loops import LoopRunner


def test_the_last_thing_is_done_when_all_else_has_unwound() -> None:
    runner, seen = LoopRunner(), []

    async def work() -> None:
        async def endless() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                seen.append("unwound")

        seen.append(asyncio.get_running_loop())
        kept.append(asyncio.ensure_future(endless()))
        await asyncio.sleep(0)

    async def last() -> None:
        seen.append(asyncio.get_running_loop())

    kept: list[asyncio.Future[None]] = []
    runner.run(work())
    runner.close(last)
    assert seen == [seen[0], "unwound", seen[0]]
    runner.close(last)
    assert len(seen) == 3


def test_it_is_done_also_where_nothing_ran_before() -> None:
    runner, seen = LoopRunner(), []

    async def last() -> None:
        seen.append("last")

    runner.close(last)
    assert seen == ["last"]
    with contextlib.closing(work := asyncio.sleep(0)), pytest.raises(LibraryError):
        runner.run(work)


def test_a_last_thing_that_fails_still_ends_the_thread() -> None:
    runner = LoopRunner()
    threads = []

    async def last() -> None:
        import threading

        threads.append(threading.current_thread())
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        runner.close(last)
    assert not threads[0].is_alive()


def test_who_awaits_work_that_closing_ends_is_told_so() -> None:
    """Not by a cancellation, which the caller's own tasks would take for theirs."""
    runner, begun = LoopRunner(), threading.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(3600)

    async def caller() -> None:
        with pytest.raises(LibraryError, match="closed"):
            await runner.arun(work())

    def close() -> None:
        begun.wait()
        runner.close()

    closing = threading.Thread(target=close)
    closing.start()
    asyncio.run(caller())
    closing.join()


@pytest.mark.parametrize("times", [1, 2, 3])
def test_who_cancels_several_times_gets_control_back_when_the_work_has_unwound(times: int) -> None:
    runner, seen = LoopRunner(), []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.1)
            seen.append("unwound")

    async def cancel() -> None:
        task = asyncio.create_task(runner.arun(work()))
        for _ in range(times):
            await asyncio.sleep(0.02)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen == ["unwound"]

    asyncio.run(cancel())
    runner.close()
