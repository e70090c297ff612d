"""Markdown (CommonMark with tables, footnotes, display math and front matter) → blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from bookrag_fast.document.analysis.lettering import is_cjk
from bookrag_fast.document.formats.block_target import BlockTarget
from bookrag_fast.document.formats.building import Reading, block
from bookrag_fast.document.formats.encoding import decode_text
from bookrag_fast.document.formats.html import html_target
from bookrag_fast.document.formats.text import read_plain
from bookrag_fast.document.model import BlockKind

__all__ = ["read_markdown"]

_MAX_NESTING = 100  # of lists and quotations
_MAX_INLINE = 200_000  # characters of one paragraph in which emphasis and links are looked for
_MANY_MARKS = 1000  # and more than a tenth of a paragraph: no prose, and it costs time without end
_SIGNS = re.compile(r"[\\`*_\[\]<&~\n]")
_FRONT_TITLE = re.compile(r"^title\s*:[ \t]*(?P<title>\S.*)$", re.MULTILINE | re.IGNORECASE)
# "#id .class key=value": each ends at a space or at the end, so that there is one way to read it.
_ATTRIBUTES = re.compile(
    r"""(?:(?:[#.][^\s"'=]+|[\w:-]+=(?:"[^"]*"|'[^']*'|[^\s"']+))(?:\s+|$))+"""
)
_ALT = re.compile(r"""<img\b[^>]*\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    parser.enable(["table", "strikethrough"])
    parser.use(front_matter_plugin).use(footnote_plugin).use(dollarmath_plugin)
    # Footnotes stay where they stand; "$5 and $6" is money; inline text is parsed when it is told.
    parser.disable(["inline", "footnote_tail", "footnote_inline", "math_inline", "text_join"])
    return parser


def read_markdown(data: bytes) -> Reading:
    """Content of a Markdown file. The title is that of the front matter, or the only first-level
    heading. A file nested beyond reason is read as plain text."""
    text = decode_text(data)
    parser = _parser()
    env: dict[str, Any] = {}
    try:
        tokens = parser.parse(text, env)
        too_deep = any(token.level >= _MAX_NESTING - 1 for token in tokens)
    except RecursionError:
        tokens, too_deep = [], True
    if too_deep:
        plain = read_plain(text)
        plain.warnings = ("its Markdown is nested too deeply and was read as plain text",)
        return plain
    teller = _Teller(parser, env)
    title = teller.tell(tokens)
    blocks = teller.target.close().blocks
    tops = [b.text for b in blocks if b.level == 1]
    return Reading(blocks, title or (tops[0] if len(tops) == 1 else None))


class _Teller:
    """Tells tokens to a target."""

    def __init__(self, parser: MarkdownIt, env: dict[str, Any]) -> None:
        self.target = BlockTarget()
        self._parser = parser
        self._env = env
        self._label = ""  # of a footnote that has no text yet
        self._heading = False  # whether one is open
        self._quoted = 0  # headings of what is quoted are none of this book

    def tell(self, tokens: Sequence[Token]) -> str | None:
        """The front matter's title, if there is one."""
        title = None
        html: list[str] = []  # of neighbouring tokens: blank lines may part a table
        for token in tokens:
            if token.type == "html_block":
                html.append(token.content)
                continue
            if html:
                self._html(html)
            if token.type == "front_matter":
                title = _front_title(token.content)
            else:
                self._block(token)
        self._html(html)
        return title

    def _html(self, pieces: list[str]) -> None:
        if pieces:
            self.target.insert(*html_target("\n".join(pieces)).blocks)
            pieces.clear()

    def _block(self, token: Token) -> None:
        target = self.target
        if token.type == "inline":
            self._inline(_without_attributes(token.content) if self._heading else token.content)
        elif token.type in ("fence", "code_block"):
            if token.info.strip() == "math":
                target.insert(block(BlockKind.EQUATION, token.content.strip()))
            else:
                _element(target, "pre", token.content)
        elif token.type.startswith("math_block"):
            target.insert(block(BlockKind.EQUATION, token.content.strip()))
        elif token.type == "footnote_reference_open":
            target.start("aside", {"role": "doc-footnote"})
            self._label = f"[{token.meta['label']}] "
        elif token.type == "footnote_reference_close":
            target.end("aside")
        elif token.nesting:
            tag = token.tag
            if token.type in ("heading_open", "heading_close"):
                self._heading = token.nesting > 0
            if tag == "blockquote":
                self._quoted += token.nesting
            if tag[0] == "h" and self._quoted:
                tag = "p"
            if token.nesting > 0:
                start = {"start": str(token.attrs["start"])} if "start" in token.attrs else {}
                target.start(tag, start)
            else:
                target.end(tag)
        elif token.type == "hr":
            _element(target, "hr")

    def _inline(self, content: str) -> None:
        target = self.target
        if self._label:
            target.data(self._label)
            self._label = ""
        marks = sum(content.count(mark) for mark in "[*_")
        odd = marks > _MANY_MARKS and 10 * marks > len(content)
        if len(content) > _MAX_INLINE or odd or _SIGNS.search(content) is None:
            target.data(content)
        else:
            found: list[Token] = []
            self._parser.inline.parse(content, self._parser, self._env, found)
            self._told(found)

    def _told(self, tokens: Iterable[Token]) -> None:
        target = self.target
        last = ""  # character before a line's end
        broken = False
        for token in tokens:
            if token.type == "softbreak":
                broken = True
                continue
            text = token.content
            if broken:
                between = last and text and is_cjk(ord(last)) and is_cjk(ord(text[0]))
                target.data("" if between else " ")
                broken = False
            if token.type in ("text", "text_special", "code_inline"):
                target.data(text)
                last = text[-1:] or last
            elif token.type == "hardbreak":
                _element(target, "br")
            elif token.type == "image":
                target.start("img", {"alt": _plain(token)})
                target.end("img")
            elif token.type == "footnote_ref":
                target.data(f"[{token.meta['label']}]")
            elif token.type == "html_inline":
                self._inline_html(text)

    def _inline_html(self, tag: str) -> None:
        if re.match(r"<br\b", tag, re.IGNORECASE):
            _element(self.target, "br")
        elif image := _ALT.match(tag):
            self.target.start("img", {"alt": image.group(1) or image.group(2) or ""})
            self.target.end("img")


def _element(target: BlockTarget, tag: str, text: str = "") -> None:
    target.start(tag, {})
    if text:
        target.data(text)
    target.end(tag)


def _without_attributes(heading: str) -> str:
    """Without the "{#id .class key=value}" at the end, as Pandoc and others write it."""
    title, _, group = heading.rstrip().rpartition("{")
    if not title.strip() or not title[-1].isspace() or not group.endswith("}"):
        return heading
    attributes = group[:-1].removeprefix(":").strip()
    return title.rstrip() if _ATTRIBUTES.fullmatch(attributes) else heading


def _plain(image: Token) -> str:
    """Alternative text without its markup."""
    parts = (
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in image.children or ()
    )
    return "".join(parts) or image.content


def _front_title(front: str) -> str | None:
    found = _FRONT_TITLE.search(front)
    title = found.group("title").strip() if found else ""
    if title[:1] in ("'", '"') and title[-1:] == title[:1] and len(title) > 1:
        title = title[1:-1].strip()
    return title if title and title[0] not in "|>[{&*" else None  # none that need a YAML parser
