"""A sentence-embedding model in ONNX form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.models.checks import check_texts
from bookrag_fast.models.files import fingerprint
from bookrag_fast.models.onnx.batching import Batcher
from bookrag_fast.models.onnx.calls import TextCalls
from bookrag_fast.models.onnx.network import Network
from bookrag_fast.models.onnx.pooling import Pooling, SentenceVectors, choose_output
from bookrag_fast.models.onnx.source import locate
from bookrag_fast.models.onnx.tokens import TextTokenizer, Tokens
from bookrag_fast.models.protocols import EmbedderInfo, Embeddings, FloatMatrix, TokenUsage

if TYPE_CHECKING:  # the settings bring pydantic along, which a reading process spares itself
    from bookrag_fast.config import OnnxEmbedderSettings

__all__ = ["OnnxEmbedder", "Pooling", "open_embedder"]

_WINDOW = 1024  # texts tokenized at a time


def open_embedder(settings: OnnxEmbedderSettings) -> OnnxEmbedder:
    """The embedder of the settings. Raises as `OnnxEmbedder` does."""
    return OnnxEmbedder(settings.source, **settings.model_dump(exclude={"kind", "source"}))


class OnnxEmbedder:
    """Embedder from a model's files. Implements `models.protocols.Embedder`.

    What threads and tasks ask for at the same time is run together, in runs of about one length.
    The vector of a text does not depend on the texts beside it beyond rounding, unless the model
    quantises activations dynamically, whose scale is then the run's. Safe from several threads and
    loops.

    Args:
        source: a folder with ``model.onnx`` and ``tokenizer.json``, an installed package that has
            them, or a hub's name: see `source.locate`, which takes ``download``, ``file`` and
            ``tokenizer`` as well.
        providers: onnxruntime provider names in order; None means CUDA where it works, else CPU.
        tensorrt: try TensorRT before CUDA.
        pooling: how token vectors become one ("mean", "cls", "last"); unused when the model has
            an output ``sentence_embedding``.
        dimension: vectors are cut to their first so many numbers (for models trained for that,
            Matryoshka) and brought to length 1 again; None keeps all.
        max_tokens: a longer text is truncated to this many tokens.
        batch_size: most texts a run; memory grows with ``batch_size * max_tokens``. On the CPU
            long texts run in smaller batches, which is faster there.
        query_prefix, passage_prefix: put before every query or passage ("query: ").
        threads: intra-op threads on the CPU, 0 for one a physical core.

    Raises:
        ModelNotFoundError: there is no such model, or one of its files is missing.
        ModelError: a file is broken, or the model is not an embedding model.
        ConfigError: a provider is unknown.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        download: bool = False,
        file: str = "",
        tokenizer: str = "",
        providers: Sequence[str] | None = None,
        tensorrt: bool = False,
        pooling: Pooling = "mean",
        dimension: int | None = None,
        max_tokens: int = 256,
        batch_size: int = 32,
        query_prefix: str = "",
        passage_prefix: str = "",
        threads: int = 0,
    ) -> None:
        if pooling not in get_args(Pooling):
            raise InvalidArgumentError(
                f"unknown pooling {pooling!r}", hint=f"choose among {', '.join(get_args(Pooling))}"
            )
        if max_tokens < 3 or batch_size < 1 or threads < 0:
            raise InvalidArgumentError(
                f"max_tokens must be at least 3, batch_size at least 1, threads at least 0; got "
                f"{max_tokens}, {batch_size}, {threads}"
            )
        if dimension is not None and dimension < 1:
            raise InvalidArgumentError(f"dimension must be at least 1, got {dimension}")
        files = locate(source, download=download, file=file, tokenizer=tokenizer)
        text_tokenizer = TextTokenizer(files.tokenizer, max_tokens)
        network = Network(
            files.model,
            "embeddings",
            choose_output,
            providers=providers,
            tensorrt=tensorrt,
            threads=threads,
        )
        network.warm(batch_size, max_tokens)
        self.placement = network.placement
        vectors = SentenceVectors(network, text_tokenizer, pooling=pooling, dimension=dimension)
        settings = f"{pooling}|{max_tokens}|{passage_prefix}|{query_prefix}"
        if dimension is not None:  # else as it always was: indexes remember it
            settings += f"|{dimension}"
        self._info = EmbedderInfo(
            name=f"onnx:{files.name}",
            dimension=vectors.dimension,
            fingerprint=fingerprint(
                files.model, *files.weights, files.tokenizer, settings=settings
            ),
            provider=network.placement.provider,
        )
        self._batcher: Batcher[Tokens, FloatMatrix] = Batcher(
            vectors,
            lambda tokens: len(tokens.ids),
            limits=network.limits(batch_size, max_tokens),
            workers=network.workers,
            name=self._info.name,
        )
        self._calls = TextCalls(
            text_tokenizer,
            self._batcher,
            query_prefix=query_prefix,
            passage_prefix=passage_prefix,
            window=_WINDOW,
        )

    @property
    def info(self) -> EmbedderInfo:
        return self._info

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        """float32[len(texts), dimension], rows of length 1; zeros for a text of white space only.

        Raises:
            InvalidArgumentError: not a sequence of texts.
            ModelError: the run failed, or the model gave NaN or infinite values; or it is closed.
        """
        out = self._zeros(texts)
        for place, vector in self._calls.map(texts, query=query):
            out[place] = vector
        return out

    async def aembed(self, texts: Sequence[str], *, query: bool = False) -> Embeddings:
        """`embed`, awaited. Waiting takes no thread; cancelling takes back what has not run."""
        out = self._zeros(texts)
        async for place, vector in self._calls.amap(texts, query=query):
            out[place] = vector
        return Embeddings(out, TokenUsage())

    def close(self) -> None:
        """Ends the workers. Calls that wait, and later ones, get a ModelError."""
        self._batcher.close()

    def _zeros(self, texts: Sequence[str]) -> FloatMatrix:
        check_texts(texts)
        return np.zeros((len(texts), self._info.dimension), dtype=np.float32)
