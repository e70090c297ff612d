"""JSON of a layout parser that has read a PDF elsewhere: MinerU or docling → blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from bookrag_fast.document.formats.building import Reading
from bookrag_fast.document.formats.docling import read_docling
from bookrag_fast.document.formats.encoding import decode_text
from bookrag_fast.document.formats.mineru import read_mineru
from bookrag_fast.errors import DamagedDocumentError, UnsupportedFormatError

__all__ = ["read_layout_json"]

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
# An escape; in the group, half of a character without the other half, which no UTF-8 can hold.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][\dA-Fa-f]{2}\\u[dD][c-fC-F][\dA-Fa-f]{2}|(u[dD][89a-fA-F][\dA-Fa-f]{2})|.)",
    re.DOTALL,
)


def read_layout_json(
    data: bytes, name: str, progress: Callable[[int, int], None] | None
) -> Reading:
    """Content of MinerU's content_list.json or of a DoclingDocument, with its pages and boxes.

    Raises:
        DamagedDocumentError: it is no JSON.
        UnsupportedFormatError: it is JSON of another kind.
    """
    try:
        text = decode_text(data)
        if _HALF.search(text):  # few files have any
            text = _ESCAPE.sub(_whole, text)
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedDocumentError(
            f"{name} is no valid JSON: {error}", "write or copy the file again"
        ) from error
    if isinstance(found, dict) and _is_docling(found):
        reading = read_docling(found)
    elif isinstance(found, list) and _is_mineru(found):
        reading = read_mineru(found)
    else:
        raise UnsupportedFormatError(
            f"{name} is JSON, but neither MinerU's content_list.json nor a DoclingDocument",
            "export the document as one of these two",
        )
    if progress is not None and reading.pages:
        progress(len(reading.pages), len(reading.pages))
    return reading


def _whole(escape: re.Match[str]) -> str:
    return r"\ufffd" if escape.group(1) else escape.group()


def _is_docling(found: dict[str, Any]) -> bool:
    if found.get("schema_name") == "DoclingDocument":
        return True
    return isinstance(found.get("body"), dict) and isinstance(found.get("texts"), list)


def _is_mineru(found: list[Any]) -> bool:
    blocks = [
        item for item in found if isinstance(item, dict) and isinstance(item.get("type"), str)
    ]
    return bool(blocks) and len(blocks) == len(found) and any("page_idx" in b for b in blocks)
