"""Between our dataclasses and the messages of bookrag.v1, in both directions.

The only module that knows both. Decoding is for the client: a value that this version does not
know (a newer server's enum) is an error that says so, never a guess.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

from google.protobuf import struct_pb2

from bookrag_fast.document.model import BBox, Region
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.library.types import AnswerEvent, Book, Progress, TreeNode
from bookrag_fast.models.protocols import TokenUsage
from bookrag_fast.query.plan import (
    Answer,
    Category,
    Citation,
    Evidence,
    Filter,
    FilterType,
    Operation,
    OperatorTrace,
    QueryPlan,
    SearchResult,
    Step,
    Trace,
    Usage,
)
from bookrag_fast.server.errors import RemoteError
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb

__all__ = [
    "answer_event_from",
    "answer_event_to",
    "answer_from",
    "answer_to",
    "book_from",
    "book_to",
    "progress_from",
    "progress_to",
    "search_result_from",
    "search_result_to",
    "tree_from",
    "tree_to",
]

_CATEGORY = {
    Category.SINGLE_HOP: pb.QueryPlan.CATEGORY_SINGLE_HOP,
    Category.MULTI_HOP: pb.QueryPlan.CATEGORY_MULTI_HOP,
    Category.GLOBAL: pb.QueryPlan.CATEGORY_GLOBAL,
}
_OPERATION = {
    Operation.COUNT: pb.QueryPlan.OPERATION_COUNT,
    Operation.LIST: pb.QueryPlan.OPERATION_LIST,
    Operation.SUMMARIZE: pb.QueryPlan.OPERATION_SUMMARIZE,
    Operation.ANALYZE: pb.QueryPlan.OPERATION_ANALYZE,
}
_FILTER = {
    FilterType.SECTION: pb.Filter.TYPE_SECTION,
    FilterType.IMAGE: pb.Filter.TYPE_IMAGE,
    FilterType.TABLE: pb.Filter.TYPE_TABLE,
    FilterType.PAGE: pb.Filter.TYPE_PAGE,
}
_E = TypeVar("_E", bound=Enum)


def _known(table: Mapping[_E, int], number: int, what: str) -> _E:
    for value, known in table.items():
        if known == number:
            return value
    raise RemoteError(
        f"the server sent {what} {number}, which this client does not know",
        "upgrade the client to the server's version",
    )


# --- free-form parameters ---------------------------------------------------------------------


def _value_to(value: Any) -> struct_pb2.Value:
    """As JSON would hold it. What JSON cannot hold (NaN, bytes, objects) becomes its text, since
    a trace that explains an answer must never be the reason that the answer is lost."""
    if isinstance(value, Enum):
        value = value.value
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):  # a NumPy scalar
        value = value.item() if getattr(value, "ndim", 0) == 0 else value.tolist()
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, (int, float)):
        return (
            struct_pb2.Value(number_value=value)
            if math.isfinite(value)
            else struct_pb2.Value(string_value=str(value))
        )
    if isinstance(value, Mapping):
        return struct_pb2.Value(struct_value=_struct_to(value))
    if isinstance(value, (list, tuple, set, frozenset)):
        return struct_pb2.Value(
            list_value=struct_pb2.ListValue(values=[_value_to(v) for v in value])
        )
    return struct_pb2.Value(string_value=_text(str(value)))


def _struct_to(values: Mapping[Any, Any]) -> struct_pb2.Struct:
    return struct_pb2.Struct(fields={_text(str(k)): _value_to(v) for k, v in values.items()})


def _value_from(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _struct_from(value.struct_value)
    if kind == "list_value":
        return [_value_from(v) for v in value.list_value.values]
    if kind == "number_value":  # a Struct has doubles only; whole numbers were counts
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "string_value":
        return value.string_value
    return None


def _struct_from(struct: struct_pb2.Struct) -> dict[str, Any]:
    return {key: _value_from(value) for key, value in struct.fields.items()}


def _text(text: str) -> str:
    """protobuf strings are UTF-8; a PDF's broken font map can yield lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


