"""What waits while a session is busy becomes its next runs, whoever waits for it.

A caller that finds a worker idle is served at once: nothing is held back in the hope of company.
While runs are under way callers gather, and the next run takes what lies nearest in length, so that
little is spent on padding. The calls take turns in beginning a run: a question beside the thousands
of texts of an index waits for one run, not for all.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import weakref
from bisect import bisect_left, insort
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Generic, NamedTuple, TypeVar

from bookrag_fast.errors import ModelError
from bookrag_fast.forks import begins_anew

__all__ = ["Batcher", "RunLimits"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_IDLE_S = 5.0  # a worker ends when nothing came for so long, and lets go of the model
_LEAVE_S = 10.0  # how long the interpreter's exit waits for runs to end
_AHEAD = 2  # chunks of a call under way: one is made while the other runs


class RunLimits(NamedTuple):
    """``items`` of a run; ``padded``, its items times its longest length (an item beyond that runs
    alone); ``padding``, how much of that is none of the items' own: worth as much as what another
    run would cost by itself."""

    items: int
    padded: int
    padding: int


class _Call:
    """A chunk of a caller's items, and the future that the caller waits for."""

    def __init__(self, count: int) -> None:
        self.future: Future[list[Any]] = Future()
        self.results: list[Any] = [None] * count
        self.left = count  # without a result
        self.stack: list[_Waiting] = []  # shortest first; may hold some that have been taken
        self.waiting = count  # not taken yet
        self.over = False


class _Waiting(NamedTuple):
    """An item in the queue; ``serial`` is unique, so that order is by the first two."""

    length: int
    serial: int
    item: Any
    place: int
    call: _Call


