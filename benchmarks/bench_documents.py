"""PDF → document → section tree beside the two nearest readers: liteparse and edgeparse.

    python benchmarks/bench_documents.py [--docs DIR [--truth DIR]] [--rounds N] [--quick]

Without ``--docs``, manuals of 300, 1,200 and 2,400 pages are drawn, whose words and headings are
known. Ours yields blocks and a tree, found without the file's own outline; liteparse yields blocks
with boxes, edgeparse elements with boxes.
OCR is off everywhere. Times are seconds a page, everything loaded and warm, readers taking turns,
medians of the rounds: processor time of one process; wall clock of two, for which two cores must be
free. Two processes read one file together in ours, every other file in the others. Memory is the
largest sum over a reader's processes, sampled (Linux).
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from common import Report, check

from bookrag_fast.evaluation.scores import Heading, score_tree
from bookrag_fast.evaluation.truth import find_truths

READERS = ("ours", "liteparse", "edgeparse")
SIZES = (300, 1200, 2400)
WORDS = (
    "river mill sack flour valley water wheel stone grain miller house garden season harvest road "
    "market price barrel bridge winter summer village letter ledger account measure weight order"
).split()


@dataclass
class Reading:
    """What a reader made of a file."""

    pages: int
    text: str
    headings: list[Heading]


@dataclass
class Run:
    """A pass of a reader over files: seconds, MB, and what it made of each.

    Seconds are processor time of one process, wall clock of more.
    """

    seconds: float
    memory: float
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def pages(self) -> int:
        return sum(f["pages"] for f in self.files.values())


# --- the readers, each in a process of its own ------------------------------------------------


def ours(processes: int) -> Callable[[Path], Callable[[], Reading]]:
    from bookrag_fast.config import OcrSettings
    from bookrag_fast.document import IsolatedReader, read_document
    from bookrag_fast.evaluation.runner import headings_of, without
    from bookrag_fast.index.tree import build_tree

    off = OcrSettings(mode="off")
    isolated = IsolatedReader(memory_mb=4096, workers=processes, ocr=off)

    def read(path: Path) -> Callable[[], Reading]:
        document = isolated.read(path) if processes > 1 else read_document(path, ocr=off)
        tree = build_tree(without(document, ["outline"]))
        return lambda: Reading(
            len(document.pages), "\n".join(b.text for b in document.blocks), headings_of(tree)
        )

    return read


def liteparse(processes: int) -> Callable[[Path], Callable[[], Reading]]:
    from liteparse import LiteParse

    parser = LiteParse(ocr_enabled=False, quiet=True, extract_blocks=True, max_pages=100_000)

    def read(path: Path) -> Callable[[], Reading]:
        found = parser.parse(str(path))
        return lambda: Reading(
            len(found.pages),
            found.text,
            [
                Heading(block.text or "", block.level or 1, page.page_num)
                for page in found.pages
                for block in page.blocks or ()
                if block.kind == "heading"
            ],
        )

    return read


def edgeparse(processes: int) -> Callable[[Path], Callable[[], Reading]]:
    import edgeparse as peer

    def read(path: Path) -> Callable[[], Reading]:
        text = peer.convert(str(path), format="json", raster_table_ocr=False)

        def reading() -> Reading:
            found = json.loads(text)
            parts: list[str] = []
            headings: list[Heading] = []
            waiting = [found]
            while waiting:
                item = waiting.pop()
                if isinstance(item, list):
                    waiting += reversed(item)
                elif isinstance(item, dict):
                    said = item.get("content")
                    parts += [said] if isinstance(said, str) else []
                    if item.get("type") == "heading" and isinstance(said, str):
                        level = int(item.get("heading level") or 1)
                        headings.append(Heading(said, level, int(item["page number"])))
                    waiting += [v for v in reversed(item.values()) if isinstance(v, (list, dict))]
            return Reading(int(found["number of pages"]), "\n".join(parts), headings)

        return reading

    return read


def serve(name: str, processes: int, warm: Path, files: Sequence[Path]) -> None:
    """Reads a file to warm up, waits for a line, reads them all and reports."""
    read = {"ours": ours, "liteparse": liteparse, "edgeparse": edgeparse}[name](processes)
    read(warm)
    print("ready", flush=True)
    sys.stdin.readline()
    out: dict[str, dict[str, Any]] = {}
    seconds = 0.0
    clock = time.process_time if processes == 1 else time.perf_counter
    for file in files:
        start = clock()
        try:
            finish = read(file)
        except Exception as error:  # one file a reader cannot read says so
            out[str(file)] = {"error": f"{type(error).__name__}: {error}", "pages": 0}
            continue
        seconds += clock() - start
        out[str(file)] = asdict(finish())
    print(json.dumps({"seconds": seconds, "files": out}), flush=True)


# --- running them -----------------------------------------------------------------------------


def measure(name: str, processes: int, warm: Path, files: Sequence[Path]) -> Run:
    shares = [list(files)]
    if processes > 1 and name != "ours" and len(files) > 1:
        by_size = sorted(files, key=lambda f: -f.stat().st_size)
        shares = [by_size[k::processes] for k in range(processes)]
    running = [
        subprocess.Popen(
            [
                sys.executable,
                __file__,
                "--serve",
                name,
                str(processes),
                str(warm),
                *map(str, share),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for share in shares
    ]
    peak = [0.0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], sum(resident_mb(p.pid) for p in running))

    for process in running:
        check(process.stdout.readline() == "ready\n", f"{name} does not start")  # type: ignore[union-attr]
    watcher = threading.Thread(target=watch)
    watcher.start()
    for process in running:
        process.stdin.write("go\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
    answers = [json.loads(process.communicate()[0]) for process in running]
    done.set()
    watcher.join()
    # Two processes that share the files are done when the slower one is.
    run = Run(max(a["seconds"] for a in answers), peak[0])
    for answer in answers:
        run.files |= answer["files"]
    return run


def resident_mb(pid: int) -> float:
    """Of a process and those that it started; 0 where /proc does not say."""
    try:
        own = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, IndexError):
        return 0.0
    return own + sum(resident_mb(int(child)) for child in children)


# --- manuals ----------------------------------------------------------------------------------


def draw_manual(path: Path, pages: int) -> list[Heading]:
    """A manual of numbered chapters and sections with a running head; its true headings."""
    from reportlab.pdfgen.canvas import Canvas

    chance = random.Random(pages)
    canvas = Canvas(str(path), pagesize=(595, 842))
    headings: list[Heading] = []
    for k in range(pages):
        canvas.setFont("Helvetica", 8)
        canvas.drawString(72, 800, "Manual of the Mill")
        canvas.drawString(510, 800, str(k + 1))
        y = 760.0
        chapter, section = k // 12 + 1, k // 3 % 4
        if k % 3 == 0:
            number = f"{chapter}" if section == 0 else f"{chapter}.{section}"
            title = f"{number} The {chance.choice(WORDS).title()} and the {chance.choice(WORDS)}"
            canvas.setFont("Helvetica-Bold", 18 if section == 0 else 14)
            canvas.drawString(72, y, title)
            headings.append(Heading(title, 1 if section == 0 else 2, k + 1))
            y -= 30
        canvas.setFont("Helvetica", 10)
        while y > 120:
            for _ in range(chance.randint(3, 8)):
                canvas.drawString(72, y, " ".join(chance.choice(WORDS) for _ in range(13)))
                y -= 12
            canvas.drawString(72, y, " ".join(chance.choice(WORDS) for _ in range(5)) + ".")
            y -= 22
        canvas.showPage()
    canvas.save()
    return headings


# --- the report -------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--docs", type=Path, help="PDFs to read instead, one group a folder")
    parser.add_argument("--truth", type=Path, help="true headings (see `bookrag eval trees`)")
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="the smallest manual only")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    options = parser.parse_args()
    report = Report("documents")
    with tempfile.TemporaryDirectory() as folder:
        truths: dict[Path, Sequence[Heading]] = {}
        groups: dict[str, list[Path]] = {}
        warm = Path(folder) / "warm.pdf"
        draw_manual(warm, 64)  # long enough for ours to start its processes
        if options.docs is None:
            for pages in SIZES[:1] if options.quick else SIZES:
                path = Path(folder) / f"manual-{pages}.pdf"
                truths[path] = draw_manual(path, pages)
                groups[f"{pages:,} pages"] = [path]
        else:
            for path in sorted(options.docs.rglob("*.pdf")):
                groups.setdefault(path.parent.name, []).append(path.resolve())
            if options.truth is not None:
                for truth in find_truths([options.truth]):
                    if truth.headings is not None:
                        truths[truth.document.resolve()] = truth.headings
        quality = []
        for group, files in groups.items():
            quality += compare(report, group, warm, files, truths, options)
    print("\n| files | reader | pages | characters | headings: precision | recall | F1 | failed |")
    print("|---|---|---|---|---|---|---|---|")
    for cells in quality:
        print("| " + " | ".join(cells) + " |")
    report.finish(options.out)


def compare(
    report: Report,
    group: str,
    warm: Path,
    files: list[Path],
    truths: dict[Path, Sequence[Heading]],
    options: argparse.Namespace,
) -> list[list[str]]:
    """A row for each peer and number of processes; what each reader found, as cells."""
    runs: dict[tuple[str, int], list[Run]] = {}
    for _ in range(options.rounds):
        for name in options.readers:
            for processes in (1, 2):
                runs.setdefault((name, processes), []).append(measure(name, processes, warm, files))
    first = {key: of_key[0] for key, of_key in runs.items()}
    # Results first: the same in both ways of ours, and the pages and words that were drawn.
    mine = first["ours", 1]
    check(mine.files == first["ours", 2].files, f"{group}: two processes read something else")
    for name in options.readers:
        for file, found in first[name, 1].files.items():
            same = found["pages"] == mine.files[file]["pages"]
            failed = "error" in found or "error" in mine.files[file]
            check(same or failed, f"{name} reads {found['pages']} pages of {file}")
            if options.docs is None:
                words = found["text"].split()
                drawn = mine.files[file]["text"].split()
                check(0.95 * len(drawn) < len(words) < 1.1 * len(drawn), f"{name} loses words")
    time_of = {
        key: median(run.seconds / max(run.pages, 1) for run in of_key)
        for key, of_key in runs.items()
    }
    memory_of = {key: max(run.memory for run in of_key) for key, of_key in runs.items()}
    for processes in (1, 2):
        own = "ours", processes
        for name in [n for n in options.readers if n != "ours"] or [""]:
            peer = name, processes
            theirs = f", theirs {1 / time_of[peer]:.0f}, {memory_of[peer]:.0f} MB" if name else ""
            report.row(
                f"{group}, {processes} process{'es' if processes > 1 else ''}, a page",
                ours=time_of[own],
                against=name,
                theirs=time_of.get(peer),
                note=f"{1 / time_of[own]:.0f} pages/s, {memory_of[own]:.0f} MB{theirs}",
                ours_mb=memory_of[own],
                theirs_mb=memory_of.get(peer),
            )
    return [cells_of(group, name, first[name, 1], truths) for name in options.readers]


def cells_of(group: str, name: str, run: Run, truths: dict[Path, Sequence[Heading]]) -> list[str]:
    true = found = matched = 0
    for file, made in run.files.items():
        truth = truths.get(Path(file))
        if truth is not None and "error" not in made:
            score = score_tree(truth, [Heading(**h) for h in made["headings"]])
            true, found = true + score.truth, found + score.predicted
            matched += score.matched
    shares = (matched / found if found else 0.0, matched / true if true else 0.0)
    f1 = 2 * matched / (true + found) if true + found else 0.0
    failed = sum("error" in made for made in run.files.values())
    characters = sum(len("".join(m["text"].split())) for m in run.files.values() if "text" in m)
    measures = [f"{v:.3f}" for v in (*shares, f1)] if true else [""] * 3
    return [group, name, str(run.pages), f"{characters:,}", *measures, str(failed)]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), [Path(p) for p in sys.argv[5:]])
    else:
        main()
