"""The section tree in a terminal: pages, evidence and confidence, within the width."""

from __future__ import annotations

import dataclasses

import pytest
from rich.cells import cell_len

from bookrag_fast.cli.tree_view import tree_lines
from bookrag_fast.library.types import TreeNode
from server_helpers import TREE


def lines(root: TreeNode = TREE, *, width: int = 80, **options: object) -> list[str]:
    return [line.plain for line in tree_lines(root, width=width, **options)]


def test_a_tree_is_a_table_of_contents_with_what_its_headings_rest_on() -> None:
    assert lines() == [
        "Rests on: outline · confidence 0.75",
        (
            "Evidence: o outline, p printed, c contents-page, n numbering, t typography, g tags, "
            "r run-in, l layout, m model"
        ),
        "TCP/IP  p. 1 (i)  #1",
        "└── Two  p. 2  op  0.98  #3",
        "[image] Figure  p. 2  #4",
    ]
    assert "├── [text] body  p. 1 (i)  #2" in lines(everything=True)
    assert lines(depth=1)[2:] == ["TCP/IP  p. 1 (i)  #1", "[image] Figure  p. 2  #4"]


def test_a_book_of_an_older_format_has_no_confidence_to_show() -> None:
    old = dataclasses.replace(TREE, confidence=None)
    assert lines(old)[0] == "TCP/IP  p. 1 (i)  #1"


@pytest.mark.parametrize("letter", ["x", "第"])
def test_long_titles_are_cut_to_the_width(letter: str) -> None:
    node = TreeNode(7, "section", 1, letter * 500, 12, 12, "xii", "", (), ("numbering",), 0.9)
    (line,) = lines(TreeNode(0, "root", 0, "", 0, 12, None, "", (node,)), width=60)
    assert line.endswith("…  p. 12 (xii)  n  0.90  #7")
    assert 58 <= cell_len(line) <= 60


def test_guides_join_siblings_and_depth_is_no_recursion() -> None:
    leaf = TreeNode(9, "section", 3, "Leaf", 1, 1, None, "")
    two = [TreeNode(k, "section", 2, f"S{k}", 1, 1, None, "", (leaf,)) for k in (2, 3)]
    top = TreeNode(1, "section", 1, "T", 1, 1, None, "", tuple(two))
    found = lines(TreeNode(0, "root", 0, "", 0, 1, None, "", (top,)))
    assert [line.split("  p.")[0] for line in found] == [
        "T", "├── S2", "│   └── Leaf", "└── S3", "    └── Leaf",
    ]  # fmt: skip
    chain = leaf
    for level in range(5000, 0, -1):
        chain = TreeNode(level, "section", level, "L", 1, 1, None, "", (chain,))
    deep = lines(TreeNode(0, "root", 0, "", 0, 1, None, "", (chain,)))
    assert len(deep) == 5001
    assert max(map(len, deep)) < 160


def test_control_characters_of_a_title_do_not_reach_the_terminal() -> None:
    node = TreeNode(1, "section", 1, "a\x1b[31mb[bold]c", 1, 1, "\x07", "")
    (line,) = lines(TreeNode(0, "root", 0, "", 0, 1, None, "", (node,)))
    assert "\x1b" not in line
    assert "\x07" not in line
    assert "[31mb[bold]c" in line
