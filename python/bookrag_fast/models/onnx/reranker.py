"""Cross-encoders in ONNX form: a question and a text read together, one score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bookrag_fast.errors import ConfigError, ModelError
from bookrag_fast.models.checks import check_question, check_texts
from bookrag_fast.models.onnx.batching import Batcher
from bookrag_fast.models.onnx.late import LateInteractionReranker, OnnxTokenEmbedder
from bookrag_fast.models.onnx.network import Network, check_finite
from bookrag_fast.models.onnx.opening import open_parts
from bookrag_fast.models.onnx.tokens import PairTokenizer, Tokens
from bookrag_fast.models.protocols import FloatArray, Reranker, Scores, TokenUsage

if TYPE_CHECKING:  # the settings bring pydantic along, which a reading process spares itself
    from bookrag_fast.config import OnnxRerankerSettings

__all__ = ["OnnxReranker", "open_reranker"]

_OUTPUTS = ("logits", "scores", "score")
_WINDOW = 256  # pairs tokenized at a time
_LEAST_TOKENS = 16  # half for the question, and the special tokens


def open_reranker(settings: OnnxRerankerSettings) -> Reranker:
    """The reranker of the settings. Raises as `OnnxReranker` and `OnnxTokenEmbedder` do."""
    if settings.method == "late-interaction":
        return LateInteractionReranker(OnnxTokenEmbedder(settings))
    return OnnxReranker(settings)


class OnnxReranker:
    """Implements `models.protocols.Reranker`. Safe from several threads and loops; what they ask
    for at the same time is run together.

    A model with one logit a pair scores by it. One with two is a classifier of "not relevant" and
    "relevant", and scores by the second less the first, the logarithm of the odds, which orders as
    its probability does. Scores are raw: comparable within one call.

    ``max_tokens`` bounds a pair: what is cut is the text, and a question keeps up to half of them.
    The prefixes are put before the question and each text.

    Raises:
        ModelNotFoundError: there is no such model, or one of its files is missing.
        ModelError: a file is broken, or the model does not score pairs.
        ConfigError: a provider is unknown.
    """

    def __init__(self, settings: OnnxRerankerSettings) -> None:
        if settings.max_tokens < _LEAST_TOKENS:
            raise ConfigError(
                f"max_tokens = {settings.max_tokens} is too little for a pair of texts",
                hint=f"set at least {_LEAST_TOKENS} for {settings.source}",
            )
        self._prefixes = (settings.query_prefix, settings.passage_prefix)
        self.info, self._tokenizer, network = open_parts(
            settings, PairTokenizer, "scores", _choose_output
        )
        self.placement = network.placement
        score = _PairScores(network, self._tokenizer)
        score(self._tokenizer.encode("probe", ["probe"]))
        self._batcher: Batcher[Tokens, np.float32] = Batcher(
            score,
            lambda pair: len(pair.ids),
            limits=network.limits(settings.batch_size, settings.max_tokens),
            workers=network.workers,
            name=self.info.name,
        )

    def rerank(self, question: str, texts: Sequence[str]) -> FloatArray:
        """float32[len(texts)], higher is more relevant.

        Raises:
            InvalidArgumentError: the question is no text, or these are no sequence of texts.
            ModelError: the run failed, or the model gave NaN or infinite values; or it is closed.
        """
        asked, windows = self._asked(question, texts)
        encoded = (self._tokenizer.encode(asked, window) for window in windows)
        scores = [score for some in self._batcher.map(encoded) for score in some]
        return np.array(scores, dtype=np.float32)

    async def arerank(self, question: str, texts: Sequence[str]) -> Scores:
        """`rerank`, awaited. Waiting takes no thread; cancelling takes back what has not run."""
        asked, windows = self._asked(question, texts)
        encoded = (self._tokenizer.aencode(asked, window) for window in windows)
        scores = [score async for some in self._batcher.amap(encoded) for score in some]
        return Scores(np.array(scores, dtype=np.float32), TokenUsage())

    def close(self) -> None:
        """Ends the workers. Calls that wait, and later ones, get a ModelError."""
        self._batcher.close()

    def _asked(self, question: str, texts: Sequence[str]) -> tuple[str, list[list[str]]]:
        check_question(question)
        check_texts(texts)
        before_question, before_text = self._prefixes
        starts = range(0, len(texts), _WINDOW)
        listed = [before_text + text for text in texts]  # not all sequences have slices
        windows = [listed[start : start + _WINDOW] for start in starts]
        return before_question + question, windows


class _PairScores:
    """Tokens of pairs to scores."""

    def __init__(self, network: Network, tokenizer: PairTokenizer) -> None:
        self._network = network
        self._tokenizer = tokenizer

    def __call__(self, rows: Sequence[Tokens]) -> FloatArray:
        """float32[len(rows)]. Raises ModelError."""
        logits = self._network.run(self._tokenizer.pad(rows))
        if logits.ndim == 2 and logits.shape[1] == 2:
            scores = logits[:, 1] - logits[:, 0]
        elif logits.size == len(rows) and logits.ndim <= 2:
            scores = logits.reshape(len(rows))
        else:
            raise ModelError(
                f"output {self._network.output} of {self._network.model} has shape {logits.shape} "
                f"for {len(rows)} pairs",
                hint="a cross-encoder gives one logit a pair, or two",
            )
        check_finite(scores, self._network.model)
        return scores


def _choose_output(ranks: dict[str, int]) -> str | None:
    named = next((name for name in _OUTPUTS if name in ranks), None)
    return named or next((name for name, rank in ranks.items() if rank in (1, 2)), None)
