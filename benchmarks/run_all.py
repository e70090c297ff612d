"""Runs the kernel benches one after the other and writes what they measured.

    python benchmarks/run_all.py [--seconds S] [--quick]

Writes ``figures.md`` (every row, with machine and date) and ``figures.svg`` (ratios beside what was
asked for, growth with the edges) beside this script. Needs the extra ``bench``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BENCHES = ("pagerank", "skyline", "resolution", "similarity", "retrieve")
# Set on some machines for old BLAS builds; a current one should choose its kernels itself.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    env = {k: v for k, v in os.environ.items() if k not in UNSET}
    tables, rows, machine = [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        for name in BENCHES:
            out = Path(folder) / f"{name}.json"
            command = [sys.executable, str(HERE / f"bench_{name}.py"), "--out", str(out)]
            command += ["--seconds", str(options.seconds)] + ["--quick"] * options.quick
            run = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False)
            print(run.stdout)
            if run.returncode:
                sys.exit(f"bench_{name}.py failed with status {run.returncode}")
            tables.append(run.stdout.strip())
            found = json.loads(out.read_text("utf-8"))
            rows += found["rows"]
            machine = found["machine"]
    text = "\n\n".join(tables)
    (HERE / "figures.md").write_text(f"# Figures of the kernels\n\n{text}\n", "utf-8")
    draw(rows, machine)


def draw(rows: list[dict[str, Any]], machine: dict[str, str]) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    asked = [r for r in rows if r["ratio"] and r["target"]]
    grown = [r for r in rows if r.get("edges") and r["kernel"].startswith("whole solution")]
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(15, 1 + 0.19 * len(asked)), width_ratios=(3, 1)
    )
    places = range(len(asked))
    left.barh(places, [r["ratio"] for r in asked],
              color=["#4c78a8" if r["met"] else "#e45756" for r in asked])  # fmt: skip
    left.scatter([r["target"] for r in asked], places, marker="|", s=90, color="black", zorder=3)
    left.set_yticks(places, [f"{r['kernel']} / {r['against']}" for r in asked], fontsize=6)
    left.set_xscale("log")
    left.invert_yaxis()
    left.set_xlabel("times as fast as what a user would pick instead (mark: asked for)")
    edges = [r["edges"] for r in grown]
    right.loglog(edges, [r["ours"] * 1e3 for r in grown], "o-", label="personalized PageRank")
    if grown:
        linear = [grown[0]["ours"] * 1e3 * e / edges[0] for e in edges]
        right.loglog(edges, linear, "--", color="grey", label="linear in the edges")
    right.set_xlabel("edges")
    right.set_ylabel("ms, damping 0.5, tolerance 1e-6")
    right.legend()
    figure.suptitle(", ".join(f"{k} {v}" for k, v in machine.items() if v), fontsize=8)
    figure.tight_layout()
    figure.savefig(HERE / "figures.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
