"""Each configured model asked once, past cache, limits and retries: does it do what it is for?"""

from __future__ import annotations

import asyncio
import struct
import time
import zlib
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from pydantic import BaseModel

from bookrag_fast.config import (
    ChatModelSettings,
    EmbeddingsModelSettings,
    EndpointSettings,
    ModelSettings,
    OnnxEmbedderSettings,
    OnnxRerankerSettings,
    RerankModelSettings,
    Settings,
)
from bookrag_fast.config.references import named_models
from bookrag_fast.errors import (
    BookragError,
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelReplyError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.doctor import Finding, embedder_finding
from bookrag_fast.models.middleware.call import Call
from bookrag_fast.models.middleware.usage import Usage
from bookrag_fast.models.protocols import ChatRequest, Completion, Image, Message, TokenUsage

if TYPE_CHECKING:
    from bookrag_fast.models.endpoints import ChatEndpoint
    from bookrag_fast.models.ledger import UsageLedger

__all__ = ["DEADLINE_S", "probe_models"]

DEADLINE_S = 10.0  # of each call
_QUESTION = "Which of Berlin, Paris and Rome is the capital of France?"
_TEXTS = ("The capital of France is Paris.", "Bread is baked from flour, water and salt.")
_MODES = {"schema": "JSON schema", "json": "JSON mode", "prompt": "JSON by prompt"}
_THOUGHT_TOKENS = 512  # that a reply may have: some think first
_ROLE = "doctor"  # that calls are booked on; of no book


class _Billed(Protocol):
    @property
    def usage(self) -> TokenUsage: ...


T = TypeVar("T")
Reply = TypeVar("Reply", bound=_Billed)


class _Streamed(NamedTuple):
    pieces: int
    usage: TokenUsage


class _City(BaseModel):
    city: Literal["Berlin", "Paris", "Rome"]  # short, even from a model that likes to go on


def probe_models(
    settings: Settings, *, deadline_s: float = DEADLINE_S, ledger: UsageLedger | None = None
) -> list[Finding]:
    """One finding a model, in the order of the configuration. All are called at the same time,
    each call with a deadline, and booked on the role "doctor" where there is a ledger. Never raises
    for a model that does not work, and tells no secret."""
    if not settings.models:
        return []
    users: dict[str, list[str]] = {}
    for key, name in named_models(settings):
        users.setdefault(name, []).append(key.removeprefix("roles."))
    runner = LoopRunner()

    async def probed(name: str, model: ModelSettings) -> Finding:
        use = f"for {', '.join(users[name])}" if name in users else "unused: no setting names it"
        finding = await _Probe(name, model, runner, deadline_s, ledger).finding()
        return replace(finding, detail=f"{finding.detail}; {use}", needed=name in users)

    async def all_probed() -> list[Finding]:
        return list(await asyncio.gather(*(probed(n, m) for n, m in settings.models.items())))

    try:
        return runner.run(all_probed())
    finally:
        runner.close()


class _Probe:
    """Of one model."""

    def __init__(
        self,
        name: str,
        model: ModelSettings,
        runner: LoopRunner,
        deadline_s: float,
        ledger: UsageLedger | None,
    ) -> None:
        self._name = name
        self._model = model
        self._runner = runner
        self._deadline_s = deadline_s
        self._usage: Usage | None = None
        if ledger is not None and isinstance(model, EndpointSettings):
            self._usage = Usage(name, model.price, ledger)

    async def finding(self) -> Finding:
        title = f"model {self._name}"
        if not isinstance(self._model, EndpointSettings):
            return await asyncio.to_thread(self._local, title)
        started = time.perf_counter()
        try:
            seen = await self._seen()
        except BookragError as error:
            return Finding(title, False, error.message, await self._remedy(error))
        took = time.perf_counter() - started
        return Finding(title, True, f"{seen}, in {took:.2f} s")

    async def _seen(self) -> str:
        # Imported here: what is not configured is not paid for.
        from bookrag_fast.models.endpoints import ChatEndpoint, EmbeddingsEndpoint, RerankEndpoint

        if isinstance(self._model, ChatModelSettings):
            async with aclosing(ChatEndpoint(self._name, self._model)) as chat:
                return await self._chat(chat, self._model)
        if isinstance(self._model, EmbeddingsModelSettings):
            async with aclosing(
                EmbeddingsEndpoint(self._name, self._model, self._runner)
            ) as embeddings:
                vectors = (await self._asked(embeddings.aembed(_TEXTS[:1]))).vectors
                return f"embeds in {vectors.shape[1]} dimensions"
        assert isinstance(self._model, RerankModelSettings)
        async with aclosing(RerankEndpoint(self._name, self._model, self._runner)) as ranker:
            scores = (await self._asked(ranker.arerank(_QUESTION, _TEXTS))).scores
        if np.argmax(scores) != 0:
            raise ModelReplyError(
                f"model {self._name!r} scores an answer no higher than a text about other things",
                "check whether the server runs a reranker",
            )
        return "ranks an answer first"

    async def _chat(self, chat: ChatEndpoint, model: ChatModelSettings) -> str:
        structured = await self._structured(model)
        streamed = await self._asked(_streamed(chat, _request(_QUESTION, max_tokens=16)))
        seen = f"takes {structured}; streams ({streamed.pieces} pieces)"
        if model.vision:
            await self._shown_a_picture(chat)
            seen += "; takes images"
        return seen

    async def _shown_a_picture(self, chat: ChatEndpoint) -> None:
        """The server may fail at it in any way: what was well before is named as well."""
        request = _request("Which colour is this?", max_tokens=16, images=(_picture(),))
        try:
            await self._asked(chat.complete(request))
        except ModelError as error:
            raise ModelRefusedError(
                f"model {self._name!r} takes texts, but no image: {error.message}",
                f"set models.{self._name}.vision to false, or have the server load what it sees by",
            ) from None

    async def _structured(self, model: ChatModelSettings) -> str:
        """The best way to ask for JSON that brings it."""
        from bookrag_fast.models.endpoints import ChatEndpoint
        from bookrag_fast.models.endpoints.faults import StatusRefusedError
        from bookrag_fast.models.replies.reading import read_reply

        request = _request(
            f"{_QUESTION} Reply with JSON.",
            max_tokens=min(_THOUGHT_TOKENS, model.max_tokens),
            schema=_City.model_json_schema(),
        )
        problems = []
        for mode in _MODES if model.structured == "auto" else (model.structured,):
            fixed = model.model_copy(update={"structured": mode})
            async with aclosing(ChatEndpoint(self._name, fixed)) as endpoint:
                try:
                    text = (await self._asked(endpoint.complete(request))).text
                except StatusRefusedError as error:
                    if error.status not in (400, 422, 501):
                        raise
                    problems.append(f"{_MODES[mode]} is refused")
                    continue
            if read_reply(text, _City).value is not None:  # as a role would read it
                return "; ".join([_MODES[mode], *problems])
            problems.append(f"{_MODES[mode]} brings none")
        raise ModelReplyError(
            f"model {self._name!r} answers, but not in JSON: {'; '.join(problems)}",
            "choose a model or a server that keeps to a JSON schema; until then the rules stand in",
        )

    async def _asked(self, work: Coroutine[Any, Any, Reply]) -> Reply:
        """The reply of a call, which is booked as the middleware books those of others."""
        try:
            reply = await self._in_time(work)
        except ModelError as error:
            if self._usage is not None:
                self._usage.failed(Call("chat", (), role=_ROLE), error)
            raise
        if self._usage is not None:
            self._usage.book(reply.usage, role=_ROLE)
        return reply

    async def _in_time(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await asyncio.wait_for(work, self._deadline_s)
        except asyncio.TimeoutError:
            raise ModelTimeoutError(
                f"model {self._name!r} did not answer within {self._deadline_s:g} s",
                "a server that loads its model at the first call may need longer: try again",
            ) from None

    async def _remedy(self, error: BookragError) -> str:
        """The error's own hint; for a model that the server does not know, those that it does."""
        assert isinstance(self._model, EndpointSettings)
        where = f"models.{self._name}"
        if isinstance(error, ModelUnavailableError) and not isinstance(error, ModelRateLimitError):
            return f"is the server running at {self._model.base_url}? Else set {where}.base_url"
        if getattr(error, "status", None) != 404:
            return error.hint
        from bookrag_fast.models.endpoints.listing import listed_models

        try:
            names = await self._in_time(listed_models(self._name, self._model))
        except BookragError:
            return error.hint
        return f"set {where}.model to one that the server has: {', '.join(names)}"

    def _local(self, title: str) -> Finding:
        model = self._model
        if isinstance(model, OnnxEmbedderSettings):
            from bookrag_fast.models.onnx import open_embedder

            return embedder_finding(title, lambda: open_embedder(model))
        assert isinstance(model, OnnxRerankerSettings)
        from bookrag_fast.models.onnx import open_reranker

        started = time.perf_counter()
        try:
            scores = open_reranker(model).rerank(_QUESTION, _TEXTS)
        except BookragError as error:
            return Finding(title, False, error.message, error.hint)
        took = time.perf_counter() - started
        if np.argmax(scores) != 0:
            fault = "scores an answer no higher than a text about other things"
            return Finding(title, False, fault, "check whether the model is a reranker")
        return Finding(title, True, f"ranks an answer first; loaded and tried in {took:.2f} s")


def _request(
    text: str,
    *,
    max_tokens: int,
    schema: dict[str, Any] | None = None,
    images: tuple[Image, ...] = (),
) -> ChatRequest:
    return ChatRequest((Message("user", text, images),), schema=schema, max_tokens=max_tokens)


async def _streamed(chat: ChatEndpoint, request: ChatRequest) -> _Streamed:
    count, usage = 0, TokenUsage()
    async for part in chat.stream(request):
        if isinstance(part, Completion):
            usage = part.usage
        else:
            count += 1
    return _Streamed(count, usage)


def _picture() -> Image:
    """A red PNG of 32 x 32 pixels: some servers take none that is smaller."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    rows = (b"\0" + b"\xff\0\0" * 32) * 32  # each begins with its filter: none
    header = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)  # 8 bits a channel, RGB
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return Image(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
