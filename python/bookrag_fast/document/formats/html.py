"""HTML → blocks, through lxml's parser of whatever is on the web."""

from __future__ import annotations

import re

from lxml import etree

from bookrag_fast.document.formats.block_target import BlockTarget
from bookrag_fast.document.formats.building import Reading
from bookrag_fast.document.formats.encoding import decode_text

__all__ = ["html_target", "read_html"]

_HEAD = 4096  # bytes in which an encoding is declared
_DECLARED = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{2,40})"""
    rb"""|<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{2,40})""",
    re.IGNORECASE,
)
_CHUNK = 1 << 20  # characters


def read_html(data: bytes) -> Reading:
    """Content of a page. Scripts, navigation, hidden text and what stands around <main> are none.

    The title is <title>, or the only h1 where that says more.
    """
    found = _DECLARED.search(data[:_HEAD])
    declared = (found.group(1) or found.group(2)).decode("ascii") if found else None
    target = html_target(decode_text(data, declared))
    blocks = target.content()
    tops = [b.text for b in blocks if b.level == 1]
    title = target.title or None
    # "Cows – The Farm – Books Ltd": what browsers show is the heading and where it belongs.
    if len(tops) == 1 and (title is None or tops[0] in title):
        title = tops[0]
    return Reading(blocks, title)


def html_target(text: str) -> BlockTarget:
    """Blocks and title of a page or of a piece of one."""
    target = BlockTarget()
    if not text.strip():
        return target
    # huge_tree: no tree is built, so there is nothing that its limits would protect.
    parser = etree.HTMLParser(target=target, huge_tree=True, no_network=True)
    for at in range(0, len(text), _CHUNK):
        # Lone surrogates, which escapes in JSON can yield, have no UTF-8 form: they become "?".
        parser.feed(text[at : at + _CHUNK].encode("utf-8", "replace").decode("utf-8"))
    try:
        parser.close()
    except etree.XMLSyntaxError:  # nothing but comments
        target.close()
    return target
