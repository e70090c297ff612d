"""Counts of word sequences that may be entities: names, identifiers and noun phrases.

There is no tagger: phrases are runs of words between stop words and punctuation (RAKE, Rose et al.
2010). `ranking` decides which of them become entities.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bookrag_fast.index.lexing import Lexer, Part, Sentence
from bookrag_fast.index.stopwords import DETERMINERS, GENERIC, REFERENCE_WORDS, STOP, TITLES

__all__ = ["Ids", "Key", "Phrases"]

Ids = tuple[int, ...]
Key = tuple[str, ...]  # stems

_NAME = re.compile(r"P|[cfUI]+(?:ot?[cfUI]+)*N?")
_RUN = re.compile(r"f*[lcUIJ]+")
_LONGEST = 4  # words of a noun phrase
_LONGEST_NAME = 7
_LONGEST_RUN = 9  # beyond this a run is a list without commas, or a table read as text
_MOST_TITLE_WORDS = 6
_TITLE_WORDS = 14  # of a caption that is a title rather than a paragraph
_ARTICLES = frozenset({"the", "a", "an"})

_VERSION = re.compile(r"[1-9]\d{0,2}(?:\.\d{1,2}){0,2}")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")


@dataclass(slots=True)
class Phrases:
    """Counts of word sequences, by what was seen around them."""

    lexer: Lexer
    whole: Counter[Ids] = field(default_factory=Counter)  # a run of its own
    inside: Counter[Ids] = field(default_factory=Counter)  # part of a longer run
    names: Counter[Ids] = field(default_factory=Counter)  # capitalised within a sentence
    starts: Counter[Ids] = field(default_factory=Counter)  # capitalised where a sentence begins
    titles: Counter[Ids] = field(default_factory=Counter)
    persons: set[Ids] = field(default_factory=set)
    defined: Counter[Ids] = field(default_factory=Counter)

    nouns: Counter[str] = field(default_factory=Counter)  # stems: after "the", before a break
    verbs: Counter[str] = field(default_factory=Counter)  # stems: before "the" or "a"
    ends: Counter[str] = field(default_factory=Counter)  # stems: last of a run

    def add(self, sentence: Sentence) -> None:
        """Counts a sentence. O(words)."""
        part, words = sentence.part, sentence.words
        if part is Part.CITED:
            return
        pattern = self.lexer.pattern(sentence)
        title = part is Part.HEADING or (part is Part.CAPTION and len(words) <= _TITLE_WORDS)
        if title:
            self._add_title(pattern, words)
        if part is Part.BODY or (part is Part.CAPTION and not title):
            self._add_runs(pattern, words)
        if part is not Part.HEADING:
            self._add_names(pattern, words, part)

    def _add_title(self, pattern: str, words: Sequence[int]) -> None:
        for match in _RUN.finditer(pattern):
            start, stop = _without_soft(match)
            if 0 < stop - start <= _MOST_TITLE_WORDS:
                self.titles[tuple(words[start:stop])] += 1

    def _add_runs(self, pattern: str, words: Sequence[int]) -> None:
        info = self.lexer.words
        for match in _RUN.finditer(pattern):
            start, stop = _without_soft(match)
            if pattern[start - 1 : start] == "N" and pattern[start] == "J":
                start += 1  # the counter of a number: 20歳未満, 3年以内
            length = stop - start
            if not 0 < length <= _LONGEST_RUN:
                continue
            ids = tuple(words[start:stop])
            if length <= _LONGEST:
                self.whole[ids] += 1
            if length > 2:
                for size in (2, 3):
                    if size < length:
                        self.inside.update(ids[i : i + size] for i in range(length - size + 1))
            last = info[ids[-1]].stem
            self.ends[last] += 1
            following = words[stop] if stop < len(words) else -1
            if following >= 0 and info[following].folded in _ARTICLES:
                self.verbs[last] += 1
            elif start > 0 and info[words[start - 1]].folded in DETERMINERS:
                self.nouns[last] += 1

    def _add_names(self, pattern: str, words: Sequence[int], part: Part) -> None:
        info = self.lexer.words
        for match in _NAME.finditer(pattern):
            start, stop = match.span()
            shapes = match.group()
            if part is Part.CODE and "I" not in shapes:
                continue
            first = start == 0 or pattern[start - 1] == "."
            if first:  # "New results", "Given Google": what begins a sentence proves nothing
                skip = len(shapes) - len(shapes.lstrip("f"))
                start, shapes = start + skip, shapes[skip:]
                if shapes[:1] in ("o", "t", "N", ""):
                    continue
            ids = tuple(words[start:stop])
            if shapes.endswith("N"):
                self._add_version(ids, shapes)
                ids, shapes = ids[:-1], shapes[:-1]
            while ids and info[ids[0]].folded in TITLES:
                ids, shapes = ids[1:], shapes[1:]
                if len(ids) <= 3 and shapes and set(shapes) <= {"c"}:
                    self.persons.add(ids)
            if not ids or len(ids) > _LONGEST_NAME:
                continue
            plain = set(shapes) <= {"c", "f"}
            if (first and shapes[0] == "c") or (plain and part is Part.CELL):
                # Capitalised as any first word is, or as everything in a table is.
                self.starts[ids] += 1
            elif shapes != "f" and not (len(ids) > 3 and set(shapes) == {"I"}):
                self.names[ids] += 1
            if "o" in shapes and len(ids) > 3:  # "Bank of X for Y": the parts may be names too
                for piece in re.finditer(r"[cfUI]+", shapes):
                    if piece.group() != "f":
                        self.names[ids[piece.start() : piece.end()]] += 1

    def _add_version(self, ids: Ids, shapes: str) -> None:
        """ "Python 3.11", but not "Table 3", "May 2015" or "In 2015"."""
        info = self.lexer.words
        before = info[ids[-2]].folded
        number = info[ids[-1]].text
        plain = before not in REFERENCE_WORDS and before not in GENERIC and before not in STOP
        if plain and len(ids) <= 3 and _VERSION.fullmatch(number) and not _YEAR.fullmatch(number):
            self.names[ids] += 1


def _without_soft(match: re.Match[str]) -> tuple[int, int]:
    """Span of a run without ordinary words that are capitalised at its beginning: "New results"
    is about results. But "Best Buy" is one name, of which the rest alone is a fragment."""
    text = match.group()
    soft = len(text) - len(text.lstrip("f"))
    start, stop = match.span()
    if soft and text[soft : soft + 1] in ("c", "U", "I", ""):
        rest = re.match(r"f*[cUI]+", text)
        start += rest.end() if rest is not None else len(text)
        return start, max(start, stop)
    return start + soft, stop
