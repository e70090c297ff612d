"""One small object of each kind that the core's boundary is tried with."""

from __future__ import annotations

from typing import Any

from bookrag_fast import core

RELATIONS = ([0, 1, 2, 0], [1, 2, 3, 0], [1.0, 2.0, 0.5, 1.0])


def small_graph() -> core.KnowledgeGraph:
    return core.KnowledgeGraph(5, *RELATIONS)


def small_tree() -> core.Tree:
    return core.Tree([-1, 0, 0, 1], [0, 1, 1, 2], [1, 1, 2, 1], [3, 1, 3, 1])


def small_link() -> core.GTLink:
    return core.GTLink(5, 4, [0, 0, 2, 4], [1, 2, 2, 3])


def retriever_arguments() -> dict[str, Any]:
    """Of a retriever for the three structures above."""
    return {
        "neighbours": [[1, 2], [0, -1], [3, 1], [-1, -1], [0, 1]],
        "neighbour_cosines": [[0.9, 0.8], [0.9, 0.0], [0.7, 0.7], [0.0, 0.0], [0.5, 0.1]],
        "relation_cosines": [0.6, 0.5, 0.9, 1.0],
        "content": [True, False, True, True],
    }


def small_retriever(**changes: Any) -> core.Retriever:
    arguments = {**retriever_arguments(), **changes}
    depth = arguments.pop("chapter_depth", 1)
    return core.Retriever(
        small_tree(), small_graph(), small_link(), **arguments, chapter_depth=depth
    )
