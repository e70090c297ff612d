"""What each operator did, how long it took, and what the models took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from bookrag_fast.models.protocols import TokenUsage
from bookrag_fast.query.plan import OperatorTrace, Trace, Usage

__all__ = ["Tracer"]


@dataclass(slots=True)
class Tracer:
    """Collects the traces of one question's operators."""

    operators: list[OperatorTrace] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what the reader of the answer must know
    usage: TokenUsage = field(default_factory=TokenUsage)

    @contextmanager
    def operator(self, name: str) -> Iterator[dict[str, Any]]:
        """Times a block; what is put into the dict becomes the trace's detail."""
        detail: dict[str, Any] = {}
        start = perf_counter()
        try:
            yield detail
        finally:
            self.operators.append(OperatorTrace(name, (perf_counter() - start) * 1e3, detail))

    def say(self, note: str) -> None:
        """Note something for the reader, once."""
        if note not in self.notes:
            self.notes.append(note)

    def join(self, other: Tracer) -> None:
        """What was traced apart from this, behind what there is."""
        self.operators += other.operators
        self.usage += other.usage
        for note in other.notes:
            self.say(note)

    def trace(self) -> Trace:
        return Trace(tuple(self.operators))

    def cost(self, evidence_tokens: int) -> Usage:
        return Usage(
            evidence_tokens,
            self.usage.prompt_tokens,
            self.usage.completion_tokens,
            self.usage.calls,
        )
