"""A picture of a page → its lines, by rapidocr's models on one core.

The recogniser costs by the width of what it is shown. The longest lines tell how much the others
may be narrowed; what is read with doubt is shown once more at full width.
Which way text runs is found by trying: the right way up reads with far more confidence than any
other, so upright pages cost nothing extra.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from bookrag_fast.document.analysis.lettering import clean, is_cjk
from bookrag_fast.document.ocr.ink import measure
from bookrag_fast.document.ocr.wire import OcrLine
from bookrag_fast.errors import ModelNotFoundError

__all__ = ["Recogniser"]

Grey = npt.NDArray[np.uint8]
Points = npt.NDArray[np.float32]

HEIGHT = 48  # pixels, of the recogniser's input
PIXELS_A_LETTER = 12.0  # of that input; with fewer than 10 letters are lost, with more few are won
PIXELS_A_KANJI = 18.0
NARROWEST = 0.4  # of a line's width
ALIKE = 1.3  # a ratio of heights below which lines may be of one type
SURE = 0.9  # a score from which a reading is taken as it is
LEAST = 0.5  # a score below which a reading is none
DETECTOR_SIDES = (960, 1600)  # pixels, of the longer side of what the detector sees
SMALL = 10.0  # pixels, of lines there, below which it looks once more at the larger size
SAMPLE = 3  # lines read to find which way a page stands, and how narrow it may be shown
_PACKAGED = {"det": "PP-OCRv6_det_small.onnx", "rec": "PP-OCRv6_rec_small.onnx"}


@dataclass(frozen=True, slots=True)
class _Reading:
    text: str
    score: float


class Recogniser:
    """Loads the models; one page after another is then read on one thread.

    Args:
        models: a folder with one ``*det*.onnx`` and one ``*rec*.onnx`` whose metadata holds its
            characters, as the PP-OCR models made for rapidocr do; None takes those in rapidocr's
            own package. Nothing is ever downloaded.

    Raises:
        ModelNotFoundError: the folder lacks one of them, or the metadata is missing.
    """

    def __init__(self, models: Path | None = None) -> None:
        from rapidocr import RapidOCR

        cv2.setNumThreads(1)
        recogniser = _model(models, "rec")
        if models is not None:
            _check_characters(recogniser)
        # Given paths are never checked against a download, as names of models are.
        self._engine: Any = RapidOCR(
            params={
                "Global.log_level": "critical",
                "Global.use_cls": False,
                "Det.model_path": str(_model(models, "det")),
                "Det.limit_type": "max",
                "Det.limit_side_len": DETECTOR_SIDES[0],
                "Rec.model_path": str(recogniser),
                "Rec.rec_batch_num": 1,  # a batch does not fit the cache: slower than one by one
                "Rec.rec_img_shape": [3, HEIGHT, 128],
                "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )

    def read(self, grey: Grey, scale: float) -> list[OcrLine]:
        """The lines of a page, those that lie before those that stand.

        Args:
            grey: pixels (height, width).
            scale: pixels a point.
        """
        quads = self._detected(grey)
        out: list[OcrLine] = []
        for group, turns in _by_direction(quads):
            group.sort(key=_length, reverse=True)
            widths = _full_widths(group)
            frame, read = self._sample(grey, group[:SAMPLE], widths, turns)
            part = _narrowed(widths, read)
            for k, quad in enumerate(group):
                corners = _turned(quad, frame)
                crop = _crop(grey, corners)
                reading = read[k] if k < len(read) else self._line(crop, widths[k], part)
                line = _measured(reading, crop, corners, frame, scale)
                if line is not None:
                    out.append(line)
        return sorted(out, key=lambda line: (line.frame, line.base, line.x0))

    def _detected(self, grey: Grey) -> list[Points]:
        """Corners of each line, clockwise from the top left as the page stands, in pixels."""
        if min(grey.shape) < 8:
            return []
        quads = self._detected_at(DETECTOR_SIDES[0], grey)
        shrink = DETECTOR_SIDES[0] / max(grey.shape)
        if quads and shrink < 1 and median(map(_thickness, quads)) * shrink < SMALL:
            quads = self._detected_at(DETECTOR_SIDES[1], grey)
        return quads

    def _detected_at(self, side: int, grey: Grey) -> list[Points]:
        from rapidocr.main import RapidOCRError

        if self._engine.text_det is not None:  # loaded at its first use
            self._engine.text_det.limit_side_len = side
        try:
            _, found = self._engine.detect_and_crop(cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR), {})
        except RapidOCRError:  # its way of saying that there is none
            return []
        return [np.asarray(quad, np.float32) for quad in found.boxes]

    def _sample(
        self, grey: Grey, quads: Sequence[Points], widths: Sequence[float], turns: tuple[int, int]
    ) -> tuple[int, list[_Reading]]:
        """The longest lines, read in the one of two opposite directions in which they read
        better."""
        tried: list[tuple[float, int, list[_Reading]]] = []
        for frame in turns:
            crops = [_crop(grey, _turned(quad, frame)) for quad in quads]
            read = [self._recognise(*pair) for pair in zip(crops, widths, strict=False)]
            letters = sum(len(r.text) for r in read)
            score = sum(r.score * len(r.text) for r in read) / max(letters, 1)
            if score >= SURE:
                return frame, read
            tried.append((score, frame, read))
        _, frame, read = max(tried, key=lambda one: one[0])
        return frame, read

    def _line(self, crop: Grey, full: float, part: float) -> _Reading:
        read = self._recognise(crop, part * full)
        if read.score < SURE and part < 1:
            return max(read, self._recognise(crop, full), key=lambda one: one.score)
        return read

    def _recognise(self, crop: Grey, width: float) -> _Reading:
        """What a line says that is shown so many pixels wide."""
        way = cv2.INTER_AREA if crop.shape[0] > HEIGHT else cv2.INTER_LINEAR
        shown = cv2.resize(crop, (max(16, round(width)), HEIGHT), interpolation=way)
        found = self._engine.recognize_txt([cv2.cvtColor(shown, cv2.COLOR_GRAY2BGR)])
        return _Reading(str(found.txts[0]), float(found.scores[0]))


def _full_widths(quads: Sequence[Points]) -> list[float]:
    """Pixels that each line is wide when it is shown in its own proportions.

    The detector marks lines of one type now higher, now lower; those near the usual height are
    all taken to have it, so that their letters are shown equally wide.
    """
    usual = median(map(_thickness, quads))
    out: list[float] = []
    for quad in quads:
        high = _thickness(quad)
        if 1 / ALIKE < high / usual < ALIKE:
            high = usual
        out.append(HEIGHT * _length(quad) / max(high, 1.0))
    return out


def _narrowed(widths: Sequence[float], read: Sequence[_Reading]) -> float:
    """The part of their full width at which lines like these are still read well."""
    room: list[float] = []
    for full, reading in zip(widths, read, strict=False):
        if reading.score >= SURE and len(reading.text) >= 6:
            kanji = 2 * sum(is_cjk(ord(c)) for c in reading.text) > len(reading.text)
            needed = PIXELS_A_KANJI if kanji else PIXELS_A_LETTER
            room.append(needed * len(reading.text) / full)
    return min(1.0, max(NARROWEST, median(room))) if room else 1.0


def _measured(
    read: _Reading, crop: Grey, corners: Points, frame: int, scale: float
) -> OcrLine | None:
    """A reading with its place and its type; None for what is no line of text."""
    text = clean(read.text)
    ink = measure(crop, text) if text and read.score >= LEAST else None
    if ink is None:
        return None
    left, top, right, bottom = _level(corners, frame)
    start = (left + right - crop.shape[1]) / 2
    return OcrLine(
        text,
        read.score,
        frame,
        (start + ink.left) / scale,
        (start + ink.right) / scale,
        ((top + bottom - crop.shape[0]) / 2 + ink.base) / scale,
        ink.size / scale,
        ink.stroke / scale,
    )


def _model(folder: Path | None, part: str) -> Path:
    place = folder
    if place is None:
        spec = importlib.util.find_spec("rapidocr")
        assert spec is not None
        assert spec.origin is not None
        place = Path(spec.origin).parent / "models"
        if (place / _PACKAGED[part]).is_file():
            return place / _PACKAGED[part]
    found = sorted(place.glob(f"*{part}*.onnx"))
    if len(found) != 1:
        raise ModelNotFoundError(
            f"{place} has {len(found) or 'no'} files *{part}*.onnx, one is needed",
            "name a folder with one detector and one recogniser in ocr.models, or leave it out",
        )
    return found[0]


def _check_characters(model: Path) -> None:
    """rapidocr would download a list for a model without one."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    if "character" not in session.get_modelmeta().custom_metadata_map:
        raise ModelNotFoundError(
            f"{model} does not hold its list of characters",
            "take a model converted for rapidocr 3",
        )


