"""What stands on a PDF's pages beside their text: notes, marks, web links, form fields."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pypdfium2.raw as raw

from bookrag_fast.document.analysis.blocks import Draft
from bookrag_fast.document.analysis.frames import frame_to_page
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.model import Annotation, BBox, BlockKind, Style
from bookrag_fast.document.pdf.pdfium import PageGeometry

__all__ = ["MAX_ANNOTATIONS", "add_fields", "annotations_of", "hidden_fields"]

MAX_ANNOTATIONS = 20_000  # of a document
MAX_OF_PAGE = 2_000
MAX_TEXT = 10_000  # characters

_KINDS = {
    raw.FPDF_ANNOT_TEXT: "note",
    raw.FPDF_ANNOT_FREETEXT: "text",
    raw.FPDF_ANNOT_LINK: "link",
    raw.FPDF_ANNOT_HIGHLIGHT: "highlight",
    raw.FPDF_ANNOT_UNDERLINE: "underline",
    raw.FPDF_ANNOT_SQUIGGLY: "underline",
    raw.FPDF_ANNOT_STRIKEOUT: "strikeout",
    raw.FPDF_ANNOT_STAMP: "stamp",
    raw.FPDF_ANNOT_CARET: "note",
    raw.FPDF_ANNOT_WIDGET: "field",
}
_TICKED = (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON)
_WITHOUT_VALUE = (raw.FPDF_FORMFIELD_PUSHBUTTON, raw.FPDF_FORMFIELD_SIGNATURE)


def annotations_of(
    document: Any, form: Any, page: Any, geometry: PageGeometry, number: int
) -> Iterator[Annotation]:
    """The annotations of an open page that say something; the lock is held by the caller.

    Args:
        document: PDFium's handle.
        form: of its form environment, None where it has no form.
        number: of the page, 1-based.
    """
    for k in range(min(raw.FPDFPage_GetAnnotCount(page), MAX_OF_PAGE)):
        item = raw.FPDFPage_GetAnnot(page, k)
        if not item:
            continue
        try:
            found = _annotation(document, form, item, geometry, number)
        finally:
            raw.FPDFPage_CloseAnnot(item)
        if found is not None:
            yield found


def _annotation(
    document: Any, form: Any, item: Any, geometry: PageGeometry, number: int
) -> Annotation | None:
    kind = _KINDS.get(raw.FPDFAnnot_GetSubtype(item))
    if kind is None or raw.FPDFAnnot_GetFlags(item) & raw.FPDF_ANNOT_FLAG_HIDDEN:
        return None
    name = text = target = ""
    if kind == "field":
        if form is None:
            return None
        field = raw.FPDFAnnot_GetFormFieldType(form, item)
        if field in _WITHOUT_VALUE:
            return None
        name = _said(raw.FPDFAnnot_GetFormFieldAlternateName, form, item)
        name = name or _said(raw.FPDFAnnot_GetFormFieldName, form, item)
        if field in _TICKED:
            state = _said(raw.FPDFAnnot_GetStringValue, item, b"AS")  # of this box, not its group
            text = "" if state == "Off" else state
        else:
            text = _said(raw.FPDFAnnot_GetFormFieldValue, form, item)
    elif kind == "link":
        target = _url(document, item)
        if not target:
            return None  # a jump inside the document
    else:
        text = _said(raw.FPDFAnnot_GetStringValue, item, b"Contents")
        name = _said(raw.FPDFAnnot_GetStringValue, item, b"T")
    # A mark without words still tells what was marked; a note without any says nothing.
    if kind in ("note", "text", "stamp") and not text:
        return None
    return Annotation(number, kind, _box(item, geometry), text, name, target)


def _box(item: Any, geometry: PageGeometry) -> BBox:
    rect = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(item, rect)
    x0, x1 = sorted((rect.left, rect.right))
    y0, y1 = sorted((rect.bottom, rect.top))
    return geometry.display(x0, y0, x1, y1)


def _said(function: Callable[..., int], *of: Any) -> str:
    """A string of PDFium's, in UTF-16."""
    size = function(*of, None, 0)
    if not 2 < size <= 2 * MAX_TEXT:
        return ""
    buffer = ctypes.create_string_buffer(size)
    function(*of, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    text = buffer.raw[: size - 2].decode("utf-16-le", "replace").replace("\0", "")
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _url(document: Any, item: Any) -> str:
    link = raw.FPDFAnnot_GetLink(item)
    action = raw.FPDFLink_GetAction(link) if link else None
    if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
        return ""
    size = raw.FPDFAction_GetURIPath(document, action, None, 0)
    if not 1 < size <= MAX_TEXT:
        return ""
    buffer = ctypes.create_string_buffer(size)
    raw.FPDFAction_GetURIPath(document, action, buffer, size)
    return buffer.raw[: size - 1].decode("utf-8", "replace").strip()


def hidden_fields(annotations: Sequence[Annotation], lines: Sequence[Line]) -> list[Annotation]:
    """Form fields with a value, and free texts, that no text of the page shows."""
    out: list[Annotation] = []
    boxes: list[tuple[BBox, str]] | None = None
    for a in annotations:
        if a.kind not in ("field", "text") or not a.text:
            continue
        if boxes is None:
            boxes = [(frame_to_page(x.frame, x.x0, x.y0, x.x1, x.y1), x.text) for x in lines]
        if not any(a.text in text and _overlap(a.bbox, box) for box, text in boxes):
            out.append(a)
    return out


def add_fields(drafts: Sequence[Draft], fields: Sequence[Annotation], size: float) -> list[Draft]:
    """Drafts of a page with its fields among them, each below or behind what is next to it.

    ``size`` is that of the running text, in points.
    """
    out = list(drafts)
    for field in fields:
        at = 0
        for k, draft in enumerate(out):
            above = draft.box.y1 <= field.bbox.y0 + 2
            level = min(draft.box.y1, field.bbox.y1) > max(draft.box.y0, field.bbox.y0)
            if above or (level and draft.box.x0 < field.bbox.x0):
                at = k + 1
        label = f"{field.name}: " if field.name and field.kind == "field" else ""
        out.insert(
            at,
            Draft(
                kind=BlockKind.TEXT,
                text=label + field.text,
                page=field.page,
                box=field.bbox,
                style=Style(size=size),
                line_count=field.text.count("\n") + 1,
                column=out[at - 1].column if at else 0,
            ),
        )
    return out


def _overlap(a: BBox, b: BBox) -> bool:
    return min(a.x1, b.x1) > max(a.x0, b.x0) and min(a.y1, b.y1) > max(a.y0, b.y0)
