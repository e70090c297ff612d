"""Models in ONNX form, run in this process by onnxruntime on CUDA or the CPU."""

from __future__ import annotations

from bookrag_fast.models.onnx.embedder import OnnxEmbedder, open_embedder
from bookrag_fast.models.onnx.pooling import Pooling

__all__ = ["OnnxEmbedder", "Pooling", "open_embedder"]
