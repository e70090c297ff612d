"""Headings from the tags of a tagged PDF, where they can be believed.

Tags are often rubbish: every paragraph a heading, bold words a heading, or all but the title plain
paragraphs. So they are held against what the pages themselves say.
"""

from __future__ import annotations

from collections.abc import Sequence

from bookrag_fast.document.model import Document, OutlineEntry
from bookrag_fast.index.candidates import candidates_of
from bookrag_fast.index.contents import PrintedContents
from bookrag_fast.index.outline import headings_from_outline
from bookrag_fast.index.section import Heading, close_levels, plain_key

__all__ = ["add_tags", "tagged_blocks", "usable_tags"]

MIN_TAGS = 2  # where the pages show headings without them
MAX_CHARACTERS = 200  # of a heading
MAX_SHARE = 0.2  # of the document's characters
MIN_LIKE = 0.5  # of the tagged headings that look like headings
MIN_COMPLETE = 0.6  # of the headings that stand out otherwise
ENOUGH = 4  # headings that stand out otherwise, for the tags to be held against them
MIN_OF_TITLE = 0.5  # a metadata title often has a site's name behind it

_BOTH = {"numbering", "typography"}


def usable_tags(
    document: Document, contents: PrintedContents, otherwise: Sequence[Heading]
) -> tuple[list[Heading], list[str]]:
    """The tagged headings if they are sound, else nothing, with a warning that says what is wrong.

    Args:
        otherwise: the headings that the pages show without any tags.
    """
    entries = _entries(document)
    if not entries:
        return [], []
    headings, _ = headings_from_outline(document, entries, kind="tags")
    reason = _unsound(document, contents, headings, otherwise)
    if reason:
        return [], [f"the headings tagged in the PDF are not followed: {reason}"]
    for heading in headings:
        if heading.blocks and not heading.rest:
            # What the page prints: digits and signs often carry no tag.
            heading.title = " ".join(
                " ".join(document.blocks[k].text for k in heading.blocks).split()
            )
    return _without_title(document, headings), []


def tagged_blocks(document: Document) -> set[int]:
    """The blocks that print tagged headings."""
    headings, _ = headings_from_outline(document, _entries(document), kind="tags")
    return {k for heading in headings for k in heading.blocks}


def add_tags(document: Document, headings: Sequence[Heading]) -> None:
    """Adds to headings found otherwise that tags say the same."""
    tagged = tagged_blocks(document) if document.tags else set()
    for heading in headings:
        if tagged.intersection(heading.blocks) and "tags" not in heading.evidence:
            heading.evidence = (*heading.evidence, "tags")


def _entries(document: Document) -> list[OutlineEntry]:
    return [e for e in document.tags if len(e.title) <= MAX_CHARACTERS and plain_key(e.title)]


def _unsound(
    document: Document,
    contents: PrintedContents,
    headings: Sequence[Heading],
    otherwise: Sequence[Heading],
) -> str:
    count = len(headings)
    if count < MIN_TAGS and otherwise:
        return f"there is {count} of them"
    letters = sum(len(b.text) for b in document.blocks)
    if sum(len(e.title) for e in document.tags) > MAX_SHARE * letters:
        return "they are most of the text"
    marked = {c.at for c in candidates_of(document, contents)}
    like = sum(bool(marked.intersection(h.blocks)) for h in headings)
    if like < MIN_LIKE * count:
        return f"{count - like} of {count} do not look like headings"
    sure = [h for h in otherwise if "contents-page" in h.evidence or {*h.evidence} >= _BOTH]
    mine = {k for h in headings for k in h.blocks}
    both = sum(bool(mine.intersection(h.blocks)) for h in sure)
    if len(sure) >= ENOUGH and both < MIN_COMPLETE * len(sure):
        return f"{len(sure) - both} of {len(sure)} numbered or listed headings have no tag"
    return ""


def _without_title(document: Document, headings: list[Heading]) -> list[Heading]:
    """Without the document's own title: the first heading, alone on its level."""
    first, rest = headings[0], headings[1:]
    alone = all(h.level > first.level for h in rest)
    if not rest or not alone or document.title is None:
        return headings
    mine, whole = plain_key(first.title), plain_key(document.title)
    if mine not in whole or len(mine) < MIN_OF_TITLE * len(whole):
        return headings
    close_levels(rest)
    return rest
