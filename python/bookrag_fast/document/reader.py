"""``read_pdf``: a PDF file → Document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bookrag_fast.config import OcrSettings
from bookrag_fast.document.annotations import (
    MAX_ANNOTATIONS,
    add_fields,
    annotations_of,
    hidden_fields,
)
from bookrag_fast.document.blocks import Body, Draft, drafts_of
from bookrag_fast.document.captions import caption_kind
from bookrag_fast.document.chars import PageChars, geometry_of, read_chars, read_objects
from bookrag_fast.document.columns import columns_of
from bookrag_fast.document.drawings import drawn_regions, take_figures
from bookrag_fast.document.files import file_sha256
from bookrag_fast.document.flow import flow
from bookrag_fast.document.images import add_images, picture_boxes
from bookrag_fast.document.lines import Line, clean, lines_of
from bookrag_fast.document.model import (
    Annotation,
    BBox,
    Block,
    Document,
    OutlineEntry,
    Page,
    PageStatus,
)
from bookrag_fast.document.ocr.stage import OcrStage
from bookrag_fast.document.pdfium import MAX_OUTLINE, PageGeometry, Pdf, check_file, open_pdf
from bookrag_fast.document.ruled import Grid, ruled_grids, take_tables
from bookrag_fast.document.running import page_numbers, running_lines
from bookrag_fast.document.tags import HeadingTag, heading_tags, tagged_text
from bookrag_fast.document.titles import document_title
from bookrag_fast.document.watermarks import part_tilted, watermarks
from bookrag_fast.errors import (
    InvalidArgumentError,
    NoTextLayerError,
    TooLargeError,
    UnreadablePagesError,
)

__all__ = ["RawPages", "finished", "read_pdf"]

Progress = Callable[[int, int], None]

MAX_RULES = 400  # a page; a chart may have thousands of lines, which part no text
A_PAGE = 400  # characters that tell what size a scanned page is set in
OTHER_SCALE = 1.4  # times the size of the document's text: no text but a picture's of another scale
_MAX_SIDE = 200_000.0  # points; PDF's own limit is 14,400


@dataclass(slots=True)
class RawPages:
    """What one pass over the pages yields. Lines are small; characters are not kept."""

    pages: list[Page] = field(default_factory=list)
    geometry: list[PageGeometry | None] = field(default_factory=list)
    lines: list[list[Line]] = field(default_factory=list)
    pictures: list[list[BBox]] = field(default_factory=list)
    drawings: list[list[BBox]] = field(default_factory=list)
    grids: list[list[Grid]] = field(default_factory=list)
    rules: list[list[BBox]] = field(default_factory=list)  # at least half a column wide
    tags: list[OutlineEntry] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    fields: dict[int, list[Annotation]] = field(default_factory=dict)  # by page, not in its lines
    warnings: list[str] = field(default_factory=list)

    def add(
        self,
        page: Page,
        geometry: PageGeometry | None = None,
        lines: Sequence[Line] = (),
        pictures: Sequence[BBox] = (),
        drawings: Sequence[BBox] = (),
        grids: Sequence[Grid] = (),
        rules: Sequence[BBox] = (),
    ) -> None:
        self.pages.append(page)
        self.geometry.append(geometry)
        self.lines.append(list(lines))
        self.pictures.append(list(pictures))
        self.drawings.append(list(drawings))
        self.grids.append(list(grids))
        self.rules.append(list(rules))


def read_pdf(
    path: Path | str,
    *,
    password: str | None = None,
    progress: Progress | None = None,
    ocr: OcrSettings | None = None,
    pages: tuple[int, int | None] | None = None,
) -> Document:
    """Reads a PDF into blocks in reading order.

    Args:
        path: the file.
        password: opens an encrypted file; ignored where none is needed.
        progress: called with (pages done, pages in all) after each page, outside any lock, and
            again a few times a second while pictures are read. What it raises ends the reading.
        ocr: how pages without a usable text layer are read; None takes the defaults.
        pages: the first and the last physical page to read, 1-based, None for the file's last;
            None reads all. The others stand in the Document without blocks, so that numbers and
            labels stay the file's own.

    Raises:
        InvalidArgumentError: ``pages`` are not among those of the file.
        DocumentError: one of its subclasses, by what is wrong with the file: NotAPdfError,
            EmptyDocumentError, EncryptedPdfError, WrongPasswordError, DamagedPdfError,
            ZeroPagesError, NoTextLayerError, UnreadablePagesError. The class itself for a
            missing path or a folder.
        TooLargeError: the file or its page count is beyond the limits.

    A page that fails alone gets PageStatus.FAILED and a warning; the rest goes on.
    """
    path = Path(path)
    check_file(path)
    stage = OcrStage(ocr or OcrSettings(), path, password)
    with open_pdf(path, password) as pdf:
        span = _checked_span(pages, pdf)
        found = _read_pages(pdf, span, stage, progress)
        asked = found.pages[span[0] - 1 : span[1]]
        if pdf.is_xfa:
            found.warnings.append(
                f"{path.name} is an XFA form: what it shows is made by Adobe's programs when it is "
                "opened, and only the pages that it holds for others were read"
            )
        if all(page.status is PageStatus.FAILED for page in asked):
            raise UnreadablePagesError(
                f"none of the {len(asked)} pages of {path.name} can be read: "
                f"page {asked[0].number}: {asked[0].note}",
                "open and save the file with another PDF program",
            )
        if not any(found.lines) and not found.fields:
            raise NoTextLayerError(
                f"{path.name} has {len(asked)} pages and no text on any of them: "
                "it is a scan or a picture",
                stage.remedy(),
            )
        outline = tuple(pdf.outline(found.geometry))
        labels = pdf.labels()
        metadata = pdf.metadata_title()

    return finished(
        found,
        path,
        file_sha256(path),
        outline=tuple(e for e in outline if pages is None or span[0] <= e.page <= span[1]),
        labels=labels,
        metadata=metadata,
        span=None if span == (1, pdf.page_count) else span,
    )


def _checked_span(pages: tuple[int, int | None] | None, pdf: Pdf) -> tuple[int, int]:
    first, last = pages or (1, None)
    if last is None:
        last = pdf.page_count
    if not 1 <= first <= last <= pdf.page_count:
        raise InvalidArgumentError(
            f"pages {first} to {last} are not among the {pdf.page_count} of {pdf.name}",
            "pages are physical: the first one of the file is 1",
        )
    return first, last


def finished(
    found: RawPages,
    path: Path,
    sha256: str,
    *,
    outline: tuple[OutlineEntry, ...] = (),
    labels: Sequence[str | None] = (),
    metadata: str = "",
    span: tuple[int, int] | None = None,
) -> Document:
    """The lines of all pages → a Document; ``found`` is used up.

    Args:
        labels: of the pages, as the file has them; empty takes printed page numbers.
        metadata: the file's own idea of its title.
        span: first and last page that were read, None for all.
    """
    first, last = span or (1, len(found.pages))
    part = slice(first - 1, last)
    body_size = _body_face(found.lines).size
    running = running_lines(found.pages[part], found.lines[part], body_size)
    marks_over = watermarks(found.lines[part], body_size)
    if not any(labels):
        printed = page_numbers(found.pages[part], found.lines[part], running)
        labels = [*[None] * (first - 1), *printed, *[None] * (len(found.pages) - last)]
    pages = tuple(
        Page(p.number, label, p.width, p.height, p.status, p.note)
        for p, label in zip(found.pages, labels, strict=True)
    )
    for of_page, marks, over in zip(found.lines[part], running, marks_over, strict=True):
        if marks or over:
            gone = marks | over
            of_page[:] = [line for k, line in enumerate(of_page) if k not in gone]
    _drop_backdrops(found, last - first + 1)
    body = _body_face(found.lines)
    blocks = tuple(draft.block() for draft in flow(_drafts(pages, found, body)))
    return Document(
        name=path.name,
        sha256=sha256,
        title=document_title(metadata, _beginning(blocks), path.name),
        pages=pages,
        blocks=blocks,
        outline=outline,
        warnings=tuple(found.warnings),
        span=span,
        tags=tuple(found.tags[:MAX_OUTLINE]),
        annotations=tuple(found.annotations),
    )


def _tagged(tags: Sequence[HeadingTag], chars: PageChars, page: int) -> Iterator[OutlineEntry]:
    for tag in tags:
        title = clean(tagged_text(tag, chars))
        if title:
            yield OutlineEntry(title, tag.level, page, tag.top)


def _read_pages(
    pdf: Pdf, span: tuple[int, int], stage: OcrStage, progress: Progress | None
) -> RawPages:
    found = RawPages()
    done = 0
    for index in range(pdf.page_count):
        number = index + 1
        if not span[0] <= number <= span[1]:
            note = f"not read: only pages {span[0]} to {span[1]} were asked for"
            found.add(Page(number, None, 0.0, 0.0, PageStatus.NO_TEXT, note))
            done += 1
            continue
        geometry: PageGeometry | None = None
        lines: list[Line] = []
        pictures: list[BBox] = []
        drawings: list[BBox] = []
        grids: list[Grid] = []
        rules: list[BBox] = []
        note, status = "", PageStatus.OK
        waits = False
        try:
            with pdf.page(index) as handle:
                geometry = geometry_of(handle)
                if max(geometry.width, geometry.height) > _MAX_SIDE:
                    raise ValueError(f"its size is {geometry.width:g} × {geometry.height:g} points")
                chars = read_chars(handle, geometry)
                tags = heading_tags(handle, geometry) if pdf.tagged else []
                notes = list(annotations_of(pdf.raw, pdf.form, handle, geometry, number))
                objects = read_objects(handle, geometry)
            found.tags += _tagged(tags, chars, number)
            chars, tilted = part_tilted(chars)
            lines = lines_of(chars, geometry.width, geometry.height) + tilted
            found.annotations += notes[: MAX_ANNOTATIONS - len(found.annotations)]
            if unseen := hidden_fields(notes, lines):
                found.fields[number] = unseen
            pictures = picture_boxes(objects.images, geometry.width, geometry.height)
            drawn = objects.drawings + objects.rules
            drawings = drawn_regions(drawn, geometry.width, geometry.height)
            rules = [b for b in objects.rules if b.width > 0.15 * geometry.width][:MAX_RULES]
            if len(drawn) > 4:
                # The rules of a table are often pieces, one a row.
                coarse = drawn_regions(drawn, geometry.width, geometry.height, reach=2)
                grids = ruled_grids(objects.rules, objects.drawings, coarse)
            area = geometry.width * geometry.height
            waits = stage.look(index, lines, pictures, bool(drawn or objects.images), area)
        except (OSError, ValueError, TooLargeError) as error:
            status, note = PageStatus.FAILED, str(error)
            found.warnings.append(f"{pdf.name}, page {number}: not read: {error}")
        if status is PageStatus.OK and not lines and number not in found.fields:
            status, note = PageStatus.NO_TEXT, "no text layer"
        width, height = (geometry.width, geometry.height) if geometry else (0.0, 0.0)
        page = Page(number, None, width, height, status, note)
        found.add(page, geometry, lines, pictures, drawings, grids, rules)
        if progress is not None:
            done += not waits
            progress(done, pdf.page_count)
    layer = [of_page for of_page in found.lines if of_page]
    found.warnings += stage.run(
        found.pages,
        found.lines,
        found.pictures,
        body=_body_face(layer).size if layer else None,
        progress=progress,
    )
    textless = [
        p.number
        for p in found.pages
        if p.status is PageStatus.NO_TEXT
        and p.number not in stage.reported
        and span[0] <= p.number <= span[1]
    ]
    asked = span[1] - span[0] + 1
    if textless and len(textless) < asked:
        listed = ", ".join(map(str, textless[:12])) + (" …" if len(textless) > 12 else "")
        found.warnings.append(
            f"{pdf.name}: {len(textless)} of {asked} pages carry no text: {listed}"
        )
    return found


def _drop_backdrops(found: RawPages, page_count: int) -> None:
    """Drops logos and backdrops: the same box on a third of the pages or more.

    A page without text of its own keeps its pictures: they are what it says.
    """
    seen = Counter(_rounded(b) for of_page in found.pictures for b in set(of_page))
    limit = max(3, page_count // 3)
    for of_page, lines in zip(found.pictures, found.lines, strict=True):
        if lines:
            of_page[:] = [b for b in of_page if seen[_rounded(b)] < limit]


def _rounded(box: BBox) -> tuple[int, ...]:
    return tuple(round(v / 4) for v in box)


def _body_face(lines: Sequence[list[Line]]) -> Body:
    """The face most characters are set in."""
    sizes: Counter[float] = Counter()
    faces: dict[float, Counter[tuple[bool, bool]]] = {}
    for of_page in lines:
        for line in of_page:
            key = round(line.size * 2) / 2
            sizes[key] += len(line.text)
            faces.setdefault(key, Counter())[(line.bold, line.mono)] += len(line.text)
    if not sizes:
        return Body(10.0, bold=False, mono=False)
    size = sizes.most_common(1)[0][0]
    bold, mono = faces[size].most_common(1)[0][0]
    return Body(size, bold=bold, mono=mono)


def _body_of(page: Page, lines: list[Line], whole: Body) -> Body:
    """A page's own body where it was scanned at another scale than the others."""
    if page.status is not PageStatus.OCR or sum(len(line.text) for line in lines) < A_PAGE:
        return whole
    own = _body_face([lines])
    scale = own.size / whole.size
    return own if not 1 / OTHER_SCALE < scale < OTHER_SCALE else whole


