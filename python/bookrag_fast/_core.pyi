"""Types of the compiled core; shapes, errors and sources are in its docstrings."""

from collections.abc import Sequence
from typing import (
    Final,
    Literal,
    NoReturn,
    SupportsFloat,
    SupportsIndex,
    SupportsInt,
    TypeAlias,
    overload,
    type_check_only,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Real: TypeAlias = SupportsFloat | SupportsIndex
_Uint8s: TypeAlias = NDArray[np.uint8]
_Uint32s: TypeAlias = NDArray[np.uint32]
_Int32s: TypeAlias = NDArray[np.int32]
_Int64s: TypeAlias = NDArray[np.int64]
_Float32s: TypeAlias = NDArray[np.float32]
_Float64s: TypeAlias = NDArray[np.float64]

__version__: Final[str]
HNSW_CROSSOVER: Final[int]
MAX_ENTITIES: Final[int]
MAX_NODES: Final[int]
MAX_RELATIONS: Final[int]
NEW: Final[int]
MERGE: Final[int]
AMBIGUOUS: Final[int]

def isa() -> str: ...

@type_check_only
class _Pybind11Type(type): ...

class Tree(metaclass=_Pybind11Type):
    def __init__(
        self, parents: ArrayLike, kinds: ArrayLike, page_first: ArrayLike, page_last: ArrayLike
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def num_nodes(self) -> int: ...
    @property
    def root(self) -> int: ...
    @property
    def max_depth(self) -> int: ...
    @property
    def parents(self) -> _Int32s: ...
    @property
    def kinds(self) -> _Uint8s: ...
    @property
    def page_first(self) -> _Int32s: ...
    @property
    def page_last(self) -> _Int32s: ...
    @property
    def depths(self) -> _Int32s: ...
    @property
    def subtree_sizes(self) -> _Int32s: ...
    @property
    def positions(self) -> _Int32s: ...
    @property
    def document_order(self) -> _Int32s: ...
    def children(self, node: SupportsIndex) -> _Int32s: ...
    def subtree(self, node: SupportsIndex) -> _Int32s: ...
    def ancestors(self, node: SupportsIndex) -> _Int32s: ...
    def ancestor_at_depth(self, node: SupportsIndex, depth: SupportsIndex) -> int: ...
    def ancestors_at_depth(self, nodes: ArrayLike, depth: SupportsIndex) -> _Int32s: ...
    def contains(self, ancestor: SupportsIndex, node: SupportsIndex) -> bool: ...
    def subtree_union(self, nodes: ArrayLike) -> _Int32s: ...
    def nodes_of_kind(self, kind: SupportsIndex) -> _Int32s: ...
    def nodes_in_pages(self, first: SupportsIndex, last: SupportsIndex) -> _Int32s: ...

class KnowledgeGraph(metaclass=_Pybind11Type):
    def __init__(
        self,
        num_entities: SupportsIndex,
        sources: ArrayLike,
        targets: ArrayLike,
        weights: ArrayLike,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def num_entities(self) -> int: ...
    @property
    def num_relations(self) -> int: ...
    @property
    def offsets(self) -> _Int64s: ...
    @property
    def targets(self) -> _Int32s: ...
    @property
    def weights(self) -> _Float32s: ...
    @property
    def relation_ids(self) -> _Int32s: ...
    @property
    def degrees(self) -> _Int32s: ...
    @property
    def weighted_degrees(self) -> _Float64s: ...
    def neighbours(self, entity: SupportsIndex) -> tuple[_Int32s, _Float32s, _Int32s]: ...
    def induced(self, entities: ArrayLike) -> tuple[KnowledgeGraph, _Int32s]: ...

class GTLink(metaclass=_Pybind11Type):
    def __init__(
        self,
        num_entities: SupportsIndex,
        num_nodes: SupportsIndex,
        entities: ArrayLike,
        nodes: ArrayLike,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def num_entities(self) -> int: ...
    @property
    def num_nodes(self) -> int: ...
    @property
    def num_links(self) -> int: ...
    def nodes_of(self, entity: SupportsIndex) -> _Int32s: ...
    def entities_of(self, node: SupportsIndex) -> _Int32s: ...
    def nodes_of_many(self, entities: ArrayLike) -> _Int32s: ...
    def entities_of_many(self, nodes: ArrayLike) -> _Int32s: ...
    def project(self, scores: ArrayLike) -> _Float32s: ...

class GradientDrop(metaclass=_Pybind11Type):
    def __init__(self, *args: NoReturn, **kwargs: NoReturn) -> None: ...  # made by the core
    def __len__(self) -> int: ...
    @property
    def case(self) -> _Uint8s: ...
    @property
    def size(self) -> _Int32s: ...
    @property
    def order(self) -> _Int32s: ...

class VectorIndex(metaclass=_Pybind11Type):
    def __init__(self, rows: ArrayLike) -> None: ...
    def __len__(self) -> int: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    def search(self, query: ArrayLike, k: SupportsIndex = 10) -> tuple[_Int32s, _Float32s]: ...
    def candidates(self, query: ArrayLike, k: SupportsIndex = 10) -> int: ...

class MergePlan(metaclass=_Pybind11Type):
    def __init__(self, *args: NoReturn, **kwargs: NoReturn) -> None: ...  # made by the core
    @property
    def num_sets(self) -> int: ...
    @property
    def representative(self) -> _Int32s: ...
    @property
    def skipped(self) -> _Int64s: ...

class Retrieval(metaclass=_Pybind11Type):
    def __init__(self, *args: NoReturn, **kwargs: NoReturn) -> None: ...  # made by the core
    def __len__(self) -> int: ...
    @property
    def nodes(self) -> _Int32s: ...
    @property
    def relevance(self) -> _Float32s: ...
    @property
    def graph(self) -> _Float32s | None: ...
    @property
    def linked(self) -> bool: ...
    @property
    def kept(self) -> int: ...
    @property
    def selected(self) -> int: ...
    @property
    def by_entity(self) -> int: ...
    @property
    def by_section(self) -> int: ...
    @property
    def entities(self) -> int: ...
    @property
    def relations(self) -> int: ...
    @property
    def new_relations(self) -> int: ...
    @property
    def micros(self) -> dict[str, float]: ...

class Retriever(metaclass=_Pybind11Type):
    def __init__(
        self,
        tree: Tree,
        graph: KnowledgeGraph,
        link: GTLink,
        neighbours: ArrayLike,
        neighbour_cosines: ArrayLike,
        relation_cosines: ArrayLike,
        content: ArrayLike,
        *,
        chapter_depth: SupportsIndex = 2,
    ) -> None: ...
    @property
    def num_nodes(self) -> int: ...
    @property
    def num_entities(self) -> int: ...
    @property
    def num_chapters(self) -> int: ...
    def retrieve(
        self,
        seeds: ArrayLike,
        seed_weights: ArrayLike,
        text_scores: ArrayLike,
        *,
        named: ArrayLike | None = None,
        bonus: ArrayLike | None = None,
        added_sections: SupportsIndex = 4,
        damping: SupportsFloat | SupportsIndex = 0.5,
        percentile: SupportsFloat | SupportsIndex = 85.0,
        minimum: SupportsIndex = 10,
        graph_weight: SupportsFloat | SupportsIndex = 0.15,
        limit: SupportsIndex | None = None,
        tol: SupportsFloat | SupportsIndex = 1e-6,
    ) -> Retrieval: ...
    def graph_reasoning(
        self,
        nodes: ArrayLike,
        seeds: ArrayLike,
        seed_weights: ArrayLike,
        *,
        damping: SupportsFloat | SupportsIndex = 0.5,
        percentile: SupportsFloat | SupportsIndex = 85.0,
        tol: SupportsFloat | SupportsIndex = 1e-6,
    ) -> _Float32s | None: ...
    def augmented_pagerank(
        self,
        entities: ArrayLike,
        seeds: ArrayLike,
        seed_weights: ArrayLike,
        *,
        damping: SupportsFloat | SupportsIndex = 0.5,
        percentile: SupportsFloat | SupportsIndex = 85.0,
        tol: SupportsFloat | SupportsIndex = 1e-6,
    ) -> _Float32s | None: ...

@overload
def personalized_pagerank(
    graph: KnowledgeGraph,
    seeds: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    damping: _Real = 0.5,
    tol: _Real = 1e-6,
    entities: ArrayLike | None = None,
    dtype: Literal["float32"] = "float32",
    top_k: None = None,
    compact: Literal[False] = False,
) -> _Float32s: ...
@overload
def personalized_pagerank(
    graph: KnowledgeGraph,
    seeds: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    damping: _Real = 0.5,
    tol: _Real = 1e-6,
    entities: ArrayLike | None = None,
    dtype: Literal["float64"],
    top_k: None = None,
    compact: Literal[False] = False,
) -> _Float64s: ...
@overload
def personalized_pagerank(
    graph: KnowledgeGraph,
    seeds: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    damping: _Real = 0.5,
    tol: _Real = 1e-6,
    entities: ArrayLike | None = None,
    dtype: Literal["float32"] = "float32",
    top_k: SupportsIndex,
    compact: bool = False,
) -> tuple[_Int32s, _Float32s]: ...
@overload
def personalized_pagerank(
    graph: KnowledgeGraph,
    seeds: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    damping: _Real = 0.5,
    tol: _Real = 1e-6,
    entities: ArrayLike,
    dtype: Literal["float32"] = "float32",
    top_k: None = None,
    compact: Literal[True],
) -> tuple[_Int32s, _Float32s]: ...
@overload
def personalized_pagerank(
    graph: KnowledgeGraph,
    seeds: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    damping: _Real = 0.5,
    tol: _Real = 1e-6,
    entities: ArrayLike,
    dtype: Literal["float64"],
    top_k: None = None,
    compact: Literal[True],
) -> tuple[_Int32s, _Float64s]: ...
def personalized_pagerank_batch(
    graph: KnowledgeGraph,
    seeds: Sequence[ArrayLike] | NDArray[np.integer],
    weights: Sequence[ArrayLike | None] | ArrayLike | None = None,
    *,
    damping: _Real = 0.5,
    tol: _Real = 1e-6,
    offsets: ArrayLike | None = None,
) -> _Float32s: ...
def project(link: GTLink, scores: ArrayLike) -> _Float32s: ...
def cosine_topk(
    queries: ArrayLike, rows: ArrayLike, k: SupportsIndex = 10
) -> tuple[_Int32s, _Float32s]: ...
def maxsim(query: ArrayLike, tokens: ArrayLike, offsets: ArrayLike) -> _Float32s: ...
def skyline(scores: ArrayLike) -> _Int64s: ...
def gradient_drop(
    scores: ArrayLike,
    *,
    g: SupportsFloat | SupportsIndex = 0.6,
    min_score: SupportsFloat | SupportsIndex = 0.5,
) -> GradientDrop: ...
def merge_plan(
    num_entities: SupportsIndex,
    left: ArrayLike,
    right: ArrayLike,
    incompatible: ArrayLike | None = None,
) -> MergePlan: ...
def read_page_text(
    functions: Sequence[SupportsInt | SupportsIndex],
    text_page: SupportsInt | SupportsIndex,
    limit: SupportsInt | SupportsIndex,
) -> tuple[
    _Uint32s,
    _Float32s,
    _Float32s,
    _Float32s,
    _Uint8s,
    _Int32s,
    _Float32s,
    _Float32s,
    _Int32s,
    _Int32s,
    _Int32s,
    _Uint32s,
    _Int32s,
    list[str],
]: ...
def read_page_objects(
    functions: Sequence[SupportsInt | SupportsIndex],
    page: SupportsInt | SupportsIndex,
    limit: SupportsInt | SupportsIndex,
) -> tuple[_Int32s, _Float32s, bool]: ...
