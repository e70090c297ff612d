"""The embedded default: WordLlama's static token vectors, mean-pooled.

The model (MIT) is inside the PyPI package ``wordllama``: a table of 32,000 token vectors distilled
from Llama 2, and its tokenizer. The package itself is never imported: it pulls in ``requests``,
reconfigures logging, pads every batch to its longest text, and may download. Here the two files
are read where they lie, so nothing can reach the network and loading takes about 0.2 s.

The vectors are those of ``wordllama.WordLlama.load(...).embed(texts, norm=True)`` (tested).
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bookrag_fast.errors import InvalidArgumentError, ModelError, ModelNotFoundError
from bookrag_fast.models.checks import check_texts
from bookrag_fast.models.files import fingerprint
from bookrag_fast.models.protocols import EmbedderInfo, FloatMatrix
from bookrag_fast.models.twins import LocalEmbedder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["WordLlamaEmbedder"]

_NAME = "wordllama-l2_supercat-256"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"
_REMEDY = "pip install --force-reinstall 'wordllama>=0.4,<0.5'"

# Texts a tokenizer call: enough to fill the tokenizer's threads, few enough that the encodings
# of a batch stay below some tens of megabytes whatever the number of texts.
_BATCH = 256
_FEW, _FEW_CHARS = 16, 4000  # less than threads are worth
# A Llama token is about four characters; this many cannot hold fewer than max_tokens tokens
# except in text made of very long known words, where losing the tail changes the mean little.
_CHARS_PER_TOKEN = 8
_MAX_HEADER = 1 << 20


@dataclass(frozen=True, slots=True)
class _Loaded:
    table: npt.NDArray[np.float32]  # [vocabulary, dimension]
    tokenizer: Tokenizer


class WordLlamaEmbedder(LocalEmbedder):
    """Static embedder of 256 dimensions. Implements `models.protocols.Embedder`.

    Cheap to construct; the table (32 MB as float32) is read on first use, once, and may then be
    used from any number of threads: tokenizing and pooling run outside the GIL. Each text is
    embedded on its own, so a vector never depends on the texts beside it.

    Args:
        max_tokens: tokens of a text that count; the rest of a longer text is ignored. This bounds
            time and memory for a text of any length.

    Raises:
        ModelNotFoundError: ``wordllama`` is not installed, or a file of it is missing.
        ModelError: the weights file is not what it should be.
    """

    def __init__(self, *, max_tokens: int = 2048) -> None:
        if max_tokens < 1:
            raise InvalidArgumentError(f"max_tokens must be at least 1, got {max_tokens}")
        self._max_tokens = max_tokens
        self._folder = _package_folder()
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._info: EmbedderInfo | None = None

    @property
    def info(self) -> EmbedderInfo:
        if self._info is None:
            weights = self._folder / _WEIGHTS
            _, shape = _read_header(weights)
            self._info = EmbedderInfo(
                name=_NAME, dimension=shape[1], fingerprint=fingerprint(weights), provider="cpu"
            )
        return self._info

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        """float32[len(texts), 256], rows of length 1; zeros for a text of white space only.

        ``query`` changes nothing: the model has no prefixes. O(characters), capped a text.
        Raises InvalidArgumentError for what is no sequence of texts.
        """
        check_texts(texts)
        model = self._model()
        out = np.zeros((len(texts), model.table.shape[1]), dtype=np.float32)
        limit = self._max_tokens * _CHARS_PER_TOKEN
        for start in range(0, len(texts), _BATCH):
            batch = [text[:limit] for text in texts[start : start + _BATCH]]
            for row, encoding in enumerate(_encode(model.tokenizer, batch), start):
                if texts[row].isspace():  # else the tokens of the spaces themselves would count
                    continue
                ids = encoding.ids[: self._max_tokens]
                if ids:
                    _pool(model.table, ids, out[row])
        return out

    def _model(self) -> _Loaded:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = _load(self._folder)
        return self._loaded


def _pool(table: npt.NDArray[np.float32], ids: list[int], out: npt.NDArray[np.float32]) -> None:
    """Writes the unit vector of the mean of ``table[ids]`` to ``out``.

    A dot with a row of ones: BLAS sums several times faster than ``sum(axis=0)``. "clip" is
    what the library does with an id beyond the table.
    """
    rows = table.take(ids, axis=0, mode="clip")
    np.dot(np.ones(len(ids), dtype=np.float32), rows, out=out)
    norm = float(np.sqrt(np.dot(out, out)))
    if norm > 0.0:
        out /= norm


def _encode(tokenizer: Tokenizer, batch: list[str]) -> list[Any]:
    try:
        return _encode_clean(tokenizer, batch)
    except (TypeError, UnicodeEncodeError):
        # Lone surrogates, which damaged PDFs yield: no UTF-8 form, so they become "?".
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in batch]
        return _encode_clean(tokenizer, clean)


def _encode_clean(tokenizer: Tokenizer, batch: list[str]) -> list[Any]:
    # A batch wakes the tokenizer's threads: for a question, 1 to 2 ms under load for 0.05 of work.
    if len(batch) <= _FEW and sum(map(len, batch)) <= _FEW_CHARS:
        return [tokenizer.encode(text, add_special_tokens=False) for text in batch]
    return tokenizer.encode_batch_fast(batch, add_special_tokens=False)


def _package_folder() -> Path:
    # find_spec of a top-level package looks it up without running its __init__.
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise ModelNotFoundError(
            "the package wordllama, which holds the default embedding model, is not installed",
            hint=_REMEDY,
        )
    return Path(spec.submodule_search_locations[0])


def _load(folder: Path) -> _Loaded:
    from tokenizers import Tokenizer

    weights, tokenizer_file = folder / _WEIGHTS, folder / _TOKENIZER
    offset, shape = _read_header(weights)
    half = np.fromfile(weights, dtype="<f2", count=shape[0] * shape[1], offset=offset)
    if half.size != shape[0] * shape[1]:
        raise ModelError(f"the weights file {weights} is truncated", hint=_REMEDY)
    if not tokenizer_file.is_file():
        raise ModelNotFoundError(f"the tokenizer file {tokenizer_file} is missing", hint=_REMEDY)
    try:
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(
            f"the tokenizer file {tokenizer_file} cannot be read: {error}", hint=_REMEDY
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return _Loaded(half.reshape(shape).astype(np.float32), tokenizer)


def _read_header(weights: Path) -> tuple[int, tuple[int, int]]:
    """Offset of the tensor in a safetensors file, and its shape.

    The format: uint64 little-endian n, then n bytes of JSON, then the tensors.
    """
    try:
        with weights.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= _MAX_HEADER:
                raise ModelError(f"{weights} is not a safetensors file", hint=_REMEDY)
            header = json.loads(file.read(length))
    except FileNotFoundError as error:
        raise ModelNotFoundError(f"the weights file {weights} is missing", _REMEDY) from error
    except (OSError, ValueError) as error:
        raise ModelError(f"the weights file {weights} cannot be read: {error}", _REMEDY) from error
    try:
        tensor = header[_TENSOR]
        rows, columns = (int(n) for n in tensor["shape"])
        offset = 8 + length + int(tensor["data_offsets"][0])
        if tensor["dtype"] != "F16" or rows < 1 or columns < 1:
            raise ValueError(tensor)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{weights} does not hold the table of {_NAME}", _REMEDY) from error
    return offset, (rows, columns)
