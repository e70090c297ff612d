"""How a server wants to be asked: the best first, then what is left after what it refuses.

Servers of one protocol take different parts of it. What one refuses by name is left out or said
otherwise, once, and remembered for the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from bookrag_fast.models.endpoints.faults import StatusRefusedError

__all__ = ["ChatManner"]

_NEXT: dict[str, Literal["json", "prompt"]] = {"schema": "json", "json": "prompt"}
_STRUCTURED = re.compile(
    r"response_format|json_schema|json_object|json mode|schema|structured|grammar|guided"
    r"|unsupported|not support",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(r"unsupported|not support|does not|unknown|unrecognized", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChatManner:
    """``structured`` is how JSON of a schema is asked for; ``fixed`` says that it is set."""

    structured: Literal["schema", "json", "prompt"] = "schema"
    fixed: bool = False
    completion_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    stream_usage: bool = True

    def after(
        self, refusal: StatusRefusedError, *, structured: bool, streamed: bool
    ) -> ChatManner | None:
        """How to ask instead, or None when the refusal is about something else. ``structured``
        and ``streamed`` say what was asked for."""
        said = refusal.said
        if refusal.status not in (400, 422, 501):
            return None
        if "max_completion_tokens" in said and self.completion_limit == "max_tokens":
            return replace(self, completion_limit="max_completion_tokens")
        if self.temperature and "temperature" in said and _UNSUPPORTED.search(said):
            return replace(self, temperature=False)
        if streamed and self.stream_usage and re.search("stream_options|include_usage", said):
            return replace(self, stream_usage=False)
        lower = _NEXT.get(self.structured) if structured and not self.fixed else None
        if lower is not None and (refusal.status == 501 or _STRUCTURED.search(said)):
            return replace(self, structured=lower)
        return None
