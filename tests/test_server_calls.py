"""A real client over a real loopback port: values, uploads, paths, errors and their statuses."""

from __future__ import annotations

import hashlib
import threading

import grpc
import pytest

from bookrag_fast import errors as e
from bookrag_fast.server import (
    AsyncClient,
    Client,
    PathNotAllowedError,
    RemoteError,
    ServerUnavailableError,
)
from bookrag_fast.server import errors as wire_errors
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from server_helpers import (
    ANSWER,
    BOOK,
    EVIDENCE,
    PLAN,
    SERVICE,
    TRACE,
    TREE,
    RunningServer,
)
from waiting import eventually

pytest_plugins = ["server_fixtures"]


# --- the values arrive ---


def test_the_client_returns_the_values_of_the_library(client, library):
    assert client.books() == [BOOK]
    assert client.tree(BOOK.id) == TREE
    assert client.tree(BOOK.id, omit_text=True).children[0].children[0].text == ""
    assert client.search("q", books=[BOOK.id], budget_tokens=7) == [EVIDENCE]
    assert library.seen[-1] == {"question": "q", "books": [BOOK.id], "budget_tokens": 7}
    result = client.search_result("q")
    assert (result.plan, result.trace) == (PLAN, TRACE)
    assert library.seen[-1] == {"question": "q", "books": None, "budget_tokens": 2000}
    assert client.ask("q") == ANSWER
    assert client.remove(BOOK.id) == BOOK


def test_a_streamed_answer_arrives_in_pieces(client):
    events = list(client.ask_stream("q"))
    assert [event.kind for event in events] == ["plan", "evidence", "text", "text", "answer"]
    assert "".join(event.text or "" for event in events) == ANSWER.text
    assert events[-1].answer == ANSWER


async def test_the_async_client_returns_the_same(target, tmp_path):
    file = tmp_path / "b.pdf"
    file.write_bytes(b"x")
    async with AsyncClient(target, timeout=20) as client:
        assert await client.books() == [BOOK]
        assert await client.tree(BOOK.id) == TREE
        assert await client.search("q") == [EVIDENCE]
        assert (await client.search_result("q")).plan == PLAN
        assert await client.ask("q") == ANSWER
        assert [event.kind async for event in client.ask_stream("q")][-1] == "answer"
        assert await client.add(file) == BOOK
        assert await client.remove(BOOK.id) == BOOK
        with pytest.raises(e.UnknownBookError):
            await client.tree("nowhere")
        with pytest.raises(PathNotAllowedError):
            await client.add_server_path("/etc/passwd")


@pytest.mark.parametrize("reference", [BOOK.id, BOOK.id[:4], BOOK.title, BOOK.name])
def test_a_book_is_found_by_id_prefix_title_or_name(client, library, reference):
    client.tree(reference)
    assert library.seen[-1] == {"ref": BOOK.id}


@pytest.mark.parametrize("reference", ["", "012", "nowhere", "/etc/passwd", "handbook"])
def test_no_other_reference_is_taken_least_of_all_a_path(client, library, reference):
    with pytest.raises(e.UnknownBookError) as info:
        client.tree(reference)
    assert info.value.hint
    with pytest.raises(e.UnknownBookError):
        client.search("q", books=[reference])
    assert library.seen == []


# --- uploads and paths ---


def test_an_upload_arrives_whole_and_leaves_nothing_behind(client, library, tmp_path):
    content = bytes(range(256)) * 10_000  # several chunks
    file = tmp_path / "第3章 report.pdf"
    file.write_bytes(content)
    steps = []
    assert client.add(file, password="pä ss", progress=steps.append) == BOOK
    seen = library.seen[-1]
    assert (seen["content"], seen["password"]) == (content, "pä ss")
    assert seen["path"].name == file.name
    assert steps[0].stage == "parse"
    assert steps[0].total is None
    assert steps[0].rate == 2.5
    eventually(lambda: not seen["path"].parent.exists())


