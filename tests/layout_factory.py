"""Layout models made by code: they see the same regions on every page, whatever is on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

SIDE = 256  # pixels of the input
BINS = 8
LEVEL = 2  # the outputs in which the regions are: of cells of 32 pixels
STRIDES = (8, 16, 32, 64)
CLASSES = ("text", "title", "figure", "table")

Seen = tuple[
    str, float, tuple[float, float, float, float]
]  # class, score, box as parts of the page


def fake_model(
    path: Path,
    seen: Sequence[Seen] = (),
    *,
    classes: Sequence[str] = CLASSES,
    side: int | str = SIDE,
    outputs: int = 8,
    spoilt: float | None = None,
) -> Path:
    """Writes a model that sees ``seen`` everywhere.

    Args:
        side: of its input; a name instead of a number makes it free.
        outputs: how many of the eight it has.
        spoilt: a value to put among the distances.
    """
    from onnx import TensorProto, helper, numpy_helper, save

    scores = [np.zeros((1, (SIDE // s) ** 2, len(CLASSES)), np.float32) for s in STRIDES]
    sides = [np.zeros((1, (SIDE // s) ** 2, 4 * BINS), np.float32) for s in STRIDES]
    stride = STRIDES[LEVEL]
    for kind, score, box in seen:
        x0, y0, x1, y1 = (v * SIDE / stride for v in box)
        column, row = int((x0 + x1) / 2), int((y0 + y1) / 2)
        cell = row * (SIDE // stride) + column
        scores[LEVEL][0, cell, CLASSES.index(kind)] = score
        x, y = column + 0.5, row + 0.5
        logits = [_distribution(v) for v in (x - x0, y - y0, x1 - x, y1 - y)]
        sides[LEVEL][0, cell] = np.concatenate(logits)
    if spoilt is not None:
        sides[0][0, 5, 3] = spoilt
    nodes, results = [], []
    for k, values in enumerate([*scores, *sides][:outputs]):
        nodes.append(
            helper.make_node("Constant", [], [f"o{k}"], value=numpy_helper.from_array(values))
        )
        results.append(helper.make_tensor_value_info(f"o{k}", TensorProto.FLOAT, values.shape))
    shape = [1, 3, side, side]
    picture = helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)
    model = helper.make_model(
        helper.make_graph(nodes, "fake", [picture], results),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    if classes:
        helper.set_model_props(model, {"character": "\n".join(classes)})
    save(model, str(path))
    return path


def _distribution(distance: float) -> np.ndarray:
    """Logits of a distribution over 0 … BINS - 1 with this mean."""
    low = min(int(distance), BINS - 2)
    share = distance - low
    logits = np.full(BINS, -50.0, np.float32)
    logits[low : low + 2] = np.log(np.maximum([1 - share, share], 1e-20))
    return logits
