"""Fused retrieval: against the obvious twin, its latency, and two threads on one book.

    taskset -c 1 python benchmarks/bench_retrieve.py --out retrieve.json

The twin does at question time what the method says in the plainest way: a cosine matrix of all
entities of G', a percentile over its edges, the nearest of every entity, networkx.pagerank. The
synthetic book has clustered names, relations near each other in the text and some hubs. Questions
select chapters of their own, so that nothing laid out for one serves the next, except in the rows
that say "as in the question before" (there G' is the whole book). Threads need two cores: they are
skipped where the process has one.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import common
import networkx as nx
import numpy as np

from bookrag_fast import core
from bookrag_fast.index.neighbours import nearest

ENTITIES, NODES, CHAPTERS, DIMENSION, NEIGHBOURS = 5000, 3000, 12, 256, 10
PERCENTILE, DAMPING = 85.0, 0.5


@dataclass(frozen=True)
class Book:
    vectors: np.ndarray
    relations: list[tuple[int, int, float]]
    retriever: core.Retriever


@dataclass(frozen=True)
class Question:
    seeds: np.ndarray
    weights: np.ndarray
    text: np.ndarray


def make_book(entities: int, nodes: int, seed: int = 1) -> Book:
    rng = np.random.default_rng(seed)
    tops = set(np.linspace(2, nodes, CHAPTERS, endpoint=False).astype(int).tolist())
    parents = np.zeros(nodes, np.int32)
    parents[0] = -1
    chapter = section = 1
    for node in range(2, nodes):
        if node in tops:
            parents[node], chapter, section = 1, node, node
        elif rng.random() < 0.1:
            parents[node], section = chapter, node
        else:
            parents[node] = section
    ones = np.ones(nodes, np.int32)
    tree = core.Tree(parents, np.zeros(nodes, np.uint8), ones, ones)

    many = 3 * entities  # mean degree 6
    a = rng.integers(0, entities, many)
    b = (a + 1 + np.rint(4 * np.abs(rng.standard_cauchy(many))).astype(np.int64)) % entities
    hubs = rng.random(many) < 0.1
    b[hubs] = rng.zipf(1.5, int(hubs.sum())) * 37 % entities
    a, b = a[a != b], b[a != b]
    weights = (rng.random(len(a)) + 0.1).astype(np.float32)

    home = np.sort(rng.integers(2, nodes, entities))
    mentions = rng.poisson(1.0, entities) + 1
    linked = np.repeat(np.arange(entities), mentions)
    places = home[linked] + np.rint(3 * rng.standard_normal(len(linked))).astype(np.int64)

    centres = rng.standard_normal((entities // 10, DIMENSION))
    vectors = centres[np.sort(rng.integers(0, len(centres), entities))]
    vectors = vectors + 0.9 * rng.standard_normal((entities, DIMENSION))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    ids, cosines = nearest(vectors, NEIGHBOURS)
    retriever = core.Retriever(
        tree,
        core.KnowledgeGraph(entities, a, b, weights),
        core.GTLink(entities, nodes, linked, np.clip(places, 2, nodes - 1)),
        ids,
        cosines,
        np.einsum("ij,ij->i", vectors[a], vectors[b]),
        rng.random(nodes) < 0.9,
    )
    triples = list(zip(a.tolist(), b.tolist(), weights.tolist(), strict=True))
    return Book(vectors, triples, retriever)


def questions(entities: int, nodes: int, count: int) -> list[Question]:
    """Three entities and noisy relevance each: most select chapters of their own."""
    rng = np.random.default_rng(7)
    return [
        Question(
            rng.integers(0, entities, 3).astype(np.int32),
            np.array([1.0, 0.95, 0.9], np.float32),
            np.maximum(0, rng.standard_normal(nodes) - 1).astype(np.float32),
        )
        for _ in range(count)
    ]


def obvious(book: Book, entities: np.ndarray, question: Question) -> np.ndarray:
    """Augmentation and PageRank at question time, in the plainest way."""
    inside = {int(e): row for row, e in enumerate(entities)}
    graph = nx.Graph()
    graph.add_nodes_from(range(len(entities)))
    edges = [(inside[a], inside[b], w) for a, b, w in book.relations if a in inside and b in inside]
    for a, b, w in edges:
        if graph.has_edge(a, b):
            graph[a][b]["weight"] += w
        else:
            graph.add_edge(a, b, weight=w)
    vectors = book.vectors[entities]
    matrix = vectors @ vectors.T
    threshold = np.percentile(np.array([matrix[a, b] for a, b, _ in edges], float), PERCENTILE)
    at_most = max(1, int(np.ceil(2 * len(edges) / len(entities))))
    new = {}
    for row in range(len(entities)):
        order = sorted(range(len(entities)), key=lambda other: -matrix[row, other])
        found = 0
        for other in order[: NEIGHBOURS + 1]:
            if other == row or matrix[row, other] < threshold or graph.has_edge(row, other):
                continue
            if found == at_most:
                break
            found += 1
            new[min(row, other), max(row, other)] = float(matrix[row, other])
    graph.add_weighted_edges_from((a, b, w) for (a, b), w in new.items())
    reset: dict[int, float] = {}
    for seed, weight in zip(question.seeds.tolist(), question.weights.tolist(), strict=True):
        reset[inside[seed]] = reset.get(inside[seed], 0.0) + weight
    rank = nx.pagerank(graph, alpha=DAMPING, personalization=reset, tol=1e-10, weight="weight")
    scores = np.zeros(len(book.vectors))
    scores[entities] = [rank[row] for row in range(len(entities))]
    return scores


def against_the_obvious(report: common.Report, book: Book, seconds: float) -> None:
    entities = len(book.vectors)
    asked = questions(entities, book.retriever.num_nodes, 64)
    # Nearly all entities, others each time.
    rng = np.random.default_rng(3)
    sets = [
        np.union1d(q.seeds, rng.permutation(entities)[: entities - 1 - i]).astype(np.int32)
        for i, q in enumerate(asked)
    ]
    start = time.perf_counter()
    wanted = obvious(book, sets[0], asked[0])
    theirs = time.perf_counter() - start
    ours = book.retriever.augmented_pagerank(sets[0], asked[0].seeds, asked[0].weights)
    error = float(np.abs(ours - wanted).sum())
    common.check(error < 1e-4, f"the walks differ by {error:.2g}")

    turn = 0

    def fresh() -> None:
        nonlocal turn
        turn = (turn + 1) % len(asked)
        q = asked[turn]
        book.retriever.augmented_pagerank(sets[turn], q.seeds, q.weights)

    def repeated() -> None:
        nonlocal turn
        turn = (turn + 1) % len(asked)
        q = asked[turn]
        book.retriever.augmented_pagerank(everything, q.seeds, q.weights)

    everything = np.arange(entities, dtype=np.int32)
    times = common.interleaved({"fresh": fresh, "repeated": repeated}, seconds=seconds)
    name = f"augmentation + PageRank, {entities:,} entities"
    note = f"L1 {error:.1g}"
    against = "networkx, n×n"
    report.row(name, ours=times["fresh"], against=against, theirs=theirs, target=5000, note=note)
    report.row(
        f"{name}, G' as in the question before",
        ours=times["repeated"],
        against=against,
        theirs=theirs,
        note=note,
    )


def latency(report: common.Report, book: Book, seconds: float) -> None:
    nodes = book.retriever.num_nodes
    for what, sections, limit in (
        ("fused retrieve", 4, 100),
        ("fused retrieve, G' as in the question before", CHAPTERS, 100),
    ):
        asked = questions(len(book.vectors), nodes, 256)
        samples: list[float] = []
        sizes: list[int] = []
        stages: list[dict[str, float]] = []
        for warm_up in (True, False):
            end = time.perf_counter() + (0.2 if warm_up else seconds)
            while time.perf_counter() < end:
                for q in asked:
                    start = time.perf_counter()
                    found = book.retriever.retrieve(
                        q.seeds, q.weights, q.text, added_sections=sections, limit=limit
                    )
                    passed = time.perf_counter() - start
                    if not warm_up:
                        samples.append(passed)
                        sizes.append(found.entities)
                        stages.append(found.micros)
        samples.sort()
        share = {k: round(statistics.median(s[k] for s in stages)) for k in stages[0]}
        size = int(statistics.median(sizes))
        label = f"{what}, {len(book.vectors):,} entities, {nodes:,} nodes (G' of {size:,})"
        note = " ".join(f"{k} {v}" for k, v in share.items()) + " µs"
        p99 = samples[int(0.99 * len(samples))]
        report.row(f"{label}, p50", ours=statistics.median(samples), at_most=3e-4, note=note)
        report.row(f"{label}, p99", ours=p99, at_most=1e-3)


def throughput(report: common.Report, book: Book, seconds: float) -> None:
    """Questions a second of two Python threads on one retriever, against one thread; and of two
    processes, which share nothing: what the machine has to give at that moment."""
    if hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) < 2:
        print("(two threads: skipped, the process has one core)")
        return
    asked = questions(len(book.vectors), book.retriever.num_nodes, 256)
    span = seconds / 10

    def work(count: Callable[[], None], start: int, end: float) -> None:
        while time.perf_counter() < end:
            for q in asked[start:] + asked[:start]:
                book.retriever.retrieve(q.seeds, q.weights, q.text, limit=100)
                count()
                if time.perf_counter() >= end:
                    break

    def threads(many: int) -> float:
        done = [0] * many

        def mine(t: int) -> None:
            def count() -> None:
                done[t] += 1

            work(count, 100 * t, time.perf_counter() + span)

        workers = [threading.Thread(target=mine, args=(t,)) for t in range(many)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return sum(done) / span

    def processes() -> float:
        context = multiprocessing.get_context("fork")
        done = context.Queue()

        def mine(t: int) -> None:
            counts = []
            work(lambda: counts.append(1), 100 * t, time.perf_counter() + span)
            done.put(len(counts))

        workers = [context.Process(target=mine, args=(t,)) for t in range(2)]
        for worker in workers:
            worker.start()
        total = sum(done.get() for _ in workers)
        for worker in workers:
            worker.join()
        return total / span

    threads(2)
    rounds = [(threads(1), threads(2), processes()) for _ in range(10)]
    one, two, apart = (statistics.median(values) for values in zip(*rounds, strict=True))
    report.row(
        "fused retrieve, two threads, a question",
        ours=1 / two,
        against="one thread",
        theirs=1 / one,
        target=1.8,
        note=f"two processes {apart / one:.2f}×",
    )


def main() -> None:
    options = common.arguments(__doc__)
    report = common.Report("retrieve")
    small = options.quick
    book = make_book(1000 if small else ENTITIES, 600 if small else NODES)
    latency(report, book, options.seconds)
    throughput(report, book, options.seconds)
    against_the_obvious(report, book, options.seconds)
    report.finish(options.out)


if __name__ == "__main__":
    main()
