"""The process that reads pictures by OCR: ``python -m bookrag_fast.document.ocr.worker``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bookrag_fast.document.pictures.jobs import PageJob
from bookrag_fast.document.pictures.worker import serve

__all__ = ["main"]


def main() -> int:
    return serve(_loaded, remedy="reinstall it: pip install --force-reinstall 'bookrag-fast[ocr]'")


def _loaded(settings: dict[str, Any]) -> Callable[[PageJob], dict[str, Any]]:
    from bookrag_fast.document.ocr.recogniser import Recogniser
    from bookrag_fast.document.pictures.pixels import picture_of

    recogniser = Recogniser(Path(settings["models"]) if settings["models"] else None)

    def read(job: PageJob) -> dict[str, Any]:
        grey, scale = picture_of(job, settings["dpi"])
        return {"lines": recogniser.read(grey, scale)}

    return read


if __name__ == "__main__":
    sys.exit(main())
