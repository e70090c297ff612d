"""Which of the counted phrases become entities, of what type, and how salient they are.

A noun phrase is kept when it recurs or stands in a heading, a caption or a definition, and is no
mere fragment of a longer one (C-value, Frantzi et al. 2000); a name when most times that it occurs
within a sentence it is capitalised.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bookrag_fast.index.lexing import Shape, Word
from bookrag_fast.index.phrases import Ids, Key, Phrases
from bookrag_fast.index.stopwords import GENERIC, REFERENCE_WORDS

__all__ = ["Candidate", "rank"]

# Endings of words that are hardly ever the head of a noun phrase.
_NOT_HEAD = re.compile(
    r"(?:ly|ed|able|ible|ical|ous|ful|less|est|ward|ying|ть|ться|ется|ются|ит|ет|ют|ите|йте)$"
)
_NOT_FIRST = re.compile(r"(?:ly|ть|ться|ется|ются|ите|йте)$")
_ORGANISATION = frozenset(
    """inc corp corporation ltd llc plc gmbh company university institute commission association
    agency ministry bank foundation committee department council society laboratory bureau board
    group holdings""".split()
)


_LABELS = 5  # words


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


def rank(phrases: Phrases, *, limit: int) -> list[Candidate]:
    """The best candidates, at most ``limit`` and all that a definition vouches for, best first.

    Args:
        limit: most candidates; see `extraction` for how it follows the length of the text.

    O(distinct phrases · log). Deterministic.
    """
    table = _by_key(phrases)
    _discount_nested(table)
    chosen = []
    for key, entry in table.items():
        candidate = _judge(phrases, key, entry)
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

    for ids, n in phrases.whole.items():
        e = entry(ids)
        e.whole += n
        e.forms[ids] += n
    for ids, n in phrases.inside.items():
        inner = table.get(tuple([words[i].stem for i in ids]))
        if inner is not None:
            inner.inside += n
            inner.forms[ids] += n
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


def _judge(phrases: Phrases, key: Key, entry: _Entry) -> Candidate | None:
    lexer = phrases.lexer
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
    elif len(words) == 1 and words[0].shape is Shape.IDENTIFIER and _is_code(words[0]):
        kind = "identifier"
    elif _is_name(words, entry):
        kind = "organization" if words[-1].folded in _ORGANISATION and len(words) > 1 else "name"
    if not kind:
        if not _is_concept(phrases, words, shapes, entry, own):
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


def _is_code(word: Word) -> bool:
    """An identifier rather than a variable of a formula (pB)."""
    return len(word.text) > 2 or word.text[0] == "-" or word.text[-1].isdigit()


def _is_name(words: Sequence[Word], entry: _Entry) -> bool:
    """Capitalised within sentences most times that it occurs."""
    capital = entry.names + (entry.starts if len(words) > 1 else 0)
    if capital < 0.6 * (entry.whole + entry.inside) or not (entry.names or capital > 1):
        return False
    if len(words) == 1:
        word = words[0]
        ordinary = word.folded in GENERIC or word.folded in REFERENCE_WORDS or word.soft
        if ordinary and word.shape is not Shape.UPPER:
            return False
        if word.shape is Shape.LOWER:  # capitals are the exception
            return False
        return entry.names > 1 or word.shape is Shape.UPPER
    if all(w.soft or w.folded in GENERIC for w in words):
        return entry.names > 2
    # Many capitals met once are the labels of a figure rather than a name.
    return len(words) < _LABELS or capital > 1 or any(w.shape is Shape.STOP for w in words)


def _is_concept(
    phrases: Phrases, words: Sequence[Word], shapes: set[Shape], entry: _Entry, own: float
) -> bool:
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
        if entry.titles:
            return True
        # Verbs and adjectives recur as well; a noun is seen after "the" and before a break.
        nouns = phrases.nouns[last.stem]
        return entry.whole >= 4 and nouns >= 2 and 3 * nouns >= phrases.ends[last.stem]
    if all(w.folded in GENERIC or w.folded in REFERENCE_WORDS for w in words):
        return False
    if 3 * phrases.verbs[last.stem] > phrases.ends[last.stem]:
        return False  # "the agent reformulates the question"
    return (own >= 2 and entry.whole > 0) or entry.titles > 0


def _score(words: Sequence[Word], kind: str, entry: _Entry, own: float) -> float:
    weight = {"concept": 1.0, "identifier": 1.1}.get(kind, 1.3)
    length = 1.0 + 0.5 * (min(len(words), 3) - 1)
    if len(words) == 1 and kind == "concept":
        weight = 0.6
    score = math.log2(1.0 + max(own, 0.5) + 0.25 * entry.nested) * length * weight
    return score + 2.0 * min(entry.titles, 2) + (3.0 if entry.vouched else 0.0)
