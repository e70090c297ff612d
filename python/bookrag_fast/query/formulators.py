"""Formulators: Extract turns a question's words into entities of G. (Decompose is planning.)"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bookrag_fast import core
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.index.lexicon import STOP_WORDS
from bookrag_fast.index.model import normalise_name
from bookrag_fast.models.protocols import Embedder, FloatMatrix
from bookrag_fast.query.question import Question

__all__ = ["LinkedEntity", "Mentions", "Named", "extract", "linked", "mentions"]

# Words, and single characters of scripts without spaces, so that every name can be met.
_PIECE = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\W_]+(?:[._'’&/+-][^\W_]+)*|[^\w\s]|_+"
)
_LONGEST = 24  # pieces of the longest name looked for
_MOST_PHRASES = 8  # embedded for nearest-name linking


@dataclass(frozen=True, slots=True)
class LinkedEntity:
    """An entity of the question, linked to G. ``cosine`` is 1 for an exact name or alias."""

    entity: int
    mention: str
    cosine: float
    exact: bool

    @property
    def weight(self) -> float:
        """Seed weight for the personalized PageRank: (cos + 1) / 2."""
        return (self.cosine + 1.0) / 2.0


@dataclass(frozen=True, slots=True)
class Named:
    """An entity as a model found it in the question."""

    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Mentions:
    """``links`` are by exact name; ``phrases`` are left to be linked by nearness."""

    links: list[LinkedEntity]
    phrases: list[str]


def extract(
    index: BookIndex,
    question: Question,
    embedder: Embedder,
    *,
    link_distance: float,
    named: Sequence[Named] = (),
) -> list[LinkedEntity]:
    """Entities that the question names: longest exact names and aliases first, then, for words
    that no name covers, the nearest entity at cosine distance < ``link_distance``. ``named`` are
    linked in the same way. Blocking."""
    found = mentions(index, question, named)
    vectors = embedder.embed(found.phrases, query=True) if found.phrases else None
    return linked(index, found, vectors, link_distance)


def mentions(index: BookIndex, question: Question, named: Sequence[Named] = ()) -> Mentions:
    """What the question names, as far as no vector is needed."""
    text = normalise_name(question.text)
    pieces = [(m.start(), m.end()) for m in _PIECE.finditer(text)]
    links, covered = _exact(index, text, pieces)
    phrases: list[str] = []
    if len(index.entities):
        phrases = _uncovered_phrases(text, pieces, covered)[:_MOST_PHRASES]
        for entity in named:
            name = normalise_name(entity.name)
            if found := _of_type(index, index.names.get(name, ()), entity.type):
                links += [LinkedEntity(e, name, 1.0, True) for e in found]
            elif name not in phrases:
                phrases.append(name)
    return Mentions(links, phrases)


def linked(
    index: BookIndex, found: Mentions, vectors: FloatMatrix | None, link_distance: float
) -> list[LinkedEntity]:
    """Each entity once. ``vectors`` are those of the phrases."""
    links = list(found.links)
    if vectors is not None and len(index.entities):
        links += _nearest(index, found.phrases, vectors, link_distance)
    unique: dict[int, LinkedEntity] = {}
    for link in links:
        unique.setdefault(link.entity, link)
    return list(unique.values())


def _of_type(index: BookIndex, entities: Sequence[int], kind: str) -> Sequence[int]:
    """Those of a type, if any is; a model's word for a type is not always the book's."""
    wanted = normalise_name(kind)
    return [e for e in entities if normalise_name(index.entities[e].type) == wanted] or entities


def _exact(
    index: BookIndex, text: str, pieces: list[tuple[int, int]]
) -> tuple[list[LinkedEntity], list[bool]]:
    names = index.names
    links: list[LinkedEntity] = []
    covered = [False] * len(pieces)
    i = 0
    while i < len(pieces):
        for j in range(min(len(pieces), i + _LONGEST), i, -1):
            mention = text[pieces[i][0] : pieces[j - 1][1]]
            if j == i + 1 and (mention in STOP_WORDS or len(mention) < 2):
                continue
            found = names.get(mention) or (
                names.get(mention[:-1]) if mention.endswith("s") and len(mention) > 3 else None
            )
            if found:
                links += [LinkedEntity(e, mention, 1.0, True) for e in found]
                covered[i:j] = [True] * (j - i)
                i = j - 1
                break
        i += 1
    return links, covered


def _uncovered_phrases(text: str, pieces: list[tuple[int, int]], covered: list[bool]) -> list[str]:
    """Runs of content words that no exact name covers, longest first."""
    phrases: list[tuple[int, int]] = []
    start: int | None = None
    for i, (a, b) in enumerate([*pieces, (len(text), len(text))]):
        word = text[a:b]
        content = (
            i < len(pieces) and not covered[i] and word not in STOP_WORDS and word[:1].isalnum()
        )
        if content and start is None:
            start = a
        elif not content and start is not None:
            phrases.append((start, pieces[i - 1][1]))
            start = None
    found = dict.fromkeys(text[a:b] for a, b in phrases if b - a >= 3)
    return sorted(found, key=lambda p: (-len(p), p))


def _nearest(
    index: BookIndex, phrases: Sequence[str], vectors: FloatMatrix, link_distance: float
) -> list[LinkedEntity]:
    # Not a matrix product: a threaded BLAS spends more on waking its threads (1 to 9 ms) than on
    # these few rows.
    ids, cosines = core.cosine_topk(vectors, index.entity_vectors, 1)
    return [
        LinkedEntity(int(entity), phrase, float(cosine), False)
        for phrase, entity, cosine in zip(phrases, ids[:, 0], cosines[:, 0], strict=True)
        if 1.0 - cosine < link_distance
    ]
