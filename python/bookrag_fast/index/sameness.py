"""Rules by which two names may be one entity, for use without a model: when in doubt, they are not.

A wrong merge poisons the graph, a missed one costs little. So a rule must explain every difference
between the names: spacing, plural, a company's suffix, a known spelling variant, a rare
misspelling. Names that differ in a number, a letter label, or any whole word stay apart, and so do
opposites, of which none of these rules can speak.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from rapidfuzz.distance import DamerauLevenshtein

from bookrag_fast.index.acronyms import expands, is_acronym
from bookrag_fast.index.lexing import stem
from bookrag_fast.index.model import Entity, normalise_name

__all__ = ["Form", "conflict", "form_of", "may_merge", "rule_for"]

# Types that can name the same thing. Every other type merges with itself only, and the parts of
# the book (sections, tables, images, equations) never merge: two places are two places.
_GROUPS = {
    "concept": "text",
    "name": "text",
    "organization": "text",
    "identifier": "text",
    "term": "text",
    "person": "person",
    "place": "place",
    "header": "header",
}

_WORD = re.compile(r"[^\W_]+")
_SUFFIXES = frozenset(
    "inc incorporated corp corporation co company ltd limited llc plc gmbh".split()
)
# Signs that tell names apart: -b and \\b, C and C++, "sales" and "sales %". A hyphen within a word,
# or brackets around one, do not.
_SIGN = re.compile(
    r"(?<!\w)[-+\u2212]+|[-+\u2212]+(?!\w)|[\\~!#$@*^<>=%\u2030\u20ac\u00a3\u00a5]|\[\]|''|\"\""
)
_ROMAN = re.compile(r"(?=[ivx])(?:x{0,3})(?:ix|iv|v?i{0,3})")
_COUNTS = frozenset(
    """one two three four five six seven eight nine ten first second third fourth fifth sixth
    seventh eighth ninth tenth""".split()
)
# British and American spellings, as rewritings to one form.
_VARIANTS = (
    (re.compile(r"isation"), "ization"),
    (re.compile(r"is(e[drs]?|ing)$"), r"iz\1"),
    (re.compile(r"yse(d|r|s)?$"), r"yze\1"),
    (re.compile(r"(?<=[a-z]{2}[lnbvd])our(?=s?$|able|ed|ing|ite|ful|al|hood)"), "or"),
    (re.compile(r"ogue(s?)$"), r"og\1"),
    (re.compile(r"(?<=[nt])tre(s?)$"), r"ter\1"),
    (re.compile(r"(?<=[cn])tre(s?)$"), r"ter\1"),
    (re.compile(r"ll(ed|ing|er)$"), r"l\1"),
    (re.compile(r"(?<=def)ence|(?<=off)ence|(?<=lic)ence"), "ense"),
    (re.compile(r"grey"), "gray"),
)
_SHORTEST_TYPO = 8  # letters of a word whose misspelling is believed
_TYPO_NODES = 3  # nodes of the right spelling; the wrong one is in one node only


@dataclass(frozen=True, slots=True)
class Form:
    """A name taken apart once for all comparisons."""

    entity: Entity
    group: str
    folded: str
    words: tuple[str, ...]  # casefolded, without a leading "the"
    stems: tuple[str, ...]
    variants: tuple[str, ...]  # stems in one spelling
    numbers: tuple[str, ...]  # runs of digits, roman numerals, single letters, ordinals, in order
    signs: tuple[str, ...]  # that tell names apart, sorted
    bare: tuple[str, ...]  # words without a company's suffix
    acronym: bool  # the name looks like a short form
    squeezed: str  # letters and digits only, without accents


def form_of(entity: Entity) -> Form:
    """The comparable form of an entity's name."""
    folded = normalise_name(entity.name)
    words = tuple(_WORD.findall(folded))
    if len(words) > 1 and words[0] in ("the", "a", "an"):
        words = words[1:]
    stems = tuple(stem(w) for w in words)
    plain = "".join(c for c in unicodedata.normalize("NFKD", folded) if c.isalnum())
    return Form(
        entity,
        _GROUPS.get(entity.type, ""),
        folded,
        words,
        stems,
        tuple(_one_spelling(w) for w in stems),
        tuple(_numbers(words)),
        tuple(sorted(_SIGN.findall(folded))),
        _without_suffix(words),
        is_acronym(entity.name) and " " not in entity.name,
        plain,
    )


def may_merge(a: Form, b: Form) -> bool:
    """Whether the types allow it at all."""
    return bool(a.group) and a.group == b.group


def conflict(a: Form, b: Form) -> bool:
    """Whether two names must stay apart even if a third resembles both."""
    return not may_merge(a, b) or a.numbers != b.numbers or a.signs != b.signs


def rule_for(a: Form, b: Form) -> str:
    """The name of the rule by which a and b are one entity, "" if none says so. Symmetric."""
    if not may_merge(a, b) or not a.words or not b.words:
        return ""
    if a.folded == b.folded:
        return "same name"
    if a.signs != b.signs:
        return ""
    if a.numbers != b.numbers:
        short, long = sorted((a, b), key=lambda f: len(f.folded))
        return "acronym" if _is_acronym_of(short, long) else ""
    if a.stems == b.stems:
        return "same words" if a.words == b.words else "plural"
    if a.squeezed == b.squeezed and len(a.squeezed) > 3:
        return "spacing"
    if a.variants == b.variants:
        return "spelling variant"
    if a.bare == b.bare:
        return "company suffix"
    short, long = sorted((a, b), key=lambda f: (len(f.folded), f.folded))
    if _is_acronym_of(short, long):
        return "acronym"
    if _is_typo(a, b):
        return "misspelling"
    return ""


def _numbers(words: tuple[str, ...]) -> list[str]:
    found = []
    for place, word in enumerate(words):
        found += re.findall(r"\d+", word)
        label = len(word) == 1 and word.isascii() and word.isalpha()
        roman = place > 0 and _ROMAN.fullmatch(word) is not None
        if label or roman or word in _COUNTS:
            found.append(word)
    return found


def _one_spelling(word: str) -> str:
    for pattern, form in _VARIANTS:
        word = pattern.sub(form, word)
    return word


def _without_suffix(words: tuple[str, ...]) -> tuple[str, ...]:
    while len(words) > 1 and words[-1] in _SUFFIXES:
        words = words[:-1]
    return words


def _is_acronym_of(short: Form, long: Form) -> bool:
    if not short.acronym or len(long.words) < 2:
        return False
    return expands(short.entity.name, long.entity.name, every_initial=True)


def _is_typo(a: Form, b: Form) -> bool:
    """One slip of the pen in one long word, made once, of a name that is met elsewhere."""
    if a.group == "person" or len(a.words) != len(b.words):
        return False
    rare, common = sorted((len(a.entity.nodes), len(b.entity.nodes)))
    if rare > 1 or common < _TYPO_NODES:
        return False
    different = [(x, y) for x, y in zip(a.words, b.words, strict=True) if x != y]
    if len(different) != 1:
        return False
    x, y = different[0]
    if min(len(x), len(y)) < _SHORTEST_TYPO or any(c.isdigit() for c in x + y):
        return False
    # Endings inflect and beginnings negate: only the middle of a word is misspelt harmlessly.
    if x[:3] != y[:3] or x[-3:] != y[-3:]:
        return False
    return DamerauLevenshtein.distance(x, y) == 1
