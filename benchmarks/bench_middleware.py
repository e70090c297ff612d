"""What the middleware adds to a call, and whether it keeps a server busy.

Overhead: processor time of calls of a model that answers at once, through the whole stack, one
after the other and 256 at a time, less what they take without it; what is written behind, on
another thread, is included. Extractions: 1,000 questions with a schema through
checks, middleware and endpoint, 64 at a time, to a server in a process of its own that takes 0.4 s
for each, beside the time that 16 rounds of 0.4 s take: wall time, the best of three runs.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import multiprocessing
import re
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import Report, arguments, check
from pydantic import BaseModel

from bookrag_fast.config.models import BudgetSettings, ChatModelSettings
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.endpoints import ChatEndpoint
from bookrag_fast.models.ledger import Spent, UsageLedger
from bookrag_fast.models.middleware.budget import Budget
from bookrag_fast.models.middleware.guarded import GuardedLanguageModel
from bookrag_fast.models.middleware.stack import Services
from bookrag_fast.models.protocols import ChatRequest, Completion, Message, ModelInfo, TokenUsage
from bookrag_fast.models.replies import CheckedModel
from bookrag_fast.models.reply_cache import ReplyCache
from bookrag_fast.models.roles import Role, Terms
from bookrag_fast.prompts import RenderedPrompt

AT_MOST_S = 0.0002
LATENCY_S = 0.4
AT_ONCE = 64
PASSAGE = "The probability of going on, the damping, is 0.5 unless it is set. " * 30  # 2 kB
REPLY = '{"entities": ["damping", "probability", "walk", "relation"]}'


class Entities(BaseModel):
    entities: list[str]


class Null:
    """A language model that answers at once."""

    info = ModelInfo("null", "null")

    async def complete(self, request: ChatRequest) -> Completion:
        return Completion(REPLY, TokenUsage(500, 20, 1))


@contextmanager
def services(*, cache: bool, budget: bool = False) -> Iterator[Services]:
    with tempfile.TemporaryDirectory() as folder:
        ledger = UsageLedger(Path(folder) / "usage.sqlite3")
        shared = Services(
            LoopRunner(),
            ledger,
            ReplyCache(Path(folder) / "replies.sqlite3") if cache else None,
            Budget(BudgetSettings(usd_per_day=1e9), ledger) if budget else None,
        )
        yield shared
        shared.runner.close()
        shared.close()


def settings(base_url: str = "http://127.0.0.1:9/v1", **more: Any) -> ChatModelSettings:
    return ChatModelSettings(base_url=base_url, model="m", concurrency=AT_ONCE, **more)


def asked(n: int) -> ChatRequest:
    text = Message("user", f"{n} {PASSAGE}")
    return ChatRequest((text,), role="extract", book="b", schema=Entities.model_json_schema())


# --- overhead ---------------------------------------------------------------------------------


def overhead(report: Report, seconds: float) -> None:
    ways = {"one by one": 1, "256 at once": 256}
    with services(cache=False) as shared:
        fresh = itertools.count()
        bare = {
            way: taken(shared.runner, Null().complete, lambda: asked(next(fresh)), at_once, seconds)
            for way, at_once in ways.items()
        }
    limits = {"requests_per_minute": 10**9, "tokens_per_minute": 10**12}
    for name, cache, known, more in (
        ("not cached", False, False, {}),
        ("cache miss, reply kept", True, False, {}),
        ("cache hit", True, True, {}),
        ("cache miss, rate limits and budget", True, False, limits),
    ):
        with services(cache=cache, budget=bool(more)) as shared:
            model = GuardedLanguageModel(Null(), settings(**more), shared)  # type: ignore[arg-type]
            fresh = itertools.count()

            def request(known: bool = known, fresh: Iterator[int] = fresh) -> ChatRequest:
                return asked(0 if known else next(fresh))

            first = shared.runner.run(model.complete(asked(10**9)))
            again = shared.runner.run(model.complete(asked(10**9)))
            check(first.text == again.text == REPLY, name)
            check(again.usage.cached == int(cache), name)
            for way, at_once in ways.items():
                ours = taken(shared.runner, model.complete, request, at_once, seconds)
                report.row(f"a call, {name}, {way}", ours=ours - bare[way], at_most=AT_MOST_S)


def taken(
    runner: LoopRunner,
    call: Callable[[ChatRequest], Awaitable[Completion]],
    request: Callable[[], ChatRequest],
    at_once: int,
    seconds: float,
) -> float:
    """Processor seconds a call, of all threads: the median over rounds of 256 calls."""

    async def a_round() -> float:
        requests = [request() for _ in range(256)]
        start = time.process_time()
        for at in range(0, len(requests), at_once):
            part = requests[at : at + at_once]
            if at_once == 1:
                await call(part[0])
            else:
                await asyncio.gather(*map(call, part))
        return (time.process_time() - start) / len(requests)

    runner.run(a_round())
    rounds = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(rounds) < 5:
        rounds.append(runner.run(a_round()))
    return statistics.median(rounds)


# --- extractions ------------------------------------------------------------------------------


class _Server(asyncio.Protocol):
    """As little of a chat endpoint as will do, so that the time it takes is its latency."""

    calls = now = most_at_once = 0
    body = json.dumps(
        {
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": REPLY}}],
            "usage": {"prompt_tokens": 500, "completion_tokens": 20},
        }
    ).encode()
    head = b"HTTP/1.1 200 -\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.got = transport, b""

    def data_received(self, data: bytes) -> None:
        self.got += data
        head, end, body = self.got.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if end and length and len(body) >= int(length[1]):
            self.got = b""
            _Server.calls += 1
            _Server.now += 1
            _Server.most_at_once = max(_Server.most_at_once, _Server.now)
            asyncio.get_running_loop().call_later(LATENCY_S, self.answer)

    def answer(self) -> None:
        _Server.now -= 1
        self.transport.write(self.head % len(self.body) + self.body)


def _serve(said: Any, done: Any) -> None:
    async def until_done() -> None:
        server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0)
        said.put(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        await asyncio.to_thread(done.wait)
        said.put((_Server.calls, _Server.most_at_once))

    asyncio.run(until_done())


def extractions(report: Report, count: int, *, cache: bool, runs: int) -> None:
    report.row(
        f"{count} extractions, {AT_ONCE} at once, {LATENCY_S:g} s each, "
        + ("cached" if cache else "no cache"),
        ours=min(_extracted(count, cache=cache) for _ in range(runs)),
        against="ideal",
        theirs=math.ceil(count / AT_ONCE) * LATENCY_S,
        target=1 / 1.1 if count >= 1000 else None,  # the first replies take as long for few
    )


def _extracted(count: int, *, cache: bool) -> float:
    context = multiprocessing.get_context("spawn")
    said, done = context.Queue(), context.Event()
    process = context.Process(target=_serve, args=(said, done))
    process.start()
    url = said.get(timeout=60)
    with services(cache=cache) as shared:
        chat = settings(url)
        endpoint = ChatEndpoint("m", chat)
        model = CheckedModel(Role.EXTRACT, GuardedLanguageModel(endpoint, chat, shared))

        async def extract(n: int) -> list[str] | None:
            prompt = RenderedPrompt("extract@1/en", "Name the entities.", f"{n} {PASSAGE}")
            outcome = await model.ask(prompt, Entities, Terms("b"))
            return outcome.value.entities if outcome.value else None

        async def all_of_them() -> float:
            await asyncio.gather(*(extract(-1 - n) for n in range(AT_ONCE)))  # connections
            start = time.perf_counter()
            found = await asyncio.gather(*map(extract, range(count)))
            took = time.perf_counter() - start
            check(
                all(entities is not None and len(entities) == 4 for entities in found), "entities"
            )
            await endpoint.aclose()
            return took

        took = shared.runner.run(all_of_them())
        done.set()
        calls, at_once = said.get(timeout=60)
        check(calls == count + AT_ONCE, f"{calls} calls")
        check(at_once == AT_ONCE, f"{at_once} calls at once")
        total = sum(shared.ledger.totals("role").values(), Spent())
        check(total.calls == calls, f"{total} in the ledger")
    process.join()
    return took


def main() -> None:
    options = arguments(__doc__)
    report = Report("middleware")
    overhead(report, options.seconds)
    for cache in (False, True):
        count, runs = (256, 1) if options.quick else (1000, 3)
        extractions(report, count, cache=cache, runs=runs)
    report.finish(options.out)


if __name__ == "__main__":
    main()
