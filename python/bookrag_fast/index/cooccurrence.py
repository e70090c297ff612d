"""Which entities belong together: association of names that share a place in the text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bookrag_fast.index.model import Relation

__all__ = ["CO_OCCURS", "Windows", "associate"]

CO_OCCURS = "CoOccurs"

_PER_WINDOW = 24  # entities a window; bounds pairs at 276 a window, so the whole is linear
_PER_ENTITY = 8  # relations that an entity keeps of its own choice
_FLOOR = 0.1  # NPMI
_FLOOR_ONCE = 0.3  # NPMI of a pair met once
_MOST_NODES = 16  # origins kept of one relation


class Windows:
    """Collects the entities of each window: a node, or some sentences of a long one."""

    def __init__(self, salience: npt.NDArray[np.float32]) -> None:
        """``salience``: float32[entities]; the most salient are kept where a window is full."""
        self._salience = salience
        self._rows: list[npt.NDArray[np.int32]] = []
        self._nodes: list[int] = []

    def add(self, node: int, entities: set[int]) -> None:
        """A window of a node. Windows of fewer than two entities count for frequencies only."""
        if not entities:
            return
        row = np.fromiter(sorted(entities), np.int32, len(entities))
        if len(row) > _PER_WINDOW:
            best = np.argsort(-self._salience[row], kind="stable")[:_PER_WINDOW]
            row = np.sort(row[best])
        self._rows.append(row)
        self._nodes.append(node)

    @property
    def rows(self) -> Sequence[npt.NDArray[np.int32]]:
        """int32[≤ 24] a window, ascending."""
        return self._rows

    @property
    def nodes(self) -> Sequence[int]:
        """The node of each window."""
        return self._nodes


def associate(windows: Windows, num_entities: int) -> list[Relation]:
    """Relations between entities that share windows more than chance would have it.

    Weight: NPMI · log2(1 + windows shared), where NPMI is the pointwise mutual information
    divided by its maximum (Bouma 2009), in [-1, 1]. Only NPMI of at least 0.1 (0.3 for a pair met
    once) counts, and a relation is kept if it is among the 8 strongest of one of its ends, so
    there are at most 8 · ``num_entities``. O(windows · 24² · log). Deterministic; ordered by ends.
    """
    rows, window_nodes = windows.rows, windows.nodes
    if not rows:
        return []
    codes, origins = _pairs(rows, window_nodes, num_entities)
    if not len(codes):
        return []
    frequency = np.bincount(np.concatenate(rows), minlength=num_entities).astype(np.float64)
    order = np.argsort(codes, kind="stable")
    codes, origins = codes[order], origins[order]
    unique, first, shared = np.unique(codes, return_index=True, return_counts=True)
    left, right = unique // num_entities, unique % num_entities
    joint = shared / len(rows)
    expected = frequency[left] * frequency[right] / len(rows) ** 2
    surprise = -np.log(joint)
    # A pair in every window says nothing: its NPMI is 0/0, taken as 0.
    npmi = np.divide(
        np.log(joint / expected), surprise, out=np.zeros_like(joint), where=surprise > 1e-12
    )
    weight = npmi * np.log2(1.0 + shared)
    keep = npmi >= np.where(shared > 1, _FLOOR, _FLOOR_ONCE)
    left, right, weight = left[keep], right[keep], weight[keep]
    first, shared = first[keep], shared[keep]
    strong = _strongest(left, right, weight, num_entities)
    relations = []
    for i in np.flatnonzero(strong):
        nodes = sorted(set(origins[first[i] : first[i] + shared[i]].tolist()))
        relations.append(
            Relation(
                int(left[i]),
                int(right[i]),
                CO_OCCURS,
                weight=round(float(weight[i]), 4),
                nodes=tuple(nodes[:_MOST_NODES]),
            )
        )
    return relations


def _pairs(
    rows: Sequence[npt.NDArray[np.int32]], nodes: Sequence[int], num_entities: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Code left · V + right of every pair of every window, and the node it was met in."""
    by_size: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        by_size.setdefault(len(row), []).append(place)
    codes, origins = [], []
    for size, places in sorted(by_size.items()):
        if size < 2:
            continue
        upper, lower = np.triu_indices(size, 1)
        block = np.stack([rows[p] for p in places]).astype(np.int64)
        codes.append((block[:, upper] * num_entities + block[:, lower]).ravel())
        origins.append(np.repeat(np.array([nodes[p] for p in places], np.int32), len(upper)))
    if not codes:
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    return np.concatenate(codes), np.concatenate(origins)


def _strongest(
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64],
    num_entities: int,
) -> npt.NDArray[np.bool_]:
    """bool[m]: pairs among the strongest of at least one end; ties by the lower pair."""
    m = len(weight)
    ends = np.concatenate([left, right])
    pair = np.tile(np.arange(m), 2)
    order = np.lexsort((pair, -weight[pair], ends))
    start = np.searchsorted(ends[order], np.arange(num_entities))
    rank = np.arange(2 * m) - start[ends[order]]
    keep = np.zeros(m, dtype=np.bool_)
    keep[pair[order][rank < _PER_ENTITY]] = True
    return keep