def test_an_error_names_the_file_not_our_temporary_folder(client, library, tmp_path):
    file = tmp_path / "x.pdf"
    file.write_bytes(b"x")

    async def aadd(path, **_):
        raise e.NotAPdfError(f"{path} is not a PDF", f"look at {path}")

    library.aadd = aadd
    with pytest.raises(e.NotAPdfError) as info:
        client.add(file)
    assert (info.value.message, info.value.hint) == ("x.pdf is not a PDF", "look at x.pdf")


def test_too_large_an_upload_is_refused_by_announcement_and_by_count(client, stub, tmp_path):
    file = tmp_path / "big.pdf"
    file.write_bytes(bytes((3 << 20) + 1))
    with pytest.raises(e.TooLargeError, match="accepts 3145728"):
        client.add(file)
    header = pb.IndexBookHeader(upload=pb.Upload(name="a.pdf"))  # no size announced
    chunks = [pb.IndexBookRequest(chunk=bytes(1 << 20))] * 4
    assert fail(stub, [pb.IndexBookRequest(header=header), *chunks]) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED, "too_large"
    )  # fmt: skip


def fail(stub, requests):
    """Status and code of an IndexBook call that must fail."""
    with pytest.raises(grpc.RpcError) as info:
        list(stub.IndexBook(iter(requests), timeout=20))
    return info.value.code(), dict(info.value.trailing_metadata()).get("bookrag-code")


def upload(chunks=(b"x",), **fields):
    header = pb.IndexBookHeader(upload=pb.Upload(**{"name": "a.pdf", **fields}))
    return [
        pb.IndexBookRequest(header=header),
        *(pb.IndexBookRequest(chunk=chunk) for chunk in chunks),
    ]


@pytest.mark.parametrize("requests", [
    [],
    [pb.IndexBookRequest()],
    [pb.IndexBookRequest(chunk=b"x")],
    [pb.IndexBookRequest(header=pb.IndexBookHeader())],
    [*upload(), *upload()],
    upload(size=2),
    upload(size=0),
    upload(sha256="00" * 32),
    *(upload(name=name) for name in (
        "", ".", "..", "../a.pdf", "/a.pdf", "a/b.pdf", "a\\b.pdf", "a\0.pdf", "a\n.pdf", "é" * 200,
    )),
], ids=str)  # fmt: skip
def test_malformed_uploads_are_refused(stub, library, requests):
    assert fail(stub, requests) == (grpc.StatusCode.INVALID_ARGUMENT, "invalid_argument")
    assert library.seen == []


def test_a_right_digest_is_accepted(stub):
    requests = upload([b"ab", b"", b"c"], size=3, sha256=hashlib.sha256(b"abc").hexdigest())
    assert list(stub.IndexBook(iter(requests)))[-1].book.id == BOOK.id


def test_a_stalled_upload_is_given_up(stub):
    done = threading.Event()

    def stall():
        yield from upload()
        done.wait(20)

    with pytest.raises(grpc.RpcError) as info:
        list(stub.IndexBook(stall()))
    done.set()
    assert info.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "given up" in info.value.details()


def test_a_server_path_inside_an_allowed_folder_is_read(client, library, allowed):
    file = allowed / "sub" / "b.pdf"
    file.parent.mkdir()
    file.write_bytes(b"content")
    assert client.add_server_path(str(allowed / "sub" / ".." / "sub" / "b.pdf")) == BOOK
    assert library.seen[-1]["path"] == file.resolve()


def test_paths_outside_are_refused_whether_or_not_they_exist(client, library, allowed, tmp_path):
    secret = tmp_path / "secret.pdf"
    secret.write_bytes(b"x")
    link = allowed / "link.pdf"
    link.symlink_to(secret)
    loop = allowed / "loop"
    loop.symlink_to(loop)
    outside = [secret, link, allowed / ".." / "secret.pdf", "/etc/passwd", "/no/such", "x.pdf"]
    for path in outside:
        with pytest.raises(PathNotAllowedError, match="--allow-path"):
            client.add_server_path(str(path))
    for path in ("", "a\0b", allowed, allowed / "none.pdf", "/dev/stdin/x", loop):
        with pytest.raises((e.InvalidArgumentError, PathNotAllowedError)):
            client.add_server_path(str(path))
    assert library.seen == []