# --- books ------------------------------------------------------------------------------------


def book_to(book: Book) -> pb.Book:
    return pb.Book(
        id=book.id,
        title=_text(book.title),
        name=_text(book.name),
        pages=book.pages,
        nodes=book.nodes,
        entities=book.entities,
        relations=book.relations,
        sha256=book.sha256,
        embedder=book.embedder,
        created=book.created,
        toc_source=book.toc_source,
        warnings=[_text(w) for w in book.warnings],
        confidence=book.confidence,
        models=[_use_to(use) for use in book.models],
    )


def _use_to(use: ModelUse) -> pb.ModelUse:
    return pb.ModelUse(
        role=use.role,
        name=_text(use.name),
        model=_text(use.model),
        usd=use.usd,
        fallbacks=use.fallbacks,
        **dataclasses.asdict(use.usage),
    )


def _use_from(message: pb.ModelUse) -> ModelUse:
    usage = TokenUsage(
        message.prompt_tokens, message.completion_tokens, message.calls, message.cached
    )
    return ModelUse(
        message.role, message.name, message.model, usage, message.usd, message.fallbacks
    )


def book_from(message: pb.Book) -> Book:
    return Book(
        id=message.id,
        title=message.title,
        name=message.name,
        pages=message.pages,
        nodes=message.nodes,
        entities=message.entities,
        relations=message.relations,
        sha256=message.sha256,
        embedder=message.embedder,
        created=message.created,
        toc_source=message.toc_source,
        warnings=tuple(message.warnings),
        confidence=message.confidence if message.HasField("confidence") else None,
        models=tuple(map(_use_from, message.models)),
    )


def progress_to(progress: Progress) -> pb.IndexProgress:
    return pb.IndexProgress(
        stage=progress.stage,
        done=progress.done,
        total=progress.total,
        unit=progress.unit,
        rate=progress.rate,
        eta_s=progress.eta_s,
    )


def progress_from(message: pb.IndexProgress) -> Progress:
    return Progress(
        stage=message.stage,
        done=message.done,
        total=message.total if message.HasField("total") else None,
        unit=message.unit,
        rate=message.rate if message.HasField("rate") else None,
        eta_s=message.eta_s if message.HasField("eta_s") else None,
    )


# --- the tree ---------------------------------------------------------------------------------


def tree_to(root: TreeNode, *, omit_text: bool = False) -> list[pb.TreeNode]:
    """Flattened in pre-order; without recursion, for trees of any depth."""
    nodes: list[pb.TreeNode] = []
    waiting = [(root, -1)]
    while waiting:
        node, parent = waiting.pop()
        nodes.append(
            pb.TreeNode(
                node_id=node.node_id,
                parent=parent,
                kind=node.kind,
                level=node.level,
                title=_text(node.title),
                page=node.page,
                page_last=node.page_last,
                label=None if node.label is None else _text(node.label),
                text="" if omit_text else _text(node.text),
                evidence=node.evidence,
                confidence=node.confidence,
                summary=_text(node.summary),
            )
        )
        waiting.extend((child, node.node_id) for child in reversed(node.children))
    return nodes


def tree_from(nodes: Sequence[pb.TreeNode]) -> TreeNode:
    """Rebuilt from the last node to the first: children are complete before their parent."""
    children: dict[int, list[TreeNode]] = {}
    for message in reversed(nodes):
        own = children.pop(message.node_id, [])
        own.reverse()
        node = TreeNode(
            node_id=message.node_id,
            kind=message.kind,
            level=message.level,
            title=message.title,
            page=message.page,
            page_last=message.page_last,
            label=message.label if message.HasField("label") else None,
            text=message.text,
            children=tuple(own),
            evidence=tuple(message.evidence),
            confidence=message.confidence if message.HasField("confidence") else None,
            summary=message.summary,
        )
        if message.parent < 0:
            return node
        children.setdefault(message.parent, []).append(node)
    raise RemoteError("the server sent a tree without a root")


