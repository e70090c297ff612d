"""Models behind the stack: each implements the protocol of what it wraps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from bookrag_fast.config.models import (
    ChatModelSettings,
    EmbeddingsModelSettings,
    EndpointSettings,
)
from bookrag_fast.errors import ModelError, ModelReplyError, SpendingLimitError
from bookrag_fast.forks import begins_anew, keep
from bookrag_fast.models.booking import book_of_the_work
from bookrag_fast.models.checks import check_question, check_texts
from bookrag_fast.models.counting import count_tokens, prompt_tokens
from bookrag_fast.models.middleware.call import Call, Next, Reply
from bookrag_fast.models.middleware.codecs import FloatsCodec, TextCodec
from bookrag_fast.models.middleware.keys import chat_key, model_key, rerank_key, text_keys
from bookrag_fast.models.middleware.pieces import Pieces
from bookrag_fast.models.middleware.stack import Services, stack
from bookrag_fast.models.protocols import (
    ChatRequest,
    Completion,
    Embedder,
    EmbedderInfo,
    Embeddings,
    LanguageModel,
    ModelInfo,
    Reranker,
    Scores,
    TokenUsage,
    VisionModel,
)
from bookrag_fast.models.twins import AwaitedEmbedder, AwaitedReranker, info_unasked

__all__ = [
    "GuardedEmbedder",
    "GuardedLanguageModel",
    "GuardedReranker",
    "GuardedVisionModel",
    "expected_tokens",
]

T = TypeVar("T")


def expected_tokens(request: ChatRequest, settings: EndpointSettings) -> int:
    """What a usual reply takes, as far as the request says, and at most what it may take by the
    request and by the model's settings."""
    usual = request.expected_tokens or request.max_tokens // 2
    most = settings.max_tokens if isinstance(settings, ChatModelSettings) else request.max_tokens
    return min(usual, request.max_tokens, most)


@runtime_checkable
class _Closed(Protocol):
    async def aclose(self) -> None: ...


class _Guarded:
    """What all share: the stack, and the loop that it lives on. A forked child has a stack of its
    own: the calls that hold the places of its parent's are not there."""

    def __init__(self, inner: object, services: Services, make_stack: Callable[[], Next]) -> None:
        self._inner = inner
        self.runner = services.runner
        self._make_stack = make_stack
        self._stack = make_stack()
        begins_anew(self)

    def forked(self) -> None:
        keep(self._stack)
        self._stack = self._make_stack()

    async def aclose(self) -> None:
        """Close the connections of what is wrapped."""
        if isinstance(self._inner, _Closed):
            await self.runner.arun(self._inner.aclose())

    async def _passed(self, call: Call) -> Reply:
        return await self._stack(call)


class GuardedLanguageModel(_Guarded):
    """A `LanguageModel` within the limits of its settings, whoever asks and on whichever loop.

    Args:
        inner: makes the calls, one attempt each.
        settings: limits, price, and what shapes replies.
        services: shared with the other models of the library.
        role_limits: calls at once of roles that have a limit of their own.
    """

    def __init__(
        self,
        inner: LanguageModel,
        settings: EndpointSettings,
        services: Services,
        *,
        role_limits: Mapping[str, int] | None = None,
    ) -> None:
        self._model = inner
        self._settings = settings
        self._key = None if services.cache is None else model_key(settings)
        name, codec = inner.info.name, TextCodec()
        super().__init__(
            inner,
            services,
            lambda: stack(name, settings, services, self._client, codec, role_limits),
        )

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    async def complete(self, request: ChatRequest) -> Completion:
        reply = await self.runner.arun(self._passed(self._call(request)))
        return _completion(reply)

    async def complete_batch(
        self, requests: Sequence[ChatRequest]
    ) -> list[Completion | ModelError]:
        async def alone(request: ChatRequest) -> Completion | ModelError:
            try:
                return _completion(await self._stack(self._call(request)))
            except ModelError as error:
                return error

        return await self.runner.arun(_all([alone(request) for request in requests]))

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        pieces = Pieces()
        work = self.runner.arun(self._passed(self._call(request, pieces)))
        reply = asyncio.ensure_future(work)
        reply.add_done_callback(pieces.end)
        try:
            async for piece in pieces:
                yield piece
            yield _completion(reply.result())
        finally:
            pieces.close()
            if not reply.done():
                reply.cancel()
                await asyncio.wait((reply,))

    def _call(self, request: ChatRequest, sink: Pieces | None = None) -> Call:
        return Call(
            "chat",
            (request,),
            () if self._key is None else (chat_key(self._key, request),),
            role=request.role,
            book=request.book,
            prompt_tokens=(prompt_tokens(request.messages),),
            completion_tokens=expected_tokens(request, self._settings),
            fresh=request.fresh,
            sink=sink,
        )

    async def _client(self, call: Call) -> Reply:
        (request,) = call.items
        if call.sink is None:
            return _replied(await self._model.complete(request))
        pieces = self._model.stream(request)
        try:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return _replied(piece)
                call.sink.put(piece)
        finally:
            if isinstance(pieces, AsyncGenerator):
                await (
                    pieces.aclose()
                )  # now, rather than when it is collected: it holds a connection
        raise ModelReplyError(
            f"model {self.info.name!r} ended its reply without saying that it was whole"
        )


