"""What the rerankers have in common: their files found by the settings, and made ready to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bookrag_fast.models.onnx.network import Network
from bookrag_fast.models.onnx.source import locate
from bookrag_fast.models.protocols import ModelInfo

if TYPE_CHECKING:  # the settings bring pydantic along, which a reading process spares itself
    from bookrag_fast.config import OnnxRerankerSettings

__all__ = ["open_parts"]

Tokenizer = TypeVar("Tokenizer")


def open_parts(
    settings: OnnxRerankerSettings,
    make_tokenizer: Callable[[Path, int], Tokenizer],
    needed: str,
    choose: Callable[[dict[str, int]], str | None],
) -> tuple[ModelInfo, Tokenizer, Network]:
    """The identity, the tokenizer, and the network, warm. ``needed`` and ``choose`` are of the
    network's output, as `Network` takes them; ``make_tokenizer`` takes a file and the most tokens.

    Raises as `locate`, ``make_tokenizer`` and `Network` do.
    """
    files = locate(
        settings.source, **settings.model_dump(include={"download", "file", "tokenizer"})
    )
    tokenizer = make_tokenizer(files.tokenizer, settings.max_tokens)
    network = Network(
        files.model,
        needed,
        choose,
        **settings.model_dump(include={"providers", "tensorrt", "threads"}),
    )
    network.warm(settings.batch_size, settings.max_tokens)
    return ModelInfo(f"onnx:{files.name}", files.name, settings.max_tokens), tokenizer, network
