"""The characters and objects of one PDF page as arrays, in displayed coordinates.

Two readers fill the same arrays: the compiled core, which loops over PDFium's C functions without
the GIL, and a slow, obvious one in Python that serves as its twin in tests and where the core
lacks the reader.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pypdfium2.raw as raw

from bookrag_fast.document.model import BBox
from bookrag_fast.document.pdf.pdfium import PageGeometry

try:
    from bookrag_fast._core import read_page_objects, read_page_text
except ImportError:  # run from the sources, without the compiled core
    _HAS_CORE = False
else:
    _HAS_CORE = True

__all__ = [
    "MAX_CHARACTERS",
    "Font",
    "PageChars",
    "PageObjects",
    "geometry_of",
    "read_chars",
    "read_chars_slowly",
    "read_objects",
]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

MAX_CHARACTERS = 500_000  # a page; an A0 poster set in 6 points has about 100,000
MAX_OBJECTS = 20_000

_INVISIBLE = 3
_STROKED = (1, 2, 5, 6)

_BOLD = re.compile(
    r"bold|black|heavy|semibold|demi|[-,_]bd\b|-medi(?!um|a)|cmbx|sfbx|ecbx|cmssbx|sfsx|ecsx|[-.]w[6-9]\b"
    r"|\bb$|txb|ptmb|phvb|-b(?:\d|$)|gothicmb",
    re.IGNORECASE,
)
_ITALIC = re.compile(r"italic|oblique|-it\b|slanted|cmti|cmsl|sfti|ecti|[-,]ita", re.IGNORECASE)
_MONO = re.compile(
    r"mono|courier|consol|typewriter|cmtt|sftt|ectt|nimbusmon|menlo|inconsolata|fixed|lettergothic"
    r"|sourcecode|andale",
    re.IGNORECASE,
)
_SUBSET = re.compile(r"^[A-Z]{6}\+")
_STYLE_WORDS = re.compile(
    r"[-,_ ]*(?:bold|black|heavy|semi|demi|italic|oblique|regular|roman|medium|medi|light|book|it"
    r"|ital|reguital|regu|mt|psmt|ps|bd)+(?:mt)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Font:
    """What a font's name and flags say."""

    family: str
    bold: bool
    italic: bool
    mono: bool


@dataclass(slots=True)
class PageChars:
    """Characters in PDFium's order; coordinates in points, top-left origin, as displayed.

    ``run`` numbers text objects; the ``run_…`` arrays have one entry a run. ``generated`` marks
    characters that PDFium made up (spaces between words), whose boxes mean nothing.
    """

    code: npt.NDArray[np.uint32]
    box: FloatArray  # n×4: x0, y0, x1, y1 of advance × font height
    ink: FloatArray  # n×4: of the ink
    origin: FloatArray  # n×2, on the baseline
    generated: npt.NDArray[np.bool_]
    run: IntArray
    run_size: FloatArray  # points
    run_turn: IntArray  # 0 … 3 quarter turns clockwise, 4 for other angles
    run_font: IntArray
    run_color: npt.NDArray[np.uint32]  # 0xAARRGGBB
    run_mode: IntArray
    run_bold: npt.NDArray[np.bool_]
    fonts: list[Font]

    def __len__(self) -> int:
        return len(self.code)

    def pick(self, keep: npt.NDArray[np.bool_]) -> PageChars:
        """The characters where ``keep`` holds; runs stay as they are."""
        return PageChars(
            self.code[keep],
            self.box[keep],
            self.ink[keep],
            self.origin[keep],
            self.generated[keep],
            self.run[keep],
            self.run_size,
            self.run_turn,
            self.run_font,
            self.run_color,
            self.run_mode,
            self.run_bold,
            self.fonts,
        )


@dataclass(slots=True)
class PageObjects:
    """Images and thin rules of a page, displayed coordinates."""

    images: list[BBox]
    rules: list[BBox]
    drawings: list[BBox]


