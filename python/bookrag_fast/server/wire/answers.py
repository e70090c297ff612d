"""Search results, answers, and the events of a streamed answer."""

from __future__ import annotations

import dataclasses

from bookrag_fast.library.types import AnswerEvent
from bookrag_fast.query.plan import Answer, SearchResult, Usage
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from bookrag_fast.server.wire.passages import (
    citation_from,
    citation_to,
    evidence_from,
    evidence_to,
)
from bookrag_fast.server.wire.plans import plan_from, plan_to, trace_from, trace_to
from bookrag_fast.server.wire.values import text_to

__all__ = [
    "answer_event_from",
    "answer_event_to",
    "answer_from",
    "answer_to",
    "search_result_from",
    "search_result_to",
]


def search_result_to(result: SearchResult) -> pb.SearchResponse:
    return pb.SearchResponse(
        evidence=[evidence_to(e) for e in result.evidence],
        plan=plan_to(result.plan),
        trace=trace_to(result.trace),
        notes=map(text_to, result.notes),
        usage=_usage_to(result.usage),
    )


def search_result_from(message: pb.SearchResponse) -> SearchResult:
    return SearchResult(
        evidence=tuple(evidence_from(e) for e in message.evidence),
        plan=plan_from(message.plan),
        trace=trace_from(message.trace),
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
        text=text_to(answer.text),
        citations=[citation_to(c) for c in answer.citations],
        plan=plan_to(answer.plan),
        trace=trace_to(answer.trace),
        usage=_usage_to(answer.usage),
        enough=answer.enough,
        notes=map(text_to, answer.notes),
    )


def answer_from(message: pb.Answer) -> Answer:
    return Answer(
        text=message.text,
        citations=tuple(citation_from(c) for c in message.citations),
        plan=plan_from(message.plan),
        trace=trace_from(message.trace),
        usage=_usage_from(message.usage),
        enough=message.enough,
        notes=tuple(message.notes),
    )


def answer_event_to(event: AnswerEvent) -> pb.AskStreamResponse:
    if event.plan is not None:
        return pb.AskStreamResponse(plan=plan_to(event.plan))
    if event.answer is not None:
        return pb.AskStreamResponse(answer=answer_to(event.answer))
    if event.kind == "evidence":
        found = [evidence_to(e) for e in event.evidence or ()]
        return pb.AskStreamResponse(evidence=pb.EvidenceList(evidence=found))
    return pb.AskStreamResponse(text=text_to(event.text or ""))


def answer_event_from(message: pb.AskStreamResponse) -> AnswerEvent | None:
    """None for an event of a kind that a newer server added: to be skipped."""
    kind = message.WhichOneof("event")
    if kind == "plan":
        return AnswerEvent(kind="plan", plan=plan_from(message.plan))
    if kind == "evidence":
        found = tuple(evidence_from(e) for e in message.evidence.evidence)
        return AnswerEvent(kind="evidence", evidence=found)
    if kind == "text":
        return AnswerEvent(kind="text", text=message.text)
    if kind == "answer":
        return AnswerEvent(kind="answer", answer=answer_from(message.answer))
    return None
