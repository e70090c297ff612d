"""A section tree in the terminal: titles, pages, and what each heading rests on."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bookrag_fast.cli.output import clean, shorten

if TYPE_CHECKING:
    from rich.text import Text

    from bookrag_fast.library.types import TreeNode

__all__ = ["print_tree", "tree_lines"]

_PIPED_WIDTH = 160  # columns where no terminal sets them
_LEAST_TITLE = 20  # columns that a title keeps, however deep it hangs
_DEEPEST_GUIDE = 24  # levels; deeper nodes hang at this one
_LANDMARKS = {"section", "table", "image"}
# Letters for what a heading rests on: in words it would leave no room for the title.
_EVIDENCE = {
    "outline": "o",
    "printed": "p",
    "contents-page": "c",
    "numbering": "n",
    "typography": "t",
    "tags": "g",
    "run-in": "r",
    "layout": "l",
    "model": "m",
}


def print_tree(root: TreeNode, *, depth: int | None = None, everything: bool = False) -> None:
    """Prints :func:`tree_lines`, as wide as the terminal, in colour where it has any."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else _PIPED_WIDTH
    console = Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)
    for line in tree_lines(root, width=width, depth=depth, everything=everything):
        console.print(line, soft_wrap=True)


def tree_lines(
    root: TreeNode, *, width: int, depth: int | None = None, everything: bool = False
) -> Iterator[Text]:
    """A line a node: guides, title, page, evidence, confidence, number; titles are cut so that
    lines fit.

    Args:
        root: of the tree; its own line says what the tree rests on.
        width: columns; a CJK character takes two.
        depth: show nodes down to this level only.
        everything: text blocks too; else sections, tables and images.
    """
    from rich.text import Text

    if root.confidence is not None:
        rests = ", ".join(root.evidence)
        yield Text(f"Rests on: {rests} · confidence {root.confidence:.2f}")
        legend = ", ".join(f"{letter} {kind}" for kind, letter in _EVIDENCE.items())
        yield Text(f"Evidence: {legend}", style="dim")

    def shown(node: TreeNode) -> list[TreeNode]:
        return [
            child
            for child in node.children
            if (everything or child.kind in _LANDMARKS) and (depth is None or child.level <= depth)
        ]

    waiting = [(node, "", "") for node in reversed(shown(root))]
    while waiting:
        node, guide, below = waiting.pop()
        yield _line(node, guide, width)
        children = shown(node)
        for child in reversed(children):
            last = child is children[-1]
            deep = len(below) >= 4 * _DEEPEST_GUIDE
            branch, trunk = ("└── ", "    ") if last else ("├── ", "│   ")
            waiting.append((child, below + branch, below if deep else below + trunk))


def _line(node: TreeNode, guide: str, width: int) -> Text:
    from rich.text import Text

    title = shorten(clean(node.title or node.text), 4 * width) or "(untitled)"
    kind = "" if node.kind == "section" else f"[{node.kind}] "
    label = f" ({clean(node.label)})" if node.label and node.label != str(node.page) else ""
    after = [(f"p. {node.page}{label}", "cyan")] if node.page else []
    if node.confidence is not None:
        letters = "".join(letter for kind, letter in _EVIDENCE.items() if kind in node.evidence)
        after.append((letters or ", ".join(node.evidence), "dim"))
        after.append((f"{node.confidence:.2f}", _colour(node.confidence)))
    after.append((f"#{node.node_id}", "dim"))
    taken = len(guide) + sum(2 + len(text) for text, _ in after)
    head = Text(kind + title, style="bold" if node.kind == "section" and node.level <= 2 else "")
    head.truncate(max(_LEAST_TITLE, width - taken), overflow="ellipsis")
    line = Text().append(guide, style="dim").append_text(head)
    for text, style in after:
        line.append("  ").append(text, style=style)
    return line


def _colour(confidence: float) -> str:
    return "green" if confidence >= 0.9 else "yellow" if confidence >= 0.6 else "red"
