"""Parts of a book's pages as pictures: a figure, a table, an equation as it is printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bookrag_fast.document.model import BBox, Region
from bookrag_fast.document.pdf.pdfium import Pdf, check_file, open_pdf
from bookrag_fast.document.pictures.render import check_dpi, render_page
from bookrag_fast.errors import DocumentError, InvalidArgumentError, TooLargeError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.library.pictures import source_of
from bookrag_fast.library.png import encoded
from bookrag_fast.library.types import Picture

__all__ = ["DEFAULT_DPI", "largest_picture", "pictures_of", "places"]

DEFAULT_DPI = 150
MAX_BYTES = 256 << 20  # of a node's PNGs together
CLOSE = 40.0  # points between two parts of one picture
MARGIN = 3.0  # points: what a box touches is not cut


def pictures_of(
    index: BookIndex, node_id: int, *, dpi: int, pdf: Path | None, password: str | None
) -> list[Picture]:
    """The places of a node in reading order. Errors as for `Library.pictures`."""
    check_dpi(dpi)
    node = index.node(node_id)
    if not node.regions:
        raise InvalidArgumentError(
            f"node {node_id} of {index.meta.title!r} stands on no page: it is the root, or the "
            "book's format has no pages",
            "`bookrag show BOOK tree` shows which nodes have pages",
        )
    path = source_of(index, pdf)
    check_file(path)
    with open_pdf(path, password) as opened:
        out: list[Picture] = []
        room = MAX_BYTES
        for region in places(node.regions):
            out.append(_drawn(opened, region, index, dpi))
            room -= len(out[-1].png)
            if room < 0:
                raise TooLargeError(
                    f"the pictures of node {node_id} have more than {MAX_BYTES >> 20} MiB",
                    "choose fewer dpi",
                )
        return out


def largest_picture(index: BookIndex, node_id: int) -> bytes | None:
    """The PNG of a node's largest place; None where it has none. Errors as `pictures_of`."""
    pictures = pictures_of(index, node_id, dpi=DEFAULT_DPI, pdf=None, password=None)
    largest = max(pictures, key=lambda p: p.width * p.height, default=None)
    return None if largest is None else largest.png


def places(regions: Sequence[Region]) -> list[Region]:
    """Regions that stand close one below the other, as a figure and its caption or the paragraphs
    of a column do, as one; another column or page begins a new one."""
    out: list[Region] = []
    for page, box in regions:
        if out and out[-1].page == page and _adjoin(out[-1].bbox, box):
            out[-1] = Region(page, out[-1].bbox.union(box))
        else:
            out.append(Region(page, box))
    return out


def _adjoin(a: BBox, b: BBox) -> bool:
    beside = min(a.x1, b.x1) - max(a.x0, b.x0)
    gap = max(a.y0, b.y0) - min(a.y1, b.y1)
    return beside > 0.5 * min(a.width, b.width) and gap < CLOSE


def _drawn(pdf: Pdf, region: Region, index: BookIndex, dpi: int) -> Picture:
    from PIL import Image

    box = region.bbox
    around = BBox(box.x0 - MARGIN, box.y0 - MARGIN, box.x1 + MARGIN, box.y1 + MARGIN)
    try:
        pixels = render_page(pdf, region.page - 1, dpi, around)
    except OSError as error:
        raise DocumentError(
            f"page {region.page} of {pdf.name} cannot be drawn: {error}",
            "open and save the file with another PDF program",
        ) from error
    height, width, _ = pixels.shape
    png = encoded(Image.fromarray(pixels))
    return Picture(region.page, index.label(region.page), box, dpi, width, height, png)
