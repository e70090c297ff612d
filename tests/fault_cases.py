"""Everything that a model's server can do wrong, and what becomes of a question put to it.

One list for the test that holds the outcomes and for the table of them in `benchmarks`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

from pydantic import BaseModel

from bookrag_fast.errors import ModelError
from bookrag_fast.models.endpoints import ChatEndpoint, EmbeddingsEndpoint, RerankEndpoint
from bookrag_fast.models.ledger import Spent, UsageLedger
from bookrag_fast.models.middleware.guarded import (
    GuardedEmbedder,
    GuardedLanguageModel,
    GuardedReranker,
)
from bookrag_fast.models.middleware.stack import Services
from bookrag_fast.models.replies import CheckedModel
from bookrag_fast.models.reply_cache import ReplyCache
from bookrag_fast.models.roles import Outcome, Role
from bookrag_fast.prompts import RenderedPrompt
from endpoint_settings import chat_settings, embeddings_settings, rerank_settings
from fake_endpoint import Behaviour, FakeEndpoint, chat, embeddings, ok, rerank, sequence, usage_of
from fake_faults import (
    disconnect,
    drip,
    empty_choices,
    hang,
    huge,
    invalid_json,
    redirect,
    refuse,
    status,
    think_only,
    truncated_json,
)
from virtual_time import Here

TIMEOUT_S = 1.2
RETRIES = 2
GOOD = '{"items": ["one", "two"]}'

Way = Literal["ask", "stream", "embed", "rerank"]


class Items(BaseModel):
    items: list[str]


@dataclass(frozen=True)
class Case:
    """``outcome`` is "value", "offline" (a role's question) or the error's name; ``calls`` and
    ``failures`` are what the ledger says; ``steps`` what use of the replies took."""

    name: str
    way: Way
    behaviour: Callable[[], Behaviour]  # made anew for each run: some count
    outcome: str
    calls: int
    failures: int | None  # None: as many as there is time for
    steps: tuple[str, ...] = ()
    tls: bool = False
    least_s: float = 0.0
    uncounted: int = 0  # replies of an attempt of several requests, the last of which failed
    wasted: int = 0  # prompt tokens that came with replies of no use


@dataclass(frozen=True)
class Seen:
    """What became of a case. ``requests`` came to the server; ``stated`` are the prompt tokens that
    it stated with its replies to chats; ``again`` is the outcome once more, when it works."""

    outcome: str
    steps: tuple[str, ...]
    spent: Spent
    requests: int
    stated: int
    seconds: float
    again: str
    problem: str = ""


CASES = [
    Case("works", "ask", lambda: ok(GOOD), "value", 1, 0),
    Case(
        "429, Retry-After: 1, then works",
        "ask",
        lambda: sequence(status(429, retry_after="1"), ok(GOOD)),
        "value",
        1,
        1,
        least_s=1.0,
    ),
    Case(
        "429, Retry-After: 3600",
        "ask",
        lambda: status(429, retry_after="3600"),
        "offline",
        0,
        1,
        ("offline",),
    ),
    Case("429 for ever", "ask", lambda: status(429), "offline", 0, None, ("offline",)),
    Case("500, then works", "ask", lambda: sequence(status(500), ok(GOOD)), "value", 1, 1),
    Case("500 for ever", "ask", lambda: status(500), "offline", 0, 3, ("offline",)),
    Case("503 for ever", "stream", lambda: status(503), "offline", 0, 3, ("offline",)),
    Case("401", "ask", lambda: status(401), "offline", 0, 1, ("offline",)),
    Case("slow drip", "ask", drip, "offline", 0, 1, ("offline",)),
    Case("slow drip", "stream", drip, "offline", 0, 1, ("offline",)),
    Case("hangs", "ask", hang, "offline", 0, 1, ("offline",)),
    Case("hangs", "stream", hang, "offline", 0, 1, ("offline",)),
    Case("refuses connections", "ask", refuse, "offline", 0, 3, ("offline",)),
    Case("disconnects in mid-reply", "ask", disconnect, "offline", 0, 3, ("offline",)),
    Case(
        "disconnects in mid-reply, then works",
        "ask",
        lambda: sequence(disconnect(), ok(GOOD)),
        "value",
        1,
        1,
    ),
    Case("disconnects in mid-stream", "stream", disconnect, "offline", 0, 1, ("offline",)),
    Case(
        "disconnects before the first piece, then works",
        "stream",
        lambda: sequence(disconnect(events=0), ok(GOOD)),
        "value",
        1,
        1,
    ),
    Case("body is no JSON", "ask", invalid_json, "offline", 0, 2, ("offline",)),
    Case("events are no JSON", "stream", invalid_json, "offline", 0, 2, ("offline",)),
    Case(
        "JSON with a slip in it",
        "ask",
        lambda: ok("```json\n{'items': ['one', 'two'],}\n```"),
        "value",
        1,
        0,
        ("repaired",),
    ),
    Case("truncated JSON", "ask", truncated_json, "value", 1, 0, ("repaired", "cut short")),
    Case(
        "wrong schema",
        "ask",
        lambda: chat('{"wrong": 1}'),
        "offline",
        2,
        0,
        ("asked again", "offline"),
    ),
    Case(
        "wrong schema, then right",
        "ask",
        lambda: sequence(chat('{"wrong": 1}'), ok(GOOD)),
        "value",
        2,
        0,
        ("asked again",),
    ),
    Case("empty choices", "ask", empty_choices, "offline", 0, 2, ("offline",), wasted=14),
    Case("empty choices", "stream", empty_choices, "offline", 0, 2, ("offline",)),
    Case("thinks only", "ask", think_only, "offline", 2, 0, ("asked again", "offline")),
    Case(
        "thinks only", "stream", think_only, "offline", 2, 0, ("cleaned", "asked again", "offline")
    ),
    Case("10 MB, declared", "ask", huge, "offline", 0, 2, ("offline",)),
    Case("10 MB, not declared", "ask", lambda: huge(declared=False), "offline", 0, 2, ("offline",)),
    Case("10 MB", "stream", huge, "offline", 0, 2, ("offline",)),
    Case("redirects", "ask", redirect, "offline", 0, 1, ("offline",)),
    Case("bad TLS", "ask", lambda: ok(GOOD), "offline", 0, 1, ("offline",), tls=True),
    Case("works", "embed", ok, "value", 2, 0),  # one to see how long vectors are
    Case("fewer embeddings", "embed", lambda: embeddings(count=-1), "ModelReplyError", 0, 2),
    Case(
        "another dimension",
        "embed",
        lambda: sequence(embeddings(8), embeddings(6)),
        "ModelReplyError",
        0,
        2,
        uncounted=1,
    ),
    Case(
        "NaN",
        "embed",
        lambda: embeddings(value=float("nan")),
        "ModelReplyError",
        0,
        2,
        uncounted=1,
    ),
    Case("hangs", "embed", hang, "ModelTimeoutError", 0, 1),
    Case("500 for ever", "embed", lambda: status(500), "ModelUnavailableError", 0, 3),
    Case("works", "rerank", ok, "value", 1, 0),
    Case("too many scores", "rerank", lambda: rerank(extra=2), "ModelReplyError", 0, 2),
    Case("NaN", "rerank", lambda: rerank(lambda *_: float("nan")), "ModelReplyError", 0, 2),
    Case("hangs", "rerank", hang, "ModelTimeoutError", 0, 1),
]


class _Soon(Random):
    """Pauses between attempts that tests need not wait for."""

    def uniform(self, a: float, b: float) -> float:
        return 0.01


async def run(case: Case, folder: Path) -> Seen:
    """Put a question to a server that behaves so, through all that lies between, then another to
    the same when it works again."""
    ledger = UsageLedger(folder / "usage.sqlite3")
    cache = ReplyCache(folder / "replies.sqlite3")
    shared = Services(Here(), ledger, cache, random=_Soon())
    steps: list[str] = []
    behaviour = case.behaviour()
    with FakeEndpoint(behaviour, tls=case.tls) as server:
        async with AsyncExitStack() as closing:
            ask = _asker(case.way, server.base_url, shared, steps, closing)
            start = time.monotonic()
            outcome, problem = await _outcome(ask("first"))
            seconds = time.monotonic() - start
            spent = await asyncio.to_thread(_sum, ledger)
            seen, came = tuple(steps), list(server.calls)
            server.behaviour = ok(GOOD)
            again, _ = await _outcome(ask("second"))
    await asyncio.to_thread(shared.close)
    # In all cases the calls that bring a reply are the last ones.
    replied = came[len(came) - spent.calls :]
    stated = sum(usage_of(call.body, "")["prompt_tokens"] for call in replied)
    return Seen(outcome, seen, spent, len(came), stated, seconds, again, problem)


def _asker(
    way: Way, url: str, shared: Services, steps: list[str], closing: AsyncExitStack
) -> Callable[[str], Any]:
    limits: dict[str, Any] = {"retries": RETRIES}
    if way == "embed":
        settings = embeddings_settings(url, **limits).model_copy(update={"timeout_s": TIMEOUT_S})
        embeds = EmbeddingsEndpoint("m", settings, shared.runner)
        closing.push_async_callback(embeds.aclose)
        embedder = GuardedEmbedder(embeds, settings, shared, name="m")
        return lambda text: embedder.aembed([text, "another text"])
    if way == "rerank":
        ranks = rerank_settings(url, **limits).model_copy(update={"timeout_s": TIMEOUT_S})
        endpoint = RerankEndpoint("m", ranks, shared.runner)
        closing.push_async_callback(endpoint.aclose)
        reranker = GuardedReranker(endpoint, ranks, shared)
        return lambda text: reranker.arerank(text, ["a text", "another text"])
    chats = chat_settings(url, **limits).model_copy(update={"timeout_s": TIMEOUT_S})
    talks = ChatEndpoint("m", chats)
    closing.push_async_callback(talks.aclose)
    model = CheckedModel(
        Role.EXTRACT,
        GuardedLanguageModel(talks, chats, shared),
        on_step=lambda role, step: steps.append(step),
    )

    async def streamed(prompt: RenderedPrompt) -> Outcome[str]:
        *_, outcome = [part async for part in model.stream(prompt)]
        assert isinstance(outcome, Outcome)
        return outcome

    def ask(text: str) -> Any:
        prompt = RenderedPrompt("items@1/en", "List.", text)
        return streamed(prompt) if way == "stream" else model.ask(prompt, Items)

    return ask


async def _outcome(asking: Any) -> tuple[str, str]:
    try:
        found = await asking
    except ModelError as error:
        return type(error).__name__, str(error)
    if isinstance(found, Outcome) and found.value is None:
        return "offline", found.problem
    return "value", ""


def _sum(ledger: UsageLedger) -> Spent:
    return sum(ledger.totals("role").values(), Spent())
