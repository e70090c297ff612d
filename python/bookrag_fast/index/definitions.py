"""Sentences that define a term: "X is a …", "we call this X", glossary lines "X: …"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bookrag_fast.index.lexing import Lexer, Sentence, Shape
from bookrag_fast.index.occurrences import Occurrence

__all__ = ["MAX_DESCRIPTION", "called_terms", "defined_entities", "shorten"]

MAX_DESCRIPTION = 300

_COPULA = frozenset({"is", "are", "was"})
_ARTICLES = frozenset({"a", "an", "the", "any", "one", "either"})
_MEANS = frozenset({"means", "denotes", "describes"})
_OWN = (Shape.UPPER, Shape.IDENTIFIER)
_CALLING = re.compile(
    r"\b(?:(?:is|are|be|commonly|often|usually|also)\s+(?:called|termed|named|dubbed|known\s+as)|"
    r"we\s+(?:call|term)\s+(?:it|this|these|them|such)|known\s+as|referred\s+to\s+as|so-called)\s+"
    r"(?:an?\s+|the\s+)?"
)
_RUN = re.compile(r"[cfUI]*[lcUIJ]+")
# What may stand between a term and its verb: "PPR (Personalized PageRank) is a".
_MOST_ASIDE = 8


def called_terms(lexer: Lexer, sentence: Sentence) -> Iterator[tuple[int, ...]]:
    """Word ids of terms that a sentence introduces by name ("… is called a skyline")."""
    text = sentence.text
    if "call" not in text and "known as" not in text and "term" not in text and "as " not in text:
        return
    for match in _CALLING.finditer(text):
        rest = text[match.end() : match.end() + 80].lstrip("\"“'‘")
        words = Lexer.tokens(rest)
        ids = [lexer[w] for w in words]
        run = _RUN.match(lexer.pattern_of(ids))
        if run is not None and 1 <= run.end() <= 4:
            yield tuple(ids[: run.end()])


def defined_entities(
    lexer: Lexer, sentence: Sentence, occurrences: list[Occurrence]
) -> Iterator[tuple[int, int]]:
    """(entity, rank) for names that a sentence begins with and goes on to define; 2 is surer
    ("is a") than 1 (a line "X: …")."""
    words = [lexer.words[i] for i in sentence.words]
    # Only the longest name at the place counts: "skyline operator is a" does not define "skyline".
    best: dict[int, Occurrence] = {}
    for found in occurrences:
        if found.start <= 1 and (found.start == 0 or words[0].folded in _ARTICLES):
            best[found.start] = found
    for found in best.values():
        place = found.stop
        if place < len(words) and words[place].text in "(（":
            closing = next(
                (
                    i + 1
                    for i in range(place, min(place + _MOST_ASIDE, len(words)))
                    if words[i].text in ")）"
                ),
                None,
            )
            if closing is None:
                continue
            place = closing
        following = [w.folded for w in words[place : place + 2]]
        if len(following) < 2 or len(words) - place < 4:
            continue
        verb, after = following
        if (
            (verb in _COPULA and after in _ARTICLES)
            or verb in _MEANS
            or verb == "とは"
            or (verb == "refers" and after == "to")
        ):
            yield found.entity, 2
        elif (
            verb in (":", "–", "—")
            and len(words) - place > 5
            # A line "X: …"; of one ordinary word ("Question: …") it defines nothing.
            and (found.stop - found.start > 1 or words[found.start].shape in _OWN)
        ):
            yield found.entity, 1


def shorten(text: str) -> str:
    """At most 300 characters, cut at a word."""
    if len(text) <= MAX_DESCRIPTION:
        return text
    return text[: MAX_DESCRIPTION - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