def _drafts(pages: Sequence[Page], found: RawPages, whole: Body) -> Iterator[Draft]:
    for page, lines, pictures, drawings, grids, rules in zip(
        pages, found.lines, found.pictures, found.drawings, found.grids, found.rules, strict=True
    ):
        body = _body_of(page, lines, whole)
        if drawings and any(caption_kind(line.text) == "figure" for line in lines):
            plain = drafts_of(_columns(lines, rules), page.number, page.height, body, tables=False)
            outside, figures = take_figures(lines, plain, drawings, pictures)
            grids = [g for g in grids if not any(g.within(f) for f in figures)]
            lines[:] = outside + figures
        if grids:
            outside, tables = take_tables(lines, grids)
            lines[:] = outside + tables
        drafts = drafts_of(_columns(lines, rules), page.number, page.height, body)
        drafts = add_fields(drafts, found.fields.get(page.number, ()), body.size)
        yield from add_images(drafts, pictures, page.number, page.width, page.height)
        lines.clear()  # a page's lines are done with


def _columns(lines: list[Line], rules: list[BBox]) -> list[list[Line]]:
    out: list[list[Line]] = []
    for frame in dict.fromkeys(line.frame for line in lines):
        of_frame = [line for line in lines if line.frame == frame]
        out.extend(columns_of(of_frame, rules if frame == 0 else ()))
    return out


def _beginning(blocks: Sequence[Block]) -> list[Block]:
    out: list[Block] = []
    for block in blocks:
        if block.page > 1:
            break
        out.append(block)
    return out
