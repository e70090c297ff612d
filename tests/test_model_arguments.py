"""What is no text is refused by every model alike, before anything is computed or sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bookrag_fast.config import OnnxRerankerSettings
from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.endpoints import EmbeddingsEndpoint, RerankEndpoint
from bookrag_fast.models.ledger import UsageLedger
from bookrag_fast.models.middleware.guarded import GuardedEmbedder, GuardedReranker
from bookrag_fast.models.middleware.stack import Services
from bookrag_fast.models.onnx import OnnxEmbedder, OnnxTokenEmbedder, open_reranker
from bookrag_fast.models.static import WordLlamaEmbedder
from endpoint_settings import embeddings_settings, rerank_settings
from onnx_factory import table, write_cross_encoder, write_embedder

NOBODY = "http://127.0.0.1:9/v1"
CPU = ["CPUExecutionProvider"]
FAULTS: list[tuple[Any, str]] = [
    ("one text", "a sequence of texts is needed, not str"),
    (b"one text", "not bytes"),
    (None, "not NoneType"),
    ({"a": "b"}, "not dict"),
    (iter(["a"]), "not list_iterator"),
    (list, "not type"),
    (np.array("a"), "not ndarray"),
    (["a", None], r"texts\[1\] is NoneType; it must be str"),
    (["a", "b", b"c"], r"texts\[2\] is bytes; it must be str"),
    ([7], r"texts\[0\] is int"),
    (["a", ["b"]], r"texts\[1\] is list"),
    (["", float("nan")], r"texts\[1\] is float"),
]


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    ledger = UsageLedger(tmp_path_factory.mktemp("ledger") / "usage.sqlite")
    made = Services(LoopRunner(), ledger)
    yield made
    made.runner.close()
    made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onnx")
    write_embedder(folder / "embedder", table(8))
    write_cross_encoder(folder / "cross", table(1), table(1))
    return folder


def onnx_reranker(folder: Path, **more: Any) -> OnnxRerankerSettings:
    return OnnxRerankerSettings(kind="onnx-reranker", source=str(folder), providers=CPU, **more)


@pytest.fixture(scope="module", params=["onnx", "static", "endpoint", "guarded"])
def embedder(request: pytest.FixtureRequest, services: Services, folder: Path) -> Any:
    settings = embeddings_settings(NOBODY, dimension=8)
    endpoint = EmbeddingsEndpoint("e", settings, services.runner)
    made: dict[str, Callable[[], Any]] = {
        "onnx": lambda: OnnxEmbedder(folder / "embedder", providers=CPU),
        "static": WordLlamaEmbedder,
        "endpoint": lambda: endpoint,
        "guarded": lambda: GuardedEmbedder(endpoint, settings, services, name="e"),
    }
    return made[request.param]()


@pytest.fixture(scope="module", params=["cross", "late", "endpoint", "guarded"])
def reranker(request: pytest.FixtureRequest, services: Services, folder: Path) -> Any:
    settings = rerank_settings(NOBODY)
    endpoint = RerankEndpoint("r", settings, services.runner)
    late = onnx_reranker(folder / "embedder", method="late-interaction")
    made: dict[str, Callable[[], Any]] = {
        "cross": lambda: open_reranker(onnx_reranker(folder / "cross")),
        "late": lambda: open_reranker(late),
        "endpoint": lambda: endpoint,
        "guarded": lambda: GuardedReranker(endpoint, settings, services),
    }
    return made[request.param]()


async def refused(
    message: str, blocking: Callable[[], object], awaited: Coroutine[Any, Any, object]
) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        blocking()
    assert caught.value.hint
    with pytest.raises(InvalidArgumentError, match=message):
        await awaited


@pytest.mark.parametrize(("texts", "message"), FAULTS)
async def test_what_is_no_text_is_not_embedded(embedder: Any, texts: Any, message: str) -> None:
    await refused(message, lambda: embedder.embed(texts), embedder.aembed(texts, query=True))


@pytest.mark.parametrize(("texts", "message"), FAULTS)
async def test_what_is_no_text_is_not_ranked(reranker: Any, texts: Any, message: str) -> None:
    await refused(message, lambda: reranker.rerank("q", texts), reranker.arerank("q", texts))


@pytest.mark.parametrize("question", [None, b"q", 7, ["q"]])
async def test_what_is_no_question_is_not_asked(reranker: Any, question: Any) -> None:
    message = f"the question is {type(question).__name__}; it must be str"
    await refused(
        message, lambda: reranker.rerank(question, ["a"]), reranker.arerank(question, ["a"])
    )


@pytest.mark.parametrize(("texts", "message"), FAULTS)
async def test_what_is_no_text_has_no_token_vectors(folder: Path, texts: Any, message: str) -> None:
    embedder = OnnxTokenEmbedder(onnx_reranker(folder / "embedder"))
    await refused(message, lambda: embedder.embed_tokens(texts), embedder.aembed_tokens(texts))
    embedder.close()


def test_any_sequence_of_texts_will_do(folder: Path) -> None:
    late = onnx_reranker(folder / "embedder", method="late-interaction")
    embedder = OnnxEmbedder(folder / "embedder", providers=CPU)
    rerankers: list[Any] = [open_reranker(onnx_reranker(folder / "cross")), open_reranker(late)]
    texts = ["alpha", "beta gamma"]
    expected = [embedder.embed(texts), *(r.rerank("beta", texts) for r in rerankers)]
    for same in (tuple(texts), deque(texts), np.array(texts), np.array(texts, dtype=object)):
        found = [embedder.embed(same), *(r.rerank("beta", same) for r in rerankers)]
        assert all(map(np.array_equal, found, expected))
    for model in (embedder, *rerankers):
        model.close()
