"""What travels through a query: the plan, the evidence, the trace and the answer.

These are plain values: every operator imports this module, none imports the executor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from bookrag_fast.document.model import Region

__all__ = [
    "Answer",
    "Category",
    "Citation",
    "Evidence",
    "Filter",
    "FilterType",
    "Operation",
    "OperatorTrace",
    "QueryPlan",
    "SearchResult",
    "Step",
    "Trace",
    "Usage",
]


class Category(str, Enum):
    SINGLE_HOP = "single-hop"
    MULTI_HOP = "multi-hop"
    GLOBAL = "global"


class FilterType(str, Enum):
    SECTION = "section"
    IMAGE = "image"
    TABLE = "table"
    PAGE = "page"


class Operation(str, Enum):
    COUNT = "COUNT"
    LIST = "LIST"
    SUMMARIZE = "SUMMARIZE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, slots=True)
class Filter:
    """One structural filter of a global question. ``value`` is None for image and table."""

    type: FilterType
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of the plan, by its name in the paper, with its parameters."""

    operator: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A classified question and the operators that answer it, in order."""

    question: str
    category: Category
    steps: tuple[Step, ...]
    filters: tuple[Filter, ...] = ()
    operation: Operation | None = None
    sub_plans: tuple[QueryPlan, ...] = ()
    synthesis: tuple[str, ...] = ()  # sub-questions that need no new look-up
    reason: str = ""  # which rule or model decided

    def to_json(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "category": self.category.value,
            "steps": [{"operator": s.operator, "params": s.params} for s in self.steps],
            "filters": [
                {"filter_type": f.type.value, "filter_value": f.value} for f in self.filters
            ],
            "operation": self.operation.value if self.operation else None,
            "sub_plans": [p.to_json() for p in self.sub_plans],
            "synthesis": list(self.synthesis),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Evidence:
    """A tree node that speaks to the question.

    ``pages`` are physical and 1-based, ``labels`` the printed ones beside them, ``boxes`` the
    regions in points from the top left of the page; all three are empty for a format without pages.
    ``scores`` names each score that ranked it.
    """

    book: str
    node_id: int
    kind: str
    text: str
    pages: tuple[int, ...]
    labels: tuple[str | None, ...]
    boxes: tuple[Region, ...]
    section: tuple[str, ...]
    scores: dict[str, float]
    tokens: int

    def to_json(self) -> dict[str, Any]:
        return {
            "book": self.book,
            "node_id": self.node_id,
            "kind": self.kind,
            "pages": list(self.pages),
            "labels": list(self.labels),
            "boxes": [{"page": r.page, "bbox": [round(v, 2) for v in r.bbox]} for r in self.boxes],
            "section": list(self.section),
            "text": self.text,
            "scores": {k: round(v, 6) for k, v in self.scores.items()},
            "tokens": self.tokens,
        }


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a statement of the answer stands. ``quote`` is the cited text itself."""

    book: str
    node_id: int
    pages: tuple[int, ...]
    labels: tuple[str | None, ...]
    boxes: tuple[Region, ...]
    section: tuple[str, ...]
    quote: str

    def to_json(self) -> dict[str, Any]:
        return {
            "book": self.book,
            "node_id": self.node_id,
            "pages": list(self.pages),
            "labels": list(self.labels),
            "boxes": [{"page": r.page, "bbox": [round(v, 2) for v in r.bbox]} for r in self.boxes],
            "section": list(self.section),
            "quote": self.quote,
        }


@dataclass(frozen=True, slots=True)
class OperatorTrace:
    """What one operator did: sizes, scores and how long it took."""

    operator: str
    ms: float
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    operators: tuple[OperatorTrace, ...]

    def timings_ms(self) -> dict[str, float]:
        """Milliseconds by operator; an operator that ran several times is summed."""
        total: dict[str, float] = {}
        for op in self.operators:
            total[op.operator] = total.get(op.operator, 0.0) + op.ms
        return {name: round(ms, 3) for name, ms in total.items()}

    def to_json(self) -> list[dict[str, Any]]:
        return [{"operator": o.operator, "ms": round(o.ms, 3), **o.detail} for o in self.operators]


@dataclass(frozen=True, slots=True)
class Usage:
    """What the answer cost. Offline answers use evidence tokens only."""

    evidence_tokens: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model_calls: int = 0

    def to_json(self) -> dict[str, int]:
        return {
            "evidence_tokens": self.evidence_tokens,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "model_calls": self.model_calls,
        }


@dataclass(frozen=True, slots=True)
class SearchResult:
    evidence: tuple[Evidence, ...]
    plan: QueryPlan
    trace: Trace
    notes: tuple[str, ...] = ()  # what could not be done as asked, in words
    usage: Usage = Usage()

    def to_json(self) -> dict[str, Any]:
        return {
            "evidence": [e.to_json() for e in self.evidence],
            "plan": self.plan.to_json(),
            "timings_ms": self.trace.timings_ms(),
            "notes": list(self.notes),
            **({"usage": self.usage.to_json()} if self.usage.model_calls else {}),
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with where it comes from. ``enough`` says whether the evidence carried it."""

    text: str
    citations: tuple[Citation, ...]
    plan: QueryPlan
    trace: Trace
    usage: Usage
    enough: bool
    notes: tuple[str, ...] = ()  # what could not be done as asked, in words

    def to_json(self) -> dict[str, Any]:
        return {
            "answer": self.text,
            "notes": list(self.notes),
            "citations": [c.to_json() for c in self.citations],
            "plan": self.plan.to_json(),
            "trace": self.trace.to_json(),
            "timings_ms": self.trace.timings_ms(),
            "usage": self.usage.to_json(),
            "enough": self.enough,
        }
