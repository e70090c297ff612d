"""JSON schemas as servers with strict structured output take them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

__all__ = ["response_format"]

# Told to nobody: names without meaning, and what grammars of servers cannot hold to.
_DROPPED = {
    "title",
    "default",
    "examples",
    "minLength",
    "maxLength",
    "uniqueItems",
    "discriminator",
}
_DEEPEST = 32


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What asks a server for replies of a schema, as strictly as the schema allows."""
    return json.loads(_response_format(json.dumps(schema)))  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _response_format(text: str) -> str:
    schema, strict = strictly(json.loads(text))
    wanted = {"name": "reply", "schema": schema, "strict": strict}
    return json.dumps({"type": "json_schema", "json_schema": wanted})


def strictly(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema with every object closed and all its properties required, references put in
    place; and whether that could be done everywhere (not for objects with free keys, for tuples,
    or for a schema that refers to itself, which is left as it is)."""
    rewriter = _Rewriter(schema.get("$defs", {}))
    try:
        return rewriter.rewrite(
            {k: v for k, v in schema.items() if k != "$defs"}, 0
        ), rewriter.strict
    except RecursionError:
        return dict(schema), False


class _Rewriter:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self.strict = True
        self._definitions = definitions

    def rewrite(self, node: Mapping[str, Any], depth: int) -> dict[str, Any]:
        if depth > _DEEPEST:
            raise RecursionError
        reference = node.get("$ref")
        if isinstance(reference, str):
            target = self._definitions[reference.rpartition("/")[2]]
            return self.rewrite(
                {**target, **{k: v for k, v in node.items() if k != "$ref"}}, depth + 1
            )
        out = {key: value for key, value in node.items() if key not in _DROPPED}
        for key in ("anyOf", "oneOf", "allOf"):
            if key in out:
                choices = [self.rewrite(choice, depth + 1) for choice in out.pop(key)]
                out["allOf" if key == "allOf" else "anyOf"] = choices
        if "items" in out and isinstance(out["items"], Mapping):
            out["items"] = self.rewrite(out["items"], depth + 1)
        if "prefixItems" in out:
            self.strict = False
        if out.get("type") == "object":
            properties = out.get("properties", {})
            if not properties or isinstance(out.get("additionalProperties"), Mapping):
                self.strict = False
                return out
            out["properties"] = {k: self.rewrite(v, depth + 1) for k, v in properties.items()}
            out["required"] = list(properties)
            out["additionalProperties"] = False
        return out
