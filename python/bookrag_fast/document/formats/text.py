"""Plain text → blocks: paragraphs by blank lines, headings by what writers do without markup.

An underline states a heading and, by the order in which underlines first appear, its level. Short
lines in capitals or with a number are marked as candidates only; section filtering judges them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bookrag_fast.document.analysis.joining import ends_sentence, join_lines
from bookrag_fast.document.analysis.lettering import is_cjk
from bookrag_fast.document.analysis.rows import is_contents_entry
from bookrag_fast.document.formats.building import Reading, block, heading
from bookrag_fast.document.formats.encoding import decode_text
from bookrag_fast.document.model import Block, BlockKind
from bookrag_fast.document.numbering import Scheme, is_bullet, parse_numbering

__all__ = ["read_plain", "read_text"]

_UNDERLINE = re.compile(r"(?P<sign>[=\-~^*+#\"'`:.])(?P=sign){2,}")
_MAX_TITLE = 100  # characters
_WRAPPED = 40  # columns: shorter lines were not broken because they were full
_UNWRAPPED = 240  # columns: lines of such a length are paragraphs, one each
_ITEM = re.compile(r"\s*(?:[*+-]\s|\(?(?:\d{1,3}|[a-zA-Z])[.)]\s)")


def read_text(data: bytes) -> Reading:
    """Content of a text file in any usual encoding."""
    return read_plain(decode_text(data))


def read_plain(text: str) -> Reading:
    """Content of a text. It states no title."""
    underlines: dict[str, int] = {}
    blocks: list[Block] = []
    for lines in _paragraphs(text):
        blocks += _blocks(lines, underlines)
    return Reading(blocks)


def _paragraphs(text: str) -> Iterator[list[str]]:
    """Groups of lines between blank ones; a form feed parts them as well."""
    group: list[str] = []
    at = 0
    while at <= len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        for k, line in enumerate(text[at:end].split("\f")):
            if k > 0 and group:
                yield group
                group = []
            if line.strip():
                group.append(line.rstrip())
            elif group:
                yield group
                group = []
        at = end + 1
    if group:
        yield group


def _blocks(lines: list[str], underlines: dict[str, int]) -> Iterator[Block]:
    if len(lines) > 2 and _is_underline(lines[0], lines[1]) and lines[0] == lines[2]:
        lines = lines[1:]  # a line above the heading as well as below
    if len(lines) > 1 and _is_underline(lines[1], lines[0]):
        level = underlines.setdefault(lines[1].strip()[0], len(underlines) + 1)
        yield heading(lines[0].strip(), level)
        lines = lines[2:]
    elif len(lines) == 1 and _may_be_heading(lines[0].strip()):
        yield Block(BlockKind.TITLE, lines[0].strip(), ())
        return
    if lines:
        yield from _body(lines)


def _is_underline(line: str, title: str) -> bool:
    """Whether a line underlines the title: one sign, about as long."""
    mark = line.strip()
    width = sum(2 if is_cjk(ord(c)) else 1 for c in title.strip())
    return (
        _UNDERLINE.fullmatch(mark) is not None
        and 0.6 * width <= len(mark) <= 1.5 * width + 4
        and len(title.strip()) <= _MAX_TITLE
        and any(c.isalnum() for c in title)
    )


def _may_be_heading(line: str) -> bool:
    if len(line) > _MAX_TITLE or is_contents_entry(line) or is_bullet(line):
        return False
    if ends_sentence(line) and not line.endswith((")", "）", "”")):
        return False
    if len(line) > 3 and line.isupper():
        return True
    number = parse_numbering(line)
    lists = (Scheme.PAREN, Scheme.KANA)
    return number is not None and number.scheme not in lists and bool(number.rest or number.depth)


def _body(lines: list[str]) -> Iterator[Block]:
    contents = sum(len(line) < _UNWRAPPED and is_contents_entry(line) for line in lines)
    items = sum(_is_item(line) for line in lines)
    is_list = items > 0 and _is_item(lines[0]) and (items > 1 or len(lines) < 4)
    if is_list or 2 * contents > len(lines):
        yield block(BlockKind.LIST, "\n".join(lines))
    elif sum(map(len, lines)) > _UNWRAPPED * len(lines):
        yield from (block(BlockKind.TEXT, line.strip()) for line in lines)
    elif _is_wrapped(lines):
        yield block(BlockKind.TEXT, join_lines(line.strip() for line in lines))
    else:
        yield block(BlockKind.TEXT, "\n".join(lines).strip("\n"))


def _is_item(line: str) -> bool:
    return _ITEM.match(line) is not None or is_bullet(line[:40].lstrip())


def _is_wrapped(lines: Sequence[str]) -> bool:
    """Whether the lines are of running text, each but the last as full as it could be."""
    wide = any(is_cjk(ord(c)) for c in lines[0][:20])
    full = sum(len(line) >= (_WRAPPED // 2 if wide else _WRAPPED) for line in lines[:-1])
    columns = any("   " in line.strip() or "\t" in line.strip() for line in lines)
    return full >= 0.8 * (len(lines) - 1) and not columns
