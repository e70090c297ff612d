"""Every value survives the way through the messages; the stubs are those of the proto."""

from __future__ import annotations

import dataclasses
import sys
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import descriptor_pb2

from bookrag_fast.library.types import AnswerEvent, Progress, TreeNode
from bookrag_fast.query.plan import (
    Category,
    FilterType,
    Operation,
    OperatorTrace,
    SearchResult,
    Step,
    Trace,
    Usage,
)
from bookrag_fast.server import RemoteError, wire
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2_grpc as rpc
from bookrag_fast.server.wire.plans import CATEGORY, FILTER, OPERATION
from server_helpers import ANSWER, BOOK, EVIDENCE, PLAN, TRACE, TREE

PROTO = Path(__file__).parent.parent / "proto"


def through(message, kind):
    return kind.FromString(message.SerializeToString())


def test_a_book_comes_back_equal():
    assert wire.book_from(through(wire.book_to(BOOK), pb.Book)) == BOOK


@pytest.mark.parametrize("progress", [
    Progress("parse", 3, None, "pages"),
    Progress("embed", 0, 0, "nodes", 0.0, 0.0),  # zero is not "unknown"
    Progress("embed", 5, 10, "nodes", 12.5, 0.4),
])  # fmt: skip
def test_progress_keeps_unknown_apart_from_zero(progress):
    assert wire.progress_from(through(wire.progress_to(progress), pb.IndexProgress)) == progress


def test_a_search_result_comes_back_equal():
    result = SearchResult((EVIDENCE,), PLAN, TRACE, (), Usage(12, 3, 2, 1))
    assert wire.search_result_from(through(wire.search_result_to(result), pb.SearchResponse)) == (
        result
    )


def test_an_answer_comes_back_equal():
    assert wire.answer_from(through(wire.answer_to(ANSWER), pb.Answer)) == ANSWER


@pytest.mark.parametrize("event", [
    AnswerEvent(kind="plan", plan=PLAN),
    AnswerEvent(kind="evidence", evidence=(EVIDENCE,)),
    AnswerEvent(kind="evidence", evidence=()),
    AnswerEvent(kind="text", text="a piece"),
    AnswerEvent(kind="answer", answer=ANSWER),
], ids=lambda e: e.kind)  # fmt: skip
def test_an_answer_event_comes_back_equal(event):
    message = through(wire.answer_event_to(event), pb.AskStreamResponse)
    assert wire.answer_event_from(message) == event


def test_an_event_of_a_newer_server_is_skipped():
    assert wire.answer_event_from(pb.AskStreamResponse()) is None


def test_a_tree_comes_back_equal_and_in_pre_order():
    nodes = wire.tree_to(TREE)
    assert [n.node_id for n in nodes] == [0, 1, 2, 3, 4]
    assert wire.tree_from(nodes) == TREE


def test_a_tree_deeper_than_any_recursion_limit():
    depth = sys.getrecursionlimit() + 500
    node = TreeNode(depth, "text", depth, "", 1, 1, None, "leaf")
    for level in range(depth - 1, -1, -1):
        node = TreeNode(level, "section", level, "", 1, 1, None, "", (node,))
    nodes = [through(n, pb.TreeNode) for n in wire.tree_to(node)]
    back = wire.tree_from(nodes)
    seen = 0
    while back.children:
        (back,) = back.children
        seen += 1
    assert seen == depth
    assert back.text == "leaf"


def test_a_tree_without_text_keeps_everything_else():
    assert [n.text for n in wire.tree_to(TREE, omit_text=True)] == [""] * 5


def test_a_tree_without_a_root_is_an_error():
    with pytest.raises(RemoteError, match="without a root"):
        wire.tree_from([])


def test_parameters_that_json_cannot_hold_become_text_or_numbers():
    class Colour(Enum):
        RED = "red"

    detail = {
        "nan": float("nan"), "i": np.int64(3), "f": np.float32(0.5), "a": np.arange(2),
        "e": Colour.RED, "t": (1, 2), "p": Path("x"), 1: "key", "s": "\ud800",
    }  # fmt: skip
    trace = Trace((OperatorTrace("Map", 1.0, detail),))
    result = SearchResult((), PLAN, trace)
    back = wire.search_result_from(through(wire.search_result_to(result), pb.SearchResponse))
    assert back.trace.operators[0].detail == {
        "nan": "nan", "i": 3, "f": 0.5, "a": [0, 1], "e": "red", "t": [1, 2], "p": "x",
        "1": "key", "s": "?",
    }  # fmt: skip


def test_broken_surrogates_of_a_pdf_do_not_lose_the_answer():
    evidence = dataclasses.replace(EVIDENCE, text="a\ud800b", section=("\udfff",))
    message = wire.search_result_to(SearchResult((evidence,), PLAN, TRACE))
    assert wire.search_result_from(message).evidence[0].text == "a?b"


def test_an_enum_value_of_a_newer_server_is_a_clear_error():
    message = wire.search_result_to(SearchResult((), PLAN, TRACE))
    message.plan.category = 99
    with pytest.raises(RemoteError, match=r"question category 99.*upgrade the client"):
        wire.search_result_from(message)


def test_a_plan_with_every_operation_and_category_is_mapped():
    assert set(CATEGORY) == set(Category)
    assert set(OPERATION) == set(Operation)
    assert set(FILTER) == set(FilterType)


def test_whole_numbers_come_back_as_integers():
    plan = dataclasses.replace(PLAN, steps=(Step("Extract", {"k": 5, "x": 0.5}),), sub_plans=())
    message = wire.search_result_to(SearchResult((), plan, TRACE))
    params = wire.search_result_from(message).plan.steps[0].params
    assert params == {"k": 5, "x": 0.5}
    assert isinstance(params["k"], int)


# --- the committed stubs ---


def test_the_committed_stubs_are_those_of_the_proto(tmp_path):
    protoc = pytest.importorskip("grpc_tools.protoc")
    include = Path(protoc.__file__).parent / "_proto"
    out = tmp_path / "set"
    assert protoc.main([
        "protoc", f"-I{PROTO}", f"-I{include}", f"--descriptor_set_out={out}",
        "bookrag/v1/bookrag.proto",
    ]) == 0  # fmt: skip
    (fresh,) = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    committed = descriptor_pb2.FileDescriptorProto.FromString(pb.DESCRIPTOR.serialized_pb)
    for file in (fresh, committed):  # whether defaults are spelt out differs between versions
        for message in file.message_type:
            for field in message.field:
                field.ClearField("json_name")
            for nested in message.nested_type:
                for field in nested.field:
                    field.ClearField("json_name")
    assert committed == fresh, "run proto/generate.py"


def test_the_servicer_stub_has_every_method_of_the_proto():
    service = pb.DESCRIPTOR.services_by_name["BookRAG"]
    methods = [m.name for m in service.methods]
    assert [m for m in vars(rpc.BookRAGServicer) if not m.startswith("_")] == methods


def test_the_generated_code_says_which_versions_it_needs():
    # pyproject's lower bounds must not be below these.
    source = Path(rpc.__file__).read_text()
    assert "GRPC_GENERATED_VERSION = '1.76.0'" in source
    assert "Protobuf Python Version: 6.31.1" in Path(pb.__file__).read_text()
