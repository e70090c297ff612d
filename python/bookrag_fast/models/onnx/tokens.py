"""Texts to the token ids that a model was trained on, cut to what it takes."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from bookrag_fast.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["PairTokenizer", "TextTokenizer", "TokenBatch", "Tokens", "readable"]

T = TypeVar("T")

_PAD_TOKENS = ("[PAD]", "<pad>", "<|endoftext|>")
# Longer texts are cut before tokenizing, which would otherwise read all of a text to keep its
# first max_tokens tokens. No natural text has tokens this long on average.
_CHARS_PER_TOKEN = 32
# A batch wakes the tokenizer's threads: 1 to 2 ms under load, for less work than this is.
_FEW, _FEW_CHARS = 16, 4000


class Tokens(NamedTuple):
    """One text's, with the special tokens. ``types`` tells the texts of a pair apart."""

    ids: list[int]
    types: list[int] | None = None


class TokenBatch(NamedTuple):
    """Padded rows: int64[texts, width], int64[texts, width] and bool[texts, width], true where a
    token is."""

    ids: npt.NDArray[np.int64]
    types: npt.NDArray[np.int64]
    mask: npt.NDArray[np.bool_]


class _PaddingTokenizer:
    """What both tokenizers share: how rows are padded, and lone surrogates."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = _load(path)
        self._path = path
        padding = self._tokenizer.padding or {}
        known = (self._tokenizer.token_to_id(token) for token in _PAD_TOKENS)
        self._pad = int(padding.get("pad_id", next((i for i in known if i is not None), 0)))
        self.pads_left = padding.get("direction") == "left"
        self._tokenizer.no_padding()

    def pad(self, rows: Sequence[Tokens]) -> TokenBatch:
        """Pads to the longest on the side that the tokenizer names; none may be empty."""
        lengths = np.array([len(row.ids) for row in rows])
        width, total = int(lengths.max()), int(lengths.sum())
        places = np.arange(width)
        mask = places >= width - lengths[:, None] if self.pads_left else places < lengths[:, None]
        ids = np.full(mask.shape, self._pad, dtype=np.int64)
        ids[mask] = np.fromiter((i for row in rows for i in row.ids), np.int64, total)
        types = np.zeros_like(ids)
        if any(row.types for row in rows):
            flat = (t for row in rows for t in row.types or [0] * len(row.ids))
            types[mask] = np.fromiter(flat, np.int64, total)
        return TokenBatch(ids, types, mask)


class TextTokenizer(_PaddingTokenizer):
    """Single texts. Safe from any thread.

    Raises:
        ModelError: the file is no tokenizer.
    """

    def __init__(self, path: Path, max_tokens: int) -> None:
        super().__init__(path)
        self._limit = max_tokens * _CHARS_PER_TOKEN
        self._tokenizer.enable_truncation(max_tokens)
        if not self.encode(["probe"])[0].ids:
            raise ModelError(f"the tokenizer {path} gives no tokens")

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        cut = [(text[: self._limit],) for text in texts]
        return [Tokens(e.ids) for e in _encoded(self._tokenizer, cut)]

    async def aencode(self, texts: Sequence[str]) -> list[Tokens]:
        """`encode`, without holding up the loop."""
        return await _off_loop(self.encode, texts)

    def punctuation(self) -> npt.NDArray[np.bool_]:
        """bool[vocabulary]: the tokens of nothing but punctuation."""
        vocabulary = self._tokenizer.get_vocab()
        found = np.zeros(max(vocabulary.values()) + 1, np.bool_)
        found[[place for token, place in vocabulary.items() if _is_punctuation(token)]] = True
        return found


class PairTokenizer(_PaddingTokenizer):
    """A question with each of some texts, by the tokenizer's own template for pairs.

    What is cut is the text: a question keeps up to half of ``max_tokens``. Safe from any thread.

    Raises:
        ModelError: the file is no tokenizer.
    """

    def __init__(self, path: Path, max_tokens: int) -> None:
        super().__init__(path)
        self._limit = max_tokens * _CHARS_PER_TOKEN
        self._tokenizer.enable_truncation(max_tokens, strategy="only_second")
        self._questions = _load(path)  # one tokenizer can truncate in one way only
        self._questions.no_padding()
        self._most_question = max_tokens // 2
        self._questions.enable_truncation(self._most_question)

    def encode(self, question: str, texts: Sequence[str]) -> list[Tokens]:
        kept = self._bounded(question)
        pairs = [(kept, text[: self._limit]) for text in texts]
        return [Tokens(e.ids, e.type_ids) for e in _encoded(self._tokenizer, pairs)]

    async def aencode(self, question: str, texts: Sequence[str]) -> list[Tokens]:
        """`encode`, without holding up the loop."""
        return await _off_loop(lambda some: self.encode(question, some), texts)

    def _bounded(self, question: str) -> str:
        cut = readable(question[: self._most_question * _CHARS_PER_TOKEN])
        offsets = self._questions.encode(cut, add_special_tokens=False).offsets
        return cut[: offsets[-1][1]] if len(offsets) == self._most_question else cut


def readable(text: str) -> str:
    """The text with "?" for lone surrogates, which damaged PDFs yield and UTF-8 does not have."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _encoded(tokenizer: Tokenizer, inputs: Sequence[tuple[str, ...]]) -> list[Any]:
    """Encodings of single texts or pairs."""
    try:
        try:
            return _encoded_clean(tokenizer, inputs)
        except (TypeError, UnicodeEncodeError):
            return _encoded_clean(tokenizer, [tuple(map(readable, one)) for one in inputs])
    except Exception as error:  # the library raises bare Exception
        raise ModelError(f"the tokenizer failed: {error}") from error


def _encoded_clean(tokenizer: Tokenizer, inputs: Sequence[tuple[str, ...]]) -> list[Any]:
    if _is_little(inputs):
        return [tokenizer.encode(one[0], one[1] if len(one) > 1 else None) for one in inputs]
    return tokenizer.encode_batch_fast([one if len(one) > 1 else one[0] for one in inputs])


def _is_little(inputs: Sequence[tuple[str, ...]]) -> bool:
    return len(inputs) <= _FEW and sum(len(text) for one in inputs for text in one) <= _FEW_CHARS


async def _off_loop(encode: Callable[[Sequence[str]], T], texts: Sequence[str]) -> T:
    # A thread for the computing alone; the wait for the session, which is long, takes none.
    if _is_little([(text,) for text in texts]):
        return encode(texts)
    return await asyncio.to_thread(encode, texts)


def _is_punctuation(token: str) -> bool:
    bare = token.removeprefix("##").strip("▁Ġ ")
    return bool(bare) and all(unicodedata.category(c)[0] in "PS" for c in bare)


def _load(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(
            f"{path} is not a tokenizer: {error}",
            hint="take tokenizer.json from the folder the model came from",
        ) from error
