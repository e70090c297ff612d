"""The text that the nodes of a book are found by."""

from __future__ import annotations

from collections.abc import Sequence

from bookrag_fast.index.model import Node, NodeKind

__all__ = ["searchable"]


def searchable(nodes: Sequence[Node]) -> list[str]:
    """The text of each node: heading or caption, summary, then content.

    The first content of a section is also found by the section's heading, as a reader would who
    leafs through the pages. The root is no place.
    """
    texts: list[str] = []
    for node in nodes:
        above = nodes[node.parent] if node.parent >= 0 else None
        opens = (
            above is not None
            and node.kind > NodeKind.SECTION
            and above.kind is NodeKind.SECTION
            and node.node_id == above.node_id + 1
        )
        parts = (above.title if opens and above else "", node.title, node.summary, node.text)
        texts.append("" if above is None else "\n".join(p for p in parts if p))
    return texts
