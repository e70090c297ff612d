"""Personalized PageRank against igraph (PRPACK), scipy power iteration and networkx.

Graphs are "kg" graphs: clusters of entities that were mentioned together, hubs that everything
mentions, a few long links; weighted, mean degree about 6. Results are compared before anything is
timed. python benchmarks/bench_pagerank.py [--out rows.json] [--quick]
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from common import Report, arguments, check, interleaved

import igraph  # isort: skip  # after common, which keeps its threads quiet
import networkx
import numpy as np
import scipy.sparse

from bookrag_fast import _core, core

SIZES = (1_000, 10_000, 50_000, 100_000, 1_000_000)


@dataclass
class Kg:
    """One graph as each library likes it. The others get theirs ready-made, outside the clock."""

    n: int
    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    @classmethod
    def make(cls, n: int, mean_degree: float = 6.0, seed: int = 0) -> Kg:
        rng = np.random.default_rng(seed)
        m = int(n * mean_degree / 2)
        near, to_hubs = int(m * 0.65), int(m * 0.25)
        a = rng.integers(0, n, near)
        b = np.minimum(a // 30 * 30 + rng.integers(0, 30, near), n - 1)
        hubs = rng.integers(0, n, max(1, n // 100))
        hub = hubs[(len(hubs) * rng.random(to_hubs) ** 3).astype(np.int64)]
        far = m - near - to_hubs
        sources = np.concatenate([a, rng.integers(0, n, to_hubs), rng.integers(0, n, far)])
        targets = np.concatenate([b, hub, rng.integers(0, n, far)])
        pairs = np.sort(np.stack([sources, targets], 1)[sources != targets], 1)
        pairs = np.unique(pairs, axis=0).astype(np.int32)
        weights = rng.uniform(0.1, 5, len(pairs)).astype(np.float32)
        return cls(n, pairs[:, 0].copy(), pairs[:, 1].copy(), weights)

    def core(self) -> core.KnowledgeGraph:
        return core.KnowledgeGraph(self.n, self.sources, self.targets, self.weights)

    def igraph(self) -> igraph.Graph:
        graph = igraph.Graph(self.n, np.stack([self.sources, self.targets], 1))
        graph.es["weight"] = self.weights.astype(np.float64).tolist()
        return graph

    def scipy(self) -> scipy.sparse.csr_matrix:
        """Column-stochastic, float64."""
        both = (
            np.concatenate([self.weights, self.weights]).astype(np.float64),
            (
                np.concatenate([self.sources, self.targets]),
                np.concatenate([self.targets, self.sources]),
            ),
        )
        matrix = scipy.sparse.coo_matrix(both, (self.n, self.n)).tocsr()
        degree = np.asarray(matrix.sum(0)).ravel()
        return (matrix @ scipy.sparse.diags(1 / np.where(degree > 0, degree, 1))).tocsr()

    def networkx(self) -> networkx.Graph:
        graph = networkx.Graph()
        graph.add_nodes_from(range(self.n))
        graph.add_weighted_edges_from(
            zip(
                self.sources.tolist(),
                self.targets.tolist(),
                self.weights.astype(float).tolist(),
                strict=True,
            )
        )
        return graph


def power(matrix: scipy.sparse.csr_matrix, seed: int, damping: float, tol: float) -> np.ndarray:
    restart = np.zeros(matrix.shape[0])
    restart[seed] = 1 - damping
    x = restart / (1 - damping)
    while True:
        following = damping * (matrix @ x) + restart
        change = np.abs(following - x).sum()
        x = following
        if change * damping / (1 - damping) <= tol:  # the same bound as ours
            return x / x.sum()


def l1(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(np.asarray(a, np.float64) - b).sum())


def whole_graphs(report: Report, sizes: tuple[int, ...], seconds: float) -> None:
    for n in sizes:
        kg = Kg.make(n)
        graph, other, matrix = kg.core(), kg.igraph(), kg.scipy()
        nx = kg.networkx() if n <= 50_000 else None
        seed = int(np.argsort(graph.degrees, kind="stable")[n // 2])  # a seed of median degree
        start = time.perf_counter()
        core.personalized_pagerank(graph, [seed])
        report.row(
            f"first call on {n:.0e} nodes (lays the matrix out)", ours=time.perf_counter() - start
        )
        for damping in (0.5, 0.85):
            run = _runs(graph, other, matrix, nx, seed, damping)
            exact = core.personalized_pagerank(
                graph, [seed], damping=damping, tol=1e-12, dtype="float64"
            )
            theirs = l1(run["igraph"](), exact)
            check(theirs < 1e-8, f"igraph and ours in float64 differ by {theirs}")
            check(l1(run["ours"](), exact) < 1.2e-6, "float32 is not within 1e-6")
            check(l1(run["ours float64"](), exact) < 1.1e-10, "float64 is not within 1e-10")
            check(l1(run["scipy"](), exact) < 2e-6, "scipy power iteration went wrong")
            batch = np.asarray(run["ours 16 seeds"]())
            check(l1(batch[0], exact) < 1.2e-6, "the batch is not within 1e-6")
            ids, _ = run["ours top 20"]()
            check(
                bool((np.sort(exact[ids])[::-1] >= np.sort(exact)[::-1][:20] - 1e-6).all()),
                "the top 20 are not the best",
            )
            times = interleaved(run, seconds=seconds * (3 if n >= 50_000 else 1), least=5)
            name = f"n = {n:.0e}, damping {damping}"
            ours, far = times["ours"], times["igraph"]
            at_5e4 = n == 50_000
            error = f"L1 {l1(run['ours'](), exact):.0e}"
            report.row(f"float32 1e-6, {name}", ours=ours, against="igraph prpack", theirs=far,
                       target=25 if at_5e4 else 15, note=error)  # fmt: skip
            report.row(f"float32 1e-6, {name}", ours=ours, against="scipy power",
                       theirs=times["scipy"], target=10 if at_5e4 else 5)  # fmt: skip
            if nx is not None:
                report.row(f"float32 1e-6, {name}", ours=ours, against="networkx",
                           theirs=times["networkx"], target=300 if at_5e4 else 100)  # fmt: skip
            report.row(f"float64 1e-10, {name}", ours=times["ours float64"],
                       against="igraph prpack", theirs=far, target=10 if at_5e4 else None,
                       note=f"igraph's own L1 error {theirs:.0e}")  # fmt: skip
            report.row(f"16 seeds, each, {name}", ours=times["ours 16 seeds"] / 16,
                       against="igraph prpack", theirs=far,
                       target=60 if n <= 50_000 else None)  # fmt: skip
            report.row(f"top 20, tol 1e-4, {name}", ours=times["ours top 20"],
                       against="igraph prpack", theirs=far)  # fmt: skip


def _runs(graph, other, matrix, nx, seed, damping):  # type: ignore[no-untyped-def]
    n = graph.num_entities
    starts = [[(seed + i * (n // 16)) % n] for i in range(16)]
    run = {
        "ours": lambda: core.personalized_pagerank(graph, [seed], damping=damping),
        "ours float64": lambda: core.personalized_pagerank(
            graph, [seed], damping=damping, tol=1e-10, dtype="float64"
        ),
        "ours 16 seeds": lambda: core.personalized_pagerank_batch(graph, starts, damping=damping),
        "ours top 20": lambda: core.personalized_pagerank(
            graph, [seed], damping=damping, tol=1e-4, top_k=20
        ),
        "igraph": lambda: np.asarray(
            other.personalized_pagerank(
                damping=damping, reset_vertices=[seed], weights="weight", implementation="prpack"
            )
        ),
        "scipy": lambda: power(matrix, seed, damping, 1e-6),
    }
    if nx is not None:
        personal = {seed: 1.0}
        run["networkx"] = lambda: networkx.pagerank(
            nx, alpha=damping, personalization=personal, tol=1e-6 / n, max_iter=500
        )  # its tolerance is per node
    return run


def induced_graphs(report: Report, seconds: float) -> None:
    """1,000 entities out of 50,000: cutting the graph out and walking on it."""
    kg = Kg.make(50_000)
    graph, other = kg.core(), kg.igraph()
    rng = np.random.default_rng(1)
    # What a question selects: clusters here and there, and the hubs that tie them together.
    clusters = [c * 30 + np.arange(30) for c in rng.choice(1666, 32, replace=False)]
    chosen = np.unique(np.concatenate(clusters))
    hubs = np.argsort(-np.where(np.isin(np.arange(kg.n), chosen), 0, graph.degrees), kind="stable")
    entities = np.sort(np.concatenate([chosen, hubs[: 1000 - len(chosen)]])).astype(np.int32)
    vertices = entities.tolist()
    degrees = other.induced_subgraph(vertices).degree()
    at = int(np.argmax(degrees))
    seed = int(entities[at])
    for damping in (0.5, 0.85):
        ours = lambda d=damping: core.personalized_pagerank(  # noqa: E731
            graph, [seed], entities=entities, damping=d, compact=True
        )

        def theirs(d: float = damping) -> np.ndarray:
            part = other.induced_subgraph(vertices)
            return np.asarray(
                part.personalized_pagerank(
                    damping=d, reset_vertices=[at], weights="weight", implementation="prpack"
                )
            )

        check(l1(ours()[1], theirs()) < 1.2e-6, "the induced walk went wrong")
        times = interleaved({"ours": ours, "igraph": theirs}, seconds=seconds)
        report.row(f"induced 1,000 of 5e4 nodes, {sum(degrees)} slots, damping {damping}",
                   ours=times["ours"], against="igraph", theirs=times["igraph"], target=15,
                   at_most=30e-6)  # fmt: skip


def growth_and_bandwidth(report: Report, edges: tuple[int, ...], seconds: float) -> None:
    """Time a pass over the matrix, beside a plain read of as many bytes."""
    for m in edges:
        kg = Kg.make(m // 3)
        graph = kg.core()
        slots = len(graph.targets)
        run = lambda g=graph: core.personalized_pagerank(g, [1])  # noqa: E731
        passes = _core._pagerank_passes(graph, [1])
        size = slots * 8 + kg.n * 16  # index and p a slot; b, x (twice) and the next x a node
        block = np.ones(size // 8, np.float32)
        half = np.ones(size // 8, np.float32)
        times = interleaved({"ours": run, "read": lambda a=block, b=half: np.dot(a, b)},
                            seconds=seconds)  # fmt: skip
        a_pass = times["ours"] / passes
        report.row(f"whole solution, {m:.0e} edges", ours=times["ours"],
                   note=f"{times['ours'] * 1e9 / slots:.2f} ns a slot in {passes} passes",
                   edges=m)  # fmt: skip
        report.row(f"one pass, {m:.0e} edges", ours=a_pass, against=f"read {size / 1e6:.1f} MB",
                   theirs=times["read"],
                   note=f"{size / a_pass / 1e9:.1f} of {size / times['read'] / 1e9:.1f} GB/s",
                   edges=m)  # fmt: skip


def two_threads(report: Report) -> None:
    """Throughput of two threads that share a graph, against one."""
    for n in (1_000, 10_000, 50_000):
        graph = Kg.make(n).core()
        core.personalized_pagerank(graph, [1])
        rounds = max(20, 20_000_000 // n // 10)

        def work(g: core.KnowledgeGraph = graph, many: int = rounds) -> None:
            for i in range(many):
                core.personalized_pagerank(g, [i % 1000])

        best = {1: float("inf"), 2: float("inf")}
        for _ in range(5):
            for count in best:
                threads = [threading.Thread(target=work) for _ in range(count)]
                start = time.perf_counter()
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                best[count] = min(best[count], (time.perf_counter() - start) / count / rounds)
        report.row(f"a walk with two threads on one graph, n = {n:.0e}", ours=best[2],
                   against="one thread", theirs=best[1], target=1.8)  # fmt: skip


def main() -> None:
    given = arguments(__doc__)
    report = Report("PageRank")
    whole_graphs(report, SIZES[:3] if given.quick else SIZES, given.seconds)
    induced_graphs(report, given.seconds)
    edges = (10_000, 100_000, 1_000_000, 10_000_000)
    growth_and_bandwidth(report, edges[:3] if given.quick else edges, given.seconds)
    two_threads(report)
    report.finish(given.out)


if __name__ == "__main__":
    main()