def _length(quad: Points) -> float:
    return float(max(np.linalg.norm(quad[1] - quad[0]), np.linalg.norm(quad[3] - quad[0])))


def _thickness(quad: Points) -> float:
    return float(min(np.linalg.norm(quad[1] - quad[0]), np.linalg.norm(quad[3] - quad[0])))


def _by_direction(quads: Sequence[Points]) -> list[tuple[list[Points], tuple[int, int]]]:
    """Lines that lie and lines that stand, with the two frames that each can have.

    A short one says nothing by its shape ("I", "1", one kanji) and goes with the most.
    """
    lying: list[Points] = []
    standing: list[Points] = []
    short: list[Points] = []
    for quad in quads:
        if _length(quad) < 2 * _thickness(quad):
            short.append(quad)
        else:
            lies = np.linalg.norm(quad[1] - quad[0]) >= np.linalg.norm(quad[3] - quad[0])
            (lying if lies else standing).append(quad)
    most = standing if sum(map(_length, standing)) > sum(map(_length, lying)) else lying
    most.extend(short)
    return [pair for pair in ((lying, (0, 2)), (standing, (1, 3))) if pair[0]]


def _turned(quad: Points, frame: int) -> Points:
    """The corners clockwise from the top left of the text instead of the page."""
    return np.roll(quad, -frame, axis=0)


def _crop(grey: Grey, corners: Points) -> Grey:
    """A line made level."""
    wide = max(np.linalg.norm(corners[1] - corners[0]), np.linalg.norm(corners[2] - corners[3]))
    high = max(np.linalg.norm(corners[3] - corners[0]), np.linalg.norm(corners[2] - corners[1]))
    w, h = max(2, round(float(wide))), max(2, round(float(high)))
    goal = np.array([[0, 0], [w, 0], [w, h], [0, h]], np.float32)
    matrix = cv2.getPerspectiveTransform(corners.astype(np.float32), goal)
    level = cv2.warpPerspective(
        grey, matrix, (w, h), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(level, np.uint8)


def _level(corners: Points, frame: int) -> tuple[float, float, float, float]:
    """left, top, right, bottom in pixels of the frame, of a line laid level about its middle."""
    x, y = corners[:, 0], corners[:, 1]
    across, down = ((x, y), (y, -x), (-x, -y), (-y, x))[frame]
    left, right = float(across[[0, 3]].mean()), float(across[[1, 2]].mean())
    return left, float(down[[0, 1]].mean()), right, float(down[[2, 3]].mean())
