"""Candidates for entities in running text: names, identifiers and technical noun phrases.

Without a tagger, phrases are runs of words between stop words and punctuation (RAKE, Rose et al.
2010), counted with the phrases inside them (C-value, Frantzi et al. 2000), and kept when they
recur or stand in a heading, a caption or a definition.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bookrag_fast.index.lexing import Lexer, Part, Sentence, Shape, Word
from bookrag_fast.index.stopwords import GENERIC, REFERENCE_WORDS, STOP, TITLES

__all__ = ["Candidate", "Phrases", "harvest"]

Ids = tuple[int, ...]
Key = tuple[str, ...]  # stems

_NAME = re.compile(r"[cfUI]+(?:ot?[cfUI]+)*N?")
_RUN = re.compile(r"[lcUIJ]+")
_TITLE_RUN = re.compile(r"[lcUIJ]+(?:o[lcUIJ]+)?")
_LONGEST = 4  # words of a noun phrase
_LONGEST_NAME = 7
_LONGEST_RUN = 9  # beyond this a run is a list without commas, or a table read as text
_MOST_TITLE_WORDS = 6

_VERSION = re.compile(r"[1-9]\d{0,2}(?:\.\d{1,2}){0,2}")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
# Endings of words that are hardly ever the head of a noun phrase.
_NOT_HEAD = re.compile(r"(?:ly|ed|able|ible|ical|ous|ful|less|est|ward|ying)$")
_NOT_FIRST = re.compile(r"ly$")
_ORGANISATION = frozenset(
    """inc corp corporation ltd llc plc gmbh company university institute commission association
    agency ministry bank foundation committee department council society laboratory bureau board
    group holdings""".split()
)


@dataclass(slots=True)
class Candidate:
    """A phrase that may become an entity."""

    key: Key
    name: str
    type: str
    count: int
    score: float
    vouched: bool = False  # a definition says that it is a term
    forms: tuple[str, ...] = ()  # other spellings met


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

    def add(self, sentence: Sentence) -> None:
        pattern = self.lexer.pattern(sentence)
        words = sentence.words
        if sentence.part is Part.HEADING or sentence.part is Part.CAPTION:
            self._add_title(pattern, words)
        if sentence.part is Part.BODY or sentence.part is Part.CAPTION:
            self._add_runs(pattern, words)
        if sentence.part is not Part.HEADING:
            self._add_names(pattern, words, sentence.part)

    def _add_title(self, pattern: str, words: Sequence[int]) -> None:
        for match in _TITLE_RUN.finditer(pattern):
            ids = tuple(words[match.start() : match.end()])
            if len(ids) <= _MOST_TITLE_WORDS:
                self.titles[ids] += 1
            if "o" in match.group():  # "resolution of entities": the parts count as well
                for part in _RUN.finditer(match.group()):
                    self.titles[ids[part.start() : part.end()]] += 1

    def _add_runs(self, pattern: str, words: Sequence[int]) -> None:
        for match in _RUN.finditer(pattern):
            start, stop = match.span()
            length = stop - start
            if length > _LONGEST_RUN:
                continue
            ids = tuple(words[start:stop])
            if length <= _LONGEST:
                self.whole[ids] += 1
            if length > 2:
                for size in (2, 3):
                    if size < length:
                        self.inside.update(ids[i : i + size] for i in range(length - size + 1))

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
            if first and skip_first(shapes):
                self.starts[ids] += 1
            elif shapes != "f":
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


def skip_first(shapes: str) -> bool:
    """Whether a sequence that begins a sentence proves no name: its first word is Capitalised
    as any first word is. UPPER and identifiers prove themselves."""
    return shapes[0] == "c"


def harvest(phrases: Phrases, *, limit: int) -> list[Candidate]:
    """The best candidates, at most ``limit`` and all that a definition vouches for, best first.

    Args:
        limit: most candidates; see `extraction` for how it follows the length of the text.

    O(distinct phrases · log). Deterministic.
    """
    table = _by_key(phrases)
    _discount_nested(table)
    chosen = []
    for key, entry in table.items():
        candidate = _judge(phrases.lexer, key, entry)
        if candidate is not None:
            chosen.append(candidate)
    chosen.sort(key=lambda c: (-c.score, c.key))
    kept = chosen[:limit]
    return kept + [c for c in chosen[limit:] if c.vouched]


@dataclass(slots=True)
class _Entry:
    forms: Counter[Ids] = field(default_factory=Counter)
    whole: int = 0
    inside: int = 0
    names: int = 0
    starts: int = 0
    titles: int = 0
    person: bool = False
    vouched: bool = False
    nested: float = 0.0  # occurrences explained by longer candidates

    @property
    def count(self) -> int:
        return max(self.whole + self.inside, self.names + self.starts)


def _by_key(phrases: Phrases) -> dict[Key, _Entry]:
    words = phrases.lexer.words
    table: dict[Key, _Entry] = {}

    def entry(ids: Ids) -> _Entry:
        key = tuple([words[i].stem for i in ids])
        found = table.get(key)
        if found is None:
            found = table[key] = _Entry()
        return found

    # A phrase met once, in no heading and not capitalised, can be no candidate: most are such.
    for ids, n in phrases.whole.items():
        e = entry(ids)
        e.whole += n
        e.forms[ids] += n
    for ids, n in phrases.inside.items():
        if n > 1 or phrases.whole.get(ids):
            e = entry(ids)
            e.inside += n
            e.forms[ids] += n
    for ids, n in phrases.names.items():
        e = entry(ids)
        e.names += n
        e.forms[ids] += n
    for ids, n in phrases.starts.items():
        e = entry(ids)
        e.starts += n
        e.forms[ids] += 0
    for ids, n in phrases.titles.items():
        e = entry(ids)
        e.titles += n
        e.forms[ids] += 0
    for ids, n in phrases.defined.items():
        e = entry(ids)
        e.forms[ids] += n
        e.vouched = True
    for ids in phrases.persons:
        entry(ids).person = True
    return table


def _discount_nested(table: dict[Key, _Entry]) -> None:
    """C-value: a phrase met only inside one longer phrase is a fragment of it."""
    for key, entry in table.items():
        if len(key) < 3 or entry.count < 2:
            continue
        for size in range(2, len(key)):
            for i in range(len(key) - size + 1):
                inner = table.get(key[i : i + size])
                if inner is not None:
                    inner.nested = max(inner.nested, entry.count)


def _judge(lexer: Lexer, key: Key, entry: _Entry) -> Candidate | None:
    forms = [ids for ids, _ in entry.forms.most_common()]
    if not forms:
        return None
    ids = min(forms, key=lambda f: (-entry.forms[f], len(lexer.phrase(f)), lexer.phrase(f)))
    words = [lexer.words[i] for i in ids]
    shapes = {w.shape for w in words}
    own = entry.count - entry.nested
    kind = ""
    if entry.person:
        kind = "person"
    elif len(words) == 1 and words[0].shape is Shape.IDENTIFIER:
        kind = "identifier"
    elif _is_name(words, entry):
        kind = "organization" if words[-1].folded in _ORGANISATION and len(words) > 1 else "name"
    if not kind:
        if not _is_concept(words, shapes, entry, own):
            return None
        kind = "concept"
    return Candidate(
        key=key,
        name=lexer.phrase(ids),
        type=kind,
        count=entry.count,
        score=_score(words, kind, entry, own),
        vouched=entry.vouched,
        forms=tuple(lexer.phrase(f) for f in forms if f != ids),
    )


def _is_name(words: Sequence[Word], entry: _Entry) -> bool:
    """Capitalised within sentences most times that it occurs."""
    if not entry.names or entry.names < 0.6 * (entry.whole + entry.inside - entry.starts):
        return False
    if len(words) == 1:
        word = words[0]
        if word.folded in GENERIC or word.folded in REFERENCE_WORDS or word.soft:
            return False
        return entry.names > 1 or word.shape is Shape.UPPER
    if all(w.soft or w.folded in GENERIC for w in words):
        return entry.names > 2
    return True


def _is_concept(words: Sequence[Word], shapes: set[Shape], entry: _Entry, own: float) -> bool:
    last, first = words[-1], words[0]
    if last.shape is Shape.STOP or last.soft or Shape.NUMBER in shapes:
        return entry.vouched
    length = sum(len(w.text) for w in words)
    if shapes == {Shape.CJK}:
        if not 2 <= length <= 14 or (len(words) == 1 and length < 2):
            return False
        return entry.titles > 0 or own >= 2 or entry.vouched
    if entry.vouched:
        return True
    if _NOT_HEAD.search(last.folded) or _NOT_FIRST.search(first.folded):
        return False
    if len(words) == 1:
        if last.folded in GENERIC or last.folded in REFERENCE_WORDS or length < 4:
            return False
        return entry.whole >= (1 if entry.titles else 4)
    if all(w.folded in GENERIC or w.folded in REFERENCE_WORDS for w in words):
        return False
    return own >= 2 or entry.titles > 0


def _score(words: Sequence[Word], kind: str, entry: _Entry, own: float) -> float:
    weight = {"concept": 1.0, "identifier": 1.1}.get(kind, 1.3)
    length = 1.0 + 0.5 * (min(len(words), 3) - 1)
    if len(words) == 1 and kind == "concept":
        weight = 0.6
    score = math.log2(1.0 + max(own, 0.5) + 0.25 * entry.nested) * length * weight
    return score + 2.0 * min(entry.titles, 2) + (3.0 if entry.vouched else 0.0)
