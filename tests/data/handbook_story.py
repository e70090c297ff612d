"""From the blocks of the handbook's source to what reportlab sets on pages."""

from __future__ import annotations

from collections.abc import Callable

from handbook_figures import FIGURES
from handbook_layout import Anchor, BodyStart, ContentsLine, HandbookMaker, HeadingParagraph, Rule
from handbook_source import SUBTITLE, TITLE, Block, Heading, SourceError, list_items
from handbook_style import (
    INK,
    RULE,
    SHADE,
    TABLE_STYLE,
    WIDTH,
    ZERO_PADDING,
    escape,
    fallback,
    inline,
)
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import (
    CondPageBreak,
    Flowable,
    PageBreak,
    Paragraph,
    Preformatted,
    Spacer,
    Table,
    TableStyle,
)

CODE_COLUMNS = 84


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