def geometry_of(page: Any) -> PageGeometry:
    """Geometry of an open page handle; the lock is held by the caller."""
    rect = raw.FS_RECTF()
    turn = int(raw.FPDFPage_GetRotation(page)) % 4
    if raw.FPDF_GetPageBoundingBox(page, rect) and rect.right > rect.left:
        box = (rect.left, rect.bottom, rect.right, rect.top)
    else:
        width, height = raw.FPDF_GetPageWidthF(page), raw.FPDF_GetPageHeightF(page)
        box = (0.0, 0.0, width, height) if turn % 2 == 0 else (0.0, 0.0, height, width)
    return PageGeometry(box, turn)


_FUNCTION_NAMES = (
    "FPDFText_CountChars",
    "FPDFText_GetUnicode",
    "FPDFText_GetCharBox",
    "FPDFText_GetLooseCharBox",
    "FPDFText_GetCharOrigin",
    "FPDFText_GetMatrix",
    "FPDFText_GetFontSize",
    "FPDFText_GetFontWeight",
    "FPDFText_GetFontInfo",
    "FPDFText_GetFillColor",
    "FPDFText_IsGenerated",
    "FPDFText_GetTextObject",
    "FPDFTextObj_GetTextRenderMode",
    "FPDFPage_CountObjects",
    "FPDFPage_GetObject",
    "FPDFPageObj_GetType",
    "FPDFPageObj_GetBounds",
    "FPDFPageObj_GetMatrix",
    "FPDFFormObj_CountObjects",
    "FPDFFormObj_GetObject",
)
_addresses: list[int] = []


def _function_addresses() -> list[int]:
    """PDFium's functions as the core wants them (order of PdfiumFunctions in page_text.hpp)."""
    if not _addresses:
        found = [ctypes.cast(getattr(raw, n), ctypes.c_void_p).value or 0 for n in _FUNCTION_NAMES]
        _addresses.extend(found)
    return _addresses


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def read_chars(page: Any, geometry: PageGeometry) -> PageChars:
    """All characters of an open page; the lock is held by the caller.

    Raises:
        ValueError: the page has more than :data:`MAX_CHARACTERS`.
        OSError: PDFium cannot make a text page of it.
    """
    if not _HAS_CORE:
        return read_chars_slowly(page, geometry)
    text = raw.FPDFText_LoadPage(page)
    if not text:
        raise OSError("PDFium cannot read the page's text")
    try:
        parts = read_page_text(_function_addresses(), _address(text), MAX_CHARACTERS)
    finally:
        raw.FPDFText_ClosePage(text)
    return _displayed(geometry, *parts)


def read_objects(page: Any, geometry: PageGeometry) -> PageObjects:
    """Images and rules of an open page; the lock is held by the caller."""
    if _HAS_CORE:
        kinds, boxes, _ = read_page_objects(_function_addresses(), _address(page), MAX_OBJECTS)
    else:
        kinds, boxes = _objects_slowly(page)
    if len(kinds) == 0:
        return PageObjects([], [], [])
    shown = _display_boxes(boxes, geometry)
    inside = (
        (shown[:, 2] > 0)
        & (shown[:, 3] > 0)
        & (shown[:, 0] < geometry.width)
        & (shown[:, 1] < geometry.height)
    )
    shown, kinds = shown[inside], kinds[inside]
    np.clip(shown[:, 0::2], 0, geometry.width, out=shown[:, 0::2])
    np.clip(shown[:, 1::2], 0, geometry.height, out=shown[:, 1::2])
    wide, high = shown[:, 2] - shown[:, 0], shown[:, 3] - shown[:, 1]
    is_path = kinds == raw.FPDF_PAGEOBJ_PATH
    thin = is_path & (np.minimum(wide, high) < 3.5) & (np.maximum(wide, high) > 12.0)
    return PageObjects(
        images=_boxes(shown[(kinds == raw.FPDF_PAGEOBJ_IMAGE) & (wide > 4) & (high > 4)]),
        rules=_boxes(shown[thin]),
        drawings=_boxes(shown[is_path & ~thin & (wide > 2) & (high > 2)]),
    )


def _boxes(array: FloatArray) -> list[BBox]:
    return [BBox(*row) for row in array.tolist()]


