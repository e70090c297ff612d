"""Embeddings and rerank endpoints: what is sent, what is refused, what comes of it."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager

import numpy as np
import pytest

from bookrag_fast.errors import (
    ModelError,
    ModelRefusedError,
    ModelReplyError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.counting import count_tokens
from bookrag_fast.models.endpoints import EmbeddingsEndpoint, RerankEndpoint
from bookrag_fast.models.endpoints.texts import begun
from bookrag_fast.models.protocols import Embedder, Reranker
from endpoint_settings import embeddings_settings, rerank_settings
from fake_endpoint import Exchange, FakeEndpoint, embeddings, rerank, sequence, vector_of
from fake_faults import hang, huge, raw, status


@pytest.fixture(scope="module")
def runner():
    runner = LoopRunner()
    yield runner
    runner.close()


@pytest.fixture
def embedder(runner):
    @contextmanager
    def made(behaviour=None, **values):
        with FakeEndpoint(behaviour or embeddings()) as server:
            endpoint = EmbeddingsEndpoint(
                "e", embeddings_settings(server.base_url, **values), runner
            )
            yield endpoint, server
            runner.run(endpoint.aclose())

    return made


@pytest.fixture
def reranker(runner):
    @contextmanager
    def made(behaviour=None, **values):
        with FakeEndpoint(behaviour or rerank()) as server:
            endpoint = RerankEndpoint("r", rerank_settings(server.base_url, **values), runner)
            yield endpoint, server
            runner.run(endpoint.aclose())

    return made


def unit(text: str, dimension: int = 8, cut: int | None = None) -> np.ndarray:
    vector = vector_of(text, dimension)[:cut].astype(np.float64)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


# --- embeddings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", [
    embeddings(),
    embeddings(base64_too=False),
    embeddings(shuffled=True),
])  # fmt: skip
def test_rows_are_the_texts_vectors_at_length_1(embedder, behaviour):
    texts = ["a cat", "", "犬", " \n", "a cat"]
    with embedder(behaviour) as (endpoint, _):
        assert isinstance(endpoint, Embedder)
        vectors = endpoint.embed(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (5, 8)
    for text, row in zip(texts, vectors, strict=True):
        expected = unit(text) if text.strip() else np.zeros(8)
        np.testing.assert_allclose(row, expected, atol=1e-6)


def test_what_is_sent(embedder):
    with embedder(query_prefix="query: ", passage_prefix="passage: ", batch_size=2) as (e, server):
        e.embed(["a", " ", "b", "c"])
        e.embed(["q"], query=True)
        bodies = [call.body for call in server.calls]
    assert [body["input"] for body in bodies] == [
        ["dimension"],
        ["passage: a", "passage: b"],
        ["passage: c"],
        ["query: q"],
    ]
    assert all(body["model"] == "fake-e" for body in bodies)
    assert {call.path for call in server.calls} == {"/v1/embeddings"}


def test_nothing_to_embed_calls_nobody_once_the_dimension_is_known(embedder):
    with embedder() as (endpoint, server):
        assert endpoint.info.dimension == 8
        assert endpoint.embed([]).shape == (0, 8)
        assert endpoint.embed([" ", ""]).shape == (2, 8)
        assert len(server.calls) == 1


async def test_what_it_cost(embedder):
    with embedder(batch_size=1) as (endpoint, server):
        cost = (await endpoint.runner.arun(endpoint.aembed(["four", "eight ch"]))).usage
        assert cost.calls == len(server.calls) == 3  # the probe is one of them
        assert cost.prompt_tokens == len("dimension") // 4 + 1 + 2


async def test_many_who_come_first_learn_the_dimension_together(embedder):
    async def many(endpoint):
        return await asyncio.gather(*[endpoint.aembed([f"text {n}"]) for n in range(8)])

    with embedder() as (endpoint, server):
        results = await endpoint.runner.arun(many(endpoint))
        assert sum(result.usage.calls for result in results) == len(server.calls) == 9


def test_a_useless_reply_says_what_it_took_all_the_same(embedder):
    with embedder(probed_then(embeddings(count=1))) as (endpoint, _):
        with pytest.raises(ModelReplyError) as caught:
            endpoint.embed(["four", "four"])
        assert caught.value.prompt_tokens == 2


def test_tokens_that_are_not_stated_are_estimated(embedder):
    body = {"data": [{"embedding": [1.0, 2.0]}]}
    with embedder(raw(json.dumps(body))) as (endpoint, _):
        assert endpoint.info.dimension == 2
        usage = endpoint.runner.run(endpoint.aembed(["four"])).usage
    assert usage.prompt_tokens == 1


def test_a_dimension_is_cut_and_made_length_1_again(embedder):
    with embedder(dimension=3) as (endpoint, server):
        assert endpoint.info.dimension == 3
        assert not server.calls  # the settings say it
        np.testing.assert_allclose(endpoint.embed(["x"])[0], unit("x", cut=3), atol=1e-6)


def test_a_dimension_that_the_model_does_not_have_is_refused(embedder):
    with (
        embedder(dimension=9) as (endpoint, _),
        pytest.raises(ModelReplyError, match=r"models\.e\.dimension to at most 8"),
    ):
        endpoint.embed(["x"])


def test_the_fingerprint_tells_what_makes_vectors_differ(embedder):
    def of(**values):
        with embedder(**values) as (endpoint, _):
            return endpoint.info.fingerprint

    same = {of(), of(), of(batch_size=3), of(max_tokens=99)}
    other = {of(dimension=4), of(query_prefix="q: "), of(passage_prefix="q: ")}
    assert len(same) == 1
    assert len(other) == 3
    assert not same & other
    assert len(same.pop()) == 16


async def test_info_may_be_looked_at_on_the_loop_that_calls_run_on(embedder):
    with embedder() as (endpoint, server):

        async def look():
            return endpoint.info

        assert (await endpoint.runner.arun(look())).dimension == 8
        assert (await asyncio.gather(*[asyncio.to_thread(lambda: endpoint.info)] * 4))[0]
        assert len(server.calls) == 1


def test_info_of_a_server_that_hangs_is_an_error_in_time(embedder):
    with embedder(hang()) as (endpoint, server):
        endpoint._settings = endpoint._settings.model_copy(update={"timeout_s": 0.4})
        with pytest.raises(ModelTimeoutError):
            _ = endpoint.info
        server.behaviour = embeddings()
        assert endpoint.info.dimension == 8


def probed_then(behaviour):
    return sequence(embeddings(), behaviour)


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (embeddings(count=-1), "1 embeddings for 2 texts"),
        (embeddings(count=1), "3 embeddings for 2 texts"),
        (embeddings(9), "9 numbers, before that of 8"),
        (embeddings(value=float("nan")), "NaN"),
        (embeddings(value=float("inf")), "NaN or infinite"),
        (embeddings(value=float("nan"), base64_too=False), "NaN"),
        (embeddings(value=0.0), "zeros"),
        (raw('{"data": []}'), "0 embeddings"),
        (raw('{"data": {}}'), "something else"),
        (raw("[]"), "something else"),
        (raw('{"data": [1, 2]}'), "no list of numbers"),
        (raw('{"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}'), "different lengths"),
        (raw('{"data": [{"embedding": []}, {"embedding": []}]}'), "different lengths"),
        (raw('{"data": [{"embedding": "!"}, {"embedding": "!"}]}'), "no list of numbers"),
        (raw('{"data": [{"embedding": "YWI="}, {"embedding": "YWI="}]}'), "no list of numbers"),
        (raw('{"data": [{"embedding": [[1]]}, {"embedding": [[1]]}]}'), "different lengths"),
        (raw('{"data": [{"embedding": ["a"]}, {"embedding": ["b"]}]}'), "no list of numbers"),
        (raw('{"data": [{"embedding": [1' + "0" * 400 + "]}, 1]}"), "no list of numbers"),
        (raw('{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}'),
         "order is not told"),
        (raw('{"data": [{"index": 7, "embedding": [1]}, {"index": "x", "embedding": [1]}]}'),
         "order is not told"),
        (raw("{"), "no JSON"),
        (huge(), "more than"),
        (huge(declared=False), "more than"),
    ],
)  # fmt: skip
def test_a_reply_that_is_of_no_use(embedder, behaviour, said):
    with (
        embedder(probed_then(behaviour)) as (endpoint, _),
        pytest.raises(ModelReplyError) as caught,
    ):
        endpoint.embed(["a", "b"])
    assert said in str(caught.value)
    assert "model 'e' at 127.0.0.1:" in str(caught.value)


def test_a_reply_may_be_as_long_as_its_vectors_and_not_much_longer(embedder):
    with embedder(embeddings(1024, base64_too=False), batch_size=32) as (endpoint, server):
        assert endpoint.embed([f"text {n}" for n in range(32)]).shape == (32, 1024)
        server.behaviour = huge(32 * 1024 * 40)
        with pytest.raises(ModelReplyError, match="more than"):
            endpoint.embed([f"text {n}" for n in range(32)])


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_very_small_and_very_large_numbers_keep_their_direction(embedder, scale):
    body = {"data": [{"embedding": [3 * scale, 4 * scale]}]}
    with embedder(raw(json.dumps(body))) as (endpoint, _):
        np.testing.assert_allclose(endpoint.embed(["x"])[0], [0.6, 0.8], atol=1e-6)


@pytest.mark.parametrize("kind", [500, 429])
def test_faults_of_the_server_pass_as_they_are(embedder, kind):
    with embedder(probed_then(status(kind))) as (endpoint, _), pytest.raises(ModelUnavailableError):
        endpoint.embed(["a"])


def test_a_server_that_takes_floats_alone_is_asked_for_them(embedder):
    async def behave(x: Exchange) -> None:
        packed = x.call.body.get("encoding_format") == "base64"
        await (status(400, "encoding_format must be float") if packed else embeddings())(x)

    with embedder(behave) as (endpoint, server):
        np.testing.assert_allclose(endpoint.embed(["x"])[0], unit("x"), atol=1e-6)
        endpoint.embed(["y"])
        formats = [call.body["encoding_format"] for call in server.calls]
    assert formats == ["base64", "float", "float", "float"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (400, "This model's maximum context length is 64 tokens"),
        (413, "Input validation error: `inputs` must have less than 64 tokens"),
        (500, "input (96 tokens) is too large to process. increase the physical batch size"),
    ],
)
def test_long_texts_are_cut_and_once_more_if_the_server_still_minds(embedder, code, message):
    async def behave(x: Exchange) -> None:
        longest = max(len(text) for text in x.call.body["input"])
        await (status(code, message) if longest > 200 else embeddings())(x)

    with embedder(behave, max_tokens=128) as (endpoint, server):
        endpoint.embed(["word " * 1000, "short"])
        lengths = [max(map(len, call.body["input"])) for call in server.calls[1:]]
        assert lengths == [384, 192]
        assert server.calls[-1].body["input"][1] == "short"


def test_a_server_that_never_has_enough_room_is_asked_four_times(embedder):
    with embedder(probed_then(status(413, "input is too long"))) as (endpoint, server):
        with pytest.raises(ModelRefusedError, match="too long"):
            endpoint.embed(["word " * 1000])
        assert len(server.calls) == 1 + 4


@pytest.mark.parametrize(
    "text",
    ["word " * 500, "日本語の文章です。" * 100, "mixed 日本 text " * 100, "日" * 65, "x" * 193],
)
@pytest.mark.parametrize("tokens", [8, 64])
def test_the_beginning_of_a_text_has_no_more_tokens_than_it_may(text, tokens):
    cut = begun(text, tokens)
    assert text.startswith(cut)
    assert cut
    assert count_tokens(cut) <= tokens
    assert len(cut) >= min(len(text), tokens - 2)
    assert begun("short", tokens) == "short"


# --- rerank ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["jina", "tei"])
def test_scores_come_in_the_order_of_the_texts(reranker, shape):
    texts = ["a dog", " ", "a cat and a dog", "nothing"]
    with reranker(rerank(shape=shape)) as (endpoint, _):
        assert isinstance(endpoint, Reranker)
        scores = endpoint.rerank("cat dog", texts)
    assert scores.dtype == np.float32
    assert scores.tolist() == [1.0, 0.0, 2.0, 0.0]


def test_the_shape_of_a_server_is_learnt_once(reranker):
    with reranker(rerank(shape="tei"), batch_size=2) as (endpoint, server):
        endpoint.rerank("q", ["a", "b", "c"])
        keys = [sorted(call.body) for call in server.calls]
    jina, tei = ["documents", "model", "query", "top_n"], ["query", "texts", "truncate"]
    assert keys == [jina, tei, tei]


def test_what_is_asked_of_a_reranker(reranker):
    with reranker(max_tokens=8) as (endpoint, server):
        cost = endpoint.runner.run(endpoint.arerank("q", ["word " * 100])).usage
        assert endpoint.info.name == "r"
    call = server.calls[0]
    assert call.path == "/v1/rerank"
    assert call.body["model"] == "fake-r"
    assert call.body["top_n"] == 1
    assert call.body["documents"] == [("word " * 100)[:24]]
    assert (cost.calls, cost.prompt_tokens) == (1, 10)


def test_no_texts_no_call(reranker):
    with reranker() as (endpoint, server):
        assert endpoint.rerank("q", []).shape == (0,)
        assert endpoint.rerank("q", [" "]).tolist() == [0.0]
        assert not server.calls


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (rerank(extra=1), "ranked 3 texts of 2"),
        (rerank(lambda q, t: float("nan")), "no number"),
        (rerank(lambda q, t: float("inf")), "index or score"),
        (raw('{"results": [{"index": 0, "relevance_score": 1}]}'), "ranked 1 texts of 2"),
        (raw('{"results": [{"index": 0, "score": 1}, {"index": 0, "score": 1}]}'), "no number"),
        (raw('{"results": [{"index": 0, "score": 1}, {"index": 2, "score": 1}]}'), "index"),
        (raw('{"results": [{"index": -1, "score": 1}, {"index": 0, "score": 1}]}'), "index"),
        (raw('{"results": [{"index": true, "score": 1}, {"index": 0, "score": 1}]}'), "index"),
        (raw('{"results": [{"index": 0, "score": "1"}, {"index": 1, "score": 1}]}'), "score"),
        (raw('{"results": [1, 2]}'), "index"),
        (raw('{"results": 7}'), "something else"),
        (raw("7"), "something else"),
        (huge(), "more than"),
    ],
)
def test_a_ranking_that_is_of_no_use(reranker, behaviour, said):
    with reranker(behaviour) as (endpoint, _), pytest.raises(ModelReplyError) as caught:
        endpoint.rerank("q", ["a", "b"])
    assert said in str(caught.value)


@pytest.mark.parametrize("behaviour", [status(500), status(429), status(400, "no"), status(404)])
def test_faults_of_a_rerank_server(reranker, behaviour):
    with reranker(behaviour) as (endpoint, server):
        with pytest.raises(ModelError):
            endpoint.rerank("q", ["a"])
        assert len(server.calls) == 1
