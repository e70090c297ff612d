"""Files of formats other than PDF → blocks: megabytes and blocks a second, memory beyond the start.

    python benchmarks/readers.py [--megabytes 5]

Each file is made of the same words and read in a process of its own, best of three, processor time;
the number of blocks is checked.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

WORDS = "the cow gives milk farm pasture hay barn water spring month litre house tree".split()
PARAGRAPHS, ITEMS, ROWS = 4, 3, 8

CHILD = """
import json, resource, sys, time
from bookrag_fast.document import read_document
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
read_document(sys.argv[1])
before, took = peak(), []
for _ in range(3):
    start = time.process_time()
    document = read_document(sys.argv[2])
    took.append(time.process_time() - start)
print(json.dumps({"seconds": min(took), "mb": peak() - before, "blocks": len(document.blocks)}))
"""


def sections(size: int) -> Iterator[tuple[int, list[str], list[str]]]:
    """(number, paragraphs, items) until about ``size`` characters are told."""
    made = random.Random(3)

    def sentence() -> str:
        return " ".join(made.choices(WORDS, k=14)).capitalize() + "."

    number = told = 0
    while told < size:
        number += 1
        paragraphs = [" ".join(sentence() for _ in range(5)) for _ in range(PARAGRAPHS)]
        items = [sentence() for _ in range(ITEMS)]
        told += sum(map(len, paragraphs + items))
        yield number, paragraphs, items


def markdown(size: int) -> Iterator[str]:
    for number, paragraphs, items in sections(size):
        yield f"## {number} A *heading*\n\n"
        yield from (f"{p} See **this**, [a link](http://x.y) and `code`.\n\n" for p in paragraphs)
        yield "".join(f"- {item}\n" for item in items) + "\n| A | B |\n|---|---|\n"
        yield "".join(f"| {k} | {k * number} |\n" for k in range(ROWS)) + "\n"


def html(size: int) -> Iterator[str]:
    yield "<!doctype html><meta charset=utf-8>"
    for number, paragraphs, items in sections(size):
        yield f"<h2>{number} A <em>heading</em></h2>\n"
        yield from (f"<p>{p} See <a href='x'>a link</a> &amp; <b>this</b>.</p>" for p in paragraphs)
        yield f"<ul>{''.join(f'<li>{item}' for item in items)}</ul><table><tr><th>A<th>B"
        yield "".join(f"<tr><td>{k}<td>{k * number}" for k in range(ROWS)) + "</table>\n"


def text(size: int) -> Iterator[str]:
    for number, paragraphs, items in sections(size):
        yield f"{number}. A heading\n\n" + "\n\n".join(paragraphs) + "\n\n"
        yield "".join(f"* {item}\n" for item in items) + "\nA    B\n"
        yield "".join(f"{k}    {k * number}\n" for k in range(ROWS)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=5)
    size = round(parser.parse_args().megabytes * 1e6)
    count = sum(1 for _ in sections(size))
    with tempfile.TemporaryDirectory() as folder:
        for suffix, write in (("md", markdown), ("html", html), ("txt", text)):
            file, small = Path(folder) / f"large.{suffix}", Path(folder) / f"small.{suffix}"
            file.write_text("".join(write(size)), "utf-8")
            small.write_text("".join(write(1)), "utf-8")
            out = subprocess.run(
                [sys.executable, "-c", CHILD, str(small), str(file)],
                capture_output=True,
                text=True,
                check=True,
            )
            row = json.loads(out.stdout)
            assert row["blocks"] == count * (PARAGRAPHS + 3), (suffix, row, count)
            megabytes = file.stat().st_size / 1e6
            print(
                f"{suffix:5} {megabytes:5.1f} MB {megabytes / row['seconds']:6.1f} MB/s "
                f"{row['blocks'] / row['seconds']:8.0f} blocks/s {row['mb']:5.0f} MiB more at peak"
            )


if __name__ == "__main__":
    main()
