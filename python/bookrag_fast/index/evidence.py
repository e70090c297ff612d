"""What a heading rests on, and how far that can be trusted.

Kinds of evidence, as nodes hold them:

* ``outline``: the PDF's bookmarks name the section;
* ``printed``: the title that they name stands on its page;
* ``markup``: the source itself states the heading and its level;
* ``tags``: a tagged PDF marks it as one;
* ``contents-page``: a printed table of contents lists it;
* ``numbering``: its number continues or starts a sequence;
* ``typography``: its style stands out from the running text;
* ``run-in``: it opens a paragraph in a face of its own, and so do others;
* ``layout``: a layout model, where one was asked, took it for a title;
* ``model``: a language model, where one was asked, decided that it is one;
* ``page``: it is no heading but a page, in a document that has none;
* ``title``: it is the document's own title.

A heading's confidence takes the kinds as independent witnesses, each right with the weight below:
1 - Π (1 - weight). The weights are rounded shares of headings that were true ones among those
that rest on the kind alone, over 25 books with known headings. Those of markup, tags and run-in
are guesses, and that of model is a modest one: how much a model knows depends on which it is.
``layout`` never stands alone, and says little: its weight is by how much more often headings of
mere typography are true ones with it than without.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from bookrag_fast.document.layout.regions import TITLE
from bookrag_fast.document.model import Document
from bookrag_fast.index.candidates import candidates_of
from bookrag_fast.index.contents import PrintedContents
from bookrag_fast.index.judging import sequence_members
from bookrag_fast.index.section import Heading

__all__ = ["WEIGHTS", "add_form", "add_layout", "heading_confidence", "tree_confidence"]

WEIGHTS = {
    "outline": 0.9,
    "printed": 0.8,
    "markup": 0.95,
    "tags": 0.8,
    "contents-page": 0.95,
    "numbering": 0.9,
    "typography": 0.5,
    "run-in": 0.5,
    "layout": 0.1,
    "model": 0.5,
    "page": 0.0,
}


def heading_confidence(evidence: Sequence[str]) -> float | None:
    """How likely a heading that rests on this is one, in [0, 1]; None when nothing is known."""
    weights = [WEIGHTS[kind] for kind in dict.fromkeys(evidence) if kind in WEIGHTS]
    return 1.0 - prod(1.0 - w for w in weights) if weights else None


def tree_confidence(headings: Sequence[Heading], contents: PrintedContents) -> float:
    """Mean confidence of the headings, in [0, 1]. Entries of the printed contents that no heading
    was found for are headings that are missing, and count as 0."""
    known = [heading_confidence(h.evidence) or 0.0 for h in headings]
    listed = sum("contents-page" in h.evidence for h in headings)
    missing = max(0, len(contents.entries) - listed)
    return sum(known) / (len(known) + missing) if known else 0.0


def add_form(document: Document, contents: PrintedContents, headings: Sequence[Heading]) -> None:
    """Adds to headings from the outline what the pages themselves say for them."""
    candidates = candidates_of(document, contents)
    in_sequence = sequence_members(candidates)
    of_block = {
        c.at: [kind for kind in c.evidence if kind != "numbering" or c.at in in_sequence]
        for c in candidates
    }
    for heading in headings:
        found = [kind for k in heading.blocks for kind in of_block.get(k, ())]
        heading.evidence = tuple(dict.fromkeys((*heading.evidence, *found)))


def add_layout(document: Document, headings: Sequence[Heading]) -> None:
    """Adds what a layout model says for headings. It makes none and drops none: either was measured
    to cost more than it wins."""
    for heading in headings:
        if any(document.blocks[k].seen_as == TITLE for k in heading.blocks):
            heading.evidence = (*heading.evidence, "layout")
