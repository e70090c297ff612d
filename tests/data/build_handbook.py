"""Build the sample book, "The bookrag_fast Handbook", from its sources.

Reads ``handbook/*.md`` and ``handbook/questions.json`` beside this file and writes
``handbook.pdf`` and ``handbook.truth.json``. The output is deterministic: two builds are
byte-identical. Every page number, in the book and in the truth file, is observed while pages are
drawn; nothing is typed by hand. The layout is repeated until contents, page count and footnote
areas agree with the pass before.

Source language, one block after another, blank lines between them::

    # Chapter {#id}      ## Section {#id}      ### Subsection {#id}
    front: / body: / appendix:                 which part of the book follows
    - item                                     bulleted list;  1. item  numbered list
    :::table id=x cols=2,5 / caption / | cell | cell | / :::
    :::figure id=x / caption / :::             drawn by handbook_figures.FIGURES[x]
    ```Caption / code / ```                    numbered listing, or unnumbered without a caption
    $$ id | equation                           numbered equation
    [^id]: text                                footnote;  [^id] refers to it
    :term Term: definition                     glossary entry

Inline: ``**bold**``, ``*italic*``, code in backquotes, ``_{sub}``, ``^{sup}``,
``[sec:id]``, ``[tab:id]``, ``[fig:id]``, ``[lst:id]``, ``[eq:id]`` for cross-references, and
``{@name}`` for an invisible mark whose page a question of ``questions.json`` asks for.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import reportlab
from handbook_figures import FIGURES
from reportlab import rl_config
from reportlab.lib.colors import Color, HexColor, black
from reportlab.lib.enums import TA_CENTER, TA_JUSTIFY
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Flowable,
    Frame,
    PageBreak,
    PageTemplate,
    Paragraph,
    Preformatted,
    Spacer,
    Table,
    TableStyle,
)

HERE = Path(__file__).resolve().parent
TITLE = "The bookrag_fast Handbook"
SUBTITLE = "Indexing long documents and answering questions from them, with citations"
LEFT, RIGHT, TOP, BOTTOM = 66.0, 66.0, 62.0, 54.0
WIDTH = A4[0] - LEFT - RIGHT
CODE_COLUMNS = 84
MAX_PASSES = 12

INK = HexColor(0x1B2A41)
RULE = HexColor(0x8A97A8)
SHADE = HexColor(0xF1F4F8)


class SourceError(ValueError):
    """The handbook source is malformed; the message names the file and the block."""


# --------------------------------------------------------------------------- source model


@dataclass
class Block:
    """One block of the source: its kind, its text lines and its attributes."""

    kind: str
    lines: list[str]
    where: str
    attrs: dict[str, str] = field(default_factory=dict)


@dataclass
class Heading:
    """A heading with the number it prints, e.g. ``4.2``; front matter has none."""

    level: int
    title: str
    number: str
    key: str
    part: str

    @property
    def printed(self) -> str:
        if self.part == "appendix" and self.level == 1:
            return f"Appendix {self.number}: {self.title}"
        return f"{self.number} {self.title}" if self.number else self.title

    @property
    def reference(self) -> str:
        if self.level > 1:
            return f"Section {self.number}"
        return f"Appendix {self.number}" if self.part == "appendix" else f"Chapter {self.number}"


@dataclass
class Book:
    """Parsed blocks, and the numbers that the first reading gave to everything numbered."""

    blocks: list[Block] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    captions: dict[str, list[tuple[str, str]]] = field(
        default_factory=lambda: {"tab": [], "fig": [], "lst": []}
    )
    references: dict[str, str] = field(default_factory=dict)
    footnotes: dict[str, str] = field(default_factory=dict)
    footnote_order: list[str] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)


HEADING = re.compile(r"^(#{1,3}) (.+?)(?: \{#([\w-]+)\})?$")
FENCE_ATTRS = re.compile(r"(\w+)=(\S+)")


def read_blocks(path: Path) -> list[Block]:
    """Cut one source file into blocks."""
    lines = path.read_text(encoding="utf-8").splitlines()
    blocks: list[Block] = []
    i = 0
    while i < len(lines):
        line, where = lines[i], f"{path.name}:{i + 1}"
        i += 1
        if not line.strip():
            continue
        if line.startswith(":::"):
            name, _, rest = line[3:].partition(" ")
            end = lines.index(":::", i)
            blocks.append(Block(name, lines[i:end], where, dict(FENCE_ATTRS.findall(rest))))
            i = end + 1
        elif line.startswith("```"):
            end = lines.index("```", i)
            caption, _, key = line[3:].partition(" {#")
            attrs = {"caption": caption, "id": key.rstrip("}")}
            blocks.append(Block("code", lines[i:end], where, attrs))
            i = end + 1
        elif line in ("front:", "body:", "appendix:"):
            blocks.append(Block("part", [line[:-1]], where))
        elif line.startswith("!"):
            blocks.append(Block("command", [line[1:]], where))
        elif match := HEADING.match(line):
            attrs = {"level": str(len(match[1])), "id": match[3] or ""}
            blocks.append(Block("heading", [match[2]], where, attrs))
        elif line.startswith("$$ "):
            key, _, text = line[3:].partition(" | ")
            blocks.append(Block("equation", [text], where, {"id": key}))
        elif line.startswith(("[^", ":term ")) and ": " in line:
            kind = "term" if line.startswith(":term ") else "footnote"
            head, _, text = line.removeprefix(":term ").partition(": ")
            blocks.append(Block(kind, [text], where, {"head": head}))
        else:
            run = [line]
            while i < len(lines) and lines[i].strip():
                run.append(lines[i])
                i += 1
            kind = "bullets" if line.startswith("- ") else "paragraph"
            if re.match(r"\d+\. ", line):
                kind = "numbers"
            blocks.append(Block(kind, run, where))
    return blocks


def list_items(block: Block) -> list[str]:
    """Items of a list block; a line that does not open an item continues the one before."""
    opener = re.compile(r"- |\d+\. ")
    items: list[str] = []
    for line in block.lines:
        if match := opener.match(line):
            items.append(line[match.end() :])
        else:
            items[-1] += " " + line.strip()
    return items


def curly(text: str) -> str:
    """Straight quotes to typographic ones: opening after space, bracket or slash."""
    text = re.sub(r"(?<![^\s(/])\"", "\u201c", text)
    return text.replace('"', "\u201d").replace("'", "\u2019")


def plain(text: str) -> str:
    """Source text without marks and emphasis, as a reader of the PDF sees it."""
    text = curly(text)
    text = re.sub(r"\{@[\w-]+\}", "", text)
    text = re.sub(r"\[\^[\w-]+\]", "", text)
    return text.replace("**", "").replace("`", "").replace("*", "")


def read_book(folder: Path) -> Book:
    """Read every chapter and number headings, tables, figures, listings and equations."""
    book = Book()
    part = "front"
    counters = [0, 0, 0]
    equations = 0
    for path in sorted(folder.glob("*.md")):
        book.blocks += read_blocks(path)
    for block in book.blocks:
        key = block.attrs.get("id", "")
        if block.kind == "part":
            part = block.lines[0]
            counters = [0, 0, 0]
        elif block.kind == "heading":
            level = int(block.attrs["level"])
            counters[level - 1] += 1
            counters[level:] = [0] * (3 - level)
            if not all(counters[:level]):
                raise SourceError(f"{block.where}: a heading skips a level")
            shown = [str(n) for n in counters[:level]]
            if part == "appendix":
                shown[0] = chr(ord("A") + counters[0] - 1)
            number = "" if part == "front" else ".".join(shown)
            heading = Heading(level, block.lines[0], number, f"h{len(book.headings)}", part)
            book.headings.append(heading)
            block.attrs["heading"] = str(len(book.headings) - 1)
            define(book, f"sec:{key}" if key else "", heading.reference, block)
        elif block.kind in ("table", "figure") or (block.kind == "code" and block.attrs["caption"]):
            name, label = {
                "table": ("tab", "Table"),
                "figure": ("fig", "Figure"),
                "code": ("lst", "Listing"),
            }[block.kind]
            caption = block.attrs["caption"] if name == "lst" else block.lines[0]
            book.captions[name].append((key, plain(caption)))
            block.attrs["number"] = str(len(book.captions[name]))
            define(book, f"{name}:{key}", f"{label} {block.attrs['number']}", block)
        elif block.kind == "equation":
            equations += 1
            block.attrs["number"] = str(equations)
            define(book, f"eq:{key}", f"Equation {equations}", block)
        elif block.kind == "footnote":
            book.footnotes[block.attrs["head"].strip("[]^")] = block.lines[0]
        elif block.kind == "term":
            book.terms.append(block.attrs["head"])
    for block in book.blocks:
        if block.kind != "footnote":
            for line in block.lines:
                book.footnote_order += re.findall(r"\[\^([\w-]+)\]", line)
    if sorted(book.footnote_order) != sorted(book.footnotes):
        raise SourceError("every footnote needs exactly one reference and one text")
    return book


def define(book: Book, key: str, text: str, block: Block) -> None:
    """Register what a cross-reference to ``key`` prints."""
    if key in book.references:
        raise SourceError(f"{block.where}: {key} is defined twice")
    if key:
        book.references[key] = text


# --------------------------------------------------------------------------- inline markup


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def fallback(text: str) -> str:
    """Set every character that the standard fonts lack in Vera; refuse what Vera lacks."""
    out = []
    for char in text:
        if char.encode("cp1252", "ignore"):
            out.append(char)
        elif ord(char) in pdfmetrics.getFont("Vera").face.charToGlyph:
            out.append(f'<font name="Vera">{char}</font>')
        else:
            raise SourceError(f"no font has {char!r}")
    return "".join(out)


def inline(text: str, book: Book, where: str) -> str:
    """Source markup to the small XML that reportlab's paragraphs understand."""

    def reference(match: re.Match[str]) -> str:
        key = match[1]
        if key not in book.references:
            raise SourceError(f"{where}: unknown reference {key}")
        return f'<a href="#{key}">{book.references[key].replace(" ", chr(160))}</a>'

    def footnote(match: re.Match[str]) -> str:
        number = book.footnote_order.index(match[1]) + 1
        return f'<onDraw name="footnote" label="{match[1]}"/><super size="7">{number}</super>'

    def prose(piece: str) -> str:
        piece = re.sub(r"\{@([\w-]+)\}", r'<onDraw name="mark" label="\1"/>', escape(curly(piece)))
        piece = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", piece)
        piece = re.sub(r"\*(.+?)\*", r"<i>\1</i>", piece)
        piece = re.sub(r"_\{(.+?)\}", r'<sub size="7" rise="2.5">\1</sub>', piece)
        piece = re.sub(r"\^\{(.+?)\}", r'<super size="7" rise="4">\1</super>', piece)
        piece = re.sub(r"\[\^([\w-]+)\]", footnote, piece)
        return re.sub(r"\[((?:sec|tab|fig|lst|eq):[\w-]+)\]", reference, piece)

    # Code first, held aside so that emphasis may enclose it and never looks inside it.
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(f'<font name="Courier" size="-0.9">{escape(match[1])}</font>')
        return f"\x00{len(held) - 1}\x00"

    marked = prose(re.sub(r"`([^`]+)`", hold, text))
    marked = re.sub(r"\x00(\d+)\x00", lambda m: held[int(m[1])], marked)
    return fallback(marked)


