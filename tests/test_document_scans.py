"""Image files as documents: each frame is a page, read by OCR."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from rapidfuzz import fuzz

from bookrag_fast.config import OcrSettings
from bookrag_fast.document import Document, PageStatus, read_document
from bookrag_fast.document.pictures import pixels, scans
from bookrag_fast.document.pictures.jobs import PageJob
from bookrag_fast.errors import (
    DocumentError,
    NoTextLayerError,
    TooLargeError,
    UnreadablePagesError,
)
from pdf_factory import HEIGHT, LOREM, WIDTH, paragraph, text_lines

pytest.importorskip("rapidocr")

from PIL import Image

from scan_factory import scanned

ONE = OcrSettings(workers=1)


def page(folder: Path, **wear: float):  # type: ignore[no-untyped-def]
    return scanned(lambda c: paragraph(c, LOREM, top=100), folder, **wear)  # type: ignore[arg-type]


def says(document: Document, text: str = LOREM) -> bool:
    return fuzz.ratio(" ".join(b.text for b in document.blocks), text.strip()) > 98


@pytest.mark.parametrize("kind", ["png", "jpg"])
def test_the_resolution_gives_the_size_of_the_page(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"scan.{kind}"
    page(tmp_path).save(path, dpi=(150, 150))
    document = read_document(path, ocr=ONE)
    (only,) = document.pages
    assert only.status is PageStatus.OCR
    assert (only.width, only.height) == pytest.approx((WIDTH, HEIGHT), abs=1)
    assert says(document)
    box = document.blocks[0].regions[0].bbox
    assert (box.x0, box.y0) == pytest.approx((72, 92), abs=4)
    assert len(document.sha256) == 64


def test_without_a_resolution_it_is_a_sheet_of_a4(tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    page(tmp_path).save(path)
    (only,) = read_document(path, ocr=ONE).pages
    assert (only.width, only.height) == pytest.approx((WIDTH, HEIGHT), abs=1)


def test_the_pages_of_a_tiff(tmp_path: Path) -> None:
    texts = ["Chapter one tells of mills.", "Chapter two tells of rivers.", "Chapter three ends."]
    frames = [scanned(lambda c, t=t: text_lines(c, [t], size=14), tmp_path) for t in texts]
    path = tmp_path / "book.tif"
    frames[0].save(path, save_all=True, append_images=frames[1:], dpi=(150, 150))
    document = read_document(path, ocr=OcrSettings(workers=2))
    assert [b.text for b in document.blocks] == texts
    assert [b.page for b in document.blocks] == [1, 2, 3]


@pytest.mark.parametrize("kind", ["jpg", "tif"])
@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_orientation_is_undone(tmp_path: Path, kind: str, orientation: int) -> None:
    undo = {3: 2, 6: 3, 8: 1}[orientation]  # quarter turns that it takes to need this one
    image = page(tmp_path, quarter_turns=undo)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"turned.{kind}"
    image.save(path, exif=exif, dpi=(150, 150))
    upright = pixels.picture_of(PageJob("image", str(path), None, 0, WIDTH, HEIGHT), 100)[0]
    assert upright.shape[0] > upright.shape[1]
    ink = np.flatnonzero((upright < 128).any(axis=1))
    assert ink.max() < upright.shape[0] / 4  # the text is at the top
    with scans._opened(path) as opened:
        assert scans._size(opened) == pytest.approx((WIDTH, HEIGHT), abs=1)


def test_transparency_palettes_and_deep_pixels(tmp_path: Path) -> None:
    grey = page(tmp_path)
    clear = Image.new("RGBA", grey.size, (0, 0, 0, 0))
    clear.putalpha(Image.fromarray(255 - np.asarray(grey)))  # black ink on nothing
    deep = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    for name, image in {"clear": clear, "palette": grey.convert("P"), "deep": deep}.items():
        path = tmp_path / f"{name}.png"
        image.save(path)
        found = pixels.picture_of(PageJob("image", str(path), None, 0, WIDTH, HEIGHT), 150)[0]
        whole = np.asarray(grey, np.float32)
        assert np.abs(found.astype(np.float32) - whole).mean() < 12, name


def test_a_large_picture_is_read_smaller(tmp_path: Path) -> None:
    path = tmp_path / "large.jpg"
    page(tmp_path, dpi=600).save(path, dpi=(600, 600))
    job = PageJob("image", str(path), None, 0, WIDTH, HEIGHT)
    grey, scale = pixels.picture_of(job, 200)
    assert grey.shape == pytest.approx((HEIGHT * 200 / 72, WIDTH * 200 / 72), rel=0.01)
    assert scale == pytest.approx(200 / 72, rel=0.01)


# --- bad files ----------------------------------------------------------------------------------


def test_a_truncated_jpeg_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "half.jpg"
    page(tmp_path).save(path, dpi=(150, 150))
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(UnreadablePagesError, match="truncated"):
        read_document(path, ocr=ONE)


def test_one_bad_frame_fails_alone(tmp_path: Path) -> None:
    frames = [page(tmp_path), page(tmp_path)]
    path = tmp_path / "book.tif"
    frames[0].save(path, save_all=True, append_images=frames[1:], compression="tiff_lzw")
    data = bytearray(path.read_bytes())
    with Image.open(path) as image:
        image.seek(1)
        start = image.tag_v2[273][0]
    data[start + 100 : start + 4000] = b"\0" * 3900
    path.write_bytes(data)
    document = read_document(path, ocr=ONE)
    assert [p.status for p in document.pages] == [PageStatus.OCR, PageStatus.FAILED]
    assert len(document.warnings) == 1
    assert "page 2" in document.warnings[0]


def test_a_tiff_that_is_cut_off_keeps_the_frames_before(tmp_path: Path) -> None:
    frames = [page(tmp_path), page(tmp_path), page(tmp_path)]
    path = tmp_path / "book.tif"
    frames[0].save(path, save_all=True, append_images=frames[1:])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    document = read_document(path, ocr=ONE)
    # The second lacks pixels, of the third nothing is there.
    failed = PageStatus.FAILED
    assert [p.status for p in document.pages] == [PageStatus.OCR, failed, failed]


def _claiming(width: int, height: int) -> bytes:
    """A PNG that says it has so many pixels and holds none."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [16_000, 60_000])
