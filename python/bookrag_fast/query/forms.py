"""What form of answer a question asks for, and how well a sentence has that form.

Terms say whether a sentence is about the matter; the form says whether it answers: a number for
"how many", a definition for "what is", the place where an acronym is spelled out. The bonuses are
on the scale of the share of the question that a sentence covers (0 to 1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bookrag_fast.index.model import NodeKind

__all__ = ["AnswerForm", "form_of"]

_VALUE_BONUS = 0.15  # holds a number where one is asked for
_ROW_BONUS = 0.15  # is a table row with a value, where a value is asked for
_DEFINITION_BONUS = 0.45  # says what the thing is, in its first words
_EXPANSION_BONUS = 0.6  # spells the acronym out
_CODE_MALUS = 0.35  # code shows how to write a thing, not what it is
_CAPTION_MALUS = 0.15  # a caption names what it shows; the text says it
_LEADS_IN_MALUS = 0.3  # "… were as follows:" answers nothing
_FRAGMENT_MALUS = 0.3  # a bare heading or a question answers nothing
_FRAGMENT = 25  # characters

_WANTS_VALUE = re.compile(
    r"\b(?:how (?:many|much|long|old|far|often|large|big|high|thick)|when|which year|default"
    r"|what (?:was|is|were|are) (?:the |its )?(?:\w+ ){0,3}(?:amount|number|rate|ratio|percent\w*"
    r"|total|value|price|cost|revenue|income|share|year|date|age|size|length|weight|tolerance"
    r"|threshold|limit|temperature|pressure))"
    r"|\bwhat (?:year|percentage|percent|number|amount)\b|いくつ|いくら|何[年月日人個件回％%]",
    re.I,
)
_WANTS_EXPANSION = re.compile(
    r"stands? for|\bmeans?\b|abbreviat|acronym|short for|spelled out|の略|とは", re.I
)
_WANTS_CODE = re.compile(
    r"\b(?:code|command|function|method|option|flag|syntax|example|script|call|run|type|api|how"
    r" (?:do|can|to))\b",
    re.I,
)
_WANTS_FIGURE = re.compile(r"\b(?:figure|fig\.|image|picture|chart|diagram|drawing|photo)|図", re.I)
_WANTS_LIST = re.compile(
    r"^(?:please )?(?:list|enumerate|name)\b|^(?:what|which) are\b|列挙|一覧", re.I
)
_THING = re.compile(
    r"^(?:what (?:is|are|was|were)|who (?:is|was)|define|explain|what does)\s+(?:an?\s+|the\s+)?"
    r"(?P<thing>.+?)(?:\s+(?:mean|stand for))?\s*[?？.]*$",
    re.I,
)
_LONGEST_THING = 5  # words; a longer "what is …" asks for a fact, not for a definition
_ACRONYM = re.compile(r"(?<!\w)[A-Z](?=[A-Za-z]{0,30}[A-Z])[A-Za-z0-9-]{1,40}(?!\w)")
_MOST_ACRONYMS = 8  # of one question whose long forms are looked for
# A number that says which equation, table or section, not how much.
_REFERENCE = re.compile(
    r"\b(?:equation|eq\.|table|figure|fig\.|section|chapter|appendix|page|p\.|listing|note|step"
    r"|item)s?\s*\d+(?:\.\d+)*|^\d+(?:\.\d+)+\s",
    re.I,
)
_DIGIT = re.compile(r"\d")
_NOT_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What a question asks for. Made once a question by `form_of`."""

    value: bool
    whole_list: bool
    code: bool
    figure: bool
    definition: re.Pattern[str] | None
    expansions: tuple[re.Pattern[str], ...]
    asked: str  # the question's bare words, to know it when a book quotes it

    def bonus(self, text: str, kind: str) -> float:
        """How much better (or worse) a sentence answers for its form than for its terms."""
        score = 0.0
        if self.value and _DIGIT.search(_REFERENCE.sub("", text)):
            score += _VALUE_BONUS
            if kind == NodeKind.TABLE.label:
                score += _ROW_BONUS
        if kind == NodeKind.CODE.label and not self.code:
            score -= _CODE_MALUS
        if kind == NodeKind.IMAGE.label and not self.figure:
            score -= _CAPTION_MALUS
        if self.definition and self.definition.search(text):
            score += _DEFINITION_BONUS
        if self.expands(text):
            score += _EXPANSION_BONUS
        if text.endswith((":", "：")):
            score -= _LEADS_IN_MALUS
        if len(text) < _FRAGMENT or text.endswith(("?", "？")):
            score -= _FRAGMENT_MALUS
        return score

    def expands(self, text: str) -> bool:
        """Whether the text spells out an acronym that the question asks about."""
        return any(pattern.search(text) for pattern in self.expansions)

    def repeats_question(self, text: str) -> bool:
        """Whether the text quotes the question: it holds all its words and no answer."""
        return len(self.asked) > 12 and self.asked in _bare(text)


def form_of(question: str) -> AnswerForm:
    thing = _THING.match(question)
    words = thing.group("thing") if thing else ""
    definition = None
    if words and len(words.split()) <= _LONGEST_THING:
        definition = re.compile(
            rf"^\W{{0,3}}(?:an?\s+|the\s+)?{re.escape(words)}\w{{0,2}}\s*(?:\([^)]*\)\s*)?[,”\"’']?\s*"
            r"(?:is|are|was|were|means?|refers? to|denotes?|consists? of|stands? for|ties?|joins?"
            r"|holds?|maps?|とは|は|:|：|—|–|\|)(?!\w)",
            re.I,
        )
    expansions: tuple[re.Pattern[str], ...] = ()
    if _WANTS_EXPANSION.search(question):
        expansions = tuple(
            re.compile(rf"\({a}\)|(?<!\w){a}\s*(?:\(\w|[:—–|=]|stands for|is short for)")
            for a in map(
                re.escape, list(dict.fromkeys(_ACRONYM.findall(question)))[:_MOST_ACRONYMS]
            )
        )
    return AnswerForm(
        value=bool(_WANTS_VALUE.search(question)),
        whole_list=bool(_WANTS_LIST.search(question)),
        code=bool(_WANTS_CODE.search(question)),
        figure=bool(_WANTS_FIGURE.search(question)),
        definition=definition,
        expansions=expansions,
        asked=_bare(question),
    )


def _bare(text: str) -> str:
    return _NOT_WORD.sub(" ", text.casefold()).strip()