def _display_boxes(boxes: FloatArray, geometry: PageGeometry) -> FloatArray:
    """n×4 (left, bottom, right, top) → (x0, y0, x1, y1) as displayed."""
    a, b, c, d, e, f = geometry.affine()
    xa, xb = a * boxes[:, 0] + c * boxes[:, 1] + e, a * boxes[:, 2] + c * boxes[:, 3] + e
    ya, yb = b * boxes[:, 0] + d * boxes[:, 1] + f, b * boxes[:, 2] + d * boxes[:, 3] + f
    out = np.empty_like(boxes)
    np.minimum(xa, xb, out=out[:, 0])
    np.minimum(ya, yb, out=out[:, 1])
    np.maximum(xa, xb, out=out[:, 2])
    np.maximum(ya, yb, out=out[:, 3])
    return out


def _displayed(
    geometry: PageGeometry,
    code: Any,
    loose: Any,
    tight: Any,
    origin: Any,
    generated: Any,
    run: Any,
    font_size: Any,
    matrix: Any,
    weight: Any,
    flags: Any,
    mode: Any,
    color: Any,
    font: Any,
    names: list[str],
) -> PageChars:
    a, b, c, d, e, f = geometry.affine()
    shown_origin = np.empty_like(origin)
    if len(origin):
        shown_origin[:, 0] = a * origin[:, 0] + c * origin[:, 1] + e
        shown_origin[:, 1] = b * origin[:, 0] + d * origin[:, 1] + f
    fonts = [_font(name) for name in names]
    if len(matrix):
        size = np.abs(font_size) * np.hypot(matrix[:, 2], matrix[:, 3])
        # Direction of the baseline as displayed, in quarter turns clockwise.
        along_x = a * matrix[:, 0] + c * matrix[:, 1]
        along_y = b * matrix[:, 0] + d * matrix[:, 1]
        angle = np.degrees(np.arctan2(along_y, along_x))
        nearest = np.rint(angle / 90.0)
        turn = np.where(np.abs(angle - 90.0 * nearest) <= 12.0, nearest.astype(np.int32) % 4, 4)
        named = np.array([x.bold for x in fonts], dtype=np.bool_)[font]
        plain = np.array([_names_a_weight(x) for x in names], dtype=np.bool_)[font]
        force_bold = (flags & (1 << 18)) != 0
        bold = named | ((force_bold | (weight >= 650)) & ~plain) | np.isin(mode, _STROKED)
        bold &= mode != _INVISIBLE
    else:
        size = np.zeros(0, np.float32)
        turn = np.zeros(0, np.int32)
        bold = np.zeros(0, np.bool_)
    return PageChars(
        code=code,
        box=_display_boxes(loose, geometry),
        ink=_display_boxes(tight, geometry),
        origin=shown_origin,
        generated=generated.astype(np.bool_),
        run=run,
        run_size=size.astype(np.float32),
        run_turn=turn.astype(np.int32),
        run_font=font,
        run_color=color,
        run_mode=mode,
        run_bold=bold,
        fonts=fonts,
    )


_font_cache: dict[str, Font] = {}


def _font(name: str) -> Font:
    known = _font_cache.get(name)
    if known is None:
        plain = _SUBSET.sub("", name)
        known = Font(
            family=_STYLE_WORDS.sub("", plain) or plain,
            bold=bool(_BOLD.search(plain)),
            italic=bool(_ITALIC.search(plain)),
            mono=bool(_MONO.search(plain)),
        )
        if len(_font_cache) > 4096:
            _font_cache.clear()
        _font_cache[name] = known
    return known


def _names_a_weight(name: str) -> bool:
    """The name itself says how heavy it is, so that a guessed weight must not overrule it."""
    return bool(
        re.search(r"regular|roman|light|book|cmr|cmti|cmsl|sfrm|-regu", name, re.IGNORECASE)
    )


# --- the slow twin --------------------------------------------------------------------------


def read_chars_slowly(page: Any, geometry: PageGeometry) -> PageChars:
    """As :func:`read_chars`, by a call per character."""
    text = raw.FPDFText_LoadPage(page)
    if not text:
        raise OSError("PDFium cannot read the page's text")
    try:
        return _displayed(geometry, *_chars_slowly(text))
    finally:
        raw.FPDFText_ClosePage(text)


