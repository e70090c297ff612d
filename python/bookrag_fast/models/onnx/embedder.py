"""A sentence-embedding model in ONNX form, run by onnxruntime on CUDA or the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from bookrag_fast.errors import InvalidArgumentError, ModelError, ModelNotFoundError
from bookrag_fast.models.files import fingerprint
from bookrag_fast.models.onnx.sessions import open_session
from bookrag_fast.models.protocols import EmbedderInfo, FloatMatrix
from bookrag_fast.models.twins import LocalEmbedder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["OnnxEmbedder", "Pooling"]

Pooling = Literal["mean", "cls", "last"]

_POOLED_OUTPUTS = ("sentence_embedding", "pooled_embeddings")
_TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings")
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})
_PAD_TOKENS = ("[PAD]", "<pad>", "<|endoftext|>")
# Tokenized at a time; a multiple of any sensible batch, so that sorting by length pays.
_WINDOW = 2048
# Token places a run on the CPU: beyond this the activations of a small model leave the cache and
# a batch of long texts takes twice the time of its texts one by one (MiniLM, measured).
_CPU_TOKENS = 768
# Longer texts are cut before tokenizing, which would otherwise read all of a text to keep its
# first max_tokens tokens. No natural text has tokens this long on average.
_CHARS_PER_TOKEN = 32


class OnnxEmbedder(LocalEmbedder):
    """Embedder from a folder with ``model.onnx`` and ``tokenizer.json``.

    Implements `models.protocols.Embedder`. Texts are sorted by length and run in batches, so that
    little is spent on padding; rows come back in the order of the texts. The vector of a text does
    not depend on the texts beside it beyond rounding, unless the model quantises activations
    dynamically, whose scale is then the batch's. Safe from several threads.

    Args:
        folder: where the two files are.
        providers: onnxruntime provider names in order; None means CUDA where it works, else CPU.
        pooling: how token vectors become one ("mean", "cls", "last"); unused when the model has
            an output ``sentence_embedding``.
        max_tokens: a longer text is truncated to this many tokens.
        batch_size: most texts a run; memory grows with ``batch_size * max_tokens``. On the CPU
            long texts run in smaller batches, which is faster there.
        query_prefix, passage_prefix: put before every query or passage ("query: ").
        threads: intra-op threads on the CPU, 0 for one a physical core.

    Raises:
        ModelNotFoundError: the folder or one of its files is missing.
        ModelError: a file is broken, or the model is not an embedding model.
        ConfigError: a provider is unknown.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        providers: Sequence[str] | None = None,
        pooling: Pooling = "mean",
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
        self._folder = Path(folder).expanduser()
        self._pooling = pooling
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._prefixes = {False: passage_prefix, True: query_prefix}
        model, tokenizer = _files(self._folder)
        self._tokenizer, self._pad = _load_tokenizer(tokenizer, max_tokens)
        self._session, self.placement = open_session(model, providers=providers, threads=threads)
        self._inputs = {i.name: _int_type(i, model) for i in self._session.get_inputs()}
        unknown = sorted(set(self._inputs) - _INPUTS)
        if unknown or "input_ids" not in self._inputs:
            raise ModelError(
                f"{model} is not a text embedding model: it takes {sorted(self._inputs)}",
                hint="export with the inputs input_ids, attention_mask and token_type_ids",
            )
        self._output, self._pooled = _choose_output(self._session, model)
        settings = f"{pooling}|{max_tokens}|{passage_prefix}|{query_prefix}"
        self._info = EmbedderInfo(
            name=f"onnx:{self._folder.resolve().name}",
            dimension=self._probe(),
            fingerprint=fingerprint(model, tokenizer, settings=settings),
            provider=self.placement.provider,
        )

    @property
    def info(self) -> EmbedderInfo:
        return self._info

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        """float32[len(texts), dimension], rows of length 1; zeros for a text of white space only.

        Raises:
            ModelError: the run failed, or the model gave NaN or infinite values.
        """
        if isinstance(texts, str):
            raise InvalidArgumentError("embed takes a sequence of texts, not one text")
        prefix = self._prefixes[query]
        limit = self._max_tokens * _CHARS_PER_TOKEN
        out = np.zeros((len(texts), self._info.dimension), dtype=np.float32)
        for start in range(0, len(texts), _WINDOW):
            rows = [
                row
                for row in range(start, min(start + _WINDOW, len(texts)))
                if texts[row] and not texts[row].isspace()
            ]
            ids = self._tokenize([prefix + texts[row][:limit] for row in rows])
            # Longest first: if memory runs out it does so in the first batch, not the last.
            order = sorted(range(len(rows)), key=lambda i: (-len(ids[i]), i))
            for batch in self._batches(order, ids):
                vectors = self._run([ids[i] for i in batch])
                if vectors.shape[1] != out.shape[1]:
                    raise ModelError(
                        f"{self._info.name} gave {vectors.shape[1]} dimensions, "
                        f"{out.shape[1]} when it was loaded"
                    )
                out[[rows[i] for i in batch]] = vectors
        return out

    def _batches(self, order: list[int], ids: list[list[int]]) -> Iterator[list[int]]:
        """Cuts ``order`` (longest first) into runs."""
        start = 0
        while start < len(order):
            size = self._batch_size
            if self.placement.provider == "cpu":
                size = min(size, max(1, _CPU_TOKENS // len(ids[order[start]])))
            yield order[start : start + size]
            start += size

    def _tokenize(self, texts: list[str]) -> list[list[int]]:
        try:
            encodings = self._tokenizer.encode_batch_fast(texts)
        except (TypeError, UnicodeEncodeError):
            # Lone surrogates, which damaged PDFs yield: no UTF-8 form, so they become "?".
            clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
            encodings = self._tokenizer.encode_batch_fast(clean)
        return [encoding.ids for encoding in encodings]

    def _run(self, batch: list[list[int]]) -> FloatMatrix:
        """Unit vectors of token id lists, none empty: float32[len(batch), dimension]."""
        lengths = np.array([len(ids) for ids in batch])
        width = int(lengths.max())
        mask = np.arange(width) < lengths[:, None]
        ids = np.full(mask.shape, self._pad, dtype=np.int64)
        ids[mask] = np.fromiter((i for row in batch for i in row), np.int64, int(lengths.sum()))
        values: dict[str, npt.NDArray[Any]] = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.broadcast_to(np.arange(width), mask.shape),
        }
        feed = {
            name: np.ascontiguousarray(values[name], dtype=dtype)
            for name, dtype in self._inputs.items()
        }
        try:
            raw = self._session.run([self._output], feed)[0]
        except Exception as error:  # onnxruntime's own classes derive from Exception alone
            raise ModelError(
                f"the model of {self._folder} failed on a batch of {len(batch)} texts: {error}",
                hint="a smaller batch_size needs less memory",
            ) from error
        hidden = np.asarray(raw, dtype=np.float32)
        vectors = hidden if self._pooled else _pool(hidden, mask, self._pooling)
        if vectors.ndim != 2 or vectors.shape[0] != len(batch):
            raise ModelError(
                f"output {self._output} of {self._folder} has shape {hidden.shape} "
                f"for {len(batch)} texts"
            )
        if not np.isfinite(vectors).all():
            raise ModelError(
                f"the model of {self._folder} gave NaN or infinite values",
                hint="a float16 model may overflow on this provider; use its float32 form",
            )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 0.0, norms, 1.0), dtype=np.float32)

    def _probe(self) -> int:
        """Runs one text, so that a broken model fails when it is loaded. Returns the dimension."""
        ids = self._tokenize(["probe"])[0]
        if not ids:
            raise ModelError(f"the tokenizer of {self._folder} gives no tokens")
        found = int(self._run([ids]).shape[1])
        declared = self._session.get_outputs()
        width = next(o.shape[-1] for o in declared if o.name == self._output)
        if isinstance(width, int) and width != found:
            raise ModelError(f"{self._folder} declares {width} dimensions and gives {found}")
        return found


