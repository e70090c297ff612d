"""Texts and free-form parameters as protobuf holds them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from google.protobuf import struct_pb2

__all__ = ["struct_from", "struct_to", "text_to"]


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
        return struct_pb2.Value(struct_value=struct_to(value))
    if isinstance(value, (list, tuple, set, frozenset)):
        return struct_pb2.Value(
            list_value=struct_pb2.ListValue(values=[_value_to(v) for v in value])
        )
    return struct_pb2.Value(string_value=text_to(str(value)))


def struct_to(values: Mapping[Any, Any]) -> struct_pb2.Struct:
    return struct_pb2.Struct(fields={text_to(str(k)): _value_to(v) for k, v in values.items()})


def _value_from(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return struct_from(value.struct_value)
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


def struct_from(struct: struct_pb2.Struct) -> dict[str, Any]:
    return {key: _value_from(value) for key, value in struct.fields.items()}


def text_to(text: str) -> str:
    """protobuf strings are UTF-8; a PDF's broken font map can yield lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")
