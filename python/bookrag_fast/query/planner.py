"""The offline planner: classifies a question by rules and lays out the operators.

A question stays single-hop unless its very form says otherwise: over-decomposition is the known
fault of planners. Global needs an aggregation over something structural ("How many tables are in
Chapter 3?") with nothing else asked; a comparison of two named things is multi-hop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bookrag_fast.query.plan import Category, Filter, FilterType, Operation, QueryPlan, Step

__all__ = [
    "digest_plan",
    "multi_hop",
    "plan_question",
    "seems_global",
    "single_hop",
    "structural_plan",
]

# What can be counted or listed: word → (filter, depth of sections or None for any).
_THINGS: dict[str, tuple[FilterType, int | None]] = {
    **dict.fromkeys(("table", "tables"), (FilterType.TABLE, None)),
    **dict.fromkeys(
        ("figure", "figures", "image", "images", "picture", "pictures", "illustration",
         "illustrations"),
        (FilterType.IMAGE, None),
    ),
    **dict.fromkeys(("chapter", "chapters"), (FilterType.SECTION, 2)),
    **dict.fromkeys(
        ("section", "sections", "heading", "headings", "subsection", "subsections"),
        (FilterType.SECTION, None),
    ),
    **dict.fromkeys(("page", "pages"), (FilterType.PAGE, None)),
}  # fmt: skip
_THING = "|".join(sorted(_THINGS, key=len, reverse=True))
_JA_THINGS = {
    "表": (FilterType.TABLE, None),
    "テーブル": (FilterType.TABLE, None),
    "図": (FilterType.IMAGE, None),
    "画像": (FilterType.IMAGE, None),
    "章": (FilterType.SECTION, 2),
    "節": (FilterType.SECTION, None),
    "セクション": (FilterType.SECTION, None),
    "ページ": (FilterType.PAGE, None),
}
_JA_THING = "|".join(_JA_THINGS)

_COUNT = re.compile(
    rf"^(?:how many|(?:what is |give |tell me )?(?:the )?(?:total )?(?:number|count) of|count)"
    rf"(?: all)?(?: of)?(?: the)? (?:numbered )?({_THING})\b(.*)$",
    re.I,
)
_COUNT_PAIR = re.compile(rf"^how many ({_THING})\s*(?:,|&|and|or)\s*({_THING})\b(.*)$", re.I)
_LIST = re.compile(
    rf"^(?:please )?(?:list|enumerate|show|name|give)(?: me)?(?: all)?(?: of)?(?: the)?"
    rf"(?: titles of(?: the| all)*)? ({_THING})\b(.*)$"
    rf"|^(?:what|which) are(?: all)? the ({_THING})\b(.*)$",
    re.I,
)
_SUMMARIZE = re.compile(
    r"^(?:please )?(?:summari[sz]e|give (?:me )?a summary of|what is the summary of)\s+(.+)$", re.I
)
_JA_COUNT = re.compile(
    rf"({_JA_THING})(?:は|の数は|が)?(?:全部で|合計で)?(?:いくつ|何個|何枚|何|数)"
)
_JA_LIST = re.compile(rf"({_JA_THING})を?(?:すべて|全て|全部)?(?:列挙|一覧|リスト)")

# What else is mostly said of everything: a hint, no pattern to plan by.
_WHOLE = re.compile(
    r"\bsummar(?:y|i[sz]e)\b|\boverview\b|要約|概要|まとめ"
    r"|\b(?:tables|figures|images|pictures|illustrations|chapters|sections)\b(?!\s*\d)",
    re.I,
)

# Words that may surround the counted thing without asking for anything more.
_STRUCTURAL = frozenset(
    (
        "in the this that of on from to and are is there does do it its have has contain contains "
        "containing include includes included appear appears total all altogether whole entire "
        "document book report paper handbook manual file pdf article guide text present overall "
        "shown numbered given many how between through up"
    ).split()
)

_SPAN = r"\d+(?:\s*(?:[-–—]|to|through)\s*\d+|\s*[-–—](?!\s*\w))?"
_PAGES = re.compile(
    rf"\bpages?\s+({_SPAN}(?:\s*(?:,|,?\s*and)\s*{_SPAN})*"
    r"|[ivxlc]+(?:\s*(?:[-–—]|to|through)\s*[ivxlc]+)?\b)",
    re.I,
)
_PAGE_TO_PAGE = re.compile(
    r"\bpages?\s+(\d+)\s*(?:to|through|until|and|[-–—])\s*pages?\s+(\d+)\b", re.I
)
_JA_PAGES = re.compile(r"(?<!\d)(?:(\d+)\s*(?:[-–—~〜～]|から)\s*(\d+)\s*ページ|(\d+)\s*ページ目?)")
_MOST_PAGES = 16  # page ranges of one question that are looked up
_SECTION_NUMBER = re.compile(
    r"\b((?:chapter|section|part|appendix|annex)\s+(?:\d+(?:\.\d+)*|[A-Z]\b(?:\.\d+)*|[IVXLC]+\b))",
    re.I,
)
_SECTION_TITLE = re.compile(
    r"\bin(?:\s+the)?\s+[\"“'‘]?([^\"”'’?]{1,200}?)[\"”'’]?\s+(?:chapter|section)\b"
    r"|\b(?:chapter|section)s?\s+[\"“'‘]([^\"”'’]{1,200})[\"”'’]",
    re.I,
)
_JA_SECTION = re.compile(r"(第\s*[0-9〇一二三四五六七八九十]+\s*[章節部編])")

_COMPARE = re.compile(
    r"^(?:what(?:'s| is| are) the differences? between|what distinguishes|compare|contrast"
    r"|how (?:do|does) (.+?) (?:differ from|compare (?:to|with)))\s+(.*)$",
    re.I,
)
_PAIR = re.compile(r"^(.+?)\s+(?:and|with|to|versus|vs\.?|from)\s+(.+?)$", re.I)

_SINGLE_HOP = (
    "Extract",
    "Select_by_Entity",
    "Select_by_Section",
    "Graph_Reasoning",
    "Text_Reasoning",
    "Skyline_Ranker",
    "Map",
    "Reduce",
)


def plan_question(question: str) -> QueryPlan:
    """Classify a question and plan its operators. Never fails: the fallback is single-hop."""
    text = _PAGE_TO_PAGE.sub(r"pages \1-\2", " ".join(question.split()).rstrip("?？。. "))
    return (
        _plan_counts(question, text)
        or _plan_global(question, text)
        or _plan_comparison(question, text)
        or single_hop(question)
    )


def seems_global(question: str) -> bool:
    """Whether a question sounds like one over everything, whatever else it asks: a model may well
    plan it as global where no rule can."""
    text = " ".join(question.split())
    forms = (_COUNT, _COUNT_PAIR, _LIST, _SUMMARIZE)
    words = (_JA_COUNT, _JA_LIST, _WHOLE)
    return any(form.match(text) for form in forms) or any(word.search(text) for word in words)


# --- single-hop -------------------------------------------------------------------------------


def single_hop(question: str, reason: str = "one place may answer it") -> QueryPlan:
    filters = tuple(
        Filter(FilterType.PAGE, p)
        for p in _named_pages(_PAGE_TO_PAGE.sub(r"pages \1-\2", question))
    )
    steps = [Step(name) for name in _SINGLE_HOP]
    if filters:
        # A page that the question names is where to look, not the only place: the operator adds
        # its nodes to the selection and puts them first.
        steps.insert(3, Step("Filter_Range", {"pages": [f.value for f in filters]}))
    return QueryPlan(question, Category.SINGLE_HOP, tuple(steps), filters, reason=reason)


def _named_pages(text: str) -> list[str]:
    pages = [_tidy(m.group(1)) for m in _PAGES.finditer(text)]
    pages += [_ja_pages(m) for m in _JA_PAGES.finditer(text)]
    return list(dict.fromkeys(pages))[:_MOST_PAGES]


def _ja_pages(match: re.Match[str]) -> str:
    return match.group(3) or f"{match.group(1)}-{match.group(2)}"


def _tidy(pages: str) -> str:
    joined = re.sub(r"\s*(?:to|through|[–—])\s*", "-", pages.strip(), flags=re.I)
    return re.sub(r"\s*,?\s*and\s*", ",", joined, flags=re.I)


# --- global -----------------------------------------------------------------------------------


def _plan_counts(question: str, text: str) -> QueryPlan | None:
    """Several counts in one question: "How many tables are there and how many figures?"."""
    parts = re.split(r",?\s+and\s+(?=how many\b)", text, flags=re.I)
    if len(parts) == 1 and (pair := _COUNT_PAIR.match(text)):
        parts = [f"how many {thing}{pair.group(3)}" for thing in (pair.group(1), pair.group(2))]
    if len(parts) == 1:
        return None
    subs = [_plan_global(part, part) for part in parts]
    if not all(sub is not None and sub.operation is Operation.COUNT for sub in subs):
        return None
    return QueryPlan(
        question,
        Category.MULTI_HOP,
        (Step("Decompose"), Step("Map"), Step("Reduce", {"operation": Operation.COUNT.value})),
        sub_plans=tuple(sub for sub in subs if sub is not None),
        synthesis=(question,),
        reason="several counts of structure",
    )


def _plan_global(question: str, text: str) -> QueryPlan | None:
    if match := _SUMMARIZE.match(text):
        return _plan_summary(question, match.group(1))
    for pattern, operation in ((_COUNT, Operation.COUNT), (_LIST, Operation.LIST)):
        if match := pattern.match(text):
            thing, rest = (g for g in match.groups() if g is not None)
            kind, depth = _THINGS[thing.lower()]
            filters, residue = _structural_filters(rest)
            if residue:
                return None  # asks for something that structure alone does not tell
            return structural_plan(question, kind, depth, filters, operation)
    for pattern, operation in ((_JA_COUNT, Operation.COUNT), (_JA_LIST, Operation.LIST)):
        if match := pattern.search(text):
            kind, depth = _JA_THINGS[match.group(1)]
            filters, _ = _structural_filters(text[: match.start()])
            return structural_plan(question, kind, depth, filters, operation)
    return None


def structural_plan(
    question: str,
    kind: FilterType,
    depth: int | None,
    filters: Sequence[Filter],
    operation: Operation,
    reason: str = "",
) -> QueryPlan:
    """COUNT or LIST of one kind of thing (of sections perhaps at one depth) inside filters."""
    steps = _filter_steps(filters)
    if kind is FilterType.SECTION:
        steps.append(Step("Select_by_Section", {"section": None, "depth": depth}))
    elif kind is not FilterType.PAGE:
        steps.append(Step("Filter_Modal", {"kind": kind.value}))
    steps += [Step("Map"), Step("Reduce", {"operation": operation.value})]
    return QueryPlan(
        question,
        Category.GLOBAL,
        tuple(steps),
        (*filters, Filter(kind)),
        operation,
        reason=reason or f"{operation.value} of everything that a structural filter selects",
    )


def _plan_summary(question: str, what: str) -> QueryPlan | None:
    filters, residue = _structural_filters(what)
    if not filters or residue:
        return None
    return digest_plan(question, filters, Operation.SUMMARIZE, "SUMMARIZE of a named part")


def digest_plan(
    question: str, filters: Sequence[Filter], operation: Operation, reason: str
) -> QueryPlan:
    """SUMMARIZE or ANALYZE of what filters select; of everything without one."""
    steps = [
        *_filter_steps(filters),
        Step("Map"),
        Step("Reduce", {"operation": operation.value}),
    ]
    return QueryPlan(
        question, Category.GLOBAL, tuple(steps), tuple(filters), operation, reason=reason
    )


def _filter_steps(filters: Sequence[Filter]) -> list[Step]:
    steps = []
    for item in filters:
        if item.type is FilterType.PAGE:
            steps.append(Step("Filter_Range", {"pages": item.value}))
        elif item.type is FilterType.SECTION:
            steps.append(Step("Select_by_Section", {"section": item.value}))
        else:
            steps.append(Step("Filter_Modal", {"kind": item.type.value}))
    return steps


def _structural_filters(text: str) -> tuple[list[Filter], list[str]]:
    """Filters named in the rest of a question, and the words that no filter explains."""
    filters = [Filter(FilterType.PAGE, _tidy(m.group(1))) for m in _PAGES.finditer(text)]
    rest = _PAGES.sub(" ", text)
    filters += [Filter(FilterType.PAGE, _ja_pages(m)) for m in _JA_PAGES.finditer(rest)]
    del filters[_MOST_PAGES:]
    rest = _JA_PAGES.sub(" ", rest)
    for pattern in (_SECTION_NUMBER, _JA_SECTION, _SECTION_TITLE):
        named = pattern.search(rest)
        if named is None:
            continue
        value = next(g for g in named.groups() if g)
        if value.lower() not in ("this", "each", "every", "the"):
            filters.append(Filter(FilterType.SECTION, value.strip()))
            rest = rest[: named.start()] + " " + rest[named.end() :]
        break
    words = re.findall(r"[^\W_]+", rest.lower())
    return filters, [w for w in words if w not in _STRUCTURAL]


# --- multi-hop --------------------------------------------------------------------------------


def _plan_comparison(question: str, text: str) -> QueryPlan | None:
    match = _COMPARE.match(text)
    if match is None:
        return None
    if match.group(1):
        sides = (match.group(1), match.group(2))
    elif pair := _PAIR.match(match.group(2)):
        sides = (pair.group(1), pair.group(2))
    else:
        return None
    subs = [single_hop(f"What is {side.strip()}?", "one side of it") for side in sides]
    return multi_hop(question, subs, (question,), "a comparison of two named things")


def multi_hop(
    question: str, subs: Sequence[QueryPlan], synthesis: Sequence[str], reason: str
) -> QueryPlan:
    """Several look-ups that do not depend on each other, and what is to be made of them."""
    return QueryPlan(
        question,
        Category.MULTI_HOP,
        (Step("Decompose"), *(Step(name) for name in _SINGLE_HOP)),
        sub_plans=tuple(subs),
        synthesis=tuple(synthesis),
        reason=reason,
    )
