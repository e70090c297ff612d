"""Page recall of `Library.search` on questions with known evidence pages.

    python benchmarks/page_recall.py DATA [--library DIR] [--source NAME]... [--baseline]

DATA holds ``qa.jsonl`` (``doc``, ``question``, ``evidence_pages``, ``source``) and the PDFs that it
names. For each token budget: the share of a question's evidence pages that the evidence found,
averaged over the questions. ``--baseline`` also ranks 800-character page chunks by BM25 on the same
text layer, which is what a user would write first. Pages without a text layer count as missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from bookrag_fast import Library
from bookrag_fast.errors import BookragError
from bookrag_fast.index.book_index import count_tokens
from bookrag_fast.index.lexicon import build_lexicon, tokenize

BUDGETS = (1000, 2000, 5000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--library", type=Path, default=Path("build/bench-shelf"))
    parser.add_argument("--source", action="append")
    parser.add_argument("--baseline", action="store_true")
    parser.add_argument("--misses", action="store_true", help="print what 2,000 tokens missed")
    options = parser.parse_args()
    lines = (options.data / "qa.jsonl").read_text("utf-8").splitlines()
    questions = [q for q in map(json.loads, lines) if q.get("evidence_pages")]
    if options.source:
        questions = [q for q in questions if q["source"] in options.source]
    found: dict[str, dict[tuple[str, int], list[float]]] = defaultdict(lambda: defaultdict(list))
    took: list[float] = []
    lib = Library.open(options.library)
    for doc in dict.fromkeys(q["doc"] for q in questions):
        asked = [q for q in questions if q["doc"] == doc]
        try:
            book = lib.add(options.data / doc)
        except BookragError as error:
            print(f"{doc}: {error.code}", file=sys.stderr)
            for q in asked:
                for budget in BUDGETS:
                    found[q["source"]]["ours", budget].append(0.0)
                    found[q["source"]]["bm25", budget].append(0.0)
            continue
        chunks = _chunks(options.data / doc) if options.baseline else []
        for q in asked:
            for budget in BUDGETS:
                start = time.perf_counter()
                hits = lib.search(q["question"], books=[book.id], budget_tokens=budget)
                took.append(time.perf_counter() - start)
                recall = _recall({p for h in hits for p in h.pages}, q)
                found[q["source"]]["ours", budget].append(recall)
                if options.misses and budget == 2000 and recall < 1:
                    print(f"{doc} {q['evidence_pages']} {q['question']}")
                if chunks:
                    pages = _bm25(chunks, q["question"], budget)
                    found[q["source"]]["bm25", budget].append(_recall(pages, q))
    lib.close()
    _report(found, took)


def _recall(pages: set[int], question: dict[str, Any]) -> float:
    gold = set(question["evidence_pages"])
    return len(gold & pages) / len(gold)


def _chunks(path: Path) -> list[tuple[int, str]]:
    import pypdfium2

    chunks = []
    with pypdfium2.PdfDocument(path) as pdf:
        for number in range(len(pdf)):
            text = pdf[number].get_textpage().get_text_bounded()
            chunks += [(number + 1, text[i : i + 800]) for i in range(0, len(text), 800)]
    return chunks


def _bm25(chunks: list[tuple[int, str]], question: str, budget: int) -> set[int]:
    lexicon = build_lexicon([text for _, text in chunks])
    scores = lexicon.scores(dict.fromkeys(tokenize(question)))
    pages: set[int] = set()
    for i in (-scores).argsort(kind="stable").tolist():
        budget -= count_tokens(chunks[i][1])
        if budget < 0:
            break
        pages.add(chunks[i][0])
    return pages


def _report(found: dict[str, dict[tuple[str, int], list[float]]], took: list[float]) -> None:
    for source, rows in found.items():
        for method in ("ours", "bm25"):
            values = [rows[method, b] for b in BUDGETS if rows[method, b]]
            if values:
                shown = "  ".join(f"{100 * statistics.mean(v):5.1f}" for v in values)
                print(f"{source:20} {method:5} n={len(values[0]):4}  {shown}")
    if took:
        took.sort()
        p50, p99 = (took[int(len(took) * q)] * 1e3 for q in (0.5, 0.99))
        print(f"search p50 {p50:.2f} ms  p99 {p99:.2f} ms over {len(took)} searches")


if __name__ == "__main__":
    main()
