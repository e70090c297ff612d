"""A predicted section tree against the true one: headings found, levels and parents right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from bookrag_fast.evaluation.titles import title_key

__all__ = ["Heading", "TreeScore", "score_tree"]

MIN_SIMILARITY = 90.0  # of 100: titles at least so alike may be the same


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a tree in document order. ``level`` is 1 for chapters, ``page`` physical."""

    title: str
    level: int
    page: int


@dataclass(frozen=True, slots=True)
class TreeScore:
    """Counts, and the measures that follow from them; a measure without a base is None.

    ``levels_right`` and ``parents_right`` are of the matched headings, ``parents_end_to_end`` of
    all true ones: a heading that was missed is missed for its children, too.
    """

    truth: int
    predicted: int
    matched: int
    levels_right: int
    parents_right: int
    parents_end_to_end: int

    @property
    def precision(self) -> float:
        return self.matched / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.matched / self.truth if self.truth else 0.0

    @property
    def f1(self) -> float:
        both = self.truth + self.predicted
        return 2 * self.matched / both if both else 0.0

    @property
    def level_accuracy(self) -> float | None:
        return self.levels_right / self.matched if self.matched else None

    @property
    def parent_accuracy(self) -> float | None:
        return self.parents_right / self.matched if self.matched else None

    @property
    def parent_end_to_end(self) -> float | None:
        return self.parents_end_to_end / self.truth if self.truth else None


def score_tree(truth: Sequence[Heading], predicted: Sequence[Heading]) -> TreeScore:
    """Scores a tree.

    Headings are matched one to one: the same page, and titles (:func:`title_key`) at least 90 %
    alike, the most alike first. Levels are compared after both trees' topmost matched headings
    are put on one level. The parent of a matched heading is its nearest matched ancestor; end to
    end it is the nearest true ancestor, whether matched or not.
    """
    predicted = [p for p in predicted if p.title.strip()]
    pairs = _matched(truth, predicted)
    shift = 0
    if pairs:
        top = min(truth[i].level for i in pairs)
        shift = top - min(predicted[j].level for j in pairs.values())
    above = _ancestors(truth, pairs.keys())
    above_whole = _ancestors(truth, range(len(truth)))
    above_predicted = _ancestors(predicted, set(pairs.values()))
    levels = parents = end_to_end = 0
    for i, j in pairs.items():
        levels += truth[i].level == predicted[j].level + shift
        parents += _counterpart(above[i], pairs) == above_predicted[j]
        # -1: a parent that was missed is nobody's counterpart.
        end_to_end += _counterpart(above_whole[i], pairs, missed=-1) == above_predicted[j]
    return TreeScore(len(truth), len(predicted), len(pairs), levels, parents, end_to_end)


def _matched(truth: Sequence[Heading], predicted: Sequence[Heading]) -> dict[int, int]:
    """True heading → predicted heading; equally alike, those at the like place come first."""
    on_page: dict[int, list[int]] = defaultdict(list)
    for j, heading in enumerate(predicted):
        on_page[heading.page].append(j)
    keys = [title_key(h.title) for h in predicted]
    candidates: list[tuple[float, float, int, int]] = []
    for i, heading in enumerate(truth):
        wanted = title_key(heading.title)
        for j in on_page.get(heading.page, ()):
            likeness = fuzz.ratio(wanted, keys[j], score_cutoff=MIN_SIMILARITY)
            if likeness >= MIN_SIMILARITY:
                apart = abs(i / len(truth) - j / len(predicted))
                candidates.append((-likeness, apart, i, j))
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for _, _, i, j in sorted(candidates):
        if i not in pairs and j not in taken:
            pairs[i] = j
            taken.add(j)
    return pairs


def _ancestors(headings: Sequence[Heading], kept: Collection[int]) -> list[int | None]:
    """The nearest ancestor of each heading that is among ``kept``, None where there is none."""
    out: list[int | None] = []
    path: list[int] = []
    for k, heading in enumerate(headings):
        while path and headings[path[-1]].level >= heading.level:
            path.pop()
        out.append(next((a for a in reversed(path) if a in kept), None))
        path.append(k)
    return out


def _counterpart(above: int | None, pairs: dict[int, int], missed: int | None = None) -> int | None:
    return None if above is None else pairs.get(above, missed)
