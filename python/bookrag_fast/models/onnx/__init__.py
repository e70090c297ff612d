"""Models in ONNX form, run in this process by onnxruntime on CUDA or the CPU."""

from __future__ import annotations

from bookrag_fast.models.onnx.embedder import OnnxEmbedder, open_embedder
from bookrag_fast.models.onnx.late import LateInteractionReranker, OnnxTokenEmbedder
from bookrag_fast.models.onnx.pooling import Pooling
from bookrag_fast.models.onnx.reranker import OnnxReranker, open_reranker

__all__ = [
    "LateInteractionReranker",
    "OnnxEmbedder",
    "OnnxReranker",
    "OnnxTokenEmbedder",
    "Pooling",
    "open_embedder",
    "open_reranker",
]