# --------------------------------------------------------------------------- styles


def make_styles() -> dict[str, ParagraphStyle]:
    """Paragraph styles by name."""
    body = ParagraphStyle(
        "body",
        fontName="Times-Roman",
        fontSize=10,
        leading=12.9,
        alignment=TA_JUSTIFY,
        spaceAfter=6,
        allowWidows=0,
        allowOrphans=0,
        linkUnderline=0,
        textColor=black,
    )

    def style(name: str, **changes: Any) -> ParagraphStyle:
        return ParagraphStyle(name, parent=body, **changes)

    head: dict[str, Any] = {
        "fontName": "Helvetica-Bold",
        "alignment": 0,
        "keepWithNext": 1,
        "textColor": INK,
    }
    return {
        "body": body,
        "h1": style("h1", **head | {"fontSize": 20, "leading": 25, "spaceAfter": 13}),
        "h2": style(
            "h2", **head | {"fontSize": 13.5, "leading": 17, "spaceBefore": 11, "spaceAfter": 5}
        ),
        "h3": style(
            "h3", **head | {"fontSize": 11, "leading": 14, "spaceBefore": 8, "spaceAfter": 4}
        ),
        "lead": style("lead", keepWithNext=1),
        "item": style("item", leftIndent=18, bulletIndent=5, spaceAfter=3.5),
        "number": style("number", leftIndent=22, bulletIndent=5, spaceAfter=3.5),
        "caption": style(
            "caption", fontSize=9.5, leading=12, alignment=0, spaceBefore=7, spaceAfter=5
        ),
        "under": style("under", fontSize=9.5, leading=12, alignment=TA_CENTER, spaceAfter=12),
        "cell": style("cell", fontSize=9.3, leading=11.6, alignment=0, spaceAfter=0),
        "headcell": style(
            "headcell", fontName="Helvetica-Bold", fontSize=8.6, leading=11, alignment=0
        ),
        "term": style("term", leftIndent=16, firstLineIndent=-16, spaceAfter=4.5),
        "equation": style("equation", alignment=TA_CENTER, spaceAfter=0, fontName="Times-Italic"),
        "eqnumber": style("eqnumber", alignment=2, spaceAfter=0),
        "footnote": style("footnote", fontSize=8.6, leading=10.8, spaceAfter=2),
        "code": ParagraphStyle("code", fontName="Courier", fontSize=8.6, leading=11),
        "title": style("title", fontName="Helvetica-Bold", fontSize=30, leading=36, alignment=0),
        "subtitle": style("subtitle", fontSize=14, leading=19, alignment=0),
    }


