"""What the rest of the engine knows of a model. `cli` and `server` choose the implementations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["Embedder", "EmbedderInfo", "FloatMatrix", "LayoutDetector", "LayoutRegion"]

FloatMatrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbedderInfo:
    """Identity of an embedding model, recorded in every index it made.

    ``fingerprint`` distinguishes two models of one name (hash of the weights' identity).
    """

    name: str
    dimension: int
    fingerprint: str = ""
    provider: str = "cpu"


@runtime_checkable
class Embedder(Protocol):
    """Texts to unit vectors. Safe to call from several threads at once."""

    @property
    def info(self) -> EmbedderInfo: ...

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        """float32[len(texts), dimension], rows of Euclidean length 1 (a text without any known
        token gives a row of zeros). ``query`` selects the query prefix where the model has one.
        Blocking and CPU-bound: call it from a worker thread in async code."""
        ...


class LayoutRegion(NamedTuple):
    """A part of a page's picture: its class in the model's words ("title", "figure" …), how sure
    the model is of it (0 to 1), and its box x0, y0, x1, y1 in pixels, top-left origin."""

    kind: str
    score: float
    box: tuple[float, float, float, float]


@runtime_checkable
class LayoutDetector(Protocol):
    """Pictures of pages to regions. Safe to call from several threads at once."""

    @property
    def classes(self) -> tuple[str, ...]: ...

    def detect(self, picture: npt.NDArray[np.uint8]) -> list[LayoutRegion]:
        """Regions of a picture, uint8[height, width] (grey) or uint8[height, width, 3], surest
        first. Blocking and CPU-bound. Raises ModelError."""
        ...