class Batcher(Generic[Item, Result]):
    """Runs the items of any number of threads and tasks together. Safe to share.

    A run that fails is made again for each of its callers alone, so that what is wrong with one
    reaches no other. Cancelled calls take along what has not run. A forked child begins with an
    empty queue and workers of its own.

    Args:
        run: results of a run's items, in their order; called by the workers alone.
        length: of an item, at least 1: what a run pads to.
        limits: of a run.
        workers: runs at once.
        most_waiting: items in the queue; calls beyond wait outside, first come, first served.
            A chunk that is larger comes in when the queue is empty.
        name: of the model, for errors.
    """

    def __init__(
        self,
        run: Callable[[list[Item]], Iterable[Result]],
        length: Callable[[Item], int],
        *,
        limits: RunLimits,
        workers: int = 1,
        most_waiting: int = 4096,
        name: str = "the model",
    ) -> None:
        self._run = run
        self._length = length
        self._limits = limits
        self._most_workers = workers
        self._most_waiting = most_waiting
        self._name = name
        self._closed = False
        self.forked()
        begins_anew(self)
        _all.add(self)

    def forked(self) -> None:
        self._work = threading.Condition(threading.Lock())
        self._queue: list[_Waiting] = []  # shortest first
        self._turns: deque[_Call] = deque()
        self._outside: deque[tuple[_Call, Sequence[Item]]] = deque()
        self._gone: deque[_Call] = deque()  # cancelled, and to be dropped
        self._serial = 0
        self._workers: set[threading.Thread] = set()
        self._idle = 0

    # --- callers ----------------------------------------------------------------------------

    def map(self, chunks: Iterable[Sequence[Item]]) -> Iterator[list[Result]]:
        """Results of each chunk, in order. Blocks while the queue is full; the next chunk is made
        while one runs, and not before.

        Raises:
            ModelError: the batcher was closed. And whatever ``run`` raises for these items alone.
        """
        ahead: deque[Future[list[Any]]] = deque()
        try:
            for chunk in chunks:
                ahead.append(self._submit(chunk))
                if len(ahead) == _AHEAD:
                    yield ahead[0].result()
                    ahead.popleft()
            while ahead:
                yield ahead[0].result()
                ahead.popleft()
        finally:
            for future in ahead:
                future.cancel()

    async def amap(
        self, chunks: Iterable[Awaitable[Sequence[Item]]]
    ) -> AsyncIterator[list[Result]]:
        """`map`, awaited, without a thread of its own: waiting is a future on the loop."""
        ahead: deque[Future[list[Any]]] = deque()
        try:
            for chunk in chunks:
                ahead.append(self._submit(await chunk))
                if len(ahead) == _AHEAD:
                    yield await asyncio.wrap_future(ahead[0])
                    ahead.popleft()
            while ahead:
                yield await asyncio.wrap_future(ahead[0])
                ahead.popleft()
        finally:
            for future in ahead:
                future.cancel()

    def close(self, *, timeout: float | None = None) -> None:
        """Ends the workers after the runs under way; calls that wait for more get a ModelError."""
        with self._work:
            self._closed = True
            calls = {id(entry.call): entry.call for entry in self._queue}
            calls.update((id(call), call) for call, _ in self._outside)
            self._work.notify_all()
            workers = self._workers - {threading.current_thread()}
        for call in calls.values():
            self._finish(call, self._closed_error())
        for worker in workers:
            worker.join(timeout)

    def _submit(self, items: Sequence[Item]) -> Future[list[Any]]:
        call = _Call(len(items))
        if not items:
            call.future.set_result([])
            return call.future
        with self._work:
            if self._closed:
                raise self._closed_error()
            self._sweep()
            self._outside.append((call, items))
            self._admit()
            self._staff()
            if not self._workers:
                self._drop(call)
                raise ModelError(f"no thread can be started for {self._name}")
        call.future.add_done_callback(lambda future: self._cancelled(call, future))
        return call.future

    def _cancelled(self, call: _Call, future: Future[list[Any]]) -> None:
        if not future.cancelled():
            return
        call.over = True
        self._gone.append(call)
        # Not waited for: a generator that is collected comes here in the midst of anything, even of
        # what this thread does with the lock. Then a worker sweeps.
        if self._work.acquire(blocking=False):
            try:
                self._sweep()
            finally:
                self._work.release()

    # --- the queue, with the lock held ----------------------------------------------------------

    def _admit(self) -> None:
        while self._outside:
            call, items = self._outside[0]
            if self._queue and len(self._queue) + len(items) > self._most_waiting:
                return
            self._outside.popleft()
            for place, item in enumerate(items):
                self._serial += 1
                entry = _Waiting(self._length(item), self._serial, item, place, call)
                call.stack.append(entry)
            call.stack.sort()
            for entry in call.stack:
                insort(self._queue, entry)
            self._turns.append(call)

    def _staff(self) -> None:
        """Sees to it that somebody takes what waits."""
        if self._queue and self._idle:
            self._work.notify()
        elif self._queue and len(self._workers) < self._most_workers:
            worker = threading.Thread(target=self._serve, name=f"bookrag-{self._name}", daemon=True)
            # No more threads for this process, or it is ending: who works already goes on.
            with contextlib.suppress(RuntimeError):
                worker.start()
                self._workers.add(worker)

    def _sweep(self) -> None:
        while self._gone:
            self._drop(self._gone.popleft())

    def _drop(self, call: _Call) -> None:
        """Takes what waits of a call out of the queue."""
        if call.waiting:
            call.waiting = 0
            self._queue = [entry for entry in self._queue if entry.call is not call]
            self._outside = deque(held for held in self._outside if held[0] is not call)
            self._admit()

    def _take(self) -> list[_Waiting]:
        """The next run: the longest item of the call whose turn it is, and its neighbours."""
        call = self._turns.popleft()
        while not call.waiting:
            call = self._turns.popleft()
        at = self._place(call.stack[-1])
        while at is None:
            call.stack.pop()
            at = self._place(call.stack[-1])
        first, last = self._span(at)
        taken = self._queue[first:last]
        del self._queue[first:last]
        for entry in taken:
            entry.call.waiting -= 1
        if call.waiting:
            self._turns.append(call)
        self._admit()
        if not self._queue:
            self._turns.clear()  # of calls that others took along
        return taken

    def _place(self, entry: _Waiting) -> int | None:
        at = bisect_left(self._queue, entry)
        return at if at < len(self._queue) and self._queue[at] is entry else None

    def _span(self, at: int) -> tuple[int, int]:
        """Grows a run around one item of the queue, by the neighbour nearest in length."""
        queue, limits = self._queue, self._limits
        seed = total = queue[at].length
        first, last = at, at + 1
        while last - first < limits.items:
            above = queue[last].length - seed if last < len(queue) else None
            if first > 0 and (above is None or seed - queue[first - 1].length <= above):
                span = first - 1, last
                total += queue[first - 1].length
            elif above is not None:
                span = first, last + 1
                total += queue[last].length
            else:
                break
            padded = queue[span[1] - 1].length * (span[1] - span[0])
            if padded > limits.padded or padded - total > limits.padding:
                break
            first, last = span
        return first, last

    # --- the workers ----------------------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            with self._work:
                self._idle += 1
                self._work.wait_for(self._has_work, _IDLE_S)
                self._idle -= 1
                if not self._queue or self._closed:
                    self._workers.discard(threading.current_thread())
                    return
                taken = self._take()
                self._staff()
            self._execute(taken)
            del taken  # while idle nothing of a caller's is held

    def _has_work(self) -> bool:
        self._sweep()
        return bool(self._queue) or self._closed

    def _execute(self, taken: list[_Waiting]) -> None:
        taken = [entry for entry in taken if not entry.call.over]
        if not taken:
            return
        try:
            results = self._run([entry.item for entry in taken])
            answered = list(zip(taken, results, strict=True))
        except BaseException as error:  # whatever it is belongs to a caller; the worker goes on
            calls = {id(entry.call): entry.call for entry in taken}
            if len(calls) == 1:
                self._finish(taken[0].call, error)
            else:
                for key in calls:
                    self._execute([entry for entry in taken if id(entry.call) == key])
            return
        for entry, result in answered:
            entry.call.results[entry.place] = result
        with self._work:
            for entry in taken:
                entry.call.left -= 1
            complete = {id(e.call): e.call for e in taken if not e.call.left}
        for call in complete.values():
            self._finish(call, None)

    def _finish(self, call: _Call, error: BaseException | None) -> None:
        with self._work:
            if call.over:
                return
            call.over = True
            self._drop(call)
        if call.future.set_running_or_notify_cancel():
            if error is None:
                call.future.set_result(call.results)
            else:
                call.future.set_exception(error)

    def _closed_error(self) -> ModelError:
        return ModelError(f"{self._name} is closed", "open the model again")


_all: weakref.WeakSet[Batcher[Any, Any]] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # A thread that comes back from native code into an interpreter that is gone aborts it.
    for batcher in list(_all):
        batcher.close(timeout=_LEAVE_S)
