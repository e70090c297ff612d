"""All settings together."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from bookrag_fast.config.areas import (
    LayoutSettings,
    OcrSettings,
    ResolutionSettings,
    RetrievalSettings,
    Section,
)
from bookrag_fast.config.models import (
    BudgetSettings,
    CacheSettings,
    ModelSettings,
    RolesSettings,
)

__all__ = ["Settings"]


def _is_name(name: str) -> str:
    """A name is no path, and an environment variable can say it."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
        raise ValueError("a model's name is of lower-case letters, digits, - and _")
    return name


ModelName = Annotated[str, AfterValidator(_is_name)]


class Settings(Section):
    """Everything that can be set; each field says what it is for."""

    embedder: str = Field(
        "wordllama", description='"wordllama", "onnx:SOURCE", or the name of one of `models`'
    )
    reranker: str = Field("", description='"onnx:SOURCE", or the name of one of `models`; "": none')
    open_books: int = Field(32, ge=1, le=4096, description="indexes kept open by a Library")
    isolate_reader: bool = Field(True, description="read files in a process of their own")
    reader_memory_mb: int = Field(
        4096, ge=512, le=1 << 20, description="address space of that process, MiB"
    )
    reader_workers: int | None = Field(
        None,
        ge=1,
        le=64,
        examples=[2],
        description="processes for the pages of a long PDF; None: 1 a core, <= 2",
    )
    max_file_mb: int = Field(2048, ge=1, description="larger files are refused unread")
    summaries: bool = Field(False, description="of sections, made when a book is indexed")
    ocr: OcrSettings = OcrSettings()
    layout: LayoutSettings = LayoutSettings()
    resolution: ResolutionSettings = ResolutionSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    models: dict[ModelName, ModelSettings] = Field({}, description="models by name")
    roles: RolesSettings = RolesSettings()
    cache: CacheSettings = CacheSettings()
    budget: BudgetSettings = BudgetSettings()
