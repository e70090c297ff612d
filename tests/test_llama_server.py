"""A real model server: what is proven is transport, schemas, streaming and limits, not quality."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel

from bookrag_fast.config import ChatModelSettings, EmbeddingsModelSettings, Settings
from bookrag_fast.errors import ModelRefusedError
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.endpoints import ChatEndpoint, EmbeddingsEndpoint
from bookrag_fast.models.probes import probe_models
from bookrag_fast.models.protocols import ChatRequest, Completion, Message
from bookrag_fast.models.replies import CheckedModel
from bookrag_fast.models.roles import Role, Terms
from bookrag_fast.prompts import RenderedPrompt
from llama_server import CONTEXT, llama_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with llama_server() as url:
        yield url


@asynccontextmanager
async def endpoint(base_url: str, **values: Any) -> AsyncIterator[ChatEndpoint]:
    settings = ChatModelSettings(base_url=base_url, model="gemma", **values)
    async with aclosing(ChatEndpoint("small", settings)) as chat:
        yield chat


def request(text: str, **values: Any) -> ChatRequest:
    return ChatRequest((Message("user", text),), **values)


async def test_a_completion_and_what_it_took(base_url: str) -> None:
    async with endpoint(base_url) as chat:
        short = await chat.complete(request("One, two, three, four,", max_tokens=8))
        long = await chat.complete(request("One, two, three, four, " * 20, max_tokens=8))
    assert short.text.strip()
    assert (short.finish, short.usage.completion_tokens) == ("length", 8)
    assert 8 < short.usage.prompt_tokens < 32
    assert long.usage.prompt_tokens > 10 * short.usage.prompt_tokens
    assert short.usage.calls == 1


async def test_a_reply_comes_in_pieces(base_url: str) -> None:
    async with endpoint(base_url) as chat:
        started, first, parts = time.monotonic(), 0.0, []
        async for part in chat.stream(request("The rivers of Europe are", max_tokens=32)):
            first = first or time.monotonic() - started
            parts.append(part)
        took = time.monotonic() - started
    *pieces, whole = parts
    assert isinstance(whole, Completion)
    assert "".join(map(str, pieces)) == whole.text
    assert len(pieces) > 4
    assert first < took / 2  # it was not held back to the end
    assert whole.usage.completion_tokens == 32
    assert whole.usage.prompt_tokens > 0


class Classified(BaseModel):
    category: Literal["single-hop", "multi-hop", "global"]
    sure: bool


@pytest.mark.parametrize("structured", ["auto", "schema"])
async def test_a_reply_keeps_to_its_schema(base_url: str, structured: str) -> None:
    async with endpoint(base_url, structured=structured) as chat:
        prompt = RenderedPrompt("test@1/en", "Classify.", "What is the default damping?")
        steps: list[str] = []
        model = CheckedModel(Role.PLAN, chat, on_step=lambda role, step: steps.append(step))
        outcome = await model.ask(prompt, Classified, Terms(max_tokens=96))
    assert outcome.value is not None, outcome.problem
    assert outcome.value.category in ("single-hop", "multi-hop", "global")
    assert set(steps) <= {"cleaned"}  # the server's grammar left nothing to mend
    assert outcome.usage.calls == 1


async def test_a_cancelled_call_gives_its_place_back(base_url: str) -> None:
    """The server has two places: were the cancelled ones still at work, the third would wait for
    some two thousand tokens."""
    endless = request("Count on and on: 1, 2, 3, 4,", max_tokens=2000)
    async with endpoint(base_url) as chat:
        whole = asyncio.ensure_future(chat.complete(endless))
        stream = asyncio.ensure_future(_drained(chat, endless))
        await asyncio.sleep(1.0)
        for task in (whole, stream):
            assert not task.done()
            task.cancel()
        await asyncio.gather(whole, stream, return_exceptions=True)
        started = time.monotonic()
        assert (await chat.complete(request("Hello", max_tokens=4))).text
        assert time.monotonic() - started < 10


async def _drained(chat: ChatEndpoint, asked: ChatRequest) -> None:
    async for _ in chat.stream(asked):
        pass


async def test_a_prompt_beyond_the_context_is_refused_in_words(base_url: str) -> None:
    async with endpoint(base_url) as chat:
        with pytest.raises(ModelRefusedError, match=r"small.*400.*context"):
            await chat.complete(request("many words " * CONTEXT, max_tokens=8))
        assert (await chat.complete(request("Hello", max_tokens=4))).text


async def test_embeddings() -> None:
    runner = LoopRunner()
    with llama_server(embeddings=True) as base_url:
        settings = EmbeddingsModelSettings(
            kind="embeddings", base_url=base_url, model="gemma", batch_size=2
        )
        async with aclosing(EmbeddingsEndpoint("vectors", settings, runner)) as embedder:
            texts = ["a cat on a mat", "", "quarterly revenue", "a cat on a mat"]
            vectors, usage = await embedder.aembed(texts)
    runner.close()
    assert vectors.shape == (4, 640)
    assert np.allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 1], atol=1e-4)
    assert vectors[0] @ vectors[3] > 0.999 > vectors[0] @ vectors[2]
    assert usage.prompt_tokens > 0


def test_doctor_says_what_it_can(base_url: str) -> None:
    address = {"base_url": base_url, "model": "gemma"}
    settings = Settings.model_validate({
        "models": {
            "small": address,
            "blind": {**address, "vision": True},
            "elsewhere": {**address, "base_url": base_url.removesuffix("/v1") + "/v2"},
        },
        "roles": {"plan": "small"},
    })  # fmt: skip
    small, blind, elsewhere = probe_models(settings, deadline_s=30)
    assert small.ok, small
    assert "takes JSON schema; streams (16 pieces)" in small.detail
    assert "for plan" in small.detail
    assert not blind.ok
    assert "no image" in blind.detail
    assert not elsewhere.ok
    assert "404" in elsewhere.detail
