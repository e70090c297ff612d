"""Build the sample book, "The bookrag_fast Handbook", from its sources.

Reads ``handbook/*.md`` and ``handbook/questions.json`` beside this file and writes
``handbook.pdf`` and ``handbook.truth.json``. The output is deterministic: two builds are
byte-identical. Every page number, in the book and in the truth file, is observed while pages are
drawn; nothing is typed by hand. The layout is repeated until contents, page count and footnote
areas agree with the pass before.

``handbook_source`` describes and reads the source language, ``handbook_style`` has the looks,
``handbook_story`` and ``handbook_layout`` set the pages, ``handbook_truth`` says what is on them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from handbook_layout import HandbookMaker, Layout
from handbook_source import Book, SourceError, read_book
from handbook_story import Story
from handbook_truth import make_truth
from reportlab import rl_config
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

HERE = Path(__file__).resolve().parent
MAX_PASSES = 12


def lay_out(book: Book, pdf: Path) -> Layout:
    """Repeat the layout until a pass sees what the pass before saw; write the last one."""
    before = Layout()
    for _ in range(MAX_PASSES):
        maker = HandbookMaker(str(pdf), book, before)
        front = before.front_pages

        def make_canvas(*args: Any, _front: int = front, **options: Any) -> Canvas:
            canvas = Canvas(*args, **options)
            canvas.addPageLabel(0, style="ROMAN_LOWER", start=1)
            canvas.addPageLabel(_front, style="ARABIC", start=1)
            canvas.showOutline()
            return canvas

        maker.build(Story(maker).build(), canvasmaker=make_canvas)
        maker.seen.pages = maker.page
        if maker.seen == before:
            return before
        before = maker.seen
    raise SourceError(f"the layout did not settle in {MAX_PASSES} passes")


def build(out: Path) -> Layout:
    """Write ``handbook.pdf`` and ``handbook.truth.json`` into ``out``."""
    rl_config.invariant = 1
    pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))
    book = read_book(HERE / "handbook")
    questions = json.loads((HERE / "handbook" / "questions.json").read_text(encoding="utf-8"))
    layout = lay_out(book, out / "handbook.pdf")
    truth = make_truth(book, layout, questions)
    text = json.dumps(truth, indent=1, ensure_ascii=False) + "\n"
    (out / "handbook.truth.json").write_text(text, encoding="utf-8")
    return layout


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write into")
    layout = build(parser.parse_args().out)
    print(f"{layout.pages} pages ({layout.front_pages} of front matter)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
