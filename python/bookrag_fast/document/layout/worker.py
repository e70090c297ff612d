"""The process that shows pages to a layout model:
``python -m bookrag_fast.document.layout.worker``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bookrag_fast.document.pictures.jobs import PageJob
from bookrag_fast.document.pictures.worker import serve

__all__ = ["DPI", "main"]

DPI = 110  # a little more than what the models see: they are shown whole pages of 800 pixels


def main() -> int:
    return serve(_loaded, remedy="reinstall onnxruntime and pillow")


def _loaded(settings: dict[str, Any]) -> Callable[[PageJob], dict[str, Any]]:
    from bookrag_fast.document.pictures.pixels import picture_of
    from bookrag_fast.models.layout import PicoDetLayout
    from bookrag_fast.models.protocols import LayoutDetector

    detector: LayoutDetector = PicoDetLayout(Path(settings["model"]), least=settings["score"])

    def look(job: PageJob) -> dict[str, Any]:
        grey, scale = picture_of(job, DPI)
        return {
            "regions": [
                (kind, score, [v / scale for v in box])
                for kind, score, box in detector.detect(grey)
            ]
        }

    return look


if __name__ == "__main__":
    sys.exit(main())
