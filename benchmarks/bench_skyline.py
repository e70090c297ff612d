"""Pareto skyline against paretoset (numba). Needs: pip install paretoset numba.

paretoset compares every point with all kept so far: on fronts its time is quadratic. Where it takes
seconds it is timed once, after everything is compiled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from common import Report, arguments, check, interleaved
from paretoset import paretoset

from bookrag_fast import core

ONCE_ABOVE = 10_000  # anti-correlated points of d = 3, 4


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
                ours = partial(core.skyline, scores)
                other = partial(paretoset, scores, sense=["max"] * d, distinct=False)
                other_once = kind == "anti-correlated" and d > 2 and n > ONCE_ABOVE
                start = time.perf_counter()
                expected = np.flatnonzero(other())
                once = time.perf_counter() - start
                check(np.array_equal(ours(), expected), name)
                calls: dict[str, Callable[[], object]] = {"core": ours}
                if not other_once:
                    calls["paretoset"] = other
                took = interleaved(calls, seconds=options.seconds / 3, least=3)
                report.row(
                    name,
                    ours=took["core"],
                    against="paretoset",
                    theirs=once if other_once else took["paretoset"],
                    target=target(kind, n, d),
                    note=f"{len(expected)} on the front" + (", theirs once" if other_once else ""),
                )
    report.finish(options.out)


if __name__ == "__main__":
    main()
