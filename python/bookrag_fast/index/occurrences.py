"""Where the chosen entities occur: one pass over all sentences with a trie of their words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bookrag_fast.index.lexing import Lexer, Sentence, Shape

__all__ = ["Matcher", "Occurrence"]

_END = -1


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An entity's name at words ``start`` to ``stop`` (exclusive) of a sentence."""

    entity: int
    start: int
    stop: int


class Matcher:
    """Names of entities as a trie over stems. O(words · longest name) to find all in a text."""

    def __init__(self, lexer: Lexer) -> None:
        self._lexer = lexer
        self._stems: dict[str, int] = {}
        self._of_word: list[int] = []
        self._trie: dict[int, dict[int, object]] = {}

    def add(self, key: Sequence[str], entity: int, *, cased: bool) -> None:
        """Registers a name. ``cased``: only where its first word has a capital, as a name that
        is also an ordinary word must (Target, Windows)."""
        level: dict[int, object] = self._trie  # type: ignore[assignment]
        for stem in key:
            number = self._stems.setdefault(stem, len(self._stems))
            level = level.setdefault(number, {})  # type: ignore[assignment]
        ends = level.setdefault(_END, [])
        assert isinstance(ends, list)
        ends.append((entity, cased))

    def freeze(self) -> None:
        """To be called after the last `add` and before `find`."""
        get = self._stems.get
        self._of_word = [get(word.stem, -2) for word in self._lexer.words]
        self._small = [word.shape is Shape.LOWER for word in self._lexer.words]

    def find(self, sentence: Sentence) -> list[Occurrence]:
        """All occurrences, also those inside longer ones, by start, then length."""
        of_word, trie = self._of_word, self._trie
        numbers = [of_word[i] for i in sentence.words]
        found: list[Occurrence] = []
        length = len(numbers)
        for start, number in enumerate(numbers):
            level = trie.get(number)
            if level is None:
                continue
            stop = start + 1
            while True:
                ends = level.get(_END)
                if ends is not None:
                    assert isinstance(ends, list)
                    small = self._small[sentence.words[start]]
                    shouting = sentence.text.isupper()
                    for entity, cased in ends:
                        if not (cased and small) or shouting:
                            found.append(Occurrence(entity, start, stop))
                following = level.get(numbers[stop]) if stop < length else None
                if following is None:
                    break
                assert isinstance(following, dict)
                level = following
                stop += 1
        return found
