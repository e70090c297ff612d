"""Tiny models in ONNX form with tokenizers of whole words, made as tests need them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[Q]", "[D]")
WORDS = tuple("alpha beta gamma delta epsilon zeta eta theta iota kappa probe . , ! fatal".split())
VOCABULARY = {word: i for i, word in enumerate((*SPECIAL, *WORDS))}
FATAL = VOCABULARY["fatal"]


def table(columns: int, dtype: npt.DTypeLike = np.float32, *, seed: int = 0) -> npt.NDArray:
    """A row of numbers a word, [words, columns]."""
    rows = np.random.default_rng(seed).normal(size=(len(VOCABULARY), columns))
    return rows.astype(dtype)


def write_tokenizer(folder: Path, *, left: bool = False) -> Path:
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(t, VOCABULARY[t]) for t in ("[CLS]", "[SEP]")],
    )
    tokenizer.enable_padding(direction="left" if left else "right", pad_id=0, pad_token="[PAD]")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def write_embedder(
    folder: Path,
    rows: npt.NDArray,
    *,
    left: bool = False,
    ids: int = TensorProto.INT64,
    name: str = "model.onnx",
) -> Path:
    """last_hidden_state: a token's row of the table, plus a hundredth of its position."""
    kind = helper.np_dtype_to_tensor_dtype(rows.dtype)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["word"]),
        helper.make_node("Cast", ["position_ids"], ["position"], to=kind),
        helper.make_node("Unsqueeze", ["position", "last_axis"], ["column"]),
        helper.make_node("Mul", ["column", "hundredth"], ["shift"]),
        helper.make_node("Add", ["word", "shift"], ["last_hidden_state"]),
    ]
    constants = {
        "table": rows,
        "last_axis": np.array([-1], np.int64),
        "hundredth": np.array(0.01, rows.dtype),
    }
    inputs = ["input_ids", "attention_mask", "position_ids"]
    output = helper.make_tensor_value_info(
        "last_hidden_state", kind, ["batch", "tokens", rows.shape[1]]
    )
    _write(folder / name, nodes, inputs, ids, output, constants)
    return write_tokenizer(folder, left=left)


def write_cross_encoder(folder: Path, first: npt.NDArray, second: npt.NDArray) -> Path:
    """logits[batch, k]: sum over tokens of ``first`` for the question's, ``second`` for the text's.

    A text with the word "fatal" gives NaN.
    """
    nodes = [
        helper.make_node("Gather", ["first", "input_ids"], ["of_question"]),
        helper.make_node("Gather", ["second", "input_ids"], ["of_text"]),
        helper.make_node("Cast", ["token_type_ids"], ["type"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["type", "last_axis"], ["types"]),
        helper.make_node("Sub", ["one", "types"], ["others"]),
        helper.make_node("Mul", ["of_question", "others"], ["a"]),
        helper.make_node("Mul", ["of_text", "types"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["both"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last_axis"], ["masks"]),
        helper.make_node("Mul", ["both", "masks"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "tokens"], ["logits"], keepdims=0),
    ]
    second = second.copy()
    second[FATAL] = np.nan
    constants = {
        "first": first,
        "second": second,
        "last_axis": np.array([-1], np.int64),
        "tokens": np.array([1], np.int64),
        "one": np.array(1.0, np.float32),
    }
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", first.shape[1]])
    _write(folder / "model.onnx", nodes, inputs, TensorProto.INT64, output, constants)
    return write_tokenizer(folder)


def _write(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: list[str],
    ids: int,
    output: onnx.ValueInfoProto,
    constants: dict[str, npt.NDArray],
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, ids, ["batch", "tokens"]) for name in inputs],
        [output],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
