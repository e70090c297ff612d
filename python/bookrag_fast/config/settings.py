"""All settings together."""

from __future__ import annotations

from pydantic import Field

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


class Settings(Section):
    """Everything that can be set; each field says what it is for."""

    embedder: str = Field(
        "wordllama", description='"wordllama", "onnx:FOLDER", or the name of one of `models`'
    )
    reranker: str = Field("", description='"onnx:FOLDER", or the name of one of `models`; "": none')
    open_books: int = Field(32, ge=1, le=4096, description="indexes kept open by a Library")
    isolate_reader: bool = Field(True, description="read files in a process of their own")
    reader_memory_mb: int = Field(
        4096, ge=512, le=1 << 20, description="address space of that process, MiB"
    )
    reader_workers: int | None = Field(
        None, ge=1, le=64, description="processes for the pages of a long PDF; None: 1 a core, <= 2"
    )
    max_file_mb: int = Field(2048, ge=1, description="larger files are refused unread")
    ocr: OcrSettings = OcrSettings()
    layout: LayoutSettings = LayoutSettings()
    resolution: ResolutionSettings = ResolutionSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    models: dict[str, ModelSettings] = Field({}, description="models by name")
    roles: RolesSettings = RolesSettings()
    cache: CacheSettings = CacheSettings()
    budget: BudgetSettings = BudgetSettings()
