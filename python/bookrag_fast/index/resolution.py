"""Gradient-based entity resolution (BookRAG, arXiv 2512.03413, Algorithm 1), batched and offline.

All entities are resolved together, so those of one node see each other too. For each one:

1. the k nearest names by cosine among entities of a type that can name the same thing;
2. scored by cosine times string similarity. The paper reranks with a cross-encoder, whose scores
   fall off steeply; the product stands in for it: meaning and letters must both agree, and names
   that are merely related fall below g times the best;
3. decided by the gradient drop in the compiled core: *new* (nothing near, or everything alike),
   *merge* (one candidate above the drop) or *ambiguous* (several), behind the gates of best
   cosine distance and best score;
4. and, there being no model to ask, merged only if a rule of `sameness` explains every difference
   between the two names. Of several that a rule admits, the best scored.

Merges go through a union-find; groups never join names in conflict. Rounds repeat until nothing
changes, so resolving twice is resolving once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz

from bookrag_fast import core
from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.index.model import Entity, ExtractedGraph, Merge, Relation, normalise_name
from bookrag_fast.index.neighbours import nearest
from bookrag_fast.index.sameness import Form, conflict, form_of, rule_for
from bookrag_fast.models.protocols import FloatMatrix

__all__ = ["resolve"]

_MOST_ROUNDS = 8
_MOST_ALIASES = 32
_LONGEST_DESCRIPTION = 900
_WORTH_RULES = 0.5  # string similarity below which only an acronym can be the same


@dataclass(frozen=True, slots=True)
class _Pair:
    """Evidence that two entities (positions in the current round) are one."""

    left: int
    right: int
    case: str
    rule: str
    score: float
    similarity: float


def resolve(
    graph: ExtractedGraph,
    vectors: FloatMatrix,
    *,
    k: int = 10,
    g: float = 0.6,
    max_distance: float = 0.2,
    min_score: float = 0.5,
) -> tuple[ExtractedGraph, FloatMatrix]:
    """Entities that are one are made one.

    Args:
        graph: raw entities and relations; keys (normalised name, type) are unique.
        vectors: float32[entities, d], the unit vectors of their names.
        k: candidates an entity.
        g: (0, 1]; the next score stays in the high group while it is at least g times the last.
        max_distance: of the best candidate, by cosine.
        min_score: of the best candidate.

    Returns:
        The graph with merged entities: aliases, descriptions, node sets and relations united,
        relation ends remapped, relations between merged entities dropped, parallel ones kept; each
        merge recorded. And float32[entities, d], the unit vectors of the names.

    Every node of a merged entity and every relation between different entities is kept. The result
    does not depend on the number of threads, nor, but for exact ties of similarity, on the order
    of entities. O(V² d / block) below 30,000 entities by matrix products, O(V log V) above by HNSW.
    """
    if k < 1:
        raise InvalidArgumentError(f"k must be at least 1, got {k}")
    # Which original entities each current one unites; the first is the one it is named after.
    members = [[i] for i in range(len(graph.entities))]
    current = list(graph.entities)
    merges: list[Merge] = []
    known: dict[Entity, Form] = {}
    for _ in range(_MOST_ROUNDS):
        kept = [m[0] for m in members]
        forms = [known.get(e) or known.setdefault(e, form_of(e)) for e in current]
        pairs = _decide(forms, vectors[kept], k, g, max_distance, min_score)
        groups = _groups(forms, pairs)
        if not groups:
            break
        merges += _records(graph, current, members, groups, pairs)
        current, members = _unite(current, members, groups)
    relations = _remapped(graph.relations, members)
    kept = [m[0] for m in members]
    merged = ExtractedGraph(tuple(current), relations, graph.merges + tuple(merges))
    return merged, np.ascontiguousarray(vectors[kept])


def _decide(
    forms: Sequence[Form],
    vectors: FloatMatrix,
    k: int,
    g: float,
    max_distance: float,
    min_score: float,
) -> list[_Pair]:
    """Pairs to merge, surest first."""
    by_group: dict[str, list[int]] = {}
    for i, form in enumerate(forms):
        if form.group:
            by_group.setdefault(form.group, []).append(i)
    pairs: dict[tuple[int, int], _Pair] = {}
    for _, places in sorted(by_group.items()):
        if len(places) < 2:
            continue
        ids, cosines = nearest(np.ascontiguousarray(vectors[places]), k)
        scores = _scores([forms[i] for i in places], ids, cosines)
        drop = core.gradient_drop(scores, g=g, min_score=min_score)
        open_rows = np.flatnonzero(drop.case != core.NEW)
        for row in open_rows:
            pair = _choose(forms, places, int(row), ids, cosines, scores, drop, max_distance)
            if pair is not None:
                key = (min(pair.left, pair.right), max(pair.left, pair.right))
                if key not in pairs or pair.score > pairs[key].score:
                    pairs[key] = pair
    return sorted(
        pairs.values(),
        key=lambda p: (-p.score, *sorted((forms[p.left].entity.key, forms[p.right].entity.key))),
    )


def _scores(forms: Sequence[Form], ids: npt.NDArray[np.int32], cosines: FloatMatrix) -> FloatMatrix:
    """float32[n, k]: cosine times string similarity, both in [0, 1]; -inf where no candidate is."""
    scores = np.full(ids.shape, -np.inf, dtype=np.float32)
    for row, column in np.argwhere((ids >= 0) & (cosines > 0.0)):
        a, b = forms[row], forms[ids[row, column]]
        alike = fuzz.token_sort_ratio(a.folded, b.folded) / 100.0
        if (alike > _WORTH_RULES or a.acronym or b.acronym) and rule_for(a, b):
            alike = 1.0
        scores[row, column] = min(float(cosines[row, column]), 1.0) * alike
    return scores


def _choose(
    forms: Sequence[Form],
    places: Sequence[int],
    row: int,
    ids: npt.NDArray[np.int32],
    cosines: FloatMatrix,
    scores: FloatMatrix,
    drop: core.GradientDrop,
    max_distance: float,
) -> _Pair | None:
    """The candidate of the high group that a rule admits, best first; None when in doubt."""
    group = drop.order[row, : drop.size[row]]
    if 1.0 - cosines[row, group[0]] > max_distance:
        return None
    case = "merge" if drop.case[row] == core.MERGE else "ambiguous"
    admitted: list[_Pair] = []
    for column in group:
        similarity = float(cosines[row, column])
        if 1.0 - similarity > max_distance:
            continue
        other = places[ids[row, column]]
        rule = rule_for(forms[places[row]], forms[other])
        if rule:
            score = float(scores[row, column])
            admitted.append(_Pair(places[row], other, case, rule, score, min(similarity, 1.0)))
    if not admitted or sum(pair.rule == "acronym" for pair in admitted) > 1:
        return None  # short for several things: which of them is meant, no rule can say
    return admitted[0]


def _groups(forms: Sequence[Form], pairs: Sequence[_Pair]) -> list[list[int]]:
    """Sets of positions to unite, each with the one to be kept first."""
    if not pairs:
        return []
    left = np.array([p.left for p in pairs], dtype=np.int32)
    right = np.array([p.right for p in pairs], dtype=np.int32)
    plan = core.merge_plan(len(forms), left, right)
    apart = [
        (a, b)
        for group in _sets(plan.representative)
        for n, a in enumerate(group)
        for b in group[n + 1 :]
        if conflict(forms[a], forms[b])
    ]
    if apart:
        plan = core.merge_plan(len(forms), left, right, np.array(apart, dtype=np.int32))
    return [
        sorted(group, key=lambda i: _rank(forms[i].entity)) for group in _sets(plan.representative)
    ]


def _sets(representative: npt.NDArray[np.int32]) -> list[list[int]]:
    sets: dict[int, list[int]] = {}
    for i in np.flatnonzero(np.bincount(representative)[representative] > 1):
        sets.setdefault(int(representative[i]), []).append(int(i))
    return list(sets.values())


def _rank(entity: Entity) -> tuple[int, bool, int, str, str]:
    """Whose name is kept: that of most places, one with a description, the longer."""
    return (-len(entity.nodes), not entity.description, -len(entity.name), *entity.key)


def _records(
    graph: ExtractedGraph,
    current: Sequence[Entity],
    members: Sequence[list[int]],
    groups: Sequence[list[int]],
    pairs: Sequence[_Pair],
) -> list[Merge]:
    """One record for each entity that is merged into another, by its surest evidence."""
    surest: dict[int, _Pair] = {}
    for pair in reversed(pairs):
        surest[pair.left] = surest[pair.right] = pair
    records = []
    for group in groups:
        keeper = members[group[0]][0]
        for i in group[1:]:
            pair = surest[i]
            records.append(
                Merge(
                    keeper,
                    members[i][0],
                    graph.entities[keeper].name,
                    current[i].name,
                    pair.case,
                    pair.rule,
                    round(pair.score, 4),
                    round(pair.similarity, 4),
                )
            )
    return records


def _unite(
    current: Sequence[Entity], members: Sequence[list[int]], groups: Sequence[list[int]]
) -> tuple[list[Entity], list[list[int]]]:
    """The next round's entities; each stands where its kept one stood."""
    united = {group[0]: group for group in groups}
    gone = {i for group in groups for i in group[1:]}
    entities, unions = [], []
    for i, entity in enumerate(current):
        if i in gone:
            continue
        group = united.get(i, [i])
        parts = [current[j] for j in group]
        entities.append(entity if len(parts) == 1 else _united(parts))
        unions.append([m for j in group for m in members[j]])
    return entities, unions


def _united(parts: Sequence[Entity]) -> Entity:
    first = parts[0]
    aliases: dict[str, str] = {}
    for name in (n for p in parts for n in (p.name, *p.aliases)):
        aliases.setdefault(normalise_name(name), name)
    aliases.pop(normalise_name(first.name), None)
    descriptions = list(dict.fromkeys(p.description for p in parts if p.description))
    return Entity(
        first.name,
        first.type,
        "\n".join(descriptions)[:_LONGEST_DESCRIPTION],
        tuple(aliases.values())[:_MOST_ALIASES],
        tuple(sorted({n for p in parts for n in p.nodes})),
    )


def _remapped(relations: Sequence[Relation], members: Sequence[list[int]]) -> tuple[Relation, ...]:
    place = {old: new for new, olds in enumerate(members) for old in olds}
    moved = []
    for r in relations:
        source, target = place[r.source], place[r.target]
        # A relation between two that became one says nothing any more; a loop that was there
        # before is the extractor's and stays.
        if source != target or r.source == r.target:
            moved.append(Relation(source, target, r.name, r.description, r.weight, r.nodes))
    return tuple(moved)
