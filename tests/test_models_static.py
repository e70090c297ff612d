"""The embedded static embedder: equal to the library it replaces, bounded, quiet, thread-safe."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast.errors import ConfigError, InvalidArgumentError, ModelError, ModelNotFoundError
from bookrag_fast.models import Embedder, create_embedder
from bookrag_fast.models import static as static_module
from bookrag_fast.models.static import WordLlamaEmbedder

TEXTS = [
    "Personalized PageRank spreads relevance over the graph.",
    "A short text",
    "東京の図書館で本を読む。",
    "Большая книга о поиске",
    "def skyline(scores):\n    return scores[keep]",
    "a" * 5000,
    "  leading   and trailing  ",
]


@pytest.fixture(scope="module")
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


def test_is_an_embedder_with_an_identity(embedder: WordLlamaEmbedder) -> None:
    assert isinstance(embedder, Embedder)
    info = embedder.info
    assert (info.name, info.dimension, info.provider) == ("wordllama-l2_supercat-256", 256, "cpu")
    size, _, digest = info.fingerprint.partition("-")
    assert size == "16384096"
    assert len(digest) == 16
    assert WordLlamaEmbedder().info == info


def test_equals_the_library(embedder: WordLlamaEmbedder) -> None:
    level = logging.getLogger().level
    handlers = list(logging.getLogger().handlers)
    import wordllama

    logging.getLogger().setLevel(level)  # importing it configures the root logger
    logging.getLogger().handlers[:] = handlers
    model = wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )
    expected = model.embed(TEXTS, norm=True, batch_size=3)
    assert np.allclose(embedder.embed(TEXTS), expected, atol=2e-6)


def test_shape_type_and_length(embedder: WordLlamaEmbedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), 256)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert embedder.embed([]).shape == (0, 256)


def test_texts_of_nothing_are_rows_of_zeros(embedder: WordLlamaEmbedder) -> None:
    vectors = embedder.embed(["", " \n\t ", "word", "　"])
    assert not vectors[[0, 1, 3]].any()
    assert vectors[2].any()


def test_query_changes_nothing(embedder: WordLlamaEmbedder) -> None:
    assert np.array_equal(embedder.embed(TEXTS), embedder.embed(TEXTS, query=True))


def test_related_texts_are_closer(embedder: WordLlamaEmbedder) -> None:
    cat, feline, money = embedder.embed(
        ["the cat sleeps on the sofa", "a kitten naps on the couch", "interest rates rose sharply"]
    )
    assert cat @ feline > cat @ money + 0.1


def test_a_vector_does_not_depend_on_its_neighbours(embedder: WordLlamaEmbedder) -> None:
    many = [f"{text} {i}" for i in range(90) for text in TEXTS[:4]]  # more than one batch
    together = embedder.embed(many)
    assert np.array_equal(together[::37], embedder.embed(many[::37]))


def test_a_long_text_is_cut(embedder: WordLlamaEmbedder) -> None:
    short = WordLlamaEmbedder(max_tokens=10)
    head = "one two three four five six seven eight nine ten"
    tail = " completely different words about geology" * 3
    assert np.array_equal(short.embed([head]), short.embed([head + tail]))
    assert not np.array_equal(embedder.embed([head]), embedder.embed([head + tail]))
    assert np.isfinite(embedder.embed(["word " * 2_000_000])).all()


def test_lone_surrogates_do_not_fail(embedder: WordLlamaEmbedder) -> None:
    vectors = embedder.embed(["broken \ud800 text", "whole text"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert np.array_equal(vectors[1:], embedder.embed(["whole text"]))


@settings(max_examples=60)
@given(st.lists(st.text(max_size=60), max_size=6))
def test_any_text_gives_a_unit_or_zero_row(texts: list[str]) -> None:
    lengths = np.linalg.norm(WordLlamaEmbedder().embed(texts), axis=1)
    for text, length in zip(texts, lengths, strict=True):
        assert length == pytest.approx(1.0 if text.strip() else 0.0, abs=1e-5)


def test_many_threads_agree_and_load_once() -> None:
    fresh = WordLlamaEmbedder()
    expected = WordLlamaEmbedder().embed(TEXTS)
    barrier = threading.Barrier(8)

    def work(_: int) -> bool:
        barrier.wait()
        return all(np.array_equal(fresh.embed(TEXTS), expected) for _ in range(5))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_arguments_are_checked(embedder: WordLlamaEmbedder) -> None:
    with pytest.raises(InvalidArgumentError, match="sequence"):
        embedder.embed("one text")
    with pytest.raises(InvalidArgumentError, match="max_tokens"):
        WordLlamaEmbedder(max_tokens=0)


def test_missing_package_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelNotFoundError, match="pip install"):
        WordLlamaEmbedder()


def test_missing_and_broken_files_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(static_module, "_package_folder", lambda: tmp_path)
    with pytest.raises(ModelNotFoundError, match=r"l2_supercat_256\.safetensors"):
        WordLlamaEmbedder().embed(["x"])
    weights = tmp_path / static_module._WEIGHTS
    weights.parent.mkdir()
    header = b'{"embedding.weight":{"dtype":"F16","shape":[10,4],"data_offsets":[0,80]}}'
    for content in (
        b"",
        b"\xff" * 64,
        b"\x10" + b"\0" * 7 + b"not json at all!",
        b"\x02" + b"\0" * 7 + b"{}",
        len(header).to_bytes(8, "little") + header + b"\0" * 10,  # truncated
    ):
        weights.write_bytes(content)
        with pytest.raises(ModelError, match="safetensors"):
            WordLlamaEmbedder().embed(["x"])
    weights.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 80)
    with pytest.raises(ModelNotFoundError, match="tokenizer"):
        WordLlamaEmbedder().embed(["x"])


def test_neither_wordllama_nor_requests_is_imported() -> None:
    code = (
        "import sys; from bookrag_fast.models import create_embedder\n"
        "assert 'tokenizers' not in sys.modules\n"
        "create_embedder('wordllama').embed(['x'])\n"
        "bad = {'wordllama', 'requests', 'onnxruntime', 'torch'} & set(sys.modules)\n"
        "assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("spec", ["", "word2vec", "wordllama:x", "onnx", "onnx:", "openai:gpt"])
def test_unknown_spec_names_the_choices(spec: str) -> None:
    with pytest.raises(ConfigError, match="'wordllama' or 'onnx:SOURCE'"):
        create_embedder(spec)


def test_known_specs() -> None:
    assert create_embedder("wordllama").info.dimension == 256
    with pytest.raises(ModelNotFoundError, match="/nowhere"):
        create_embedder("onnx:/nowhere")
