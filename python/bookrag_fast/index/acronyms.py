"""Acronym definitions: "Personalized PageRank (PPR)", "PPR (Personalized PageRank)", and glossary
lines "PPR: Personalized PageRank".

The long form is found and checked by letters, after Schwartz and Hearst (PSB 2003), with one more
condition: most letters of the short form must begin a word or a word's part, which refuses chance
subsequences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Definition", "expands", "find_definitions", "is_acronym"]

_SHORT = r"[A-Z][A-Za-z0-9]*(?:[&/.\-][A-Za-z0-9]+)*"
_AFTER = re.compile(rf"[\(（]\s*[\"“”'‘]?({_SHORT})[\"“”'’]?\s*[\)）]")
_BEFORE = re.compile(rf"\b({_SHORT})\s*[\(（]\s*([A-Za-z][^()（）;:]{{3,80}}?)\s*[\)）]")
_LINE = re.compile(rf"^[\W_]*({_SHORT})\s*(?::|–|—|\s-\s|\||\t|=)\s*([A-Za-z][^:|=]{{3,80}})")
_CUT = re.compile(r"[.,;:!?()\[\]{}\"“”‘’|•/]|\B'|'\B")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SMALL = frozenset(
    {"of", "and", "for", "the", "in", "on", "to", "a", "an", "with", "by", "or", "at"}
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A short form and what it stands for, as written in one sentence."""

    short: str
    long: str


def is_acronym(text: str) -> bool:
    """Two to ten characters, at least two capitals and half of the letters: PPR, LSTMs, GPT-4."""
    letters = [c for c in text if c.isalpha()]
    capitals = sum(c.isupper() for c in letters)
    return 2 <= len(text) <= 10 and capitals >= 2 and 2 * capitals >= len(letters)


def find_definitions(sentence: str) -> Iterator[Definition]:
    """Definitions in a sentence, in order. O(length)."""
    if "(" in sentence or "（" in sentence:
        for match in _AFTER.finditer(sentence):
            short = _singular(match.group(1))
            if is_acronym(short):
                before = _CUT.split(sentence[max(0, match.start() - 120) : match.start()])[-1]
                long = _long_form(short, before)
                if long:
                    yield Definition(short, long)
        for match in _BEFORE.finditer(sentence):
            short, long = _singular(match.group(1)), match.group(2).strip()
            if is_acronym(short) and expands(short, long):
                yield Definition(short, long)
    line = _LINE.match(sentence)
    if line is not None:
        short = _singular(line.group(1))
        long = re.split(r"[.,;(]|\s[-–—]\s", line.group(2))[0].strip()
        if is_acronym(short) and not is_acronym(long):
            # The words may go on after the long form: "PPR: Personalized PageRank on a graph".
            words = long.split()
            for length in range(min(len(words), len(short) + 3), 0, -1):
                if expands(short, " ".join(words[:length])) and words[length - 1] not in _SMALL:
                    yield Definition(short, " ".join(words[:length]))
                    break


def expands(short: str, long: str, *, every_initial: bool = False) -> bool:
    """Whether ``long`` as a whole can stand for ``short``: the first letters agree, all letters
    of the short form come in order, at least two thirds of them begin a word or a part of one,
    and no word but small ones is left without a letter. ``every_initial`` asks it of all letters:
    for names that no text puts side by side."""
    words = long.split()
    letters = [c for c in short.casefold() if c.isalnum()]
    if not 1 <= len(words) <= len(letters) + 3 or len(long) <= len(short):
        return False
    if len(words) == 1 and len(_PIECE.findall(long)) == 1:
        return False  # an abbreviation of one word, not an acronym
    if any(w.strip("()").casefold() == short.casefold() for w in words):
        return False
    pieces: list[tuple[str, int]] = []  # each part of a word, and the word's place
    for place, word in enumerate(words):
        pieces += [(piece.casefold(), place) for piece in _PIECE.findall(word)]
    if not pieces or pieces[0][0][0] != letters[0]:
        return False
    initials, used = _match(letters, pieces)
    if initials < 0 or 3 * initials < (3 if every_initial else 2) * len(letters):
        return False
    skipped = [w for i, w in enumerate(words) if i not in used and w.casefold() not in _SMALL]
    return not skipped


def _match(letters: list[str], pieces: list[tuple[str, int]]) -> tuple[int, set[int]]:
    """Most letters that begin pieces in an in-order match of all letters, and the words used.

    Dynamic programming over letters and characters; both are short. (-1, {}) if none matches.
    """
    characters = [
        (char, start == 0, place) for piece, place in pieces for start, char in enumerate(piece)
    ]
    best: dict[int, tuple[int, frozenset[int]]] = {-1: (0, frozenset())}
    for letter in letters:
        following: dict[int, tuple[int, frozenset[int]]] = {}
        # The best state that ends before each character: more initials, then more words.
        running: tuple[int, frozenset[int]] | None = best.get(-1)
        for i, (char, begins, place) in enumerate(characters):
            if char == letter and running is not None:
                initials, used = running
                following[i] = (initials + begins, used | {place})
            state = best.get(i)
            if state is not None and (
                running is None or (state[0], len(state[1])) > (running[0], len(running[1]))
            ):
                running = state
        best = following
        if not best:
            return -1, set()
    initials, used = max(best.values(), key=lambda s: (s[0], len(s[1]), sorted(s[1])))
    return initials, set(used)


def _long_form(short: str, before: str) -> str:
    """The shortest run of words at the end of ``before`` that ``short`` stands for."""
    words = before.split()
    letters = sum(c.isalnum() for c in short)
    for length in range(1, min(len(words), letters + 3) + 1):
        tail = words[-length:]
        if tail[0].casefold() in _SMALL:
            continue
        if expands(short, " ".join(tail)):
            return " ".join(tail)
    return ""


def _singular(short: str) -> str:
    return short[:-1] if short.endswith("s") and short[:-1].isupper() else short
