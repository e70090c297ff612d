"""The compiled core: structures of a BookIndex and the algorithms on them.

>>> from bookrag_fast import core
>>> graph = core.KnowledgeGraph(3, [0, 1], [1, 2], [1.0, 2.0])
>>> core.personalized_pagerank(graph, seeds=[0]).shape
(3,)

Conventions, limits and errors: see the module's own text, ``bookrag_fast._core.__doc__``.
"""

from __future__ import annotations

from bookrag_fast._core import (
    AMBIGUOUS,
    HNSW_CROSSOVER,
    MAX_ENTITIES,
    MAX_NODES,
    MAX_RELATIONS,
    MERGE,
    NEW,
    GradientDrop,
    GTLink,
    KnowledgeGraph,
    MergePlan,
    Retrieval,
    Retriever,
    Tree,
    VectorIndex,
    __version__,
    cosine_topk,
    gradient_drop,
    isa,
    maxsim,
    merge_plan,
    personalized_pagerank,
    personalized_pagerank_batch,
    project,
    skyline,
)

__all__ = [
    "AMBIGUOUS",
    "HNSW_CROSSOVER",
    "MAX_ENTITIES",
    "MAX_NODES",
    "MAX_RELATIONS",
    "MERGE",
    "NEW",
    "GTLink",
    "GradientDrop",
    "KnowledgeGraph",
    "MergePlan",
    "Retrieval",
    "Retriever",
    "Tree",
    "VectorIndex",
    "__version__",
    "cosine_topk",
    "gradient_drop",
    "isa",
    "maxsim",
    "merge_plan",
    "personalized_pagerank",
    "personalized_pagerank_batch",
    "project",
    "skyline",
]
