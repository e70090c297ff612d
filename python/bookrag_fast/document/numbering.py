"""Numbering prefixes of headings and list items: "3.2.1", "IV.", "Appendix A", "第3章", "(1)".

Only the form is judged here. Whether a numbered line is a heading is decided over the whole
document (see bookrag_fast.index), where a sequence can be told from a chance number.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import Enum

__all__ = ["Numbering", "Scheme", "is_bullet", "parse_numbering", "roman_value"]


class Scheme(str, Enum):
    PART = "part"
    CHAPTER = "chapter"
    APPENDIX = "appendix"
    SECTION = "section"  # a named section: "Section 3", 第2節, § 4
    ITEM = "item"  # "Item 7A."
    ARTICLE = "article"  # 第3条, Article 5
    DECIMAL = "decimal"  # "1", "1.2", "A.1.2"
    ROMAN = "roman"  # "IV."
    LETTER = "letter"  # "A."
    PAREN = "paren"  # "(1)", "1)", "(a)"
    KANA = "kana"  # "ア", "①"


@dataclass(frozen=True, slots=True)
class Numbering:
    """``values`` are comparable within a scheme; ``depth`` counts the parts ("1.2.3" has 3).

    ``rest`` is what follows, "" when the number stands alone. ``dotted`` tells "3." from "3".
    """

    label: str
    scheme: Scheme
    values: tuple[int, ...]
    rest: str
    dotted: bool = False

    @property
    def depth(self) -> int:
        return len(self.values)


_WORDS = {
    Scheme.PART: r"part|teil|partie|часть|раздел",
    Scheme.CHAPTER: r"chapter|kapitel|chapitre|глава",
    Scheme.APPENDIX: r"appendix|annex|anhang|annexe|приложение|付録|付属書|別紙|参考資料|資料",
    Scheme.SECTION: r"section|abschnitt",
    Scheme.ITEM: r"item",
    Scheme.ARTICLE: r"article|artikel",
}
_WORD = re.compile(
    "|".join(f"(?P<{scheme.value}>{words})" for scheme, words in _WORDS.items()) + r"",
    re.IGNORECASE,
)
_AFTER_WORD = re.compile(
    r"\s*(?P<number>[0-9]{1,3}(?:\.[0-9]{1,3}){0,4}[A-Z]?|[IVXLC]{1,7}|[A-ZА-Я](?:\.[0-9]{1,3}){0,4})"
    r"(?P<end>[.:)\-–—]|(?=\s)|$|(?=[^\w\s]))\s*",
)
_ONE = re.compile(
    r"\s*(?P<number>one|two|three|four|five|six|seven|eight|nine|ten)\b[.:]?\s*", re.IGNORECASE
)
_NUMBER_WORDS = "one two three four five six seven eight nine ten".split()
_JAPANESE = re.compile(
    r"第\s*(?P<number>[0-9]{1,3}|[一二三四五六七八九十百]{1,5})\s*(?P<unit>[部編章節項款条])"
    r"(?:の[0-9])?[\s.:、　]*"
)
_JAPANESE_UNITS = {
    "部": Scheme.PART, "編": Scheme.PART, "章": Scheme.CHAPTER, "節": Scheme.SECTION,
    "項": Scheme.SECTION, "款": Scheme.SECTION, "条": Scheme.ARTICLE,
}  # fmt: skip
_DECIMAL = re.compile(
    r"(?P<number>(?:[A-Z]|[0-9]{1,3})(?:\s?[.・]\s?[0-9]{1,3}){1,6})(?P<end>[.:)]?)"
    r"(?P<space>\s+|$|(?=[^\W\d_a-z]))"
)
_SINGLE = re.compile(
    r"(?P<number>[0-9]{1,3})(?P<end>[.:]?)(?P<space>\s+|$|(?=[\u3040-\u9fff])|(?<=\.)(?=[A-Z][a-z]))"
)
_ROMAN_DECIMAL = re.compile(
    r"(?P<number>(?P<roman>[IVX]{1,5})\s?[.・‐\-]\s?(?P<tail>[0-9]{1,2}(?:\s?[.・‐\-]\s?[0-9]{1,2}){0,3}))"
    r"(?P<end>[.:]?)(?P<space>\s+|$|(?=[\u3040-\u9fff]))"
)
_ROMAN = re.compile(r"(?P<number>[IVXL]{1,6})(?P<end>[.:)])\s*(?=\S|$)")
_ROMAN_BARE = re.compile(r"(?P<number>[IVX]{2,5})\s+(?=[A-Z\u3040-\u9fff])")
_LETTER = re.compile(r"(?P<number>[A-Z])(?P<end>[.:)])\s+(?=\S)|(?P<alone>[A-Z])\s+(?=[A-Z][a-z])")
_PAREN = re.compile(
    r"(?:[(\[](?P<number>[0-9]{1,2}|[a-zA-Z]|[ivx]{1,5})[)\]]|(?P<half>[0-9]{1,2}|[a-z])\))\s*"
)
_NAMED_DECIMAL = re.compile(
    r"[A-Z][a-z]{2,12}\s(?P<number>[0-9]{1,3}(?:\.[0-9]{1,3}){1,4})(?:[.:]?\s+[.:]?\s*|[.:])(?=[A-Z])"
)
_KANA = re.compile(r"[(]?(?P<number>[アイウエオカキクケコ])[).．、\s]\s*")
_SECTION_SIGN = re.compile(r"§+\s*(?P<number>[0-9]{1,4}(?:\.[0-9]{1,3}){0,3}[a-z]?)[.:]?\s*")
_BULLET = re.compile(r"[•●○◦▪■□◆◇▶►➢➤‣⁃✓✔❖·*»\-–—‐・o](?=\s)|[•●▪■◆▶►➢➤‣⁃✓✔❖・○◦](?=\S)")
_KANA_ORDER = "アイウエオカキクケコ"
_KANJI = {c: i for i, c in enumerate("〇一二三四五六七八九")}


def is_bullet(text: str) -> bool:
    """Starts with a bullet, as an item of a list does."""
    return bool(_BULLET.match(text))


def roman_value(text: str) -> int | None:
    """Value of a Roman numeral, None when it is not a well-formed one."""
    text = text.upper()
    if (
        not re.fullmatch(r"M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})", text)
        or not text
    ):
        return None
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    digits = [values[c] for c in text]
    later = [*digits[1:], 0]
    return sum(-a if a < b else a for a, b in zip(digits, later, strict=True))


def _kanji_value(text: str) -> int:
    if text.isdigit():
        return int(text)
    total, unit = 0, 0
    for c in text:
        if c == "十":
            total += (unit or 1) * 10
            unit = 0
        elif c == "百":
            total += (unit or 1) * 100
            unit = 0
        else:
            unit = _KANJI.get(c, 0)
    return total + unit


def _values(number: str) -> tuple[int, ...]:
    out: list[int] = []
    for part in re.split(r"\s?[.・]\s?", number):
        digits = re.match(r"\d+", part)
        if digits:
            out.append(int(digits.group()))
        elif len(part) == 1:
            out.append(ord(part.upper()) - 64)
    return tuple(out) or (0,)


def parse_numbering(text: str) -> Numbering | None:
    """The numbering a line starts with, None when it starts with none."""
    plain = unicodedata.normalize("NFKC", text[:120]).strip()
    if not plain:
        return None

    def found(
        match: re.Match[str], scheme: Scheme, values: tuple[int, ...], dotted: bool = False
    ) -> Numbering:
        label = plain[: match.end()].strip().rstrip(".:") or plain[: match.end()].strip()
        return Numbering(label, scheme, values, plain[match.end() :].strip(), dotted)

    word = _WORD.match(plain)
    if word:
        scheme = Scheme(word.lastgroup or "section")
        after = _AFTER_WORD.match(plain, word.end())
        if after and (after.group("number")[0].isalnum()):
            number = after.group("number")
            roman = roman_value(number) if scheme is not Scheme.APPENDIX else None
            values = (roman,) if roman and not number[0].isdigit() else _values(number)
            return found(after, scheme, values, bool(after.group("end")))
        spelled = _ONE.match(plain, word.end())
        if spelled:
            return found(
                spelled, scheme, (_NUMBER_WORDS.index(spelled.group("number").lower()) + 1,)
            )
        if scheme is Scheme.APPENDIX and re.fullmatch(
            r"(?:appendix|annex|anhang|приложение|付録)", plain, re.IGNORECASE
        ):
            return found(word, scheme, (0,))
    if plain[1:2].islower() and plain[0].isalpha():
        # A word, as most lines start with: of all that follows, only a number behind it can be.
        named = _NAMED_DECIMAL.match(plain)
        if named:
            return found(named, Scheme.DECIMAL, _values(named.group("number")), True)
        return None
    match = _JAPANESE.match(plain)
    if match:
        return found(
            match, _JAPANESE_UNITS[match.group("unit")], (_kanji_value(match.group("number")),)
        )
    match = _SECTION_SIGN.match(plain)
    if match:
        return found(match, Scheme.SECTION, _values(match.group("number")))
    match = _ROMAN_DECIMAL.match(plain)
    if match and roman_value(match.group("roman")):
        tail = tuple(int(x) for x in re.findall(r"\d+", match.group("tail")))
        return found(match, Scheme.DECIMAL, (roman_value(match.group("roman")) or 0, *tail))
    match = _DECIMAL.match(plain)
    if match:
        return found(
            match, Scheme.DECIMAL, _values(match.group("number")), bool(match.group("end"))
        )
    match = _NAMED_DECIMAL.match(plain)  # "Strategy 1.1.2 Operators"
    if match:
        return found(match, Scheme.DECIMAL, _values(match.group("number")), True)
    match = _SINGLE.match(plain)
    if match:
        return found(match, Scheme.DECIMAL, (int(match.group("number")),), bool(match.group("end")))
    match = _ROMAN.match(plain) or _ROMAN_BARE.match(plain)
    if match and (value := roman_value(match.group("number"))):
        return found(match, Scheme.ROMAN, (value,), True)
    match = _LETTER.match(plain)
    if match:
        letter = match.group("number") or match.group("alone")
        return found(match, Scheme.LETTER, (ord(letter) - 64,), bool(match.group("number")))
    match = _PAREN.match(plain)
    if match:
        number = match.group("number") or match.group("half")
        value = int(number) if number.isdigit() else ord(number[0].lower()) - 96
        return found(match, Scheme.PAREN, (value,))
    match = _KANA.match(plain)
    if match:
        return found(match, Scheme.KANA, (_KANA_ORDER.index(match.group("number")) + 1,))
    if "①" <= text.lstrip()[:1] <= "⑳":
        return Numbering(
            text.lstrip()[0], Scheme.KANA, (ord(text.lstrip()[0]) - 0x245F,), text.lstrip()[1:]
        )
    return None
