"""Damaged PDFs, in a process with limits of time and memory: a document or an error of ours,
never a crash or a hang of the caller."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from bookrag_fast.config import OcrSettings
from bookrag_fast.document import Document, IsolatedReader
from bookrag_fast.errors import BookragError
from conftest import HANDBOOK
from pdf_factory import LOREM, heading, make_pdf, paragraph

MEMORY_MB = 1024
LONGEST_S = 60.0


def flipped(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 4, 40, 400))):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(1, len(data))]


def spliced(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    at = rng.randrange(len(data))
    return data[:at] + data[a : min(b, a + 100_000)] + data[at:]


def renumbered(data: bytes, rng: random.Random) -> bytes:
    """Object references and lengths that lead elsewhere."""
    out = bytearray(data)
    digits = [k for k, byte in enumerate(data) if 48 <= byte <= 57]
    for _ in range(rng.choice((1, 10, 100))):
        out[rng.choice(digits)] = rng.randrange(48, 58)
    return bytes(out)


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (flipped, cut, spliced, renumbered)


class TooSlowError(Exception):
    pass


def survives(reader: IsolatedReader, path: Path, data: bytes) -> bool:
    """Whether a document came out; an error must be of our own tree and say what to do."""
    path.write_bytes(data)
    end = time.monotonic() + LONGEST_S

    def check() -> None:
        if time.monotonic() > end:
            raise TooSlowError

    document: Document | None = None
    refusal: BookragError | None = None
    try:
        document = reader.read(path, check=check)
    except BookragError as error:
        refusal = error
    assert document is not None or (refusal is not None and refusal.message and refusal.hint)
    return document is not None and len(document.pages) > 0


@pytest.fixture
def reader() -> IsolatedReader:
    return IsolatedReader(memory_mb=MEMORY_MB, workers=1, ocr=OcrSettings(mode="off"))


def test_mutations_of_a_small_pdf(reader: IsolatedReader, tmp_path: Path) -> None:
    def page(canvas: Canvas) -> None:
        heading(canvas, "1 First", top=90)
        paragraph(canvas, LOREM, top=120)

    source = make_pdf(tmp_path / "source.pdf", [page] * 3)
    data, rng = source.read_bytes(), random.Random(1)
    read = [survives(reader, tmp_path / "m.pdf", mutate(data, rng))
            for mutate in MUTATIONS for _ in range(6)]  # fmt: skip
    assert any(read)  # some damage is mended
    reader.close()


@pytest.mark.slow
@pytest.mark.parametrize("mutate", MUTATIONS)
def test_mutations_of_the_handbook(
    reader: IsolatedReader, tmp_path: Path, mutate: Callable[[bytes, random.Random], bytes]
) -> None:
    data, rng = HANDBOOK.read_bytes(), random.Random(mutate.__name__)
    for _ in range(12):
        survives(reader, tmp_path / "m.pdf", mutate(data, rng))
    reader.close()
