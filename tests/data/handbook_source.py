"""Read the sources of the handbook: blocks, and the numbers of everything that has one.

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

``handbook_style.inline`` reads the markup inside a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

TITLE = "The bookrag_fast Handbook"
SUBTITLE = "Indexing long documents and answering questions from them, with citations"


class SourceError(ValueError):
    """The handbook source is malformed; the message names the file and the block."""


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
