"""A reply read by the schema that was asked for: strictly, else mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

import json_repair
from pydantic import BaseModel, ValidationError

from bookrag_fast.models.replies.cleaning import json_candidates, json_remains

__all__ = ["Reading", "json_schema", "read_reply"]

M = TypeVar("M", bound=BaseModel)

_LONGEST = 1 << 18  # characters of a reply that is looked at
_LONGEST_MENDED = 1 << 15  # mending takes long
_DEEPEST_MENDED = 40  # and goes as deep as the reply does
_SHOWN_FAULTS = 5


@dataclass(frozen=True, slots=True)
class Reading(Generic[M]):
    """``value`` is None when the reply cannot be read, and ``problem`` says why, without quoting
    it. ``steps`` are those of `roles.Outcome`."""

    value: M | None
    steps: tuple[str, ...] = ()
    problem: str = ""


@lru_cache(maxsize=128)
def json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """What a reply of that class looks like. Shared: not to be changed."""
    return schema.model_json_schema()


def read_reply(text: str, schema: type[M], *, cut_short: bool = False) -> Reading[M]:
    """The first JSON text in a reply that follows the schema, or one mended so that it does.

    ``cut_short`` says that the reply ended at its most tokens: what it was about to say last is
    left out where the schema can do without.
    """
    if len(text) > _LONGEST:
        return Reading(None, problem=f"the reply has {len(text):,} characters, too many to read")
    opener = "[" if json_schema(schema).get("type") == "array" else "{"
    problem = ""
    for candidate in json_candidates(text, opener):
        try:
            value = schema.model_validate_json(candidate)
        except ValidationError as error:
            problem = problem or _faults(error)
            continue
        return Reading(value, () if candidate == text.strip() else ("cleaned",))
    remains = json_remains(text, opener)
    if not remains:
        return Reading(None, problem=problem or "the reply holds no JSON")
    for mended in _mended(remains, cut_short):
        try:
            value = schema.model_validate_json(mended)
        except ValidationError as error:
            problem = problem or _faults(error)
            continue
        return Reading(value, ("repaired", "cut short") if cut_short else ("repaired",))
    return Reading(None, problem=problem or "the JSON of the reply is broken beyond repair")


def _mended(text: str, cut_short: bool) -> Iterator[str]:
    if len(text) > _LONGEST_MENDED or _depth(text) > _DEEPEST_MENDED:
        return
    whole = _before_the_last_part(text) if cut_short else ""
    for broken in filter(None, (whole, text)):
        try:
            value = json_repair.loads(broken, skip_json_loads=True)
            if value not in ("", [], {}):
                yield json.dumps(value)
        except (ValueError, TypeError, RecursionError):
            continue


def _depth(text: str) -> int:
    """An upper bound of how deep a JSON text nests, brackets in its strings counted as well."""
    deepest = depth = 0
    for char in text:
        if char in "[{(":  # the mender takes round ones for tuples
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]})" and depth:
            depth -= 1
    return deepest


def _before_the_last_part(text: str) -> str:
    """A JSON text up to its last comma that is in no string, "" if there is none."""
    last, quoted, escaped = 0, False, False
    for at, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = quoted
        elif char == '"':
            quoted = not quoted
        elif char == "," and not quoted:
            last = at
    return text[:last]


def _faults(error: ValidationError) -> str:
    """What is wrong where, without the reply's own values, in one line."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    shown = [
        f"{'.'.join(str(part)[:40] for part in fault['loc']) or 'reply'}: {fault['msg']}"
        for fault in faults[:_SHOWN_FAULTS]
    ]
    more = len(faults) - len(shown)
    said = "".join(c if c.isprintable() else " " for c in "; ".join(shown)[:600])
    return said + (f"; and {more} more" if more else "")
