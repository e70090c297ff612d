"""What each operator did and how long it took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from bookrag_fast.query.plan import OperatorTrace, Trace

__all__ = ["Tracer"]


@dataclass(slots=True)
class Tracer:
    """Collects the traces of one question's operators."""

    operators: list[OperatorTrace] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what the reader of the answer must know

    @contextmanager
    def operator(self, name: str) -> Iterator[dict[str, Any]]:
        """Times a block; what is put into the dict becomes the trace's detail."""
        detail: dict[str, Any] = {}
        start = perf_counter()
        try:
            yield detail
        finally:
            self.operators.append(OperatorTrace(name, (perf_counter() - start) * 1e3, detail))

    def trace(self) -> Trace:
        return Trace(tuple(self.operators))
