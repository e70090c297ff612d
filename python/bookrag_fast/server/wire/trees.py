"""Section trees, as a list of nodes in pre-order."""

from __future__ import annotations

from collections.abc import Sequence

from bookrag_fast.library.types import TreeNode
from bookrag_fast.server.errors import RemoteError
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from bookrag_fast.server.wire.values import text_to

__all__ = ["tree_from", "tree_to"]


def tree_to(root: TreeNode, *, omit_text: bool = False) -> list[pb.TreeNode]:
    """Flattened in pre-order; without recursion, for trees of any depth."""
    nodes: list[pb.TreeNode] = []
    waiting = [(root, -1)]
    while waiting:
        node, parent = waiting.pop()
        nodes.append(
            pb.TreeNode(
                node_id=node.node_id,
                parent=parent,
                kind=node.kind,
                level=node.level,
                title=text_to(node.title),
                page=node.page,
                page_last=node.page_last,
                label=None if node.label is None else text_to(node.label),
                text="" if omit_text else text_to(node.text),
                evidence=node.evidence,
                confidence=node.confidence,
                summary=text_to(node.summary),
            )
        )
        waiting.extend((child, node.node_id) for child in reversed(node.children))
    return nodes


def tree_from(nodes: Sequence[pb.TreeNode]) -> TreeNode:
    """Rebuilt from the last node to the first: children are complete before their parent."""
    children: dict[int, list[TreeNode]] = {}
    for message in reversed(nodes):
        own = children.pop(message.node_id, [])
        own.reverse()
        node = TreeNode(
            node_id=message.node_id,
            kind=message.kind,
            level=message.level,
            title=message.title,
            page=message.page,
            page_last=message.page_last,
            label=message.label if message.HasField("label") else None,
            text=message.text,
            children=tuple(own),
            evidence=tuple(message.evidence),
            confidence=message.confidence if message.HasField("confidence") else None,
            summary=message.summary,
        )
        if message.parent < 0:
            return node
        children.setdefault(message.parent, []).append(node)
    raise RemoteError("the server sent a tree without a root")
