"""What crosses between the process that puts a document together and those that read its pages.

A message is a line of JSON, and after it what numbers its lines of text have, as doubles: a page
has some forty lines of nine numbers, and writing those in decimal would take longer than the rest.
"""

from __future__ import annotations

import json
from array import array
from typing import Any

from bookrag_fast.document.analysis.blocks import Body, Draft
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.analysis.ruled import Grid
from bookrag_fast.document.model import BBox, BlockKind, Lead, OutlineEntry, Page, PageStatus
from bookrag_fast.document.pdf.pages import RawPage
from bookrag_fast.document.pdf.pdfium import PageGeometry
from bookrag_fast.document.transfer import (
    annotations_from_json,
    annotations_to_json,
    cells_from_json,
    cells_to_json,
    style_from_json,
    style_to_json,
)

__all__ = ["body_of", "drafts_from", "drafts_to", "layout_to", "page_from", "page_to"]

_NUMBERS = 9  # of a line
_BOLD, _ITALIC, _MONO, _PART_BOLD, _TILTED = 1, 2, 4, 8, 16


def page_to(raw: RawPage, **more: Any) -> bytes:
    """``more`` goes into the JSON as it is."""
    page, geometry = raw.page, raw.geometry
    numbers = array("d")
    for x in raw.lines:
        flags = _BOLD * x.bold | _ITALIC * x.italic | _MONO * x.mono
        flags |= _PART_BOLD * x.part_bold | _TILTED * x.tilted
        numbers.extend((x.x0, x.y0, x.x1, x.y1, x.base, x.size, flags, x.color, x.frame))
    head = {
        "page": (page.number, page.label, page.width, page.height, page.status.value, page.note),
        "geometry": geometry and (geometry.box, geometry.turn),
        "lines": [(x.text, x.family, x.lead) for x in raw.lines],
        "pictures": raw.pictures,
        "drawings": raw.drawings,
        "grids": [(g.xs, g.ys, sorted(g.open), sorted(g.wide)) for g in raw.grids],
        "rules": raw.rules,
        "drawn": raw.drawn,
        "tags": [(e.title, e.level, e.page, e.top) for e in raw.tags],
        "annotations": annotations_to_json(raw.annotations),
        "fields": annotations_to_json(raw.fields),
        "figures": raw.figures,
        **more,
    }
    return _json(head) + b"\n" + numbers.tobytes()


def page_from(data: bytes) -> RawPage:
    """Raises ValueError, TypeError or LookupError for what `page_to` did not write."""
    head, numbers = _parts(data)
    return _page(head, numbers)


def layout_to(raw: RawPage, body: Body) -> bytes:
    """A request for the drafts of a page."""
    return page_to(raw, body=(body.size, body.bold, body.mono))


def body_of(data: bytes) -> tuple[RawPage, Body]:
    """What `layout_to` wrote."""
    head, numbers = _parts(data)
    size, bold, mono = head["body"]
    return _page(head, numbers), Body(size, bold=bold, mono=mono)


def drafts_to(drafts: list[Draft]) -> bytes:
    """The drafts of a page, as far as the layout of the whole document needs them."""
    return _json(
        [
            (
                d.kind.value,
                d.text,
                d.page,
                d.box,
                style_to_json(d.style),
                d.line_count,
                d.column,
                cells_to_json(d.cells),
                d.lead,
            )
            for d in drafts
        ]
    )


def drafts_from(data: bytes) -> list[Draft]:
    """Raises ValueError, TypeError or LookupError for what `drafts_to` did not write."""
    return [
        Draft(
            kind=BlockKind(kind),
            text=text,
            page=page,
            box=BBox(*box),
            style=style_from_json(style),
            line_count=line_count,
            column=column,
            cells=cells_from_json(cells),
            lead=lead and Lead(*lead),
        )
        for kind, text, page, box, style, line_count, column, cells, lead in json.loads(data)
    ]


def _pairs(values: list[Any]) -> frozenset[tuple[int, int]]:
    return frozenset((edge, place) for edge, place in values)


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _parts(data: bytes) -> tuple[dict[str, Any], array[float]]:
    end = data.index(b"\n")
    numbers = array("d")
    numbers.frombytes(data[end + 1 :])
    return json.loads(data[:end]), numbers


def _page(head: dict[str, Any], numbers: array[float]) -> RawPage:
    number, label, width, height, status, note = head["page"]
    geometry = head["geometry"]
    lines: list[Line] = []
    for k, (text, family, lead) in enumerate(head["lines"]):
        x0, y0, x1, y1, base, size, flags, color, frame = numbers[_NUMBERS * k : _NUMBERS * (k + 1)]
        bits = int(flags)
        lines.append(
            Line(
                text,
                x0,
                y0,
                x1,
                y1,
                base,
                size,
                bool(bits & _BOLD),
                bool(bits & _ITALIC),
                bool(bits & _MONO),
                family,
                int(color),
                int(frame),
                bool(bits & _PART_BOLD),
                lead and Lead(*lead),
                bool(bits & _TILTED),
            )
        )
    return RawPage(
        Page(number, label, width, height, PageStatus(status), note),
        geometry and PageGeometry(tuple(geometry[0]), geometry[1]),
        lines,
        [BBox(*box) for box in head["pictures"]],
        [BBox(*box) for box in head["drawings"]],
        [
            Grid(tuple(xs), tuple(ys), _pairs(open_), _pairs(wide))
            for xs, ys, open_, wide in head["grids"]
        ],
        [BBox(*box) for box in head["rules"]],
        head["drawn"],
        [OutlineEntry(*entry) for entry in head["tags"]],
        annotations_from_json(head["annotations"]),
        annotations_from_json(head["fields"]),
        [BBox(*box) for box in head["figures"]],
    )
