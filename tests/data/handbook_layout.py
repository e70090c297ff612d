"""Lay the handbook out on pages, and observe on which page everything is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field

import reportlab
from handbook_source import SUBTITLE, TITLE, Book, Heading
from handbook_style import BOTTOM, INK, LEFT, RIGHT, RULE, TOP, WIDTH, inline, make_styles
from reportlab.lib.colors import Color
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, PageTemplate, Paragraph


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