def test_a_path_with_a_name_that_no_file_can_have_is_no_internal_error(client, allowed):
    with pytest.raises(e.InvalidArgumentError, match="not a file"):
        client.add_server_path(str(allowed / ("x" * 300)))


def test_no_path_is_allowed_unless_the_server_says_so(library, allowed):
    file = allowed / "b.pdf"
    file.write_bytes(b"x")
    running = RunningServer(library)
    with Client(running.start()) as client, pytest.raises(PathNotAllowedError):
        client.add_server_path(str(file))
    running.stop()


def test_a_missing_local_file_is_an_error_before_any_call(client, tmp_path):
    with pytest.raises(e.InvalidArgumentError, match="no file"):
        client.add(tmp_path / "none.pdf")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("question", lambda c, _: c.search(5)),
        ("question", lambda c, _: c.ask(None)),
        ("question", lambda c, _: list(c.ask_stream(b"q"))),
        ("books", lambda c, _: c.search("q", books=3)),
        ("budget_tokens", lambda c, _: c.ask("q", budget_tokens="5")),
        ("path", lambda c, _: c.add(5)),
        ("password", lambda c, file: c.add(file, password=5)),
        ("path", lambda c, file: c.add_server_path(file)),
        ("ref", lambda c, _: c.remove(5)),
        ("ref", lambda c, _: c.tree(None)),
    ],
)
def test_a_wrong_type_is_named_before_any_call(name, call, client, tmp_path):
    file = tmp_path / "a.pdf"
    file.write_bytes(b"x")
    with pytest.raises(e.InvalidArgumentError, match=f"^{name} is of type"):
        call(client, file)


def test_one_book_is_not_taken_for_its_letters(client, library):
    client.search("q", books=BOOK.id)
    assert library.seen[-1]["books"] == [BOOK.id]


def test_an_oversize_message_is_refused(client):
    with pytest.raises(e.TooLargeError, match="larger than max"):
        client.search("x" * (3 << 20))


# --- errors ---

STATUS = {
    e.InvalidArgumentError: "INVALID_ARGUMENT",
    e.TooLargeError: "RESOURCE_EXHAUSTED",
    e.ConfigError: "FAILED_PRECONDITION",
    e.DocumentError: "INVALID_ARGUMENT",
    e.NotAPdfError: "INVALID_ARGUMENT",
    e.EmptyDocumentError: "INVALID_ARGUMENT",
    e.EncryptedPdfError: "FAILED_PRECONDITION",
    e.WrongPasswordError: "INVALID_ARGUMENT",
    e.DamagedPdfError: "INVALID_ARGUMENT",
    e.ZeroPagesError: "INVALID_ARGUMENT",
    e.NoTextLayerError: "INVALID_ARGUMENT",
    e.UnreadablePagesError: "INVALID_ARGUMENT",
    e.UnsupportedFormatError: "INVALID_ARGUMENT",
    e.DamagedDocumentError: "INVALID_ARGUMENT",
    e.LibraryError: "FAILED_PRECONDITION",
    e.UnknownBookError: "NOT_FOUND",
    e.UnknownNodeError: "NOT_FOUND",
    e.ShelfBusyError: "UNAVAILABLE",
    e.IndexStoreError: "INTERNAL",
    e.CorruptIndexError: "DATA_LOSS",
    e.NewerIndexError: "FAILED_PRECONDITION",
    e.ModelMismatchError: "FAILED_PRECONDITION",
    e.ModelError: "UNAVAILABLE",
    e.ModelNotFoundError: "FAILED_PRECONDITION",
    e.ModelUnavailableError: "UNAVAILABLE",
    e.ModelRateLimitError: "UNAVAILABLE",
    e.ModelTimeoutError: "UNAVAILABLE",
    e.ModelRefusedError: "FAILED_PRECONDITION",
    e.ModelReplyError: "UNAVAILABLE",
    e.SpendingLimitError: "FAILED_PRECONDITION",
    e.QueryError: "INVALID_ARGUMENT",
    e.BudgetError: "INVALID_ARGUMENT",
    e.DeadlineError: "DEADLINE_EXCEEDED",
}


