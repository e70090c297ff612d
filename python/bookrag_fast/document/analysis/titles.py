"""The title of a document: from its metadata, else the first page's largest text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from bookrag_fast.document.model import Block, BlockKind

__all__ = ["document_title", "is_title_like"]

MAX_PARTS = 4
MAX_TITLE = 200  # characters of several parts together

_JUNK = re.compile(
    r"^(?:untitled|title|document\d*|microsoft (?:word|powerpoint|excel|office)|slide \d+"
    r"|presentation\d*|powerpoint|pdf|unknown|none|no title|default|book\d*|layout \d+"
    r"|page \d+|無題|文書\s*\d*"
    r"|スライド\s*\d+)\b(?:\s*[-–:].*)?$",
    re.IGNORECASE,
)
_FILE = re.compile(
    r"\.(?:docx?|pdf|indd|tex|dvi|pptx?|xlsx?|rtf|odt|qxd|html?|fm|jtd|ps|eps)\b", re.I
)


def is_title_like(text: str, file_name: str = "") -> bool:
    """A text that a person would call a title: not a file name, a program's default or a code."""
    text = text.strip()
    if not 3 <= len(text) <= 300 or _JUNK.match(text) or _FILE.search(text):
        return False
    if text.casefold() == file_name.rpartition(".")[0].casefold():
        return False
    letters = sum(c.isalpha() for c in text)
    if letters < 0.5 * len(text.replace(" ", "")):
        return False
    # "wp_2014_final-v3", "0001193125-15": one token with digits or underscores.
    return not (" " not in text and re.search(r"[\d_]", text) and text.isascii())


def document_title(metadata: str, blocks: Sequence[Block], file_name: str) -> str | None:
    if is_title_like(metadata, file_name):
        return metadata
    first = [
        b
        for b in blocks
        if b.page == 1
        and b.kind in (BlockKind.TITLE, BlockKind.TEXT)
        and b.regions[0].bbox.height <= 2.5 * b.regions[0].bbox.width  # not sideways
        and any(c.isalpha() for c in b.text)
        and not b.numbering  # the first chapter's heading
    ]
    if not first:
        return None
    largest = max(b.style.size for b in first)
    parts: list[Block] = []
    last = -1
    runs = 0
    for k, block in enumerate(first):
        if block.style.size < 0.97 * largest or len(block.text) > 250:
            continue
        # All that is set largest names the document: a form, the authority above it, the firm
        # below. What is parted by other text stands apart.
        runs += k != last + 1 or not parts
        parts.append(block)
        last = k
    # On a page in one size the first short bold or centred block is the title.
    if len(parts) > MAX_PARTS:
        parts = [b for b in parts if b.kind is BlockKind.TITLE or b.style.centered][:1]
        runs = 1
    glue = " " if runs == 1 else " – "
    title = glue.join(b.text for b in parts)
    if len(title) > MAX_TITLE:
        title = parts[0].text
    # A title set in the size of the text around it is one only if it does not read as a sentence.
    usual = median(b.style.size for b in blocks if b.style.size)
    sentence = title[:1].islower() and largest < 1.2 * usual
    sentence = sentence or (title.endswith((".", ",", "。")) and len(title) < 8)
    return title if is_title_like(title) and not sentence else None
