"""One page of a PDF: what is read off it, and its blocks once the whole document is known.

Both steps look at nothing but the page, so that pages can be read side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from bookrag_fast.document.analysis.blocks import Body, Draft, drafts_of
from bookrag_fast.document.analysis.captions import caption_kind
from bookrag_fast.document.analysis.characters import lines_of
from bookrag_fast.document.analysis.columns import columns_of
from bookrag_fast.document.analysis.lettering import clean
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.analysis.ruled import Grid, ruled_grids, take_tables
from bookrag_fast.document.model import Annotation, BBox, OutlineEntry, Page, PageStatus
from bookrag_fast.document.pdf.annotations import add_fields, annotations_of, hidden_fields
from bookrag_fast.document.pdf.chars import PageChars, geometry_of, read_chars, read_objects
from bookrag_fast.document.pdf.drawings import drawn_regions, take_figures
from bookrag_fast.document.pdf.images import add_images, picture_boxes
from bookrag_fast.document.pdf.pdfium import PageGeometry, Pdf
from bookrag_fast.document.pdf.tags import HeadingTag, heading_tags, tagged_text
from bookrag_fast.document.pdf.watermarks import part_tilted
from bookrag_fast.errors import TooLargeError

__all__ = ["Drafting", "RawPage", "draft_pages", "failed_page", "page_drafts", "read_page"]

MAX_RULES = 400  # a page; a chart may have thousands of lines, which part no text
_MAX_SIDE = 200_000.0  # points; PDF's own limit is 14,400


@dataclass(slots=True)
class RawPage:
    """What is read off a page. Lines are small; characters are not kept."""

    page: Page
    geometry: PageGeometry | None = None
    lines: list[Line] = field(default_factory=list)
    pictures: list[BBox] = field(default_factory=list)
    drawings: list[BBox] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)
    rules: list[BBox] = field(default_factory=list)  # at least half a column wide
    drawn: bool = False  # whether anything but text is on it
    tags: list[OutlineEntry] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    fields: list[Annotation] = field(default_factory=list)  # those that its lines do not show
    figures: list[BBox] = field(default_factory=list)  # as a layout model sees them


def failed_page(number: int, why: str) -> RawPage:
    """A page of which nothing is known. ``number`` is 1-based."""
    return RawPage(Page(number, None, 0.0, 0.0, PageStatus.FAILED, why))


def read_page(pdf: Pdf, number: int) -> RawPage:
    """Reads a page, 1-based; one that cannot be read has PageStatus.FAILED and says why."""
    geometry: PageGeometry | None = None
    try:
        with pdf.page(number - 1) as handle:
            geometry = geometry_of(handle)
            width, height = geometry.width, geometry.height
            if max(width, height) > _MAX_SIDE:
                raise ValueError(f"its size is {width:g} × {height:g} points")
            chars = read_chars(handle, geometry)
            tags = heading_tags(handle, geometry) if pdf.tagged else []
            notes = list(annotations_of(pdf.raw, pdf.form, handle, geometry, number))
            objects = read_objects(handle, geometry)
        tagged = list(_tagged(tags, chars, number))
        chars, tilted = part_tilted(chars)
        lines = lines_of(chars, width, height) + tilted
        fields = hidden_fields(notes, lines)
        drawn = objects.drawings + objects.rules
        grids: list[Grid] = []
        if len(drawn) > 4:
            # The rules of a table are often pieces, one a row.
            coarse = drawn_regions(drawn, width, height, reach=2)
            grids = ruled_grids(objects.rules, objects.drawings, coarse)
        return RawPage(
            Page(number, None, width, height)
            if lines or fields
            else Page(number, None, width, height, PageStatus.NO_TEXT, "no text layer"),
            geometry,
            lines,
            picture_boxes(objects.images, width, height),
            drawn_regions(drawn, width, height),
            grids,
            [b for b in objects.rules if b.width > 0.15 * width][:MAX_RULES],
            bool(drawn or objects.images),
            tagged,
            notes,
            fields,
        )
    except (OSError, ValueError, TooLargeError) as error:
        failed = failed_page(number, str(error))
        if geometry is not None:
            failed.geometry = geometry
            failed.page = Page(
                number, None, geometry.width, geometry.height, PageStatus.FAILED, str(error)
            )
        return failed


def _tagged(tags: list[HeadingTag], chars: PageChars, page: int) -> Iterator[OutlineEntry]:
    for tag in tags:
        title = clean(tagged_text(tag, chars))
        if title:
            yield OutlineEntry(title, tag.level, page, tag.top)


# Pages, running lines gone, each with the body it is set in → their drafts, a list a page.
Drafting = Callable[[Iterable[tuple[RawPage, Body]]], Iterator[list[Draft]]]


def draft_pages(pages: Iterable[tuple[RawPage, Body]]) -> Iterator[list[Draft]]:
    """The drafts of pages, one after the other."""
    for raw, body in pages:
        yield page_drafts(raw, body)


def page_drafts(raw: RawPage, body: Body) -> list[Draft]:
    """The drafts of a page in reading order."""
    page, lines, grids = raw.page, raw.lines, raw.grids
    if (raw.drawings or raw.figures) and any(caption_kind(line.text) == "figure" for line in lines):
        plain = drafts_of(_columns(lines, raw.rules), page.number, page.height, body, tables=False)
        outside, figures = take_figures(lines, plain, raw.drawings, raw.pictures, raw.figures)
        grids = [g for g in grids if not any(g.within(f) for f in figures)]
        lines = outside + figures
    if grids:
        outside, tables = take_tables(lines, grids)
        lines = outside + tables
    drafts = drafts_of(_columns(lines, raw.rules), page.number, page.height, body)
    drafts = add_fields(drafts, raw.fields, body.size)
    return add_images(drafts, raw.pictures, page.number, page.width, page.height)


def _columns(lines: list[Line], rules: list[BBox]) -> list[list[Line]]:
    out: list[list[Line]] = []
    for frame in dict.fromkeys(line.frame for line in lines):
        of_frame = [line for line in lines if line.frame == frame]
        out.extend(columns_of(of_frame, rules if frame == 0 else ()))
    return out
