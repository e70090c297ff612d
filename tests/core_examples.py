"""One small object of each kind that the core's boundary is tried with."""

from __future__ import annotations

from bookrag_fast import core

RELATIONS = ([0, 1, 2, 0], [1, 2, 3, 0], [1.0, 2.0, 0.5, 1.0])


def small_graph() -> core.KnowledgeGraph:
    return core.KnowledgeGraph(5, *RELATIONS)


def small_tree() -> core.Tree:
    return core.Tree([-1, 0, 0, 1], [0, 1, 1, 2], [1, 1, 2, 1], [3, 1, 3, 1])


def small_link() -> core.GTLink:
    return core.GTLink(5, 4, [0, 0, 2, 4], [1, 2, 2, 3])
