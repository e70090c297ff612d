"""The ONNX embedder, with the real MiniLM model that tests/fetch_test_models.py puts in place."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fetch_test_models
from bookrag_fast.errors import ConfigError, InvalidArgumentError, ModelError, ModelNotFoundError
from bookrag_fast.models import Embedder, create_embedder
from bookrag_fast.models.doctor import Finding, runtime_report
from bookrag_fast.models.onnx import OnnxEmbedder, network, sessions
from bookrag_fast.models.onnx import embedder as onnx_module

FOLDER = fetch_test_models.FOLDER
needs_model = pytest.mark.skipif(
    not fetch_test_models.is_complete(),
    reason=f"no model in {FOLDER}: run python tests/fetch_test_models.py",
)
TEXTS = [
    "A man is eating food.",
    "Someone is having a meal.",
    "The stock market fell sharply today.",
    "Share prices dropped.",
    "word " * 150,
    "東京",
    "x",
]


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder(FOLDER, providers=["CPUExecutionProvider"], threads=1)


@needs_model
def test_identity(embedder: OnnxEmbedder) -> None:
    assert isinstance(embedder, Embedder)
    info = embedder.info
    assert (info.name, info.dimension, info.provider) == ("onnx:minilm", 384, "cpu")
    assert info.fingerprint.startswith("23394866-")  # model.onnx and tokenizer.json
    assert embedder.placement.reason == "as configured"
    assert create_embedder(f"onnx:{FOLDER}").info.dimension == 384


@needs_model
def test_settings_that_change_vectors_change_the_fingerprint(embedder: OnnxEmbedder) -> None:
    cls = OnnxEmbedder(FOLDER, pooling="cls", providers=["CPUExecutionProvider"])
    assert cls.info.fingerprint != embedder.info.fingerprint
    assert not np.allclose(cls.embed(TEXTS[:1]), embedder.embed(TEXTS[:1]), atol=1e-3)


@needs_model
def test_shape_type_length_and_emptiness(embedder: OnnxEmbedder) -> None:
    vectors = embedder.embed([*TEXTS, "", " \n"])
    assert vectors.shape == (len(TEXTS) + 2, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors[:-2], axis=1), 1.0, atol=1e-5)
    assert not vectors[-2:].any()
    assert embedder.embed([]).shape == (0, 384)


@needs_model
def test_similar_sentences_are_closer(embedder: OnnxEmbedder) -> None:
    eat, meal, market, shares = embedder.embed(TEXTS[:4])
    assert eat @ meal > 0.6
    assert market @ shares > 0.6
    assert abs(float(eat @ market)) < 0.2


@needs_model
@pytest.mark.parametrize("batch_size", [1, 2, 3, 64])
def test_batching_changes_nothing(embedder: OnnxEmbedder, batch_size: int) -> None:
    texts = [f"{text} {i}" for i in range(4) for text in TEXTS]
    other = OnnxEmbedder(FOLDER, batch_size=batch_size, providers=["CPUExecutionProvider"])
    assert np.allclose(other.embed(texts), embedder.embed(texts), atol=1e-4)
    single = np.vstack([embedder.embed([text]) for text in texts[:7]])
    assert np.allclose(other.embed(texts)[:7], single, atol=1e-4)


@needs_model
def test_windows_keep_the_order(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = embedder.embed([*TEXTS, "", *TEXTS[::-1]])
    monkeypatch.setattr(onnx_module, "_WINDOW", 4)
    other = OnnxEmbedder(FOLDER, providers=["CPUExecutionProvider"])
    assert np.allclose(other.embed([*TEXTS, "", *TEXTS[::-1]]), expected, atol=1e-4)


@needs_model
def test_prefixes(embedder: OnnxEmbedder) -> None:
    prefixed = OnnxEmbedder(
        FOLDER,
        query_prefix="query: ",
        passage_prefix="passage: ",
        providers=["CPUExecutionProvider"],
    )
    assert np.allclose(
        prefixed.embed(["cats"], query=True), embedder.embed(["query: cats"]), atol=1e-4
    )
    assert np.allclose(prefixed.embed(["cats"]), embedder.embed(["passage: cats"]), atol=1e-4)
    assert not prefixed.embed([""]).any()


@needs_model
def test_truncation_is_bounded(embedder: OnnxEmbedder) -> None:
    short = OnnxEmbedder(FOLDER, max_tokens=16, providers=["CPUExecutionProvider"])
    assert np.allclose(short.embed(["word " * 20]), short.embed(["word " * 500]), atol=1e-5)
    assert np.isfinite(embedder.embed(["long text " * 300_000, "broken \ud800"])).all()


@needs_model
def test_threads_agree(embedder: OnnxEmbedder) -> None:
    expected = embedder.embed(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        for vectors in pool.map(lambda _: embedder.embed(TEXTS), range(16)):
            assert np.allclose(vectors, expected, atol=1e-5)


@needs_model
def test_loading_says_nothing_on_a_machine_without_cuda() -> None:
    code = (
        "import sys; from bookrag_fast.models.onnx import OnnxEmbedder\n"
        "e = OnnxEmbedder(sys.argv[1]); e.embed(['x'])\n"
        "assert e.placement.reason and e.info.provider in ('cpu', 'cuda')"
    )
    command = [sys.executable, "-c", code, str(FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_model
def test_a_driver_without_cuda_libraries_falls_back(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if "CUDAExecutionProvider" not in sessions.available_providers():
        pytest.skip("this onnxruntime was compiled without CUDA")
    monkeypatch.setattr(sessions, "_driver_loads", lambda: True)
    embedder = OnnxEmbedder(FOLDER)
    assert embedder.embed(["x"]).any()
    assert capfd.readouterr() == ("", "")
    if embedder.info.provider == "cpu":
        assert "libraries do not load" in embedder.placement.reason


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"absent.*must hold model\.onnx"):
        OnnxEmbedder(tmp_path / "absent")
    with pytest.raises(ModelNotFoundError, match=r"model\.onnx is missing"):
        OnnxEmbedder(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(ModelNotFoundError, match=r"tokenizer\.json is missing"):
        OnnxEmbedder(tmp_path)


def test_a_broken_tokenizer_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"x")
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match=r"tokenizer\.json is not a tokenizer"):
        OnnxEmbedder(tmp_path)


@needs_model
@pytest.mark.parametrize("size", [0, 1000, 1_000_000])
def test_a_truncated_model_is_an_error(
    tmp_path: Path, size: int, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(FOLDER / "tokenizer.json", tmp_path)
    with (FOLDER / "model.onnx").open("rb") as file:
        (tmp_path / "model.onnx").write_bytes(file.read(size))
    with pytest.raises(ModelError, match=r"model\.onnx cannot be loaded"):
        OnnxEmbedder(tmp_path)
    assert capfd.readouterr().out == ""


@needs_model
def test_arguments_are_checked(embedder: OnnxEmbedder) -> None:
    with pytest.raises(ConfigError, match="FastProvider"):
        OnnxEmbedder(FOLDER, providers=["FastProvider"])
    with pytest.raises(ConfigError, match="CPUExecutionProvider"):
        OnnxEmbedder(FOLDER, providers=[])
    with pytest.raises(InvalidArgumentError, match="max"):
        OnnxEmbedder(FOLDER, pooling="max")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="batch_size"):
        OnnxEmbedder(FOLDER, batch_size=0)
    with pytest.raises(InvalidArgumentError, match="sequence"):
        embedder.embed("one text")


class FakeTensor:
    def __init__(self, name: str, kind: str, shape: Sequence[object]) -> None:
        self.name, self.type, self.shape = name, kind, shape


class FakeSession:
    """A session whose answers are given: what a hostile or odd model could do."""

    def __init__(
        self,
        answer: Any,
        *,
        inputs: Sequence[str] = ("input_ids", "attention_mask"),
        kind: str = "tensor(int32)",
        outputs: Sequence[tuple[str, int]] = (("last_hidden_state", 3),),
    ) -> None:
        self.answer, self.inputs, self.kind, self.outputs = answer, inputs, kind, outputs
        self.fed: list[dict[str, Any]] = []

    def get_inputs(self) -> list[FakeTensor]:
        return [FakeTensor(name, self.kind, ["b", "t"]) for name in self.inputs]

    def get_outputs(self) -> list[FakeTensor]:
        return [FakeTensor(n, "tensor(float)", ["x"] * rank) for n, rank in self.outputs]

    def run(self, names: list[str], feed: dict[str, Any]) -> list[Any]:
        self.fed.append(feed)
        return [self.answer(names[0], feed)]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    if not fetch_test_models.is_complete():
        pytest.skip("no tokenizer: run python tests/fetch_test_models.py")

    def build(session: FakeSession, **settings: Any) -> OnnxEmbedder:
        placement = sessions.Placement("cpu", "fake")
        monkeypatch.setattr(network, "open_session", lambda *a, **k: (session, placement))
        return OnnxEmbedder(FOLDER, **settings)

    return build


def by_token(_: str, feed: dict[str, Any]) -> Any:
    """Token t of id i gives the vector (i, t, 1); padding gives NaN, which pooling must not see."""
    ids = feed["input_ids"]
    places = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    hidden = np.stack([ids, places, np.ones_like(ids)], axis=2).astype(np.float32)
    hidden[feed["attention_mask"] == 0] = 1e6
    return hidden


@pytest.mark.parametrize(("pooling", "place"), [("cls", 0), ("last", 3), ("mean", 1.5)])
def test_pooling_by_hand(fake: Any, pooling: Any, place: float) -> None:
    session = FakeSession(by_token)
    embedder = fake(session, pooling=pooling)
    vectors = embedder.embed(["two words", "many more words than the other text has"])
    assert vectors[0, 1] / vectors[0, 2] == pytest.approx(place)
    assert session.fed[-1]["input_ids"].dtype == np.int32
    assert set(session.fed[-1]) == {"input_ids", "attention_mask"}


def test_a_pooled_output_is_preferred(fake: Any) -> None:
    def answer(name: str, feed: dict[str, Any]) -> Any:
        assert name == "sentence_embedding"
        return np.full((len(feed["input_ids"]), 5), 2.0, dtype=np.float16)

    outputs = [("last_hidden_state", 3), ("sentence_embedding", 2)]
    embedder = fake(FakeSession(answer, outputs=outputs))
    assert embedder.info.dimension == 5
    assert embedder.embed(["x"]).dtype == np.float32


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_numbers_are_an_error(fake: Any, value: float) -> None:
    calls = []

    def answer(_: str, feed: dict[str, Any]) -> Any:
        calls.append(1)
        return np.full((*feed["input_ids"].shape, 4), 1.0 if len(calls) == 1 else value)

    embedder = fake(FakeSession(answer))
    with pytest.raises(ModelError, match="NaN"):
        embedder.embed(["x"])


def test_a_dimension_that_changes_is_an_error(fake: Any) -> None:
    calls = []

    def answer(_: str, feed: dict[str, Any]) -> Any:
        calls.append(1)
        return np.ones((*feed["input_ids"].shape, 3 + len(calls)))

    embedder = fake(FakeSession(answer))
    with pytest.raises(ModelError, match="5 dimensions, 4 when"):
        embedder.embed(["x"])


def test_a_failing_run_is_a_model_error(fake: Any) -> None:
    def answer(_: str, feed: dict[str, Any]) -> Any:
        raise RuntimeError("CUDA out of memory")

    with pytest.raises(ModelError, match="out of memory"):
        fake(FakeSession(answer))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"inputs": ("pixel_values",)}, "not a model for embeddings"),
        ({"inputs": ("input_ids", "past_key_values")}, "not a model for embeddings"),
        ({"kind": "tensor(float)"}, "token ids are integers"),
        ({"outputs": (("logits", 1),)}, "no output of embeddings"),
    ],
)
def test_other_models_are_refused(fake: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        fake(FakeSession(by_token, **settings))


def find(report: list[Finding], name: str) -> Finding:
    return next(finding for finding in report if finding.name == name)


def test_doctor_of_a_sound_installation() -> None:
    report = runtime_report()
    assert [f.name for f in report][:2] == ["onnxruntime installation", "onnxruntime providers"]
    assert all(finding.ok for finding in report), report
    assert "256 dimensions" in find(report, "embedder wordllama").detail


def test_doctor_finds_shadowing() -> None:
    finding = runtime_report([], installed=lambda name: "1.20.0")[0]
    assert not finding.ok
    assert finding.remedy == (
        "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu"
    )
    missing = runtime_report([], installed=lambda name: None)[0]
    assert not missing.ok
    assert "pip install" in missing.remedy


def test_doctor_reports_broken_models(tmp_path: Path) -> None:
    report = runtime_report([f"onnx:{tmp_path}", "nonsense"])
    assert not find(report, f"embedder onnx:{tmp_path}").ok
    assert find(report, "embedder nonsense").remedy
