"""What the kernel benchmarks share: interleaved medians, the machine, a table, JSON rows.

    report = Report("pagerank")
    times = interleaved({"ours": f, "igraph": g}, seconds=2)
    report.row("1e4 nodes", against="igraph", ours=times["ours"], theirs=times["igraph"])
    report.finish(out)

Ratios are of medians of the same run: absolute times vary with the neighbours on a shared machine,
and so do ratios of runs made one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

# Idle threads of OpenMP and BLAS spin, and make whoever has them look slow. Before they are loaded.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


def interleaved(
    functions: Mapping[str, Callable[[], object]],
    *,
    seconds: float = 2.0,
    least: int = 5,
    most: int = 1000,
) -> dict[str, float]:
    """Median seconds of a call of each, called in turn: one warm-up round, then at least `least`
    rounds and until `seconds` have passed. A sample of a fast function is a loop of calls, as warm
    as in use and long against the clock.

    Seconds are processor time of this thread, so that waiting for a shared core does not count;
    functions must do all their work in the calling thread."""
    calls: dict[str, int] = {}
    for name, function in functions.items():
        function()
        start = time.thread_time()
        function()
        calls[name] = max(1, min(200, int(0.005 / max(time.thread_time() - start, 1e-6))))
    samples: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < least or (time.perf_counter() < end and rounds < most):
        for name, function in functions.items():
            many = range(calls[name])
            start = time.thread_time()
            for _ in many:
                function()
            samples[name].append((time.thread_time() - start) / len(many))
        rounds += 1
    return {name: statistics.median(values) for name, values in samples.items()}


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def machine() -> dict[str, str]:
    from bookrag_fast import core

    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        model = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": model or platform.machine(),
        "cores": str(cores),
        "isa": core.isa(),
        "python": platform.python_version(),
        "system": platform.system(),
        "date": time.strftime("%Y-%m-%d"),
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "",
    }


class Report:
    """Markdown rows on standard output as they come, JSON rows at the end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[dict[str, object]] = []
        about = machine()
        print(f"## {name}\n\n" + ", ".join(f"{k} {v}" for k, v in about.items() if v) + "\n")
        print(
            "| kernel | ours | against | theirs | ratio | target | |\n|---|---|---|---|---|---|---|"
        )
        self._machine = about

    def row(
        self,
        kernel: str,
        *,
        ours: float,
        against: str = "",
        theirs: float | None = None,
        target: float | None = None,
        at_most: float | None = None,
        note: str = "",
        **more: object,
    ) -> None:
        """ours, theirs, at_most: seconds. target: of the ratio theirs / ours."""
        ratio = None if theirs is None else theirs / ours
        met = (target is None or (ratio or 0.0) >= target) and (at_most is None or ours <= at_most)
        asked = target is not None or at_most is not None
        goal = ", ".join(
            text
            for text in (
                f"≥ {target:g}×" if target is not None else "",
                f"≤ {duration(at_most)}" if at_most is not None else "",
            )
            if text
        )
        cells = [
            kernel,
            duration(ours),
            against,
            "" if theirs is None else duration(theirs),
            "" if ratio is None else f"{ratio:.3g}×",
            goal,
            " ".join(x for x in (("ok" if met else "MISSED") if asked else "", note) if x),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)
        self.rows.append(
            {
                "bench": self.name,
                "kernel": kernel,
                "ours": ours,
                "against": against,
                "theirs": theirs,
                "ratio": ratio,
                "target": target,
                "at_most": at_most,
                "met": met if asked else None,
                "note": note,
                **more,
            }
        )

    def finish(self, out: Path | None) -> None:
        missed = [r for r in self.rows if r["met"] is False]
        print(f"\n{len(self.rows)} rows, {len(missed)} missed", flush=True)
        if out is not None:
            text = json.dumps({"machine": self._machine, "rows": self.rows}, indent=1)
            out.write_text(text + "\n", encoding="utf-8")


def arguments(description: str | None) -> argparse.Namespace:
    """--out FILE, --quick and --seconds, which every bench takes."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for a measurement")
    return parser.parse_args()


def check(holds: bool, what: str) -> None:
    """Results first: a wrong answer is fast too."""
    if not holds:
        sys.exit(f"WRONG RESULT: {what}")
