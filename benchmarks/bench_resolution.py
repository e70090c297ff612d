"""Gradient drop against the two obvious ways to write it: NumPy in a batch, Python lists."""

from __future__ import annotations

from functools import partial

import numpy as np
from common import Report, arguments, check, interleaved

from bookrag_fast import core

G, MIN_SCORE = 0.6, 0.5


def by_numpy(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=1)
    inside = ranked[:, 1:] >= np.float32(G) * ranked[:, :-1]
    size = 1 + np.logical_and.accumulate(inside, axis=1).sum(axis=1)
    size[ranked[:, 0] < np.float32(MIN_SCORE)] = 0
    case = np.full(len(scores), core.AMBIGUOUS, np.uint8)
    case[(size == 0) | (size == scores.shape[1])] = core.NEW
    case[size == 1] = core.MERGE
    return case, size, order


def by_lists(rows: list[list[float]]) -> list[tuple[int, int, list[int]]]:
    out = []
    for row in rows:
        order = sorted(range(len(row)), key=lambda c: -row[c])
        if row[order[0]] < MIN_SCORE:
            out.append((core.NEW, 0, order))
            continue
        size = 1
        while size < len(row) and row[order[size]] >= G * row[order[size - 1]]:
            size += 1
        case = core.MERGE if size == 1 else core.NEW if size == len(row) else core.AMBIGUOUS
        out.append((case, size, order))
    return out


def main() -> None:
    options = arguments(__doc__)
    report = Report("gradient drop")
    for n in [1_000, 10_000] if options.quick else [1_000, 10_000, 100_000, 1_000_000]:
        for k in (5, 10, 16, 20, 64) if n < 1_000_000 else (5, 10, 16, 20):
            rng = np.random.default_rng(k)
            # A few stand out, the rest falls off; rounded, so that ties occur.
            scores = np.round(rng.random((n, k)) ** 3, 3).astype(np.float32)
            rows = scores[:10_000].tolist()  # the lists' time grows with n, and is scaled to it
            name = f"gradient drop n = {n:.0e}, k = {k}"
            got = core.gradient_drop(scores, g=G, min_score=MIN_SCORE)
            case, size, order = by_numpy(scores)
            check(np.array_equal(got.case, case), name)
            check(np.array_equal(got.size, size), name)
            check(np.array_equal(got.order, order), name)
            check([r[2] for r in by_lists(rows)] == got.order[: len(rows)].tolist(), name)
            took = interleaved(
                {
                    "core": partial(core.gradient_drop, scores, g=G, min_score=MIN_SCORE),
                    "numpy": partial(by_numpy, scores),
                    "lists": partial(by_lists, rows),
                },
                seconds=options.seconds,
            )
            gate = n == 100_000 and k == 10
            note = f"{took['core'] / n * 1e9:.2f} ns a row"
            for other, seconds, goal in (
                ("numpy", took["numpy"], 30.0),
                ("lists", took["lists"] * n / len(rows), 300.0),
            ):
                report.row(
                    name,
                    ours=took["core"],
                    against=other,
                    theirs=seconds,
                    target=goal if gate else None,
                    note=note,
                )
    report.finish(options.out)


if __name__ == "__main__":
    main()