def test_the_table_above_has_every_error_of_the_package():
    public = {getattr(e, name) for name in e.__all__} - {e.BookragError}
    assert set(STATUS) == public


@pytest.mark.parametrize("error", STATUS, ids=lambda c: c.__name__)
def test_each_error_has_its_status_and_comes_back_as_itself(client, stub, library, error):
    library.error = error("what wänt wrong", "do this → now")
    with pytest.raises(grpc.RpcError) as raw:
        stub.Ask(pb.AskRequest(question="q"))
    assert raw.value.code().name == STATUS[error]
    with pytest.raises(e.BookragError) as info:
        client.ask("q")
    assert type(info.value) is error
    assert (info.value.message, info.value.hint) == ("what wänt wrong", "do this → now")
    with pytest.raises(e.BookragError) as info:
        list(client.ask_stream("q"))
    assert type(info.value) is error


def test_an_unexpected_error_leaks_nothing_but_an_id_that_the_log_has(client, library, caplog):
    library.error = RuntimeError("/secret/path in line 3")
    with pytest.raises(RemoteError) as info:
        client.ask("q")
    assert "secret" not in str(info.value)
    incident = info.value.message.split("internal error ")[1].split(";")[0]
    assert any(incident in r.getMessage() and r.exc_info for r in caplog.records)


@pytest.mark.parametrize("character", ["x", "第", "\ud800"])
def test_a_long_message_and_hint_are_cut_but_arrive(client, library, character):
    library.error = e.QueryError("a\nb\tc " + character * 9000, character * 9000)
    with pytest.raises(e.QueryError) as info:
        client.ask("q")
    assert info.value.message.startswith("a\nb\tc")
    assert info.value.message.endswith("…")
    assert len(info.value.hint) > 400


def test_a_huge_reference_is_just_an_unknown_book(client):
    with pytest.raises(e.UnknownBookError):
        client.tree("x" * 1_000_000)


def test_more_books_than_anyone_would_name_are_refused(client):
    with pytest.raises(e.InvalidArgumentError, match="at most 1000"):
        client.search("q", books=["x"] * 1001)


def test_an_unknown_code_of_a_newer_server_is_a_remote_error():
    class Failed:
        def code(self):
            return grpc.StatusCode.INVALID_ARGUMENT

        def details(self):
            return "too purple"

        def trailing_metadata(self):
            return (("bookrag-code", "purple"), ("bookrag-hint-bin", b"less purple"))

    error = wire_errors.from_rpc_error(Failed())
    assert type(error) is RemoteError
    assert (error.message, error.hint) == ("too purple", "less purple")


def test_no_server_is_a_clear_error():
    with (
        Client("127.0.0.1:1", timeout=10) as client,
        pytest.raises(ServerUnavailableError, match="bookrag serve"),
    ):
        client.books()


def test_an_unknown_method_is_unimplemented(channel):
    call = channel.unary_unary("/bookrag.v1.BookRAG/Nothing")
    with pytest.raises(grpc.RpcError) as info:
        call(b"")
    assert info.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_garbage_bytes_are_refused_and_the_server_lives_on(channel, client):
    calls = [
        lambda: channel.unary_unary(f"/{SERVICE}/Search")(b"\xff\xff\xff"),
        lambda: list(channel.unary_stream(f"/{SERVICE}/AskStream")(b"\xff\xff\xff")),
        lambda: list(channel.stream_stream(f"/{SERVICE}/IndexBook")(iter([b"\xff\xff\xff"]))),
    ]
    for call in calls:
        with pytest.raises(grpc.RpcError) as info:
            call()
        assert info.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "not a readable" in info.value.details()
    assert client.books() == [BOOK]
