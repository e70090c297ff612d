"""Embedding models behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import json
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from bookrag_fast.config import EmbeddingsModelSettings
from bookrag_fast.errors import ModelError, ModelTimeoutError
from bookrag_fast.forks import begins_anew
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.checks import check_texts
from bookrag_fast.models.counting import count_tokens, is_count
from bookrag_fast.models.endpoints.client import EndpointClient
from bookrag_fast.models.endpoints.faults import StatusRefusedError
from bookrag_fast.models.endpoints.texts import begun, too_long, well_formed
from bookrag_fast.models.protocols import EmbedderInfo, Embeddings, FloatMatrix, TokenUsage
from bookrag_fast.models.twins import AwaitedEmbedder

__all__ = ["EmbeddingsEndpoint"]

DoubleMatrix = npt.NDArray[np.float64]

_PATH = "/embeddings"
_MOST_NUMBERS = 16384  # of a vector
_NUMBER_BYTES = 26  # of one, written out
_SLACK_BYTES = 1 << 16
_HALVINGS = 3  # of texts that are still too long for the server
_PROBE = "dimension"


class EmbeddingsEndpoint(AwaitedEmbedder):
    """Implements `protocols.Embedder`. Calls run on ``runner``'s loop.

    How long the model's vectors are shows in one call of one text, made before the first batch,
    or when ``info`` is looked at and the settings name no dimension: ``on_look`` is told what that
    took, which is part of no call.
    """

    def __init__(
        self,
        name: str,
        settings: EmbeddingsModelSettings,
        runner: LoopRunner,
        *,
        on_look: Callable[[TokenUsage], None] = lambda usage: None,
    ) -> None:
        self.runner = runner
        self._name = name
        self._settings = settings
        self._on_look = on_look
        self._client = self._connected()
        self._numbers: int | None = None  # of a vector as the server sends it
        self._base64 = True
        self._failed: ModelError | None = None  # of the last probe for `info`
        self._failed_at = 0.0  # by the steady clock
        self.forked()
        begins_anew(self)

    def forked(self) -> None:
        self._probing = asyncio.Lock()
        self._guard = threading.Lock()

    @property
    def info(self) -> EmbedderInfo:
        """May call the server once, and blocks until it has answered. Raises ModelError."""
        return self._info(self._settings.dimension or self._numbers or self._found())

    def info_of(self, dimension: int) -> EmbedderInfo:
        return self._info(self._settings.dimension or self._numbers or dimension)

    def _info(self, dimension: int) -> EmbedderInfo:
        settings = self._settings
        identity = [settings.model, dimension, settings.query_prefix, settings.passage_prefix]
        digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
        return EmbedderInfo(settings.model, dimension, digest[:16], provider="endpoint")

    async def aembed(self, texts: Sequence[str], *, query: bool = False) -> Embeddings:
        """Texts of white space are not sent: their rows are zeros. Raises ModelError, and
        InvalidArgumentError for what is no sequence of texts."""
        check_texts(texts)
        settings = self._settings
        prefix = settings.query_prefix if query else settings.passage_prefix
        sent = [index for index, text in enumerate(texts) if text.strip()]
        usage = TokenUsage()
        if self._numbers is None and (sent or settings.dimension is None):
            async with self._probing:  # one for all who come first
                if self._numbers is None:
                    self._numbers, usage = await self._probe(self._client)
        rows: list[tuple[list[int], FloatMatrix]] = []
        for at in range(0, len(sent), settings.batch_size):
            batch = sent[at : at + settings.batch_size]
            vectors, cost = await self._embed(self._client, prefix, [texts[i] for i in batch])
            rows.append((batch, vectors))
            usage += cost
        dimension = settings.dimension or self._numbers
        assert dimension is not None
        out = np.zeros((len(texts), dimension), dtype=np.float32)
        for batch, vectors in rows:
            out[batch] = vectors
        return Embeddings(out, usage)

    async def aclose(self) -> None:
        await self._client.aclose()

    # --- how long vectors are -------------------------------------------------------------------

    def _connected(self) -> EndpointClient:
        one = _NUMBER_BYTES * _MOST_NUMBERS + _SLACK_BYTES
        return EndpointClient(self._name, self._settings, reply_limit=one)

    async def _probe(self, client: EndpointClient) -> tuple[int, TokenUsage]:
        reply = await self._reply(client, [_PROBE])
        numbers = self._vectors(client, reply, 1).shape[1]
        wanted = self._settings.dimension
        if wanted is not None and wanted > numbers:
            client.faults.reply(
                f"sends vectors of {numbers} numbers, fewer than the {wanted} of its settings",
                f"set models.{self._name}.dimension to at most {numbers}",
            )
        self._client.limit_replies(
            self._settings.batch_size * (numbers * _NUMBER_BYTES + 256) + _SLACK_BYTES
        )
        return numbers, self._usage(reply, [_PROBE])

    def _found(self) -> int:
        """The probe from wherever ``info`` is looked at, be it a running loop: on a loop and a
        connection of its own."""

        async def apart() -> tuple[int, TokenUsage]:
            client = self._connected()
            try:
                probing = self._probe(client)
                return await asyncio.wait_for(probing, self._settings.timeout_s)
            except asyncio.TimeoutError:
                raise ModelTimeoutError(
                    f"model {self._name!r} at {client.host} did not answer in time"
                ) from None
            finally:
                await client.aclose()

        came = time.monotonic()
        with self._guard:
            if self._numbers is None:
                # Who waited for a probe shares its fate: one after the other would wait for ever
                # longer for a server that hangs.
                if self._failed is not None and came < self._failed_at:
                    raise self._failed
                try:
                    with ThreadPoolExecutor(1) as pool:
                        found, usage = pool.submit(lambda: asyncio.run(apart())).result()
                except ModelError as error:
                    self._failed, self._failed_at = error, time.monotonic()
                    raise
                self._numbers = found
                self._on_look(usage)
            return self._numbers

    # --- a batch --------------------------------------------------------------------------------

    async def _embed(
        self, client: EndpointClient, prefix: str, texts: list[str]
    ) -> tuple[FloatMatrix, TokenUsage]:
        """Unit rows of texts that are cut to the model's most tokens, and further while the server
        finds them too long."""
        tokens = self._settings.max_tokens
        for left in range(_HALVINGS, -1, -1):
            inputs = [begun(prefix + well_formed(text), tokens) for text in texts]
            try:
                reply = await self._reply(client, inputs)
                break
            except StatusRefusedError as refusal:
                if not left or not too_long(refusal.said):
                    raise
                tokens = max(8, tokens // 2)
        with client.faults.billed(reply.get("usage")):
            vectors = self._vectors(client, reply, len(inputs))
            if vectors.shape[1] != self._numbers:
                client.faults.reply(
                    f"sent vectors of {vectors.shape[1]} numbers, before that of {self._numbers}"
                )
            rows = _unit(client, vectors[:, : self._settings.dimension])
        return rows, self._usage(reply, inputs)

    async def _reply(self, client: EndpointClient, inputs: list[str]) -> Mapping[str, Any]:
        body = {"model": self._settings.model, "input": inputs}
        try:
            # Packed numbers are read some twenty times as fast as written ones.
            packed = {"encoding_format": "base64"} if self._base64 else {}
            reply = await client.post(_PATH, {**body, "encoding_format": "float", **packed})
        except StatusRefusedError as refusal:
            if not self._base64 or not ("base64" in refusal.said or "encoding" in refusal.said):
                raise
            self._base64 = False
            return await self._reply(client, inputs)
        if not isinstance(reply, Mapping) or not isinstance(reply.get("data"), list):
            client.faults.reply("sent something else than embeddings")
        return reply

    def _vectors(
        self, client: EndpointClient, reply: Mapping[str, Any], count: int
    ) -> DoubleMatrix:
        """float64[count, numbers] in the order of the texts."""
        data = reply["data"]
        if len(data) != count:
            client.faults.reply(f"sent {len(data)} embeddings for {count} texts")
        try:
            vectors = [_numbers(item["embedding"]) for item in data]
            places = [item.get("index", at) for at, item in enumerate(data)]
        except (TypeError, KeyError, AttributeError, ValueError, OverflowError):
            client.faults.reply("sent an embedding that is no list of numbers")
        length = vectors[0].size
        if not 0 < length <= _MOST_NUMBERS or any(v.shape != (length,) for v in vectors):
            client.faults.reply("sent embeddings of different lengths, or of none")
        if sorted(p for p in places if isinstance(p, int)) != list(range(count)):
            client.faults.reply("sent embeddings whose order is not told")
        out = np.empty((count, length), dtype=np.float64)
        out[places] = vectors
        return out

    def _usage(self, reply: Mapping[str, Any], inputs: list[str]) -> TokenUsage:
        stated = reply.get("usage")
        tokens = stated.get("prompt_tokens") if isinstance(stated, Mapping) else None
        if not is_count(tokens):
            tokens = sum(map(count_tokens, inputs))
        return TokenUsage(prompt_tokens=tokens, calls=1)


def _numbers(embedding: object) -> DoubleMatrix:
    """A vector from either form in which servers send it, whichever was asked for."""
    if isinstance(embedding, str):
        try:
            data = b64decode(embedding, validate=True)
        except binascii.Error as error:
            raise ValueError from error
        return np.frombuffer(data, dtype="<f4").astype(np.float64)
    if not isinstance(embedding, list):
        raise TypeError
    return np.asarray(embedding, dtype=np.float64)


def _unit(client: EndpointClient, vectors: DoubleMatrix) -> FloatMatrix:
    if not np.isfinite(vectors).all():
        client.faults.reply("sent an embedding with a number that is none (NaN or infinite)")
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    if not largest.all():
        client.faults.reply("sent an embedding of zeros for a text")
    scaled = vectors / largest  # so that squares neither vanish nor overflow
    unit: FloatMatrix = (scaled / np.linalg.norm(scaled, axis=1, keepdims=True)).astype(np.float32)
    return unit
