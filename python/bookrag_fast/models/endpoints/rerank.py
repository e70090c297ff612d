"""Rerankers behind an endpoint of the shape of Jina and Cohere (vLLM …), or of TEI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bookrag_fast.config import RerankModelSettings
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.checks import check_question, check_texts
from bookrag_fast.models.counting import count_tokens, is_count
from bookrag_fast.models.endpoints.client import EndpointClient
from bookrag_fast.models.endpoints.faults import StatusRefusedError
from bookrag_fast.models.endpoints.texts import begun, well_formed
from bookrag_fast.models.protocols import FloatArray, ModelInfo, Scores, TokenUsage
from bookrag_fast.models.twins import AwaitedReranker

__all__ = ["RerankEndpoint"]

_PATH = "/rerank"


class RerankEndpoint(AwaitedReranker):
    """Implements `protocols.Reranker`. Calls run on ``runner``'s loop. Which of the two shapes
    the server takes shows at the first call."""

    def __init__(self, name: str, settings: RerankModelSettings, runner: LoopRunner) -> None:
        self.runner = runner
        self._settings = settings
        # Servers send each text back beside its score: a token is at most some 20 bytes of JSON.
        most = settings.batch_size * (20 * settings.max_tokens + 1024) + (1 << 16)
        self._client = EndpointClient(name, settings, reply_limit=most)
        self._info = ModelInfo(name, settings.model)
        self._tei = False

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def arerank(self, question: str, texts: Sequence[str]) -> Scores:
        """Texts of white space are not sent; they score as low as the lowest of the others.
        Raises ModelError, and InvalidArgumentError for what is no text."""
        check_question(question)
        check_texts(texts)
        scores = np.full(len(texts), np.nan, dtype=np.float32)
        sent = [index for index, text in enumerate(texts) if text.strip()]
        usage = TokenUsage()
        query = begun(well_formed(question), self._settings.max_tokens)
        for at in range(0, len(sent), self._settings.batch_size):
            batch = sent[at : at + self._settings.batch_size]
            documents = [begun(well_formed(texts[i]), self._settings.max_tokens) for i in batch]
            found, cost = await self._scores(query, documents)
            scores[batch] = found
            usage += cost
        scores[np.isnan(scores)] = scores[sent].min() if sent else 0.0
        return Scores(scores, usage)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _scores(self, query: str, documents: list[str]) -> tuple[FloatArray, TokenUsage]:
        reply = await self._reply(query, documents)
        results = reply
        if isinstance(reply, Mapping):
            results = reply.get("results", reply.get("data"))
        if not isinstance(results, list):
            self._client.faults.reply("sent something else than a ranking")
        if len(results) != len(documents):
            self._client.faults.reply(f"ranked {len(results)} texts of {len(documents)}")
        scores = np.full(len(documents), np.nan, dtype=np.float64)
        for result in results:
            index, score = _result(result)
            if index is None or score is None or not 0 <= index < len(documents):
                self._client.faults.reply("sent a rank without its text's index or score")
            scores[index] = score
        if not np.isfinite(scores.astype(np.float32)).all():
            self._client.faults.reply("left a text without a score, or with one that is no number")
        return scores.astype(np.float32), self._usage(reply, query, documents)

    async def _reply(self, query: str, documents: list[str]) -> Any:
        if not self._tei:
            body: dict[str, Any] = {
                "model": self._settings.model,
                "query": query,
                "documents": documents,
                "top_n": len(documents),
            }
            try:
                return await self._client.post(_PATH, body)
            except StatusRefusedError as refusal:
                if refusal.status not in (400, 422) or "texts" not in refusal.said:
                    raise
        reply = await self._client.post(
            _PATH, {"query": query, "texts": documents, "truncate": True}
        )
        self._tei = True
        return reply

    def _usage(self, reply: object, query: str, documents: list[str]) -> TokenUsage:
        stated = reply.get("usage") if isinstance(reply, Mapping) else None
        tokens = stated.get("total_tokens") if isinstance(stated, Mapping) else None
        if not is_count(tokens):
            asked = count_tokens(query)
            tokens = sum(asked + count_tokens(document) for document in documents)
        return TokenUsage(prompt_tokens=tokens, calls=1)


def _result(result: object) -> tuple[int | None, float | None]:
    if not isinstance(result, Mapping):
        return None, None
    index, score = result.get("index"), result.get("relevance_score", result.get("score"))
    if not isinstance(index, int) or isinstance(index, bool):
        index = None
    if not isinstance(score, (int, float)) or isinstance(score, bool) or abs(score) > 1e30:
        score = None
    return index, score