# --- evidence and citations -------------------------------------------------------------------


def _pages_to(pages: Sequence[int], labels: Sequence[str | None]) -> list[pb.PageRef]:
    padded = [*labels, *[None] * (len(pages) - len(labels))]
    return [
        pb.PageRef(number=page, label=None if label is None else _text(label))
        for page, label in zip(pages, padded, strict=False)
    ]


def _pages_from(pages: Iterable[pb.PageRef]) -> tuple[tuple[int, ...], tuple[str | None, ...]]:
    refs = list(pages)
    return (
        tuple(ref.number for ref in refs),
        tuple(ref.label if ref.HasField("label") else None for ref in refs),
    )


def _boxes_to(regions: Iterable[Region]) -> list[pb.Box]:
    return [
        pb.Box(page=r.page, x0=r.bbox[0], y0=r.bbox[1], x1=r.bbox[2], y1=r.bbox[3]) for r in regions
    ]


def _boxes_from(boxes: Iterable[pb.Box]) -> tuple[Region, ...]:
    return tuple(Region(b.page, BBox(b.x0, b.y0, b.x1, b.y1)) for b in boxes)


def _evidence_to(evidence: Evidence) -> pb.Evidence:
    return pb.Evidence(
        book=evidence.book,
        node_id=evidence.node_id,
        kind=evidence.kind,
        text=_text(evidence.text),
        pages=_pages_to(evidence.pages, evidence.labels),
        boxes=_boxes_to(evidence.boxes),
        section=[_text(s) for s in evidence.section],
        scores={k: float(v) for k, v in evidence.scores.items()},
        tokens=evidence.tokens,
    )


def _evidence_from(message: pb.Evidence) -> Evidence:
    pages, labels = _pages_from(message.pages)
    return Evidence(
        book=message.book,
        node_id=message.node_id,
        kind=message.kind,
        text=message.text,
        pages=pages,
        labels=labels,
        boxes=_boxes_from(message.boxes),
        section=tuple(message.section),
        scores=dict(message.scores),
        tokens=message.tokens,
    )


def _citation_to(citation: Citation) -> pb.Citation:
    return pb.Citation(
        book=citation.book,
        node_id=citation.node_id,
        pages=_pages_to(citation.pages, citation.labels),
        boxes=_boxes_to(citation.boxes),
        section=[_text(s) for s in citation.section],
        quote=_text(citation.quote),
    )


def _citation_from(message: pb.Citation) -> Citation:
    pages, labels = _pages_from(message.pages)
    return Citation(
        book=message.book,
        node_id=message.node_id,
        pages=pages,
        labels=labels,
        boxes=_boxes_from(message.boxes),
        section=tuple(message.section),
        quote=message.quote,
    )


# --- plan, trace, results ---------------------------------------------------------------------


def _plan_to(plan: QueryPlan) -> pb.QueryPlan:
    return pb.QueryPlan(
        question=_text(plan.question),
        category=_CATEGORY[plan.category],
        steps=[pb.Step(operator=s.operator, params=_struct_to(s.params)) for s in plan.steps],
        filters=[
            pb.Filter(type=_FILTER[f.type], value=None if f.value is None else _text(f.value))
            for f in plan.filters
        ],
        operation=(
            pb.QueryPlan.OPERATION_UNSPECIFIED
            if plan.operation is None
            else _OPERATION[plan.operation]
        ),
        sub_plans=[_plan_to(p) for p in plan.sub_plans],
        synthesis=[_text(s) for s in plan.synthesis],
        reason=_text(plan.reason),
    )


