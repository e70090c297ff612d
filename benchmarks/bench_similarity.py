"""Exact cosine top-10 against NumPy and hnswlib, and late interaction against NumPy.

One thread. Run without OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE in the environment: they make NumPy
slower than it is. Two kinds of rows: clustered ones whose spectrum decays, as that of embeddings
does, and directions drawn at random, which no bound tells apart early.
"""

from __future__ import annotations

from common import Report, arguments, check, interleaved

import hnswlib  # isort: skip  # after common, which keeps its threads quiet
import numpy as np

from bookrag_fast import core

D, K = 384, 10


def vectors(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit rows and 50 queries."""
    rng = np.random.default_rng(n)
    # Standard deviations along the axes of a random basis; a text model's fall about like this.
    spread = np.arange(1, D + 1) ** -0.7 if kind == "clustered" else np.ones(D)
    basis = np.linalg.qr(rng.normal(size=(D, D)))[0]
    centres = rng.normal(size=(max(n // 20, 1), D)) * spread

    def some(count: int) -> np.ndarray:
        near = centres[rng.integers(0, len(centres), count)] if kind == "clustered" else 0.0
        rows = (near + 0.5 * rng.normal(size=(count, D)) * spread) @ basis
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    return some(n), some(50)


def by_numpy(query: np.ndarray, rows: np.ndarray) -> np.ndarray:
    cosines = rows @ query
    best = np.argpartition(cosines, len(rows) - K)[len(rows) - K :]
    return best[np.argsort(-cosines[best])]


def top_k(report: Report, kind: str, n: int, graph: bool, seconds: float) -> None:
    rows, queries = vectors(kind, n)
    half = rows.astype(np.float16)
    index = core.VectorIndex(rows)
    turn = iter(range(10**9))
    name = f"cosine top-10, {kind}, {n:.0e} x {D}"

    def query() -> np.ndarray:  # another one each time
        return queries[next(turn) % len(queries)]

    exact = [by_numpy(q, rows) for q in queries]
    for q, expected in zip(queries, exact, strict=True):
        ids, cosines = index.search(q, K)
        check(np.allclose(cosines, (rows @ q)[expected], atol=1e-6), name)
        check(ids.tolist() == core.cosine_topk(q[None], rows, K)[0][0].tolist(), name)
    calls = {
        "index": lambda: index.search(query(), K),
        "float32": lambda: core.cosine_topk(query()[None], rows, K),
        "float16": lambda: core.cosine_topk(query()[None], half, K),
        "numpy": lambda: by_numpy(query(), rows),
    }
    recall = 0.0
    if graph:
        hnsw = hnswlib.Index(space="ip", dim=D)
        hnsw.init_index(max_elements=n, M=16, ef_construction=100, random_seed=1)
        hnsw.add_items(rows, num_threads=1)
        hnsw.set_ef(64)
        found = [hnsw.knn_query(q[None], K, num_threads=1)[0][0] for q in queries]
        shared = [len(set(a) & set(b)) / K for a, b in zip(found, exact, strict=True)]
        recall = float(np.mean(shared))
        calls["hnswlib"] = lambda: hnsw.knn_query(query()[None], K, num_threads=1)
    took = interleaved(calls, seconds=seconds)
    full = float(np.mean([index.candidates(q, K) for q in queries]))
    gate = n == 10_000 and kind == "clustered"
    report.row(
        name + ", VectorIndex",
        ours=took["index"],
        against="numpy float32",
        theirs=took["numpy"],
        target=15.0 if gate else None,
        note=f"recall 1; {full:.0f} rows computed in full",
    )
    for way in ("float32", "float16"):
        report.row(
            f"{name}, one scan of {way}",
            ours=took[way],
            against="numpy float32",
            theirs=took["numpy"],
        )
    if graph:
        report.row(
            name + ", VectorIndex",
            ours=took["index"],
            against="hnswlib",
            theirs=took["hnswlib"],
            note=f"hnswlib's recall {recall:.3f}",
        )


def late_interaction(report: Report, seconds: float) -> None:
    rng = np.random.default_rng(0)
    query = rng.normal(size=(32, 128)).astype(np.float32)
    tokens = rng.normal(size=(20_000, 128)).astype(np.float32)
    offsets = np.arange(0, 20_001, 100)

    def numpy_way() -> np.ndarray:
        return np.maximum.reduceat(tokens @ query.T, offsets[:-1], axis=0).sum(axis=1)

    check(np.allclose(core.maxsim(query, tokens, offsets), numpy_way(), rtol=1e-4), "MaxSim")
    took = interleaved(
        {"core": lambda: core.maxsim(query, tokens, offsets), "numpy": numpy_way}, seconds=seconds
    )
    report.row(
        "MaxSim, 32 query tokens, 200 documents of 100 tokens, d = 128",
        ours=took["core"],
        against="numpy",
        theirs=took["numpy"],
    )


def main() -> None:
    options = arguments(__doc__)
    report = Report("similarity")
    for kind in ("clustered", "random"):
        for n in [1_000, 10_000] if options.quick else [1_000, 10_000, 20_000, 30_000, 50_000]:
            top_k(report, kind, n, graph=kind == "clustered", seconds=options.seconds)
    late_interaction(report, options.seconds)
    report.finish(options.out)


if __name__ == "__main__":
    main()