def _chars_slowly(text: Any) -> tuple[Any, ...]:
    count = max(0, int(raw.FPDFText_CountChars(text)))
    if count > MAX_CHARACTERS:
        raise ValueError(f"{count} characters on one page, the limit is {MAX_CHARACTERS}")
    code = np.zeros(count, np.uint32)
    loose, tight = np.zeros((count, 4), np.float32), np.zeros((count, 4), np.float32)
    origin = np.zeros((count, 2), np.float32)
    generated, run = np.zeros(count, np.uint8), np.full(count, -1, np.int32)
    runs: dict[int, int] = {}
    fonts: dict[str, int] = {}
    columns: list[list[Any]] = []
    rect = raw.FS_RECTF()
    left, right, bottom, top, x, y = (ctypes.c_double() for _ in range(6))
    last = -1
    for i in range(count):
        code[i] = raw.FPDFText_GetUnicode(text, i)
        generated[i] = raw.FPDFText_IsGenerated(text, i) == 1
        address = _address(raw.FPDFText_GetTextObject(text, i))
        if address:
            if address not in runs:
                runs[address] = len(columns)
                columns.append(_run_slowly(text, i, fonts))
            last = runs[address]
        run[i] = last
        if generated[i]:
            continue
        raw.FPDFText_GetCharOrigin(text, i, x, y)
        origin[i] = x.value, y.value
        raw.FPDFText_GetCharBox(text, i, left, right, bottom, top)
        tight[i] = left.value, bottom.value, right.value, top.value
        loose[i] = tight[i]
        if raw.FPDFText_GetLooseCharBox(text, i, rect):
            loose[i] = rect.left, rect.bottom, rect.right, rect.top
    columns = columns or []
    size = np.array([c[0] for c in columns], np.float32)
    matrix = np.array([c[1] for c in columns], np.float32).reshape(-1, 4)
    weight, flags, mode = (np.array([c[k] for c in columns], np.int32) for k in (2, 3, 4))
    color = np.array([c[5] for c in columns], np.uint32)
    font = np.array([c[6] for c in columns], np.int32)
    names = list(fonts)
    return (
        code, loose, tight, origin, generated, run,
        size, matrix, weight, flags, mode, color, font, names,
    )  # fmt: skip


def _run_slowly(text: Any, i: int, fonts: dict[str, int]) -> list[Any]:
    matrix = raw.FS_MATRIX(1, 0, 0, 1, 0, 0)
    raw.FPDFText_GetMatrix(text, i, matrix)
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    alpha.value = 255
    raw.FPDFText_GetFillColor(text, i, red, green, blue, alpha)
    flags = ctypes.c_int()
    buffer = ctypes.create_string_buffer(256)
    length = raw.FPDFText_GetFontInfo(text, i, buffer, 256, flags)
    name = buffer.value.decode("utf-8", "replace") if length <= 256 else ""
    return [
        raw.FPDFText_GetFontSize(text, i),
        (matrix.a, matrix.b, matrix.c, matrix.d),
        raw.FPDFText_GetFontWeight(text, i),
        flags.value,
        raw.FPDFTextObj_GetTextRenderMode(raw.FPDFText_GetTextObject(text, i)),
        (alpha.value & 255) << 24 | (red.value & 255) << 16 | (green.value & 255) << 8
        | (blue.value & 255),
        fonts.setdefault(name, len(fonts)),
    ]  # fmt: skip


def _objects_slowly(page: Any) -> tuple[IntArray, FloatArray]:
    """Top-level objects only: forms are not opened."""
    kinds: list[int] = []
    boxes: list[tuple[float, float, float, float]] = []
    sides = [ctypes.c_float() for _ in range(4)]
    for i in range(min(int(raw.FPDFPage_CountObjects(page)), MAX_OBJECTS)):
        item = raw.FPDFPage_GetObject(page, i)
        kind = raw.FPDFPageObj_GetType(item)
        if kind in (raw.FPDF_PAGEOBJ_TEXT, raw.FPDF_PAGEOBJ_FORM):
            continue
        if raw.FPDFPageObj_GetBounds(item, *sides):
            kinds.append(kind)
            boxes.append((sides[0].value, sides[1].value, sides[2].value, sides[3].value))
    return np.array(kinds, np.int32), np.array(boxes, np.float32).reshape(-1, 4)
