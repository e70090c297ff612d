"""A transformer that takes token ids, loaded and warm: what all ONNX models here rest on."""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bookrag_fast.errors import ModelError
from bookrag_fast.forks import begins_anew, keep
from bookrag_fast.models.onnx.batching import RunLimits
from bookrag_fast.models.onnx.sessions import open_session
from bookrag_fast.models.onnx.tokens import TokenBatch

__all__ = ["Network", "check_finite"]

_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})


# On the CPU, measured with MiniLM (22 million weights):
# token places a run: beyond this the activations of a small model leave the cache and a batch of
# long texts takes twice the time of its texts one by one;
_CPU_TOKENS = 384
# padding worth a run: one costs 1.7 ms by itself, and 0.12 ms a token;
_CPU_PADDING = 8
# runs at once where each takes all cores: while one waits for its slowest thread, or is in Python,
# the other has them;
_CPU_WORKERS = 2
# and where each takes one core, which does an eighth more work in the same time (a text alone has
# all cores still, and so is answered a quarter sooner). It takes a second session, whose weights a
# large model cannot afford: bytes of the files of one that is small enough.
_SMALL = 256 << 20
_MOST_WORKERS = 8


class Network:
    """An onnxruntime session with its inputs and one of its outputs. Safe from any thread.

    In a forked child the session is opened anew, since its threads are not taken along.

    Args:
        model: the ``.onnx`` file.
        needed: what its output should be ("embeddings"), for errors.
        choose: the name of the output to use, or None, from the ranks of the float outputs.
        providers, tensorrt, threads: as `sessions.open_session` takes them.
        binding: device ("cuda", "cpu") on which inputs and output are bound instead of handed
            over; None: "cuda" where the session runs there.

    ``rank`` is that of the output, ``declared`` its last dimension where the model states one.

    Raises:
        ModelNotFoundError, ModelError: as `open_session`; the model takes other inputs or has no
            output to use.
    """

    def __init__(
        self,
        model: Path,
        needed: str,
        choose: Callable[[dict[str, int]], str | None],
        *,
        providers: Sequence[str] | None = None,
        tensorrt: bool = False,
        threads: int = 0,
        binding: str | None = None,
    ) -> None:
        self.model = model
        self._binding = binding
        self._open = partial(open_session, model, providers=providers, tensorrt=tensorrt)
        self._threads = threads
        self._guard = threading.Lock()
        self._sessions: tuple[Any, Any] | None = None  # for one text, and for several
        session, _ = self._current()
        self._inputs = {i.name: _int_type(i, model) for i in session.get_inputs()}
        unknown = sorted(set(self._inputs) - _INPUTS)
        if unknown or "input_ids" not in self._inputs:
            raise ModelError(
                f"{model} is not a model for {needed} of texts: it takes {sorted(self._inputs)}",
                hint="export with the inputs input_ids, attention_mask and token_type_ids",
            )
        outputs = session.get_outputs()
        ranks = {o.name: len(o.shape) for o in outputs if "float" in o.type}
        self.output = choose(ranks) or ""
        if not self.output:
            raise ModelError(
                f"{model} has no output of {needed}: {sorted(o.name for o in outputs)}",
                hint="export the model for this task, or name another file of it",
            )
        shape = next(o.shape for o in outputs if o.name == self.output)
        self.rank = len(shape)
        self.declared = shape[-1] if shape and isinstance(shape[-1], int) else None
        begins_anew(self)

    def run(self, batch: TokenBatch) -> npt.NDArray[np.float32]:
        """The output for a batch of texts, as float32.

        Raises:
            ModelError: the run failed, or the output is not one row a text.
        """
        count = len(batch.ids)
        session = self._current()[count > 1]
        try:
            raw = self._outcome(session, self._feed(batch))
        except Exception as error:  # onnxruntime's own classes derive from Exception alone
            raise ModelError(
                f"{self.model} failed on a batch of {count} texts: {error}",
                hint="a smaller batch_size needs less memory",
            ) from error
        values = np.asarray(raw, dtype=np.float32)
        if values.ndim == 0 or values.shape[0] != count:
            raise ModelError(
                f"output {self.output} of {self.model} has shape {values.shape} for {count} texts"
            )
        return values

    def limits(self, batch_size: int, max_tokens: int) -> RunLimits:
        """What a run should not go beyond."""
        if self.placement.provider == "cpu":
            return RunLimits(batch_size, _CPU_TOKENS, _CPU_PADDING)
        most = batch_size * max_tokens
        return RunLimits(batch_size, most, most // 4)

    @property
    def workers(self) -> int:
        """Runs at once that pay."""
        if self.placement.provider != "cpu":
            return 1
        one, several = self._current()
        return _CPU_WORKERS if one is several else min(_cores(), _MOST_WORKERS)

    def _feed(self, batch: TokenBatch) -> dict[str, npt.NDArray[Any]]:
        values: dict[str, npt.NDArray[Any]] = {
            "input_ids": batch.ids,
            "attention_mask": batch.mask,
            "token_type_ids": batch.types,
        }
        if "position_ids" in self._inputs:  # of the text, whichever side is padded
            values["position_ids"] = np.maximum(batch.mask.cumsum(axis=1) - 1, 0)
        return {
            name: np.ascontiguousarray(values[name], dtype=dtype)
            for name, dtype in self._inputs.items()
        }

    def warm(self, items: int, tokens: int) -> None:
        """Runs the smallest and the largest batch, so that buffers and TensorRT's engine have their
        size before the first caller comes. Not on the CPU, which has nothing to prepare for them.

        Raises:
            ModelError: the model does not take texts of so many tokens, or the device so many.
        """
        if self.placement.provider != "cpu":
            for shape in ((1, 1), (items, tokens)):
                ones = np.ones(shape, np.int64)
                self.run(TokenBatch(ones, np.zeros_like(ones), ones.astype(np.bool_)))

    def forked(self) -> None:
        keep(self._sessions)
        self._sessions = None
        self._guard = threading.Lock()

    def _current(self) -> tuple[Any, Any]:
        with self._guard:
            if self._sessions is None:
                one, self.placement = self._open(threads=self._threads)
                several = one
                if self.placement.provider == "cpu" and not self._threads and self._is_small():
                    several, _ = self._open(threads=1)
                self._sessions = one, several
            return self._sessions

    def _is_small(self) -> bool:
        """By its file and those that it keeps weights in, which are named after it."""
        files = self.model.parent.glob(f"{glob.escape(self.model.name)}*")
        return sum(file.stat().st_size for file in files) <= _SMALL

    def _outcome(self, session: Any, feed: dict[str, npt.NDArray[Any]]) -> Any:
        device = self._binding or ("cuda" if self.placement.provider == "cuda" else None)
        if device is None:
            return session.run([self.output], feed)[0]
        from onnxruntime import OrtValue

        binding = session.io_binding()
        for name, array in feed.items():
            binding.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(array, device, 0))
        binding.bind_output(self.output, device)
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()[0]


def _cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_finite(values: npt.NDArray[np.float32], model: Path) -> None:
    """Raises ModelError for NaN and infinite values."""
    if not np.isfinite(values).all():
        raise ModelError(
            f"{model} gave NaN or infinite values",
            hint="a float16 model may overflow on this provider; use its float32 form",
        )


def _int_type(tensor: Any, model: Path) -> type[np.int64] | type[np.int32]:
    if tensor.type == "tensor(int64)":
        return np.int64
    if tensor.type == "tensor(int32)":
        return np.int32
    raise ModelError(f"input {tensor.name} of {model} is {tensor.type}; token ids are integers")
