"""From PDF to saved book to answer: pages a second, peak memory, latency in process and over gRPC.

    python benchmarks/end_to_end.py FILE... [--question Q]

Each file is indexed into a fresh shelf in a process of its own, so that peak memory is that file's.
Latency is measured on all books' first one: search, in process (`Library.search`) and through
`bookrag serve` and its client on loopback, after a warm-up, results compared first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHILD = """
import json, resource, sys, time
from bookrag_fast import Library
from bookrag_fast.library import Progress
lib = Library.open(sys.argv[1])
lib.embedder.embed(["warm"])
stages, start = {}, time.perf_counter()
def note(p):
    stages.setdefault(p.stage, time.perf_counter() - start)
book = lib.add(sys.argv[2], progress=note)
took = time.perf_counter() - start
lib.close()
peak, reader = (resource.getrusage(who).ru_maxrss / 1024
                for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({"id": book.id, "pages": book.pages, "nodes": book.nodes,
                  "entities": book.entities, "seconds": took, "peak_mb": peak, "reader_mb": reader,
                  "stages": stages}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--question", default="What is the total revenue of the year?")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shelf = Path(folder) / "shelf"
        pages = seconds = 0.0
        for file in options.files:
            out = subprocess.run(
                [sys.executable, "-c", CHILD, str(shelf), str(file)],
                capture_output=True,
                text=True,
                check=False,
            )
            if out.returncode:
                print(f"{file.name}: {out.stderr.strip().splitlines()[-1]}")
                continue
            row = json.loads(out.stdout)
            pages, seconds = pages + row["pages"], seconds + row["seconds"]
            print(
                f"{file.name[:40]:40} {row['pages']:5} pages {row['nodes']:6} nodes "
                f"{row['entities']:6} entities {row['pages'] / row['seconds']:7.1f} pages/s "
                f"{row['peak_mb']:6.0f} MB peak, reader {row['reader_mb']:4.0f} MB"
            )
        print(f"all: {pages:.0f} pages in {seconds:.1f} s, {pages / seconds:.1f} pages/s")
        latency(shelf, options.question)


def latency(shelf: Path, question: str) -> None:
    from bookrag_fast import Library
    from bookrag_fast.server.client import Client

    server = subprocess.Popen(
        [sys.executable, "-m", "bookrag_fast.cli", "serve", "--port", "0", "--json",
         "--library", str(shelf)],
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["listening"]
        with Library.open(shelf) as lib, Client(address) as client:
            book = lib.books()[0]
            here = lib.search(question, books=[book.id])
            there = client.search(question, books=[book.id])
            assert [e.node_id for e in here] == [e.node_id for e in there]
            for name, search in (("in process", lib.search), ("over gRPC", client.search)):
                took = []
                for _ in range(300):
                    start = time.perf_counter()
                    search(question, books=[book.id])
                    took.append((time.perf_counter() - start) * 1e3)
                took.sort()
                print(
                    f"search {name:10} ({book.nodes} nodes, {book.entities} entities): "
                    f"p50 {statistics.median(took):.2f} ms, p99 {took[297]:.2f} ms"
                )
    finally:
        server.terminate()
        server.wait(timeout=30)


if __name__ == "__main__":
    main()
