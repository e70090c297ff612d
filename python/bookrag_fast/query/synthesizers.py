"""Synthesizers, offline: Map finds the sentences that answer best, Reduce quotes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bookrag_fast.index.book_index import BookIndex, count_tokens
from bookrag_fast.index.extracts import central
from bookrag_fast.index.lexicon import tokenize
from bookrag_fast.index.model import NodeKind
from bookrag_fast.models.protocols import FloatMatrix
from bookrag_fast.query.forms import form_of
from bookrag_fast.query.plan import Citation, Evidence
from bookrag_fast.query.question import Question
from bookrag_fast.query.sentences import clipped_at_word, split_sentences

__all__ = [
    "BY_LINE",
    "LONGEST_QUOTE",
    "Passage",
    "Piece",
    "cite",
    "map_evidence",
    "pieces_of",
    "reduce_count",
    "reduce_extract",
    "reduce_list",
    "summarize",
    "summary_pieces",
]

_MOST_SENTENCES = 3  # in an extractive answer
_ENOUGH = 0.5  # share of the question's term weight that the quoted sentences must cover
_CLOSE = 0.8  # a further sentence must score this share of the best one …
_NEW = 0.15  # … and cover this share of the question that is not covered yet
_LIST_NEAR = 0.75  # of the best relevance, for a table or list to be quoted whole
_LONGEST_LIST = 1500  # characters of it
LONGEST_QUOTE = 600  # characters; of a longer sentence its beginning is quoted
_MOST_PIECES = 400  # sentences scored for one question
_HEADING_SHARE = 0.6  # of a term that stands in the heading, not in the sentence
BY_LINE = frozenset({NodeKind.TABLE.label, NodeKind.LIST.label, NodeKind.CODE.label})


_LISTS = BY_LINE - {NodeKind.CODE.label}


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence (or table row, or list item) of the evidence with how well it answers."""

    text: str
    evidence: Evidence
    score: float
    terms: frozenset[str]


class Piece(NamedTuple):
    """A text that can be quoted, from the evidence of a rank."""

    text: str
    evidence: Evidence
    rank: int


def pieces_of(evidence: Sequence[Evidence]) -> list[Piece]:
    """Sentences, rows and items of the evidence, in its order, up to a number."""
    pieces: list[Piece] = []
    for rank, item in enumerate(evidence):
        for text in split_sentences(item.text, by_line=item.kind in BY_LINE):
            if len(pieces) < _MOST_PIECES:
                pieces.append(Piece(clipped_at_word(text, LONGEST_QUOTE), item, rank))
    return pieces


def map_evidence(
    evidence: Sequence[Evidence],
    pieces: Sequence[Piece],
    vectors: FloatMatrix,
    question: Question,
    books: Mapping[str, BookIndex],
) -> list[Passage]:
    """The evidence's pieces, best first. ``vectors`` are those of the pieces.

    A sentence scores by the share of the question's term weight that it covers, its meaning, its
    node's rank, and by having the form that is asked for (a number, a definition).
    """
    wanted = set(question.terms)
    weight = {b: {t: ix.lexicon.idf(t) for t in wanted} for b, ix in books.items()}
    cosines = vectors @ question.vector
    top = max((e.scores.get("relevance", 0.0) for e in evidence), default=0.0) or 1.0
    form = form_of(question.text)
    passages = []
    for piece, cosine in zip(pieces, cosines, strict=True):
        text, item = piece.text, piece.evidence
        if form.repeats_question(text):
            continue
        terms = frozenset(tokenize(text)) & wanted
        idf = weight[item.book]
        cover = sum(idf[t] for t in terms) / max(sum(idf.values()), 1e-6)
        # What the heading says need not be said again in the sentence under it.
        said = frozenset(tokenize(" ".join(item.section[-1:]))) & wanted
        cover += _HEADING_SHARE * sum(idf[t] for t in said - terms) / max(sum(idf.values()), 1e-6)
        relevance = item.scores.get("relevance", 0.0) / top
        score = cover + 0.25 * max(float(cosine), 0.0) + 0.5 * relevance + 0.15 / (1 + piece.rank)
        passages.append(Passage(text, item, score + form.bonus(text, item.kind), terms))
    return sorted(passages, key=lambda p: -p.score)


