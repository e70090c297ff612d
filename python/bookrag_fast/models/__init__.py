"""Models: protocols and implementations. `cli` and `server` choose; the rest sees protocols."""

from __future__ import annotations

from bookrag_fast.errors import ConfigError
from bookrag_fast.models.protocols import Embedder, EmbedderInfo, FloatMatrix
from bookrag_fast.models.twins import LocalEmbedder

__all__ = ["Embedder", "EmbedderInfo", "FloatMatrix", "LocalEmbedder", "create_embedder"]


def create_embedder(spec: str) -> Embedder:
    """An embedder by its configuration value.

    Args:
        spec: "wordllama" (embedded, the default) or "onnx:SOURCE": a folder with ``model.onnx``
            and ``tokenizer.json``, an installed package that has them, or the name of a model in
            the hub's cache (see `models.onnx.source`).

    Raises:
        ConfigError: ``spec`` names no known kind of embedder.
        ModelNotFoundError, ModelError: the model is missing or broken.
    """
    kind, colon, argument = spec.strip().partition(":")
    # Imported here: `import bookrag_fast.models` must not pay for tokenizers or onnxruntime.
    if kind == "wordllama" and not colon:
        from bookrag_fast.models.static import WordLlamaEmbedder

        return WordLlamaEmbedder()
    if kind == "onnx" and argument:
        from bookrag_fast.models.onnx import OnnxEmbedder

        return OnnxEmbedder(argument)
    raise ConfigError(
        f"unknown embedder {spec!r}",
        hint="choose 'wordllama' or 'onnx:SOURCE' (a folder, a package, or a hub's name)",
    )
