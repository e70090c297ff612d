"""Query plans, and the traces of how they were carried out."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from bookrag_fast.query.plan import (
    Category,
    Filter,
    FilterType,
    Operation,
    OperatorTrace,
    QueryPlan,
    Step,
    Trace,
)
from bookrag_fast.server.errors import RemoteError
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from bookrag_fast.server.wire.values import struct_from, struct_to, text_to

__all__ = ["CATEGORY", "FILTER", "OPERATION", "plan_from", "plan_to", "trace_from", "trace_to"]

CATEGORY = {
    Category.SINGLE_HOP: pb.QueryPlan.CATEGORY_SINGLE_HOP,
    Category.MULTI_HOP: pb.QueryPlan.CATEGORY_MULTI_HOP,
    Category.GLOBAL: pb.QueryPlan.CATEGORY_GLOBAL,
}
OPERATION = {
    Operation.COUNT: pb.QueryPlan.OPERATION_COUNT,
    Operation.LIST: pb.QueryPlan.OPERATION_LIST,
    Operation.SUMMARIZE: pb.QueryPlan.OPERATION_SUMMARIZE,
    Operation.ANALYZE: pb.QueryPlan.OPERATION_ANALYZE,
}
FILTER = {
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


def plan_to(plan: QueryPlan) -> pb.QueryPlan:
    return pb.QueryPlan(
        question=text_to(plan.question),
        category=CATEGORY[plan.category],
        steps=[pb.Step(operator=s.operator, params=struct_to(s.params)) for s in plan.steps],
        filters=[
            pb.Filter(type=FILTER[f.type], value=None if f.value is None else text_to(f.value))
            for f in plan.filters
        ],
        operation=(
            pb.QueryPlan.OPERATION_UNSPECIFIED
            if plan.operation is None
            else OPERATION[plan.operation]
        ),
        sub_plans=[plan_to(p) for p in plan.sub_plans],
        synthesis=[text_to(s) for s in plan.synthesis],
        reason=text_to(plan.reason),
    )


def plan_from(message: pb.QueryPlan) -> QueryPlan:
    return QueryPlan(
        question=message.question,
        category=_known(CATEGORY, message.category, "question category"),
        steps=tuple(Step(s.operator, struct_from(s.params)) for s in message.steps),
        filters=tuple(
            Filter(_known(FILTER, f.type, "filter type"), f.value if f.HasField("value") else None)
            for f in message.filters
        ),
        operation=(
            None
            if message.operation == pb.QueryPlan.OPERATION_UNSPECIFIED
            else _known(OPERATION, message.operation, "operation")
        ),
        sub_plans=tuple(plan_from(p) for p in message.sub_plans),
        synthesis=tuple(message.synthesis),
        reason=message.reason,
    )


def trace_to(trace: Trace) -> pb.Trace:
    return pb.Trace(
        operators=[
            pb.OperatorTrace(operator=o.operator, ms=o.ms, detail=struct_to(o.detail))
            for o in trace.operators
        ]
    )


def trace_from(message: pb.Trace) -> Trace:
    return Trace(
        tuple(OperatorTrace(o.operator, o.ms, struct_from(o.detail)) for o in message.operators)
    )
