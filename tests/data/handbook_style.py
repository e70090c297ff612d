"""How the handbook looks: measures, colours, paragraph and table styles, markup inside a line.

Inline: ``**bold**``, ``*italic*``, code in backquotes, ``_{sub}``, ``^{sup}``,
``[sec:id]``, ``[tab:id]``, ``[fig:id]``, ``[lst:id]``, ``[eq:id]`` for cross-references, and
``{@name}`` for an invisible mark whose page a question of ``questions.json`` asks for.
"""

from __future__ import annotations

import re
from typing import Any

from handbook_source import Book, SourceError, curly
from reportlab.lib.colors import HexColor, black
from reportlab.lib.enums import TA_CENTER, TA_JUSTIFY
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.platypus import TableStyle

LEFT, RIGHT, TOP, BOTTOM = 66.0, 66.0, 62.0, 54.0
WIDTH = A4[0] - LEFT - RIGHT

INK = HexColor(0x1B2A41)
RULE = HexColor(0x8A97A8)
SHADE = HexColor(0xF1F4F8)

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