# --------------------------------------------------------------------------- layout


@dataclass
class Layout:
    """What one pass saw; the next pass reads it."""

    headings: dict[str, int] = field(default_factory=dict)
    pages_of: dict[str, set[int]] = field(default_factory=dict)
    reserved: dict[int, float] = field(default_factory=dict)
    front_pages: int = 0
    pages: int = 0

    def label(self, page: int) -> str:
        """The printed label of a physical page."""
        return roman(page) if page <= self.front_pages else str(page - self.front_pages)


def roman(number: int) -> str:
    out = ""
    for value, letters in ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")):
        while number >= value:
            out += letters
            number -= value
    return out


class HeadingParagraph(Paragraph):  # type: ignore[misc]
    """A heading that reports the page it is drawn on and opens a bookmark."""

    heading: Heading | None = None

    def draw(self) -> None:
        super().draw()
        if self.heading is not None:
            self.canv.maker.heading_drawn(self.heading)


class BodyStart(Flowable):  # type: ignore[misc]
    """Draws nothing; the page it stands on is body page 1."""

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        return 0, 0

    def draw(self) -> None:
        self.canv.maker.seen.front_pages = self.canv.maker.page - 1


class Anchor(Flowable):  # type: ignore[misc]
    """Draws nothing; a place that links lead to and whose page is recorded."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        return 0, 0

    def draw(self) -> None:
        self.canv.bookmarkHorizontal(self.key, 0, 20)
        self.canv.maker.note(self.key)


class ContentsLine(Flowable):  # type: ignore[misc]
    """One line of the contents: title, dotted leader, page label."""

    def __init__(self, level: int, number: str, title: str, label: str, target: str) -> None:
        super().__init__()
        self.level, self.number, self.title = level, number, title
        self.label, self.target = label, target

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        self.width = width
        self.height = 18.0 if self.level == 1 else 12.9
        return width, self.height

    def draw(self) -> None:
        font = "Times-Bold" if self.level == 1 else "Times-Roman"
        size = 10.0
        left = (0, 18, 44)[self.level - 1]
        gap = (18, 26, 34)[self.level - 1]
        canvas = self.canv
        canvas.setFont(font, size)
        x = float(left)
        if self.number:
            canvas.drawString(x, 3, self.number)
            x += max(gap, pdfmetrics.stringWidth(self.number, font, size) + 6)
        canvas.drawString(x, 3, self.title)
        x += pdfmetrics.stringWidth(self.title, font, size) + 5
        canvas.drawRightString(self.width, 3, self.label)
        canvas.setFont("Times-Roman", size)
        stop = self.width - pdfmetrics.stringWidth(self.label, font, size) - 5
        dots = int((stop - x) / pdfmetrics.stringWidth(" .", "Times-Roman", size))
        if dots > 0:
            canvas.drawRightString(stop, 3, " ." * dots)
        canvas.linkRect("", self.target, (left, 0, self.width, self.height), relative=1)


class HandbookMaker(BaseDocTemplate):  # type: ignore[misc]
    """Lays the book out once, with what the pass before saw, and records what this one sees."""

    def __init__(self, target: str, book: Book, before: Layout) -> None:
        super().__init__(
            target,
            pagesize=A4,
            title=TITLE,
            author="The bookrag_fast authors",
            subject=SUBTITLE,
            lang="en",
            producer=f"reportlab {reportlab.Version}",
            # Deflate's output differs between zlib builds; plain streams are the same everywhere.
            pageCompression=0,
        )
        self.book, self.before, self.seen = book, before, Layout()
        # Footnote areas only grow from pass to pass, so that the passes settle.
        self.seen.reserved = dict(before.reserved)
        self.styles = make_styles()
        self.page_footnotes: list[str] = []
        self.chapter = self.section = ""
        self.opening = True
        body = Frame(LEFT, BOTTOM, WIDTH, A4[1] - TOP - BOTTOM, 0, 0, 0, 0, id="body")
        self.addPageTemplates(
            PageTemplate("page", [body], onPage=self.page_started, onPageEnd=self.page_done)
        )

    def note(self, key: str) -> None:
        """Record that ``key`` stands on the page being drawn."""
        self.seen.pages_of.setdefault(key, set()).add(self.page)

    def mark_drawn(self, _canvas: Canvas, _kind: str, label: str) -> None:
        self.note(f"mark:{label}")

    def footnote_drawn(self, _canvas: Canvas, _kind: str, label: str) -> None:
        self.page_footnotes.append(label)

    def heading_drawn(self, heading: Heading) -> None:
        self.seen.headings[heading.key] = self.page
        canvas = self.canv
        canvas.bookmarkHorizontal(heading.key, 0, 24)
        canvas.addOutlineEntry(heading.printed, heading.key, heading.level - 1, closed=1)
        if heading.level == 1:
            self.chapter, self.section, self.opening = heading.printed, "", True
        elif heading.level == 2:
            self.section = heading.printed

    def page_started(self, canvas: Canvas, _doc: BaseDocTemplate) -> None:
        canvas.maker = self
        for name, call in (("mark", self.mark_drawn), ("footnote", self.footnote_drawn)):
            if hasattr(canvas, "setNamedCB"):
                canvas.setNamedCB(name, call)
            else:  # reportlab before 5 looks the callback up as an attribute
                setattr(canvas, name, call)
        self.page_footnotes = []
        self.opening = not self.chapter

    def beforePage(self) -> None:
        frame = self.pageTemplate.frames[0]
        frame._bottomPadding = self.before.reserved.get(self.page, 0.0)
        frame._geom()

    def page_done(self, canvas: Canvas, _doc: BaseDocTemplate) -> None:
        canvas.saveState()
        if self.page_footnotes:
            self.draw_footnotes(canvas)
        front = self.seen.front_pages or self.page
        label = roman(self.page) if self.page <= front else str(self.page - front)
        canvas.setFont("Helvetica", 8.5)
        canvas.setFillColor(INK)
        if self.page > 1:
            canvas.drawCentredString(A4[0] / 2, 30, label)
        if not self.opening:
            y = A4[1] - 42
            if self.page % 2:
                canvas.drawRightString(A4[0] - RIGHT, y, self.section or self.chapter)
            else:
                canvas.drawString(LEFT, y, f"{TITLE}  |  {self.chapter}")
            canvas.setStrokeColor(RULE)
            canvas.setLineWidth(0.5)
            canvas.line(LEFT, y - 6, A4[0] - RIGHT, y - 6)
        canvas.restoreState()

    def draw_footnotes(self, canvas: Canvas) -> None:
        notes = []
        for key in self.page_footnotes:
            number = self.book.footnote_order.index(key) + 1
            text = inline(self.book.footnotes[key], self.book, f"footnote {key}")
            notes.append(
                Paragraph(f'<super size="6.5">{number}</super> {text}', self.styles["footnote"])
            )
        heights = [note.wrapOn(canvas, WIDTH, 500)[1] + 2 for note in notes]
        total = sum(heights) + 12
        self.seen.reserved[self.page] = max(total, self.before.reserved.get(self.page, 0.0))
        y = BOTTOM + sum(heights)
        canvas.setStrokeColor(RULE)
        canvas.setLineWidth(0.5)
        canvas.line(LEFT, y + 3, LEFT + 110, y + 3)
        for note, height in zip(notes, heights, strict=True):
            y -= height
            note.drawOn(canvas, LEFT, y)


# --------------------------------------------------------------------------- blocks to flowables


class Story:
    """Turns the blocks of a book into reportlab flowables."""

    def __init__(self, maker: HandbookMaker) -> None:
        self.maker, self.book, self.styles = maker, maker.book, maker.styles
        self.flow: list[Flowable] = []
        self.started = False
        self.body_pending = False
        self.next_block: Block | None = None

    def build(self) -> list[Flowable]:
        following: list[Block | None] = [*self.book.blocks[1:], None]
        for block, follower in zip(self.book.blocks, following, strict=True):
            self.next_block = follower
            handler: Callable[[Block], None] = getattr(self, f"on_{block.kind}")
            handler(block)
        return self.flow

    def keep(self, parts: list[Flowable]) -> None:
        """Append parts that stay on one page, and with a heading before them.

        ``KeepTogether`` would do for the parts, but a heading does not hold on to a nested one.
        """
        for part in parts[:-1]:
            part.keepWithNext = 1
        self.flow += parts

    def text(self, source: str, block: Block) -> str:
        return inline(source, self.book, block.where)

    def on_part(self, block: Block) -> None:
        self.body_pending = block.lines[0] == "body"

    def on_command(self, block: Block) -> None:
        name = block.lines[0]
        if name == "title":
            self.title_page()
        elif name == "contents":
            self.contents()
        elif name in ("tables", "figures"):
            self.list_of(name[:3], name[:-1].title())
        elif name == "newpage":
            self.flow.append(PageBreak())
        else:
            raise SourceError(f"{block.where}: unknown command {name}")

    def title_page(self) -> None:
        self.flow += [
            Spacer(1, 170),
            Paragraph(TITLE, self.styles["title"]),
            Spacer(1, 6),
            Rule(WIDTH, INK, 2),
            Spacer(1, 10),
            Paragraph(SUBTITLE, self.styles["subtitle"]),
            Spacer(1, 230),
            Paragraph("The bookrag_fast authors", self.styles["subtitle"]),
            Spacer(1, 14),
        ]
        self.started = False

    def contents(self) -> None:
        before = self.maker.before
        for heading in self.book.headings[1:]:  # all but the contents themselves
            page = before.headings.get(heading.key, 1)
            number = heading.number
            if heading.part == "appendix" and heading.level == 1:
                number = f"Appendix {number}"
            line = ContentsLine(
                heading.level, number, heading.title, before.label(page), heading.key
            )
            self.flow.append(line)

    def list_of(self, name: str, word: str) -> None:
        before = self.maker.before
        for number, (key, caption) in enumerate(self.book.captions[name], 1):
            target = f"{name}:{key}"
            page = min(before.pages_of.get(target, {1}))
            title = f"{word} {number}. {caption.split('. ')[0].rstrip('.')}"
            self.flow.append(ContentsLine(2, "", title, before.label(page), target))
        self.flow.append(Spacer(1, 16))

    def on_heading(self, block: Block) -> None:
        heading = self.book.headings[int(block.attrs["heading"])]
        if heading.level == 1:
            if self.started:
                self.flow.append(PageBreak())
            self.started = True
            if self.body_pending:
                self.flow.append(BodyStart())
                self.body_pending = False
        paragraph = HeadingParagraph(fallback(escape(heading.printed)), self.style_of(heading))
        paragraph.heading = heading
        need = self.room_below(paragraph)
        if need:
            paragraph.keepWithNext = 0
            self.flow.append(CondPageBreak(need))
        if block.attrs["id"]:
            anchor = Anchor(f"sec:{block.attrs['id']}")
            anchor.keepWithNext = 1
            self.flow.append(anchor)
        self.flow.append(paragraph)

    def room_below(self, heading: Paragraph) -> float:
        """Height of a heading and the first lines of the paragraph below it.

        Zero where something that does not split follows; the heading is then kept with all of it.
        """
        follower = self.next_block
        if follower is None or follower.kind != "paragraph":
            return 0.0
        source = " ".join(follower.lines)
        if source.endswith(":"):
            return 0.0
        body = Paragraph(self.text(source, follower), self.styles["body"])
        text = float(body.wrap(WIDTH, 9999)[1])
        leading = float(self.styles["body"].leading)
        if text > 3.5 * leading:  # splits without leaving a single line
            text = 2 * leading
        style = heading.style
        above = float(style.spaceBefore + style.spaceAfter)
        return above + float(heading.wrap(WIDTH, 9999)[1]) + text + 1

    def style_of(self, heading: Heading) -> ParagraphStyle:
        return self.styles[f"h{heading.level}"]

    def on_paragraph(self, block: Block) -> None:
        text = self.text(" ".join(block.lines), block)
        style = "lead" if text.endswith(":") else "body"
        self.flow.append(Paragraph(text, self.styles[style]))

    def on_bullets(self, block: Block) -> None:
        for item in list_items(block):
            text = self.text(item, block)
            self.flow.append(Paragraph(text, self.styles["item"], bulletText="\u2022"))
        self.flow.append(Spacer(1, 3))

    def on_numbers(self, block: Block) -> None:
        for number, item in enumerate(list_items(block), 1):
            text = self.text(item, block)
            self.flow.append(Paragraph(text, self.styles["number"], bulletText=f"{number}."))
        self.flow.append(Spacer(1, 3))

    def on_term(self, block: Block) -> None:
        head = block.attrs["head"]
        self.flow.append(Anchor(f"term:{head}"))
        text = self.text(f"**{head}.** {block.lines[0]}", block)
        self.flow.append(Paragraph(text, self.styles["term"]))

    def on_footnote(self, block: Block) -> None:
        """Drawn at the foot of the page that refers to it."""

    def on_equation(self, block: Block) -> None:
        number = block.attrs["number"]
        row = [
            Paragraph("", self.styles["eqnumber"]),
            Paragraph(self.text(block.lines[0], block), self.styles["equation"]),
            Paragraph(f"({number})", self.styles["eqnumber"]),
        ]
        table = Table([row], colWidths=[30, WIDTH - 60, 30])
        table.setStyle(TableStyle([("VALIGN", (0, 0), (-1, -1), "MIDDLE"), *ZERO_PADDING]))
        anchor = Anchor(f"eq:{block.attrs['id']}")
        self.keep([anchor, Spacer(1, 1), table, Spacer(1, 7)])

    def on_code(self, block: Block) -> None:
        for line in block.lines:
            if len(line) > CODE_COLUMNS:
                raise SourceError(f"{block.where}: code wider than {CODE_COLUMNS}: {line}")
        code = Preformatted("\n".join(block.lines), self.styles["code"])
        box = Table([[code]], colWidths=[WIDTH])
        box.setStyle(
            TableStyle(
                [
                    ("BACKGROUND", (0, 0), (-1, -1), SHADE),
                    ("LINEBEFORE", (0, 0), (0, -1), 2, RULE),
                    ("LEFTPADDING", (0, 0), (-1, -1), 8),
                ]
            )
        )
        parts: list[Flowable] = [Spacer(1, 2), box, Spacer(1, 9)]
        if block.attrs["caption"]:
            caption = self.text(
                f"**Listing {block.attrs['number']}.** {block.attrs['caption']}", block
            )
            anchor = Anchor(f"lst:{block.attrs['id']}")
            parts = [anchor, Paragraph(caption, self.styles["caption"]), *parts[1:]]
        self.keep(parts)

    def on_table(self, block: Block) -> None:
        key, number = f"tab:{block.attrs['id']}", block.attrs["number"]
        rows = [
            [cell.strip() for cell in line.strip()[1:-1].split("|")] for line in block.lines[1:]
        ]
        weights = [float(weight) for weight in block.attrs["cols"].split(",")]
        if any(len(row) != len(weights) for row in rows):
            raise SourceError(f"{block.where}: rows and cols differ in width")
        cells = []
        for i, row in enumerate(rows):
            style = self.styles["cell" if i else "headcell"]
            texts = [self.text(cell, block) for cell in row]
            if i:  # every row reports its page: a table may run over a break
                texts[0] = f'<onDraw name="mark" label="row:{number}"/>{texts[0]}'
            cells.append([Paragraph(text, style) for text in texts])
        widths = [WIDTH * weight / sum(weights) for weight in weights]
        table = Table(cells, colWidths=widths, repeatRows=1)
        table.setStyle(TABLE_STYLE)
        caption = self.text(f"**Table {number}.** {block.lines[0]}", block)
        head = [Anchor(key), Paragraph(caption, self.styles["caption"])]
        if block.attrs.get("long"):  # may run over a page break
            self.flow += [CondPageBreak(130), *head, table, Spacer(1, 10)]
        else:
            self.keep([*head, table, Spacer(1, 10)])

    def on_figure(self, block: Block) -> None:
        # A drawing refuses foreign attributes such as keepWithNext; a table around it does not.
        drawing = Table([[FIGURES[block.attrs["id"]](WIDTH)]], colWidths=[WIDTH])
        drawing.setStyle(TableStyle(ZERO_PADDING))
        caption = self.text(f"**Figure {block.attrs['number']}.** {block.lines[0]}", block)
        self.keep(
            [
                Anchor(f"fig:{block.attrs['id']}"),
                Spacer(1, 5),
                drawing,
                Spacer(1, 4),
                Paragraph(caption, self.styles["under"]),
            ]
        )


class Rule(Flowable):  # type: ignore[misc]
    """A horizontal rule."""

    def __init__(self, width: float, color: Color, thickness: float) -> None:
        super().__init__()
        self.width, self.color, self.thickness = width, color, thickness

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        return self.width, self.thickness

    def draw(self) -> None:
        self.canv.setStrokeColor(self.color)
        self.canv.setLineWidth(self.thickness)
        self.canv.line(0, 0, self.width, 0)


ZERO_PADDING: list[tuple[Any, ...]] = [
    (f"{side}PADDING", (0, 0), (-1, -1), 0) for side in ("LEFT", "RIGHT", "TOP", "BOTTOM")
]
TABLE_STYLE = TableStyle(
    [
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LINEABOVE", (0, 0), (-1, 0), 1, INK),
        ("LINEBELOW", (0, 0), (-1, 0), 0.6, INK),
        ("LINEBELOW", (0, 1), (-1, -1), 0.25, RULE),
        ("LINEBELOW", (0, "splitlast"), (-1, "splitlast"), 0.6, INK),
        ("LINEBELOW", (0, -1), (-1, -1), 1, INK),
        ("BACKGROUND", (0, 0), (-1, 0), SHADE),
        ("LEFTPADDING", (0, 0), (-1, -1), 5),
        ("RIGHTPADDING", (0, 0), (-1, -1), 5),
        ("TOPPADDING", (0, 0), (-1, -1), 2.5),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 3.5),
    ]
)


# --------------------------------------------------------------------------- build and truth


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


def make_truth(book: Book, layout: Layout, questions: list[dict[str, Any]]) -> dict[str, Any]:
    """What a parser should find in the PDF, and questions with the pages that answer them."""

    def captions(name: str) -> list[dict[str, Any]]:
        found = []
        for number, (key, title) in enumerate(book.captions[name], 1):
            pages = layout.pages_of[f"{name}:{key}"]
            if name == "tab":
                pages = pages | layout.pages_of[f"mark:row:{number}"]
            page = min(pages)
            entry = {"number": number, "title": title, "page": page, "label": layout.label(page)}
            if name == "tab":
                entry["pages"] = sorted(pages)
            found.append(entry)
        return found

    def pages_of_places(places: list[str]) -> set[int]:
        pages: set[int] = set()
        for place in places:
            if place in ("all:tab", "all:fig"):
                pages |= {entry["page"] for entry in captions(place[4:])}
            elif place in layout.pages_of:
                pages |= layout.pages_of[place]
            else:
                raise SourceError(f"questions.json: unknown place {place}")
        return pages

    counts = {name: len(entries) for name, entries in book.captions.items()}
    truth_questions = []
    for question in questions:
        pages = pages_of_places(question["places"])
        truth_questions.append(
            {
                "question": question["question"],
                "kind": question["kind"],
                "answer": question["answer"].format(**counts),
                "keys": [key.format(**counts) for key in question["keys"]],
                "pages": sorted(pages),
                "labels": [layout.label(page) for page in sorted(pages)],
                # Pages that say the same in passing; citing one of them is right as well.
                "also": sorted(pages_of_places(question.get("also", [])) - pages),
            }
        )
    return {
        "title": TITLE,
        "pages": layout.pages,
        "front_pages": layout.front_pages,
        "entries": [
            {
                "level": heading.level,
                "title": heading.printed,
                "page": layout.headings[heading.key],
                "label": layout.label(layout.headings[heading.key]),
            }
            for heading in book.headings
        ],
        "tables": captions("tab"),
        "figures": captions("fig"),
        "listings": captions("lst"),
        "acronyms": [
            {"term": match[1], "acronym": match[2]}
            for term in book.terms
            if (match := re.match(r"(.+) \((.+)\)$", term))
        ],
        "questions": truth_questions,
    }


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
