"""ONNX embedding against bare onnxruntime: on the same batches, and from 32 callers at once.

    python tests/fetch_test_models.py && python benchmarks/bench_embedding.py

Seconds are of the clock, and the least of several interleaved rounds, since the work is on threads
of its own and the neighbours take cores away; the ratio of the processor time of all threads is
beside them, which a neighbour hardly changes. What is compared with is a session as onnxruntime
makes it, or one whose idle threads do not spin (as ours), whichever is faster.

"Same batches" are those that our path formed, as ready arrays; ours also tokenizes, pads and pools.
"One call a text" tokenizes, runs and pools each text in its caller's thread; "session.run alone"
has its arrays ready and leaves its output lying. With texts of eleven tokens two cores can win
little more than twice: a text alone already takes its matrix products at half of the cores' peak.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from common import Report, arguments, check

import numpy as np  # isort: skip  # after common, which keeps its threads quiet
import onnxruntime
from tokenizers import Tokenizer

from bookrag_fast.models.onnx import OnnxEmbedder

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import fetch_test_models

CALLERS, EACH = 32, 8
CPU = ["CPUExecutionProvider"]
WORDS = (
    "pump valve pressure limit table page figure section report annual revenue growth carbon steel "
    "inspection interval manual safety battery charge storage market share risk committee director "
    "network graph entity relation retrieval answer evidence document chapter appendix voltage"
).split()
random = np.random.default_rng(7)


class Bare:
    """What a user writes without this package: a session, a tokenizer, a mean."""

    SPINNING: ClassVar = {"as it comes": "1", "not spinning": "0"}

    def __init__(self, name: str) -> None:
        self.name = name
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.intra_op.allow_spinning", self.SPINNING[name])
        options.log_severity_level = 3
        path = str(fetch_test_models.FOLDER / "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=CPU)
        self.names = [i.name for i in self.session.get_inputs()]
        self.tokenizer = Tokenizer.from_file(str(fetch_test_models.FOLDER / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)

    def feed(self, rows: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
        width = max(map(len, rows))
        ids = np.array([[*row, *[0] * (width - len(row))] for row in rows], np.int64)
        mask = np.array([[1] * len(row) + [0] * (width - len(row)) for row in rows], np.int64)
        values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return {name: values[name] for name in self.names}

    def run(self, feed: dict[str, np.ndarray]) -> np.ndarray:
        hidden: np.ndarray = self.session.run(None, feed)[0]
        return hidden

    def pooled(self, feed: dict[str, np.ndarray]) -> np.ndarray:
        mask = feed["attention_mask"][:, :, None].astype(np.float32)
        mean = (self.run(feed) * mask).sum(axis=1) / mask.sum(axis=1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def embed(self, text: str) -> np.ndarray:
        return self.pooled(self.feed_of(text))[0]

    def feed_of(self, text: str) -> dict[str, np.ndarray]:
        return self.feed([self.tokenizer.encode(text).ids])


def some_text(least: int, most: int) -> str:
    return " ".join(random.choice(WORDS, random.integers(least, most + 1)))


def measured(
    functions: Mapping[str, Callable[[], object]], seconds: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Least seconds by the clock, and median seconds of the process, of each in turn."""
    clock: dict[str, list[float]] = {name: [] for name in functions}
    spent: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(clock.values()))) < 3:
        for name, function in functions.items():
            start, before = time.perf_counter(), time.process_time()
            function()
            clock[name].append(time.perf_counter() - start)
            spent[name].append(time.process_time() - before)
    return {k: min(v) for k, v in clock.items()}, {k: median(v) for k, v in spent.items()}


def same_batches(
    report: Report,
    embedder: OnnxEmbedder,
    rivals: list[Bare],
    name: str,
    texts: list[str],
    seconds: float,
) -> None:
    batches = batches_of(embedder, texts)
    vectors = embedder.embed(texts)
    feeds = [rivals[0].feed([row.ids for row in rows]) for rows in batches]
    place = {tuple(rivals[0].tokenizer.encode(text).ids): i for i, text in enumerate(texts)}
    for rows, feed in zip(batches, feeds, strict=True):
        expected = vectors[[place[tuple(row.ids)] for row in rows]]
        check(np.allclose(rivals[0].pooled(feed), expected, atol=1e-4), name)
    ways: dict[str, Callable[[], object]] = {"ours": lambda: embedder.embed(texts)}
    for bare in rivals:
        ways[bare.name] = lambda bare=bare: [bare.run(feed) for feed in feeds]
    clock, spent = measured(ways, seconds)
    against(
        report, name, f"session.run on the same {len(feeds)} batches", "ours", clock, spent, 0.95
    )


def batches_of(embedder: OnnxEmbedder, texts: list[str]) -> list[list[Any]]:
    """The runs that texts are cut into."""
    batches: list[list[Any]] = []
    batcher, inner = embedder._batcher, embedder._batcher._run

    def noted(rows: list[Any]) -> Any:
        batches.append(rows)
        return inner(rows)

    batcher._run = noted
    embedder.embed(texts)
    batcher._run = inner
    return batches


