"""Measures the section trees of documents one after the other; each fails alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from bookrag_fast.document import Document, read_document
from bookrag_fast.errors import BookragError
from bookrag_fast.evaluation.scores import Heading, TreeScore, score_tree
from bookrag_fast.evaluation.truth import Truth, outline_truth
from bookrag_fast.index.model import NodeKind, SectionTree
from bookrag_fast.index.tree import build_tree

__all__ = ["WITHHELD", "Result", "evaluate_trees", "headings_of", "without"]

# What a file says of its own sections, by the field of Document that holds it.
WITHHELD = ("outline", "tags")


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one document. ``seconds`` is reading and the tree together.

    ``score`` is None when the document failed; ``error`` says why.
    """

    name: str
    pages: int = 0
    seconds: float = 0.0
    score: TreeScore | None = None
    levels_reliable: bool = True
    toc_source: str = ""
    confidence: float | None = None
    error: BookragError | None = None

    @property
    def pages_per_second(self) -> float:
        return self.pages / self.seconds if self.seconds else 0.0


def evaluate_trees(
    truths: Sequence[Truth],
    *,
    withhold: Collection[str] = (),
    read: Callable[[Path], Document] = read_document,
) -> Iterator[Result]:
    """A result for each document, in order, as soon as it is there.

    Args:
        withhold: of :data:`WITHHELD`, what the tree builder must not see. A truth taken from the
            outline withholds it in any case.
        read: reads a document, as `read_document` does.
    """
    for truth in truths:
        name = truth.document.name
        if truth.error is not None:
            yield Result(name, error=truth.error)
            continue
        try:
            yield _measured(truth, withhold, read)
        except BookragError as error:
            yield Result(name, error=error)


def _measured(truth: Truth, withhold: Collection[str], read: Callable[[Path], Document]) -> Result:
    begun = perf_counter()
    document = read(truth.document)
    headings = truth.headings
    if headings is None:
        headings = outline_truth(document)
        withhold = {*withhold, "outline"}
    tree = build_tree(without(document, withhold))
    seconds = perf_counter() - begun
    return Result(
        truth.document.name,
        pages=len(document.pages),
        seconds=seconds,
        score=score_tree(headings, headings_of(tree)),
        levels_reliable=truth.levels_reliable,
        toc_source=tree.toc_source,
        confidence=tree.confidence,
    )


def without(document: Document, fields: Collection[str]) -> Document:
    """The document as if its file had not said these things of itself."""
    if "outline" in fields:
        document = replace(document, outline=())
    return replace(document, tags=()) if "tags" in fields else document


def headings_of(tree: SectionTree) -> list[Heading]:
    """The sections of a tree below the document's title."""
    return [
        Heading(n.title, n.level - 1, n.regions[0].page if n.regions else n.page_first)
        for n in tree.nodes
        if n.kind is NodeKind.SECTION and n.level > 1
    ]