def cite(item: Evidence, quote: str) -> Citation:
    return Citation(
        item.book, item.node_id, item.pages, item.labels, item.boxes, item.section, quote
    )


def reduce_extract(
    passages: Sequence[Passage], question: Question, books: Mapping[str, BookIndex], budget: int
) -> tuple[str, list[Citation], bool]:
    """The best sentence and what adds to it: answer text, citations, whether it is enough."""
    if not passages:
        return "No passage of the book speaks to this question.", [], False
    idf = dict.fromkeys(question.terms, 0.0)
    for index in books.values():
        idf = {t: max(w, index.lexicon.idf(t)) for t, w in idf.items()}
    total = max(sum(idf.values()), 1e-6)
    form = form_of(question.text)
    if form.whole_list and (whole := _whole_list(passages)):
        return whole.text, [cite(whole, whole.text)], True
    best = passages[0]
    chosen, covered, spent = [best], set(best.terms), count_tokens(best.text)
    for passage in passages[1:]:
        if len(chosen) == _MOST_SENTENCES:
            break
        new = sum(idf[t] for t in passage.terms - covered) / total
        cost = count_tokens(passage.text)
        if passage.score >= _CLOSE * best.score and new >= _NEW and spent + cost <= budget:
            chosen.append(passage)
            covered |= passage.terms
            spent += cost
    enough = sum(idf[t] for t in covered) / total >= _ENOUGH or form.expands(best.text)
    citations = [cite(p.evidence, p.text) for p in chosen]
    return " ".join(dict.fromkeys(p.text for p in chosen)), citations, enough


def _whole_list(passages: Sequence[Passage]) -> Evidence | None:
    """The table or list that a question after several things is best answered with: one whose
    relevance comes near the best there is, quoted as it stands (up to a length)."""
    items = {p.evidence.node_id: p.evidence for p in passages}.values()
    top = max(e.scores.get("relevance", 0.0) for e in items)
    near = [
        e for e in items if e.kind in _LISTS and e.scores.get("relevance", 0.0) >= _LIST_NEAR * top
    ]
    if not near:
        return None
    best = max(near, key=lambda e: e.scores.get("relevance", 0.0))
    return replace(best, text=clipped_at_word(best.text, _LONGEST_LIST))


_NOUNS = {
    "table": ("table", "tables"),
    "image": ("figure", "figures"),
    "section": ("section", "sections"),
    "page": ("page", "pages"),
}


def reduce_count(thing: str, count: int, depth: int | None = None) -> str:
    """COUNT in words: "8 tables"."""
    one, many = ("chapter", "chapters") if depth == 2 else _NOUNS[thing]
    return f"{count} {one if count == 1 else many}"


def reduce_list(evidence: Sequence[Evidence]) -> str:
    """LIST: one line each, with its page as printed where it is printed."""
    lines = []
    for item in evidence:
        title = item.text.splitlines()[0] if item.text else item.kind
        page = (item.labels[0] or str(item.pages[0])) if item.pages else ""
        lines.append(f"{title} (p. {page})" if page else title)
    return "\n".join(lines)


def summary_pieces(evidence: Sequence[Evidence]) -> list[Piece]:
    """Sentences of running text that can stand in a summary, up to a number."""
    pieces = [
        Piece(clipped_at_word(text, LONGEST_QUOTE), item, rank)
        for rank, item in enumerate(evidence)
        if item.kind == NodeKind.TEXT.label
        for text in split_sentences(item.text)
        if len(text) >= 40
    ]
    return pieces[:_MOST_PIECES]


def summarize(
    pieces: Sequence[Piece], vectors: FloatMatrix, budget: int
) -> tuple[str, list[Citation]]:
    """SUMMARIZE, extractive: the sentences nearest to the centre of what is to be summarised, in
    reading order, none twice in other words. ``vectors`` are those of the pieces."""
    chosen = central([piece.text for piece in pieces], vectors, budget)
    text = " ".join(pieces[i].text for i in chosen)
    return text, [cite(pieces[i].evidence, pieces[i].text) for i in chosen]
