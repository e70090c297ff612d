"""Slow, obvious twins of the compiled core: what each algorithm means, with no thought of speed.

Only tests use them. Each takes and returns plain Python or float64 values and follows the
definition rather than the core's method, so that the two can only agree by both being right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

# --- tree -------------------------------------------------------------------------------------


def ancestors(parents: Sequence[int], node: int) -> list[int]:
    """Parent first, root last."""
    line: list[int] = []
    while parents[node] != -1:
        node = parents[node]
        line.append(node)
    return line


def depth(parents: Sequence[int], node: int) -> int:
    return len(ancestors(parents, node))


def ancestor_at_depth(parents: Sequence[int], node: int, wanted: int) -> int:
    return next((a for a in [node, *ancestors(parents, node)] if depth(parents, a) == wanted), -1)


def children(parents: Sequence[int], node: int) -> list[int]:
    return [child for child, parent in enumerate(parents) if parent == node]


def subtree(parents: Sequence[int], node: int) -> list[int]:
    """Document order. Recursive on purpose: the definition of pre-order."""
    return [node] + [v for child in children(parents, node) for v in subtree(parents, child)]


def subtree_union(parents: Sequence[int], nodes: Sequence[int]) -> list[int]:
    return sorted({v for node in nodes for v in subtree(parents, node)})


def is_tree(parents: Sequence[int]) -> bool:
    """One root, which every node reaches."""
    n = len(parents)
    if sum(p == -1 for p in parents) != 1 or any(not -1 <= p < n for p in parents):
        return False
    for node in range(n):
        seen = set()
        while node != -1:
            if node in seen:
                return False
            seen.add(node)
            node = parents[node]
    return True


# --- graph and link -----------------------------------------------------------------------------

Relation = tuple[int, int, float]


def neighbours(relations: Sequence[Relation], entity: int) -> list[tuple[int, float, int]]:
    """(neighbour, weight, relation), by neighbour and then relation; a self-loop once."""
    found = []
    for i, (a, b, w) in enumerate(relations):
        if a == entity:
            found.append((b, w, i))
        elif b == entity:
            found.append((a, w, i))
    return sorted(found, key=lambda f: (f[0], f[2]))


def adjacency(n: int, relations: Sequence[Relation]) -> np.ndarray:
    """Dense float64[n, n]: parallel relations add up, a self-loop counts once."""
    matrix = np.zeros((n, n))
    for a, b, w in relations:
        matrix[a, b] += w
        if a != b:
            matrix[b, a] += w
    return matrix


def project(
    pairs: Sequence[tuple[int, int]], num_nodes: int, scores: Sequence[float]
) -> list[float]:
    """Score of a node: the sum of its entities' scores, a repeated pair once."""
    return [
        math.fsum(float(scores[e]) for e, v in sorted(set(pairs)) if v == node)
        for node in range(num_nodes)
    ]


# --- PageRank -----------------------------------------------------------------------------------


def personalized_pagerank(
    n: int,
    relations: Sequence[Relation],
    seeds: Sequence[int],
    weights: Sequence[float] | None = None,
    damping: float = 0.5,
) -> np.ndarray:
    """The walk's stationary distribution, as the solution of a dense linear system in float64."""
    restart = np.zeros(n)
    for seed, weight in zip(
        seeds, weights if weights is not None else [1.0] * len(seeds), strict=True
    ):
        restart[seed] += weight
    restart /= restart.sum()
    matrix = adjacency(n, relations)
    step = np.empty((n, n))  # step[v, u]: chance to go from u to v
    for u in range(n):
        out = matrix[u].sum()
        step[:, u] = matrix[u] / out if out > 0 else restart
    return np.linalg.solve(np.eye(n) - damping * step, (1 - damping) * restart)


# --- skyline ------------------------------------------------------------------------------------


def skyline(scores: np.ndarray) -> list[int]:
    """Rows that no other row dominates, by comparing every pair."""
    return [
        i
        for i, row in enumerate(scores)
        if not any((other >= row).all() and (other > row).any() for other in scores)
    ]


# --- entity resolution --------------------------------------------------------------------------

NEW, MERGE, AMBIGUOUS = 0, 1, 2


def gradient_drop_row(
    row: Sequence[float], g: float = 0.6, min_score: float = 0.5
) -> tuple[int, int, list[int]]:
    """(case, size of the high group, columns best first) of one row, in float32 as the core."""
    scores = [np.float32(s) for s in row]
    order = sorted(range(len(scores)), key=lambda c: (-scores[c], c))
    real = [scores[c] for c in order if scores[c] != -np.inf]
    if not real or real[0] < np.float32(min_score):
        return NEW, 0, order
    high = [real[0]]
    for score in real[1:]:
        if not score >= np.float32(g) * high[-1]:
            break
        high.append(score)
    if len(high) == 1:
        return MERGE, 1, order
    all_alike = len(high) == len(scores)
    return (NEW if all_alike else AMBIGUOUS), len(high), order


def merge_plan(
    n: int,
    pairs: Sequence[tuple[int, int]],
    incompatible: Sequence[tuple[int, int]] = (),
) -> tuple[list[int], list[int]]:
    """(representative of each entity, numbers of the pairs skipped), by joining sets one by one."""
    sets = [{e} for e in range(n)]
    skipped = []
    for i, (a, b) in enumerate(pairs):
        of_a = next(s for s in sets if a in s)
        of_b = next(s for s in sets if b in s)
        if of_a is of_b:
            continue
        joined = of_a | of_b
        if any(x in joined and y in joined for x, y in incompatible):
            skipped.append(i)
            continue
        sets = [s for s in sets if s is not of_a and s is not of_b] + [joined]
    return [min(next(s for s in sets if e in s)) for e in range(n)], skipped


# --- similarity ---------------------------------------------------------------------------------


def cosines(queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """float64[q, n]; 0 for a vector of zeros."""

    def unit(vectors: np.ndarray) -> np.ndarray:
        wide = np.asarray(vectors, np.float64)
        norms = np.linalg.norm(wide, axis=1, keepdims=True)
        return wide / np.where(norms == 0, 1, norms)

    return unit(queries) @ unit(rows).T


def maxsim(query: np.ndarray, tokens: np.ndarray, offsets: Sequence[int]) -> list[float]:
    """Sum over the query's tokens of the best match in each document; -inf without tokens."""
    wide = np.asarray(tokens, np.float64)
    return [
        math.fsum(
            max((float(q @ t) for t in wide[a:b]), default=-math.inf)
            for q in np.asarray(query, np.float64)
        )
        for a, b in pairwise(offsets)
    ]