class GuardedVisionModel(GuardedLanguageModel):
    """The same for a `VisionModel`."""

    _model: VisionModel

    @property
    def max_images(self) -> int:
        return self._model.max_images


class GuardedEmbedder(_Guarded, AwaitedEmbedder):
    """An `Embedder` within the limits of its settings. Texts are cached one by one, so that an
    edited book pays for what is new in it; what is not there goes out in batches.

    Args:
        inner: makes the calls, one attempt each.
        settings: as of `GuardedLanguageModel`; no call has more than ``batch_size`` texts.
        services: shared with the other models of the library.
        name: the model's in the configuration.
        role: that usage is booked on.
    """

    def __init__(
        self,
        inner: Embedder,
        settings: EmbeddingsModelSettings,
        services: Services,
        *,
        name: str,
        role: str = "embed",
    ) -> None:
        self._embedder = inner
        self._batch_size = settings.batch_size
        self._name = name
        self._role = role
        self._key = None if services.cache is None else model_key(settings)
        super().__init__(
            inner,
            services,
            lambda: stack(name, settings, services, self._client, FloatsCodec()),
        )

    @property
    def info(self) -> EmbedderInfo:
        return self._embedder.info

    def info_of(self, dimension: int) -> EmbedderInfo:
        return info_unasked(self._embedder, dimension)

    async def aembed(self, texts: Sequence[str], *, query: bool = False) -> Embeddings:
        check_texts(texts)
        if not len(texts):
            return await self.runner.arun(self._embedder.aembed([], query=query))
        unique = list(dict.fromkeys(texts))
        calls = [
            self._call(unique[start : start + self._batch_size], query)
            for start in range(0, len(unique), self._batch_size)
        ]
        replies = await self.runner.arun(_all([self._passed(call) for call in calls]))
        rows = [row for reply in replies for row in reply.values]
        if len({len(row) for row in rows}) > 1:
            raise ModelReplyError(
                f"model {self._name!r} gives vectors of another dimension than before",
                "its server has another model than it had; run with --no-cache once",
            )
        place = {text: row for row, text in enumerate(unique)}
        vectors = np.stack(rows)[[place[text] for text in texts]]
        return Embeddings(vectors, sum((r.usage for r in replies), TokenUsage()))

    def _call(self, texts: list[str], query: bool) -> Call:
        return Call(
            "embed",
            tuple((text, query) for text in texts),
            () if self._key is None else tuple(text_keys(self._key, texts, query=query)),
            role=self._role,
            book=book_of_the_work(),
            prompt_tokens=tuple(count_tokens(text) for text in texts),
        )

    async def _client(self, call: Call) -> Reply:
        texts = [text for text, _ in call.items]
        vectors, usage = await self._embedder.aembed(texts, query=call.items[0][1])
        return Reply(list(vectors), usage)


class GuardedReranker(_Guarded, AwaitedReranker):
    """A `Reranker` within the limits of its settings. A question is cached with all its texts."""

    def __init__(
        self,
        inner: Reranker,
        settings: EndpointSettings,
        services: Services,
        *,
        role: str = "rerank",
    ) -> None:
        self._reranker = inner
        self._role = role
        self._key = None if services.cache is None else model_key(settings)
        name = inner.info.name
        super().__init__(
            inner,
            services,
            lambda: stack(name, settings, services, self._client, FloatsCodec()),
        )

    @property
    def info(self) -> ModelInfo:
        return self._reranker.info

    async def arerank(self, question: str, texts: Sequence[str]) -> Scores:
        check_question(question)
        check_texts(texts)
        if not len(texts):
            return Scores(np.zeros(0, np.float32), TokenUsage())
        tokens = len(texts) * count_tokens(question) + sum(map(count_tokens, texts))
        call = Call(
            "rerank",
            ((question, tuple(texts)),),
            () if self._key is None else (rerank_key(self._key, question, texts),),
            role=self._role,
            book=book_of_the_work(),
            prompt_tokens=(tokens,),
        )
        reply = await self.runner.arun(self._passed(call))
        return Scores(reply.values[0], reply.usage)

    async def _client(self, call: Call) -> Reply:
        question, texts = call.items[0]
        scores, usage = await self._reranker.arerank(question, texts)
        return Reply([scores], usage)


async def _all(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All at once; the first failure cancels the rest. When the budget is spent, what is under way
    is a part of it: it is paid for, and ends in its own time."""
    if len(work) == 1:
        return [await work[0]]
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return list(await asyncio.gather(*tasks))
    except SpendingLimitError:
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _replied(completion: Completion) -> Reply:
    return Reply([(completion.text, completion.finish)], completion.usage)


def _completion(reply: Reply) -> Completion:
    text, finish = reply.values[0]
    return Completion(text, reply.usage, finish)
