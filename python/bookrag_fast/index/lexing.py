"""Text to sentences of classified words, once; everything later works on small integers.

A `Lexer` knows each distinct word of a document once (`Word`), so a sentence is an array of word
ids and the rules of extraction look words up instead of reading characters again.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from bookrag_fast.index.stopwords import FUNCTION, STOP

__all__ = ["Lexer", "Part", "Sentence", "Shape", "Word", "split_sentences"]

_CJK = "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_W = rf"[^\W_{_CJK}]"  # a letter or digit of a script that has spaces
_TOKEN = re.compile(
    rf"""
    \.{{3,}} | _{{3,}} | -{{3,}} | ={{3,}} | \*{{3,}}               # leaders and rules
    | https?://\S+ | www\.\S+ | \w[\w.+-]{{0,63}}@[\w-]+\.[\w.-]+  # addresses: nobody's concepts
    | [\u30a1-\u30fa\u30fc\u30fb]+                        # katakana
    | 及(?=び) | 又(?=は) | 若(?=しく) | 並(?=び) | 当該     # "and", "or", "said", between kanji
    | (?:(?!及び|又は|若しく|並び)[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])+  # kanji
    | [\u3041-\u309f]+                                    # hiragana
    | (?:[A-Za-z]\.){{2,}} | (?:Mr|Mrs|Ms|Dr|Prof|St|Jr)\.  # U.S., e.g., Dr.
    | ['’][sS](?![^\W_])                                  # a possessive ends a phrase
    | (?<![\w)\]])(?:--[A-Za-z]{_W}*(?:[-_]{_W}+)*|-[A-Za-z](?![\w-]))  # --option, -o
    | _*{_W}+(?:(?:[-\u2010\u2011.&_+]|::|['’](?![sS](?![^\W_])))_*{_W}+)*(?:\+\+|\#|\(\))?
    | \S
    """,
    re.VERBOSE,
)
_BREAK_AFTER = re.compile(
    r"(?<=[.!?])(?<!\bMr\.)(?<!\bDr\.)(?<!\bMs\.)(?<!\bSt\.)(?<!\bvs\.)(?<!\bNo\.)(?<!\bal\.)"
    r"(?<!\bMrs\.)(?<!\bInc\.)(?<!\bLtd\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bFig\.)(?<!\bSec\.)"
    r"\s+(?=[A-Z\u0400-\u042f\"“‘(\[•]|[-–]\s)"
    r"|(?<=[。！？])(?=[^。！？」』）)])"
    r"|\n\s*\n|\n(?=\s*(?:[•●▪◦*–・-]\s|\d+[.)]\s))"
)
_LOUD = re.compile(r"[^\W\d_]{4,}")  # a word that is hardly an acronym
# Nothing natural is longer; a table dumped as text or a hex blob may be.
_MAX_SENTENCE = 4000

_CYRILLIC_ENDING = re.compile(
    r"(?:иями|ями|ами|иях|ях|ах|ого|его|ому|ему|ыми|ими|ием|ией|ов|ев|ей|ам|ям|ой|ый|ий|ая|яя|ое|ее|"
    r"ые|ие|ых|их|ым|им|ом|ем|ую|юю|ия|ии|ию|[аяоеыиуюьй])$"
)


# 第三条, 二項, 告示第: places in a law, not notions.
_CJK_ARTICLE = re.compile(r"[一二三四五六七八九十百千][条項号章節款目]|第$|^[条項号]")


class Shape(IntEnum):
    """What a word looks like. `STOP` and `BREAK` never stand inside a phrase."""

    LOWER = 0
    CAPITAL = 1  # Capitalised
    UPPER = 2  # ALLCAPS, two characters or more
    IDENTIFIER = 3  # snake_case, CamelCase, GPT-4.5, --option
    NUMBER = 4
    CJK = 5  # kanji or katakana
    STOP = 6
    BREAK = 7  # punctuation, hiragana, addresses


@dataclass(frozen=True, slots=True)
class Word:
    """A distinct word: how it is written, the form it is matched by, and its shape."""

    text: str
    stem: str
    shape: Shape
    folded: str
    soft: bool = False  # an ordinary word that is capitalised, as a name may begin: New, Best


_CONNECTORS = frozenset({"of", "for", "de", "del", "di", "du", "von", "van", "der", "la"})
_LETTERS = "lcUINJS,"


def _letter(word: Word) -> str:
    """The word as one letter of its sentence's pattern (see `Lexer.pattern`)."""
    if word.shape is Shape.CAPITAL:
        return "f" if word.soft else "c"
    if word.shape is Shape.IDENTIFIER and word.text[0] == "-":
        return "P"
    if word.shape is Shape.STOP:
        return "o" if word.text in _CONNECTORS else "t" if word.text == "the" else "S"
    if word.shape is Shape.BREAK:
        return "." if word.text in ".!?:;。" else ","
    return _LETTERS[word.shape]


class Part(IntEnum):
    """Where in the book a sentence stands; rules trust words differently."""

    BODY = 0
    HEADING = 1
    CAPTION = 2
    CELL = 3
    CODE = 4
    CITED = 5  # an entry of a bibliography: names found elsewhere occur there, none comes from it


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a node as word ids of its `Lexer`."""

    node: int
    part: Part
    text: str
    words: array[int]


class Lexer(dict[str, int]):
    """Words to ids and back; a word is classified when it is first met. O(1) a word."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[Word] = []
        self._letters: list[str] = []

    def __missing__(self, text: str) -> int:
        word = _classify(text)
        self.words.append(word)
        self._letters.append(_letter(word))
        self[text] = number = len(self.words) - 1
        return number

    def pattern(self, sentence: Sentence) -> str:
        """A letter a word, so that phrases are found by regular expressions over shapes.

        l small, c Capital, f a Capital that is else an ordinary word, U UPPER, I identifier,
        P --option, N number, J kanji or katakana, o "of" and the like, t "the", S other stop
        word, "." end of a sentence or clause, "," any other break.
        """
        return self.pattern_of(sentence.words)

    def pattern_of(self, ids: Sequence[int]) -> str:
        """The same for any words."""
        letters = self._letters
        return "".join([letters[i] for i in ids])

    @staticmethod
    def tokens(text: str) -> list[str]:
        """A text's words and punctuation, as a `Lexer` sees them."""
        found: list[str] = _TOKEN.findall(text)
        return found

    def phrase(self, ids: Sequence[int]) -> str:
        """The words as written; no space between two words of a script that has none."""
        out = ""
        before = False
        for word in (self.words[i] for i in ids):
            cjk = word.shape is Shape.CJK
            tight = (cjk and before) or word.text[0] in "'’" or not out
            out += word.text if tight else f" {word.text}"
            before = cjk
        return out

    def read(self, node: int, part: Part, text: str) -> list[Sentence]:
        """The sentences of a node's text, normalised to NFKC, white space collapsed."""
        if not text.isascii():
            text = unicodedata.normalize("NFKC", text).replace("\u00ad", "").replace("\u00a0", " ")
        sentences = []
        for raw in split_sentences(text):
            clean = " ".join(raw.split())
            for start in range(0, len(clean), _MAX_SENTENCE):
                piece = clean[start : start + _MAX_SENTENCE]
                # A line in capitals says nothing of names: read it as ordinary words.
                shouted = piece.isupper() and len(_LOUD.findall(piece)) > 1
                spoken = piece.lower() if shouted else piece
                ids = array("I", map(self.__getitem__, _TOKEN.findall(spoken)))
                if ids:
                    sentences.append(Sentence(node, part, piece, ids))
        return sentences


def split_sentences(text: str) -> list[str]:
    """Sentences and list items of a text, without the white space between them."""
    return [piece for piece in map(str.strip, _BREAK_AFTER.split(text)) if piece]


def _classify(text: str) -> Word:
    first = text[0]
    if not (first.isalnum() or (len(text) > 1 and first in "_-")) or "://" in text or "@" in text:
        return Word(text, text, Shape.BREAK, text)
    if first >= "\u3005" and re.match(f"[{_CJK}]", first):
        return _classify_cjk(text)
    if text.startswith("www."):
        return Word(text, text, Shape.BREAK, text)
    base = text.rstrip(".") if text[:-1].isalpha() else text
    folded = base.casefold()
    if folded in STOP or text.casefold() in STOP or folded.strip(".") in STOP:
        # US, IT and WHO are names although us, it and who are not.
        if len(base) in (2, 3) and base.isupper() and folded in {"us", "it", "who", "eu", "am"}:
            return Word(base, base, Shape.UPPER, folded)
        if base[0].isupper() and folded not in FUNCTION and len(base) > 2:
            return Word(base, stem(folded), Shape.CAPITAL, folded, soft=True)
        return Word(text, folded, Shape.STOP, folded)
    if not any(c.isalpha() for c in base):
        return Word(text, folded, Shape.NUMBER, folded)
    if re.match(r"\d+(?:st|nd|rd|th|s|x|k|m|bn|pt|px|mm|cm|km|kg|mb|gb|ms|%)?$", folded):
        return Word(text, folded, Shape.NUMBER, folded)
    if re.fullmatch(r"[A-Z](?:\.\d+)+", base):  # a section of an appendix
        return Word(text, folded, Shape.NUMBER, folded)
    if len(base) == 1:
        return Word(text, folded, Shape.STOP, folded)
    return Word(base, stem(folded), _shape(base), folded)


def _classify_cjk(text: str) -> Word:
    if "\u3041" <= text[0] <= "\u309f" or text in STOP or not text.strip("・ー"):
        return Word(text, text, Shape.BREAK if text[0] <= "\u309f" else Shape.STOP, text)
    core = text.strip("・")
    if _CJK_ARTICLE.search(core):
        return Word(text, text, Shape.STOP, text)
    if len(core) > 2 and core[-1] in "等的":
        core = core[:-1]
    return Word(core, core, Shape.CJK, core)


def _shape(base: str) -> Shape:
    if (
        "_" in base
        or "::" in base
        or base.endswith("()")
        or base.startswith("-")
        or re.search(r"[a-z][A-Z]", base)
    ):
        return Shape.IDENTIFIER
    if any(c.isdigit() for c in base) and any(c.isupper() for c in base):
        return Shape.IDENTIFIER
    if base.isupper() and len(base) > 1:
        return Shape.UPPER
    return Shape.CAPITAL if base[0].isupper() else Shape.LOWER


def stem(folded: str) -> str:
    """The form that a word is matched by: singular in English, bare of its ending in Russian."""
    if "\u0400" <= folded[0] <= "\u04ff":
        return _CYRILLIC_ENDING.sub("", folded) if len(folded) > 4 else folded
    if len(folded) < 4 or not folded.endswith("s") or folded.endswith(("ss", "us", "is", "ics")):
        return folded
    if folded.endswith("ies") and len(folded) > 4:
        return folded[:-3] + "y"
    if folded.endswith(("ches", "shes", "sses", "xes", "zes")):
        return folded[:-2]
    return folded[:-1]
