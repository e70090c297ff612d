"""Document → SectionTree: the sections found, nested, with all content under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bookrag_fast.document.model import Block, BlockKind, Cell, Document, Region
from bookrag_fast.document.numbering import parse_numbering
from bookrag_fast.index.evidence import add_layout, heading_confidence, tree_confidence
from bookrag_fast.index.model import Node, NodeKind, SectionTree
from bookrag_fast.index.packing import contents_of
from bookrag_fast.index.proposal import Proposal, propose
from bookrag_fast.index.section import Heading, close_levels
from bookrag_fast.index.tags import add_tags

__all__ = ["build_tree", "tree_of"]


def build_tree(document: Document) -> SectionTree:
    """The section tree of a document, by rules alone."""
    return tree_of(propose(document))


def tree_of(proposal: Proposal) -> SectionTree:
    """The section tree that is proposed; one section a page where there are no headings.

    Nothing of the document's text is left out: what stands before the first heading hangs under
    the title node.
    """
    document, source = proposal.document, proposal.source
    warnings = list(proposal.warnings)
    headings = [replace(h) for h in proposal.headings]
    add_tags(document, headings)
    if not headings and document.pages:
        headings, source = _by_page(document), "pages"
        if len(document.pages) > 1:
            warnings.append("no headings were found: every page is a section")
    add_layout(document, headings)
    close_levels(headings)
    confidence = tree_confidence(headings, proposal.contents)
    nodes = tuple(_nodes(document, headings, proposal.title))
    return SectionTree(nodes, source, tuple(warnings), confidence)


def _by_page(document: Document) -> list[Heading]:
    """One section a page that has anything on it."""
    out: list[Heading] = []
    seen = 0
    for k, block in enumerate(document.blocks):
        if block.page > seen:
            seen = block.page
            label = document.label_of(seen) or str(seen)
            out.append(Heading(f"Page {label}", 1, seen, k, evidence=("page",)))
    return out


def _nodes(document: Document, headings: Sequence[Heading], title: int | None) -> list[Node]:
    """``title`` is the block that is the title node itself."""
    blocks = document.blocks
    builder = _Builder(document, blocks[title].regions if title is not None else ())
    starts = [h.at for h in headings] + [len(blocks)]
    builder.fill([b for k, b in enumerate(blocks[: starts[0]]) if k != title])
    for heading, until in zip(headings, starts[1:], strict=True):
        builder.open(heading)
        own = set(heading.blocks)
        inside = [b for k, b in enumerate(blocks[heading.at : until], heading.at) if k not in own]
        if heading.rest:
            source = blocks[heading.blocks[-1]]
            inside.insert(
                0,
                Block(
                    BlockKind.TEXT, heading.rest, source.regions, source.style, source.line_count
                ),
            )
        builder.fill(inside)
    return builder.finished()


class _Builder:
    """Nodes in pre-order, with the sections that are open."""

    def __init__(self, document: Document, regions: tuple[Region, ...]) -> None:
        span = document.span or ((1, len(document.pages)) if document.pages else (0, 0))
        self._last_page = span[1]
        title = document.title or _stem(document.name)
        self._nodes: list[Node] = [
            Node(0, -1, NodeKind.ROOT, 0, title, "", (), *span),
            Node(1, 0, NodeKind.SECTION, 1, title, "", regions, *span, evidence=("title",)),
        ]
        self._open = [0, 1]  # ids of the open sections, outermost first

    def open(self, heading: Heading) -> None:
        level = heading.level + 1
        while self._nodes[self._open[-1]].level >= level:
            self._open.pop()
        page = min(heading.page, self._last_page)
        self._add(
            NodeKind.SECTION, level, heading.title, "", heading.regions, page, page,
            heading.numbering or _label(heading.title), heading.evidence, (),
        )  # fmt: skip
        self._open.append(len(self._nodes) - 1)

    def fill(self, blocks: Sequence[Block]) -> None:
        level = self._nodes[self._open[-1]].level + 1
        for content in contents_of(blocks):
            pages = [r.page for r in content.regions] or [0]
            self._add(
                content.kind, level, content.title, content.text, content.regions,
                min(pages), max(pages), "", (), content.cells,
            )  # fmt: skip

    def _add(
        self,
        kind: NodeKind,
        level: int,
        title: str,
        text: str,
        regions: tuple[Region, ...],
        first: int,
        last: int,
        numbering: str,
        evidence: tuple[str, ...],
        cells: tuple[Cell, ...],
    ) -> None:
        parent = self._open[-1]
        self._nodes.append(
            Node(
                len(self._nodes), parent, kind, level, title, text, regions, first, last,
                numbering, evidence, cells,
            )
        )  # fmt: skip

    def finished(self) -> list[Node]:
        """The nodes with page spans of whole subtrees."""
        first = [n.page_first for n in self._nodes]
        last = [n.page_last for n in self._nodes]
        for node in reversed(self._nodes):
            if node.parent > 0 and first[node.node_id]:
                own = first[node.parent] or first[node.node_id]  # 0: on no page of its own
                first[node.parent] = min(own, first[node.node_id])
                last[node.parent] = max(last[node.parent], last[node.node_id])
        return [
            Node(
                n.node_id, n.parent, n.kind, n.level, n.title, n.text, n.regions,
                first[n.node_id], last[n.node_id], n.numbering, n.evidence, n.cells,
                heading_confidence(n.evidence),
            )
            for n in self._nodes
        ]  # fmt: skip


def _label(title: str) -> str:
    numbering = parse_numbering(title)
    return numbering.label if numbering else ""


def _stem(name: str) -> str:
    stem = name.rpartition(".")[0] or name
    return stem.replace("_", " ").strip() or name
