"""``read_pdf``: a PDF file → Document."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bookrag_fast.config import LayoutSettings, OcrSettings
from bookrag_fast.document.analysis.blocks import Body, Draft
from bookrag_fast.document.analysis.flow import flow
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.analysis.ruled import Grid
from bookrag_fast.document.analysis.running import page_numbers, running_lines
from bookrag_fast.document.analysis.titles import document_title
from bookrag_fast.document.files import file_sha256
from bookrag_fast.document.layout.regions import FIGURE, PageRegion, boxes_of, marked
from bookrag_fast.document.layout.stage import LayoutStage
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
from bookrag_fast.document.pdf.annotations import MAX_ANNOTATIONS
from bookrag_fast.document.pdf.pages import Drafting, RawPage, draft_pages, read_page
from bookrag_fast.document.pdf.parallel import PagePool
from bookrag_fast.document.pdf.pdfium import MAX_OUTLINE, PageGeometry, Pdf, check_file, open_pdf
from bookrag_fast.document.pdf.watermarks import watermarks
from bookrag_fast.errors import InvalidArgumentError, NoTextLayerError, UnreadablePagesError

__all__ = ["RawPages", "finished", "read_pdf"]

Progress = Callable[[int, int], None]

_TELL_EVERY = 64  # pages laid out
A_PAGE = 400  # characters that tell what size a scanned page is set in
OTHER_SCALE = 1.4  # times the size of the document's text: no text but a picture's of another scale


@dataclass(slots=True)
class RawPages:
    """What one pass over the pages yields, an entry a page in each of the first lists."""

    pages: list[Page] = field(default_factory=list)
    geometry: list[PageGeometry | None] = field(default_factory=list)
    lines: list[list[Line]] = field(default_factory=list)
    pictures: list[list[BBox]] = field(default_factory=list)
    drawings: list[list[BBox]] = field(default_factory=list)
    grids: list[list[Grid]] = field(default_factory=list)
    rules: list[list[BBox]] = field(default_factory=list)
    fields: list[list[Annotation]] = field(default_factory=list)
    seen: list[list[PageRegion]] = field(default_factory=list)  # by a layout model
    tags: list[OutlineEntry] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, raw: RawPage) -> None:
        self.pages.append(raw.page)
        self.geometry.append(raw.geometry)
        self.lines.append(raw.lines)
        self.pictures.append(raw.pictures)
        self.drawings.append(raw.drawings)
        self.grids.append(raw.grids)
        self.rules.append(raw.rules)
        self.fields.append(raw.fields)
        self.seen.append([])
        self.tags += raw.tags[: MAX_OUTLINE - len(self.tags)]
        self.annotations += raw.annotations[: MAX_ANNOTATIONS - len(self.annotations)]

    def show(self, stage: LayoutStage, progress: Progress | None) -> None:
        """Shows the pages to a layout model."""
        self.seen, warnings = stage.run(self.pages, progress)
        self.warnings += warnings


def read_pdf(
    path: Path | str,
    *,
    password: str | None = None,
    progress: Progress | None = None,
    ocr: OcrSettings | None = None,
    layout: LayoutSettings | None = None,
    pages: tuple[int, int | None] | None = None,
    pool: PagePool | None = None,
) -> Document:
    """Reads a PDF into blocks in reading order.

    Args:
        path: the file.
        password: opens an encrypted file; ignored where none is needed.
        progress: called with (pages done, pages in all) after each page, outside any lock, and
            again a few times a second while pictures are read. What it raises ends the reading.
        ocr: how pages without a usable text layer are read; None takes the defaults.
        layout: whether a layout model sees the pages; None takes the defaults.
        pages: the first and the last physical page to read, 1-based, None for the file's last;
            None reads all. The others stand in the Document without blocks, so that numbers and
            labels stay the file's own.
        pool: processes that read the pages of a long file side by side; the result is the same.

    Raises:
        InvalidArgumentError: ``pages`` are not among those of the file.
        DocumentError: one of its subclasses, by what is wrong with the file: NotAPdfError,
            EmptyDocumentError, EncryptedPdfError, WrongPasswordError, DamagedPdfError,
            ZeroPagesError, NoTextLayerError, UnreadablePagesError. The class itself for a
            missing path or a folder.
        TooLargeError: the file or its page count is beyond the limits.
        ModelError: the layout model is wanted, and is missing or broken.

    A page that fails alone gets PageStatus.FAILED and a warning; the rest goes on.
    """
    path = Path(path)
    check_file(path)
    stage = OcrStage(ocr or OcrSettings(), path, password)
    model = LayoutStage(layout or LayoutSettings(), path, password)
    with open_pdf(path, password) as pdf:
        span = _checked_span(pages, pdf)
        numbers = range(span[0], span[1] + 1)
        if pool is not None and pool.takes(len(numbers)):
            raws = pool.pages(path, password, numbers)
            drafting: Drafting = pool.drafts
        else:
            raws = (read_page(pdf, number) for number in numbers)
            drafting = draft_pages
        found = _read_pages(pdf, span, raws, stage, progress)
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
        if not any(found.lines) and not any(found.fields):
            raise NoTextLayerError(
                f"{path.name} has {len(asked)} pages and no text on any of them: "
                "it is a scan or a picture",
                stage.remedy(),
            )
        outline = tuple(pdf.outline(found.geometry))
        labels = pdf.labels()
        metadata = pdf.metadata_title()

    found.show(model, progress)
    return finished(
        found,
        path,
        file_sha256(path),
        outline=tuple(e for e in outline if pages is None or span[0] <= e.page <= span[1]),
        labels=labels,
        metadata=metadata,
        span=None if span == (1, pdf.page_count) else span,
        drafting=drafting,
        progress=progress,
    )


def _checked_span(pages: tuple[int, int | None] | None, pdf: Pdf) -> tuple[int, int]:
    first, last = pages or (1, None)
    if last is None:
        last = pdf.page_count
    if pages is not None and pages[1] is not None and 1 <= last < first:
        raise InvalidArgumentError(
            f"the range of pages {first}-{last} is reversed", f"write {last}-{first}"
        )
    if not 1 <= first <= last <= pdf.page_count:
        raise InvalidArgumentError(
            f"pages {first} to {max(first, last)} are not among the {pdf.page_count} of {pdf.name}",
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
    drafting: Drafting = draft_pages,
    progress: Progress | None = None,
) -> Document:
    """The lines of all pages → a Document; ``found`` is used up.

    Args:
        labels: of the pages, as the file has them; empty takes printed page numbers.
        metadata: the file's own idea of its title.
        span: first and last page that were read, None for all.
        drafting: lays the pages out.
        progress: told now and then that the work goes on.
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
    drafts = itertools.chain.from_iterable(
        _told(drafting(_remaining(pages, found, body)), len(pages), progress)
    )
    blocks = tuple(draft.block() for draft in flow(drafts))
    if any(found.seen):
        blocks = marked(blocks, found.seen)
    return Document(
        name=path.name,
        sha256=sha256,
        title=document_title(metadata, _beginning(blocks), path.name),
        pages=pages,
        blocks=blocks,
        outline=outline,
        warnings=tuple(found.warnings),
        span=span,
        tags=tuple(found.tags),
        annotations=tuple(found.annotations),
    )