def _pool(hidden: FloatMatrix, mask: npt.NDArray[np.bool_], pooling: Pooling) -> FloatMatrix:
    """float32[b, t, d] and bool[b, t] to float32[b, d]. Padding stands on the right."""
    if hidden.ndim != 3:
        return hidden
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "last":
        return np.asarray(hidden[np.arange(len(hidden)), mask.sum(axis=1) - 1])
    weights = mask.astype(np.float32)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(np.einsum("btd,bt->bd", hidden, weights), dtype=np.float32)


def _files(folder: Path) -> tuple[Path, Path]:
    remedy = "the folder must hold model.onnx and tokenizer.json of one embedding model"
    if not folder.is_dir():
        raise ModelNotFoundError(f"the model folder {folder} does not exist", hint=remedy)
    model, tokenizer = folder / "model.onnx", folder / "tokenizer.json"
    for path in (model, tokenizer):
        if not path.is_file():
            raise ModelNotFoundError(f"{path} is missing", hint=remedy)
    return model, tokenizer


def _load_tokenizer(path: Path, max_tokens: int) -> tuple[Tokenizer, int]:
    """The tokenizer, truncating but not padding, and the id that pads."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(
            f"{path} is not a tokenizer: {error}",
            hint="take tokenizer.json from the folder the model came from",
        ) from error
    padding = tokenizer.padding or {}
    known = (tokenizer.token_to_id(token) for token in _PAD_TOKENS)
    pad = padding.get("pad_id", next((i for i in known if i is not None), 0))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer, int(pad)


def _int_type(tensor: Any, model: Path) -> type[np.int64] | type[np.int32]:
    if tensor.type == "tensor(int64)":
        return np.int64
    if tensor.type == "tensor(int32)":
        return np.int32
    raise ModelError(f"input {tensor.name} of {model} is {tensor.type}; token ids are integers")


def _choose_output(session: Any, model: Path) -> tuple[str, bool]:
    """Name of the output to use, and whether it is one vector a text already."""
    outputs = {output.name: output for output in session.get_outputs()}
    for name in _POOLED_OUTPUTS:
        if name in outputs:
            return name, True
    for name in _TOKEN_OUTPUTS:
        if name in outputs:
            return name, False
    for name, output in outputs.items():
        if "float" in output.type and len(output.shape) in (2, 3):
            return name, len(output.shape) == 2
    raise ModelError(
        f"{model} has no output of embeddings: {sorted(outputs)}",
        hint="export with the output last_hidden_state or sentence_embedding",
    )