def many_callers(
    report: Report,
    embedder: OnnxEmbedder,
    rivals: list[Bare],
    name: str,
    texts: list[list[str]],
    seconds: float,
) -> None:
    def in_threads(one: Callable[[Any], np.ndarray], own: list[list[Any]]) -> np.ndarray:
        with ThreadPoolExecutor(CALLERS) as pool:
            return np.array(list(pool.map(lambda some: [one(x) for x in some], own)))

    async def in_tasks() -> np.ndarray:
        async def caller(own: list[str]) -> list[np.ndarray]:
            return [(await embedder.aembed([text])).vectors[0] for text in own]

        return np.array(await asyncio.gather(*map(caller, texts)))

    def run(bare: Bare, feed: dict[str, np.ndarray]) -> np.ndarray:
        return bare.run(feed)[0, 0]

    feeds = [[rivals[0].feed_of(text) for text in own] for own in texts]
    ours: dict[str, Callable[[], Any]] = {
        "threads": lambda: in_threads(lambda text: embedder.embed([text])[0], texts),
        "tasks": lambda: asyncio.run(in_tasks()),
    }
    whole = {b.name: partial(in_threads, b.embed, texts) for b in rivals}
    alone = {b.name: partial(in_threads, partial(run, b), feeds) for b in rivals}
    expected = whole[rivals[0].name]()
    for way, function in ours.items():
        check(np.allclose(function(), expected, atol=1e-4), f"{name}, {way}")
    tokens = np.mean([feed["input_ids"].shape[1] for own in feeds for feed in own])
    for rival, theirs in (("one call a text", whole), ("session.run alone", alone)):
        clock, spent = measured({**ours, **theirs}, seconds)
        for way in ours:
            kernel = f"{CALLERS} {way}, each {EACH} {name} ({tokens:.0f} tokens)"
            against(report, kernel, f"{rival}, {CALLERS} threads", way, clock, spent, 2.0)


def against(
    report: Report,
    kernel: str,
    rival: str,
    way: str,
    clock: dict[str, float],
    spent: dict[str, float],
    target: float | None,
) -> None:
    """A row beside the faster of the rivals."""
    others = [name for name in clock if name in Bare.SPINNING]
    best = min(others, key=lambda name: clock[name])
    least = min(spent[name] for name in others)
    report.row(
        kernel,
        ours=clock[way],
        against=f"{rival}, {best}",
        theirs=clock[best],
        target=target,
        note=f"processor time {least / spent[way]:.2f}×",
    )


def latency(report: Report, embedder: OnnxEmbedder, rivals: list[Bare], seconds: float) -> None:
    question = some_text(9, 9)
    check(np.allclose(embedder.embed([question])[0], rivals[0].embed(question), atol=1e-4), "alone")
    ways: dict[str, Callable[[], object]] = {"ours": lambda: embedder.embed([question])}
    for bare in rivals:
        ways[bare.name] = lambda bare=bare: bare.embed(question)
    clock, spent = measured(ways, seconds)
    for bare in rivals:
        one = {name: clock[name] for name in ("ours", bare.name)}
        against(report, "a question alone", "one call", "ours", one, spent, None)
    index = [some_text(5, 60) for _ in range(512)]
    took: list[float] = []
    building = threading.Thread(target=lambda: embedder.embed(index))
    building.start()
    start = time.perf_counter()
    while building.is_alive():
        before = time.perf_counter()
        embedder.embed([question])
        took.append(time.perf_counter() - before)
        time.sleep(0.01)
    build = time.perf_counter() - start
    report.row(
        "a question beside an index of 512 texts",
        ours=median(took),
        against="the whole index",
        theirs=build,
        note=f"worst {max(took) * 1e3:.0f} ms of {len(took)}",
    )


def main() -> None:
    options = arguments(__doc__)
    if not fetch_test_models.is_complete():
        sys.exit("no model: run python tests/fetch_test_models.py")
    embedder = OnnxEmbedder(fetch_test_models.FOLDER, providers=CPU)
    rivals = [Bare(name) for name in Bare.SPINNING]
    report = Report("embedding")
    seconds = options.seconds * (3 if options.quick else 10)
    for name, texts in (
        ("512 paragraphs of 5 to 60 words", [some_text(5, 60) for _ in range(512)]),
        ("64 pages of 150 words", [some_text(150, 150) for _ in range(64)]),
    ):
        same_batches(report, embedder, rivals, name, texts, seconds)
    for name, words in (("names of 1 to 3 words", (1, 3)), ("questions of 6 to 12 words", (6, 12))):
        asked = [[some_text(*words) for _ in range(EACH)] for _ in range(CALLERS)]
        many_callers(report, embedder, rivals, name, asked, seconds)
    latency(report, embedder, rivals, options.seconds)
    report.finish(options.out)


if __name__ == "__main__":
    main()