def _plan_from(message: pb.QueryPlan) -> QueryPlan:
    return QueryPlan(
        question=message.question,
        category=_known(_CATEGORY, message.category, "question category"),
        steps=tuple(Step(s.operator, _struct_from(s.params)) for s in message.steps),
        filters=tuple(
            Filter(_known(_FILTER, f.type, "filter type"), f.value if f.HasField("value") else None)
            for f in message.filters
        ),
        operation=(
            None
            if message.operation == pb.QueryPlan.OPERATION_UNSPECIFIED
            else _known(_OPERATION, message.operation, "operation")
        ),
        sub_plans=tuple(_plan_from(p) for p in message.sub_plans),
        synthesis=tuple(message.synthesis),
        reason=message.reason,
    )


def _trace_to(trace: Trace) -> pb.Trace:
    return pb.Trace(
        operators=[
            pb.OperatorTrace(operator=o.operator, ms=o.ms, detail=_struct_to(o.detail))
            for o in trace.operators
        ]
    )


def _trace_from(message: pb.Trace) -> Trace:
    return Trace(
        tuple(OperatorTrace(o.operator, o.ms, _struct_from(o.detail)) for o in message.operators)
    )


def search_result_to(result: SearchResult) -> pb.SearchResponse:
    return pb.SearchResponse(
        evidence=[_evidence_to(e) for e in result.evidence],
        plan=_plan_to(result.plan),
        trace=_trace_to(result.trace),
        notes=map(_text, result.notes),
        usage=_usage_to(result.usage),
    )


def search_result_from(message: pb.SearchResponse) -> SearchResult:
    return SearchResult(
        evidence=tuple(_evidence_from(e) for e in message.evidence),
        plan=_plan_from(message.plan),
        trace=_trace_from(message.trace),
        notes=tuple(message.notes),
        usage=_usage_from(message.usage),
    )


def _usage_to(usage: Usage) -> pb.Usage:
    return pb.Usage(**dataclasses.asdict(usage))


def _usage_from(message: pb.Usage) -> Usage:
    return Usage(
        evidence_tokens=message.evidence_tokens,
        prompt_tokens=message.prompt_tokens,
        completion_tokens=message.completion_tokens,
        model_calls=message.model_calls,
    )


def answer_to(answer: Answer) -> pb.Answer:
    return pb.Answer(
        text=_text(answer.text),
        citations=[_citation_to(c) for c in answer.citations],
        plan=_plan_to(answer.plan),
        trace=_trace_to(answer.trace),
        usage=_usage_to(answer.usage),
        enough=answer.enough,
        notes=map(_text, answer.notes),
    )


def answer_from(message: pb.Answer) -> Answer:
    return Answer(
        text=message.text,
        citations=tuple(_citation_from(c) for c in message.citations),
        plan=_plan_from(message.plan),
        trace=_trace_from(message.trace),
        usage=_usage_from(message.usage),
        enough=message.enough,
        notes=tuple(message.notes),
    )


def answer_event_to(event: AnswerEvent) -> pb.AskStreamResponse:
    if event.plan is not None:
        return pb.AskStreamResponse(plan=_plan_to(event.plan))
    if event.answer is not None:
        return pb.AskStreamResponse(answer=answer_to(event.answer))
    if event.kind == "evidence":
        found = [_evidence_to(e) for e in event.evidence or ()]
        return pb.AskStreamResponse(evidence=pb.EvidenceList(evidence=found))
    return pb.AskStreamResponse(text=_text(event.text or ""))


def answer_event_from(message: pb.AskStreamResponse) -> AnswerEvent | None:
    """None for an event of a kind that a newer server added: to be skipped."""
    kind = message.WhichOneof("event")
    if kind == "plan":
        return AnswerEvent(kind="plan", plan=_plan_from(message.plan))
    if kind == "evidence":
        found = tuple(_evidence_from(e) for e in message.evidence.evidence)
        return AnswerEvent(kind="evidence", evidence=found)
    if kind == "text":
        return AnswerEvent(kind="text", text=message.text)
    if kind == "answer":
        return AnswerEvent(kind="answer", answer=answer_from(message.answer))
    return None