def _read_pages(
    pdf: Pdf,
    span: tuple[int, int],
    raws: Iterable[RawPage],
    stage: OcrStage,
    progress: Progress | None,
) -> RawPages:
    """``raws`` are the pages of the span, in order."""
    found = RawPages()
    done = pdf.page_count - (span[1] - span[0] + 1)
    for raw in itertools.chain(_left_out(span, 1, span[0] - 1), raws):
        page = raw.page
        waits = False
        if page.status is PageStatus.FAILED:
            found.warnings.append(f"{pdf.name}, page {page.number}: not read: {page.note}")
        elif page.number >= span[0]:
            area = page.width * page.height
            waits = stage.look(page.number - 1, raw.lines, raw.pictures, raw.drawn, area)
        found.add(raw)
        if progress is not None and page.number >= span[0]:
            done += not waits
            progress(done, pdf.page_count)
    for raw in _left_out(span, span[1] + 1, pdf.page_count):
        found.add(raw)
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


def _left_out(span: tuple[int, int], first: int, last: int) -> Iterator[RawPage]:
    note = f"not read: only pages {span[0]} to {span[1]} were asked for"
    for number in range(first, last + 1):
        yield RawPage(Page(number, None, 0.0, 0.0, PageStatus.NO_TEXT, note))


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
    characters: dict[tuple[float, bool, bool], int] = {}
    for of_page in lines:
        for line in of_page:
            face = (round(line.size * 2) / 2, line.bold, line.mono)
            characters[face] = characters.get(face, 0) + len(line.text)
    if not characters:
        return Body(10.0, bold=False, mono=False)
    sizes: Counter[float] = Counter()
    for (size, _, _), count in characters.items():
        sizes[size] += count
    size = sizes.most_common(1)[0][0]
    of_size = {face: count for face, count in characters.items() if face[0] == size}
    _, bold, mono = max(of_size, key=of_size.__getitem__)
    return Body(size, bold=bold, mono=mono)


def _body_of(page: Page, lines: list[Line], whole: Body) -> Body:
    """A page's own body where it was scanned at another scale than the others."""
    if page.status is not PageStatus.OCR or sum(len(line.text) for line in lines) < A_PAGE:
        return whole
    own = _body_face([lines])
    scale = own.size / whole.size
    return own if not 1 / OTHER_SCALE < scale < OTHER_SCALE else whole


def _remaining(
    pages: Sequence[Page], found: RawPages, whole: Body
) -> Iterator[tuple[RawPage, Body]]:
    """The pages as they are laid out, each with its body; its lines are given away with it."""
    for k, page in enumerate(pages):
        lines, found.lines[k] = found.lines[k], []
        raw = RawPage(
            page,
            found.geometry[k],
            lines,
            found.pictures[k],
            found.drawings[k],
            found.grids[k],
            found.rules[k],
            fields=found.fields[k],
            figures=boxes_of(found.seen[k], FIGURE),
        )
        yield raw, _body_of(page, lines, whole)


def _told(
    drafts: Iterator[list[Draft]], total: int, progress: Progress | None
) -> Iterator[list[Draft]]:
    for k, of_page in enumerate(drafts, 1):
        if progress is not None and k % _TELL_EVERY == 0:
            progress(total, total)
        yield of_page


def _beginning(blocks: Sequence[Block]) -> list[Block]:
    out: list[Block] = []
    for block in blocks:
        if block.page > 1:
            break
        out.append(block)
    return out
