"""Pareto skyline against paretoset (numba). Needs: pip install paretoset numba.

paretoset compares every point with all kept so far: on fronts its time is quadratic, and it is not
asked where it would take minutes (the row then says so).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from common import Report, arguments, check, interleaved
from paretoset import paretoset

from bookrag_fast import core

# Slowest for the competitor at d = 3, 4: about 2 s at this size.
ANTI_CORRELATED_LIMIT = 10_000


def points(kind: str, n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(d)
    if kind == "independent":
        return rng.random((n, d), np.float32)
    if kind == "correlated":
        return (rng.random((n, 1)) + rng.normal(0, 0.05, (n, d))).astype(np.float32)
    # Near a plane of constant sum, moved along its normal: good in one value, bad in another.
    return (rng.dirichlet(np.ones(d), n) + rng.normal(0, 0.01, (n, 1))).astype(np.float32)


def target(kind: str, n: int, d: int) -> float:
    if d == 2:
        return 6.0 if n <= 100_000 else 1.0
    return 10.0 if d == 4 and kind == "anti-correlated" else 1.5


def main() -> None:
    options = arguments(__doc__)
    report = Report("skyline")
    sizes = [100, 1_000, 10_000] if options.quick else [100, 1_000, 10_000, 100_000, 1_000_000]
    for d in (2, 3, 4):
        for kind in ("independent", "correlated", "anti-correlated"):
            for n in sizes:
                scores = points(kind, n, d)
                name = f"skyline d = {d}, {kind}, {n:.0e}"
                calls: dict[str, Callable[[], object]] = {"core": partial(core.skyline, scores)}
                asked = kind != "anti-correlated" or d == 2 or n <= ANTI_CORRELATED_LIMIT
                if asked:
                    calls["paretoset"] = partial(
                        paretoset, scores, sense=["max"] * d, distinct=False
                    )
                    expected = np.flatnonzero(calls["paretoset"]())
                    check(np.array_equal(core.skyline(scores), expected), name)
                took = interleaved(calls, seconds=options.seconds / 3, least=3)
                report.row(
                    name,
                    ours=took["core"],
                    against="paretoset" if asked else "paretoset: minutes",
                    theirs=took.get("paretoset"),
                    target=target(kind, n, d) if asked else None,
                    note=f"{len(core.skyline(scores))} on the front",
                )
    report.finish(options.out)


if __name__ == "__main__":
    main()