def test_a_picture_of_too_many_pixels_is_refused(tmp_path: Path, side: int) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(_claiming(side, side))
    with pytest.raises(TooLargeError, match="pixels"):
        read_document(path, ocr=ONE)


def test_a_page_inside_a_tiff_may_not_be_a_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "two.tif"
    Image.new("L", (100, 100), 255).save(
        path, save_all=True, append_images=[Image.new("L", (3000, 3000), 255)]
    )
    monkeypatch.setattr(pixels, "MAX_SOURCE_PIXELS", 1_000_000)
    with pytest.raises(ValueError, match="more than"):
        pixels.picture_of(PageJob("image", str(path), None, 1, WIDTH, HEIGHT), 100)


def test_a_file_that_only_begins_like_an_image(tmp_path: Path) -> None:
    path = tmp_path / "not.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n and then nothing of the kind")
    with pytest.raises(DocumentError, match="can be read"):
        read_document(path, ocr=ONE)


def test_a_picture_without_text(tmp_path: Path) -> None:
    path = tmp_path / "white.png"
    Image.new("L", (800, 600), 255).save(path)
    with pytest.raises(NoTextLayerError, match="OCR found no text"):
        read_document(path, ocr=ONE)


def test_without_the_extra_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scan.png"
    page(tmp_path).save(path)
    monkeypatch.setattr(scans, "is_installed", lambda: False)
    with pytest.raises(DocumentError) as caught:
        read_document(path)
    assert "pip install 'bookrag-fast[ocr]'" in caught.value.hint
