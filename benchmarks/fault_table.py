"""What becomes of a question when the model's server misbehaves: a table in Markdown.

    python benchmarks/fault_table.py

Each fault is a real server on loopback, asked through endpoint, middleware and the checks of
replies. The cases are those of `tests/test_model_faults.py`, which holds the outcomes; here are the
times and the messages as well.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fault_cases import CASES, RETRIES, TIMEOUT_S, Case, run


def row(case: Case) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        seen = asyncio.run(run(case, Path(folder)))
    spent = seen.spent
    return [
        case.name,
        case.way,
        seen.outcome,
        ", ".join(seen.steps),
        str(spent.calls),
        str(spent.failures),
        str(spent.tokens),
        f"{seen.seconds:.2f} s",
        seen.problem.replace("\n", " ").replace("|", "\\|")[:160],
    ]


def main() -> None:
    logging.disable()
    print(f"Deadline {TIMEOUT_S} s a call, {RETRIES} retries, pauses between them cut to 10 ms.\n")
    head = "fault, way, outcome, steps, calls, failures, tokens, took, said".split(", ")
    for cells in (head, ["---"] * len(head)):
        print("| " + " | ".join(cells) + " |")
    for case in CASES:
        print("| " + " | ".join(row(case)) + " |", flush=True)


if __name__ == "__main__":
    main()
