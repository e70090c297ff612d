"""Runs the kernel benches one after the other and writes what they measured.

    python benchmarks/run_all.py [--seconds S] [--quick] [--plot-only]

Writes ``figures.md`` (every row, with machine and date) and ``figures.svg`` (ratios beside what was
asked for, growth with the edges) beside this script. Needs the extra ``bench``.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHES = ("pagerank", "projection", "skyline", "resolution", "similarity", "retrieve")
# Set on some machines for old BLAS builds; a current one should choose its kernels itself.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--plot-only", action="store_true", help="draw what figures.md holds")
    options = parser.parse_args()
    table = HERE / "figures.md"
    if not options.plot_only:
        text = "\n\n".join(run(name, options.seconds, options.quick) for name in BENCHES)
        table.write_text(f"# Figures of the kernels\n\n{text}\n", "utf-8")
    draw(table.read_text("utf-8"))


def run(name: str, seconds: float, quick: bool) -> str:
    command = [sys.executable, str(HERE / f"bench_{name}.py"), "--seconds", str(seconds)]
    env = {k: v for k, v in os.environ.items() if k not in UNSET}
    done = subprocess.run(
        command + ["--quick"] * quick, env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    print(done.stdout)
    if done.returncode:
        sys.exit(f"bench_{name}.py failed with status {done.returncode}")
    return done.stdout.strip()


@dataclass(frozen=True)
class Row:
    """A row of the table: seconds, and the ratio beside what was asked for."""

    kernel: str
    ours: float
    against: str
    ratio: float | None
    target: float | None


def rows_of(text: str) -> list[Row]:
    rows = []
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        amount = re.fullmatch(r"([\d.e+-]+) (s|ms|µs|ns)", cells[1]) if len(cells) == 7 else None
        if amount is None:
            continue
        ratio = re.match(r"([\d.e+]+)×", cells[4])
        target = re.search(r"≥ ([\d.e+]+)×", cells[5])
        rows.append(
            Row(
                cells[0],
                float(amount[1]) * {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[amount[2]],
                cells[2],
                float(ratio[1]) if ratio else None,
                float(target[1]) if target else None,
            )
        )
    return rows


def draw(text: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # text as text: a tenth of the size
    matplotlib.rcParams["svg.hashsalt"] = "bookrag_fast"  # the same figures, the same bytes
    from matplotlib import pyplot

    rows = rows_of(text)
    asked = [(r, r.ratio, r.target) for r in rows if r.ratio and r.target]
    grown = [
        (float(found[1]), r.ours * 1e3)
        for r in rows
        if (found := re.match(r"whole solution, ([\d.e+]+) edges", r.kernel))
    ]
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(15, 1 + 0.19 * len(asked)), width_ratios=(3, 1)
    )
    places = range(len(asked))
    met = ["#4c78a8" if ratio >= target else "#e45756" for _, ratio, target in asked]
    left.barh(places, [ratio for _, ratio, _ in asked], color=met)
    left.scatter([t for _, _, t in asked], places, marker="|", s=90, color="black", zorder=3)
    left.set_yticks(places, [f"{r.kernel} / {r.against}" for r, _, _ in asked], fontsize=6)
    left.set_xscale("log")
    left.set_ylim(len(asked), -1)
    left.set_xlabel("times as fast as what a user would pick instead (mark: asked for)")
    edges, took = zip(*grown, strict=True)
    right.loglog(edges, took, "o-", label="personalized PageRank")
    linear = [took[0] * e / edges[0] for e in edges]
    right.loglog(edges, linear, "--", color="grey", label="linear in the edges")
    right.set_xlabel("edges")
    right.set_ylabel("ms, damping 0.5, tolerance 1e-6")
    right.legend()
    figure.suptitle(next(x for x in text.splitlines() if x.startswith("cpu ")), fontsize=8)
    figure.tight_layout()
    figure.savefig(HERE / "figures.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
