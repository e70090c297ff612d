"""Reading pages by OCR as a task for worker processes."""

from __future__ import annotations

from typing import Any

from bookrag_fast.config import OcrSettings
from bookrag_fast.document.ocr.wire import OcrLine, PageReading
from bookrag_fast.document.pictures.pool import Task

__all__ = ["ocr_task"]


def ocr_task(settings: OcrSettings) -> Task[PageReading]:
    return Task(
        name="OCR",
        section="ocr",
        module="bookrag_fast.document.ocr.worker",
        settings={"models": settings.models, "dpi": settings.dpi},
        result=_reading,
        workers=settings.workers,
        page_seconds=settings.page_seconds,
    )


def _reading(answer: dict[str, Any]) -> PageReading:
    return PageReading([OcrLine(*fields) for fields in answer["lines"]])
