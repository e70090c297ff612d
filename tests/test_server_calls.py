"""A real client over a real loopback port: statuses, deadlines, cancellation, limits, drain."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import grpc.aio
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from bookrag_fast import errors as e
from bookrag_fast.server import (
    AsyncClient,
    Client,
    OverloadedError,
    PathNotAllowedError,
    RemoteError,
    Server,
    ServerConfig,
    ServerUnavailableError,
    ServicerLimits,
)
from bookrag_fast.server import errors as wire_errors
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2_grpc as rpc
from server_helpers import ANSWER, BOOK, EVIDENCE, PLAN, TRACE, TREE, FakeLibrary, RunningServer

SERVICE = "bookrag.v1.BookRAG"


@pytest.fixture
def library():
    return FakeLibrary()


@pytest.fixture
def allowed(tmp_path):
    folder = tmp_path / "allowed"
    folder.mkdir()
    return folder


@pytest.fixture
def config(allowed):
    return ServerConfig(
        max_calls=8,
        max_message_bytes=2 << 20,
        limits=ServicerLimits(allow_paths=(allowed,), max_upload_bytes=3 << 20, upload_idle_s=0.3),
    )


@pytest.fixture
def server(library, config):
    running = RunningServer(library, config)
    running.target = running.start()
    yield running
    library.release.set()
    if running._thread.is_alive():
        running.stop()


@pytest.fixture
async def target(library, config):
    """A server on the test's own loop: grpc.aio does not serve two loops of one process well."""
    async with Server(library, config) as server:
        yield str(server.address)


@pytest.fixture
def client(server):
    with Client(server.target, timeout=20) as client:
        yield client


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.target) as channel:
        yield channel


@pytest.fixture
def stub(channel):
    return rpc.BookRAGStub(channel)


def eventually(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not come about"
        time.sleep(0.01)


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


# --- deadlines and cancellation ---


def test_a_passed_deadline_cancels_the_work(client, library):
    with pytest.raises(e.DeadlineError):
        client.ask("slow", timeout=0.2)
    assert library.cancelled.wait(10)


def test_a_passed_deadline_of_a_stream_cancels_the_work(client, library):
    events = client.ask_stream("slow", timeout=0.5)
    assert next(events).kind == "plan"
    with pytest.raises(e.DeadlineError):
        next(events)
    assert library.cancelled.wait(10)


def test_the_server_itself_says_deadline_exceeded(server, library):
    """Seen through a client that waits longer than the deadline it announced."""

    class Context:
        def __init__(self):
            self.aborted = None

        def time_remaining(self):
            return 0.05

        async def abort(self, code, details, trailers):
            self.aborted = code, dict(trailers)
            raise grpc.aio.AbortError

    from bookrag_fast.server.guards import Admission, GuardInterceptor

    context = Context()

    async def work():
        guards = GuardInterceptor(Admission(1))
        async with guards._around(context, "/bookrag.v1.BookRAG/Ask"):
            await library.aask("slow")

    with pytest.raises(grpc.aio.AbortError):
        server.run(work())
    assert context.aborted == (
        grpc.StatusCode.DEADLINE_EXCEEDED, {
            "bookrag-code": "deadline", "bookrag-hint-bin": b"allow more time",
        },
    )  # fmt: skip
    assert library.cancelled.is_set()


def test_a_cancelled_unary_call_cancels_the_work(stub, library):
    call = stub.Ask.future(pb.AskRequest(question="slow"))
    assert library.started.wait(10)
    call.cancel()
    assert library.cancelled.wait(10)


def test_a_closed_stream_cancels_the_work(client, library):
    events = client.ask_stream("slow")
    next(events)
    assert library.started.wait(10)
    events.close()
    assert library.cancelled.wait(10)


def test_cancelled_indexing_cancels_the_work_and_frees_the_slot(client, library, server, tmp_path):
    file = tmp_path / "x.pdf"
    file.write_bytes(b"x")
    for _ in range(5):  # more often than there are slots
        library.cancelled.clear()
        with pytest.raises(e.DeadlineError):
            client.add(file, password="slow", timeout=0.2)
        assert library.cancelled.wait(10)
    assert client.add(file) == BOOK
    eventually(lambda: server.server._admission.running == 0)


def test_a_raising_progress_callback_cancels_the_work(client, library, tmp_path):
    file = tmp_path / "x.pdf"
    file.write_bytes(b"x")

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.add(file, password="slow", progress=stop)
    assert library.cancelled.wait(10)


async def test_a_cancelled_task_of_the_async_client_cancels_the_work(target, library):
    async with AsyncClient(target) as client:
        task = asyncio.ensure_future(client.ask("slow"))
        await asyncio.to_thread(library.started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(library.cancelled.wait, 10)


def test_a_vanished_client_cancels_the_work(server, library):
    channel = grpc.insecure_channel(server.target)
    call = rpc.BookRAGStub(channel).Ask.future(pb.AskRequest(question="slow"))
    assert library.started.wait(10)
    channel.close()
    assert call.code() is grpc.StatusCode.CANCELLED
    assert library.cancelled.wait(10)


# --- load ---


def test_many_clients_at_once_each_get_their_answer(server, config):
    def one(_):
        with Client(server.target, timeout=30) as client:
            return [client.ask("q") == ANSWER for _ in range(10)]

    with ThreadPoolExecutor(config.max_calls) as pool:
        assert all(all(answers) for answers in pool.map(one, range(config.max_calls)))


def test_too_many_calls_are_refused_at_once_and_room_comes_back(server, client, library, config):
    stub = rpc.BookRAGStub(client._channel)
    calls = [stub.Ask.future(pb.AskRequest(question="wait")) for _ in range(config.max_calls)]
    eventually(lambda: server.server._admission.running == config.max_calls)
    with pytest.raises(OverloadedError):
        client.ask("q")
    library.release.set()
    for call in calls:
        assert call.result(10).answer.enough
    eventually(lambda: server.server._admission.running == 0)
    assert client.ask("q") == ANSWER


def test_health_watchers_do_not_take_the_room_of_calls(server, client, channel, config):
    health = health_pb2_grpc.HealthStub(channel)
    watches = [health.Watch(health_pb2.HealthCheckRequest()) for _ in range(config.max_calls + 4)]
    for watch in watches:
        next(watch)
    assert client.ask("q") == ANSWER
    for watch in watches:
        watch.cancel()


# --- health, reflection, drain ---


def test_health_check_by_service(channel):
    health = health_pb2_grpc.HealthStub(channel)
    serving = health_pb2.HealthCheckResponse.SERVING
    for service in ("", SERVICE):
        assert health.Check(health_pb2.HealthCheckRequest(service=service)).status == serving
    with pytest.raises(grpc.RpcError) as info:
        health.Check(health_pb2.HealthCheckRequest(service="other"))
    assert info.value.code() is grpc.StatusCode.NOT_FOUND


def test_reflection_lists_and_describes_the_service(channel):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    requests = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE),
    ]
    listed, described = stub.ServerReflectionInfo(iter(requests))
    names = {service.name for service in listed.list_services_response.service}
    assert {SERVICE, "grpc.health.v1.Health"} <= names
    files = [
        descriptor_pb2.FileDescriptorProto.FromString(raw)
        for raw in described.file_descriptor_response.file_descriptor_proto
    ]
    assert SERVICE in {f"{f.package}.{s.name}" for f in files for s in f.service}


def test_drain_tells_watchers_refuses_new_calls_and_finishes_old_ones(server, library):
    with grpc.insecure_channel(server.target) as channel:
        states = []
        watch = health_pb2_grpc.HealthStub(channel).Watch(
            health_pb2.HealthCheckRequest(service=SERVICE)
        )
        states.append(next(watch).status)
        stub = rpc.BookRAGStub(channel)
        call = stub.Ask.future(pb.AskRequest(question="wait"))
        assert library.started.wait(10)
        stopping = asyncio.run_coroutine_threadsafe(server.server.stop(20), server._loop)
        states.append(next(watch).status)
        with pytest.raises(grpc.RpcError) as info:
            list(watch)  # ended by the server, so that it does not hold up the drain
        assert info.value.code() is grpc.StatusCode.UNAVAILABLE
        with pytest.raises(grpc.RpcError) as info:
            stub.Ask(pb.AskRequest(question="q"), timeout=5)
        assert info.value.code() is grpc.StatusCode.UNAVAILABLE
        assert not stopping.done()
        library.release.set()
        assert call.result(10).answer.text == ANSWER.text
        stopping.result(10)
    response = health_pb2.HealthCheckResponse
    assert states == [response.SERVING, response.NOT_SERVING]


def test_calls_that_outlast_the_grace_are_cancelled(server, library):
    with grpc.insecure_channel(server.target) as channel:
        call = rpc.BookRAGStub(channel).Ask.future(pb.AskRequest(question="slow"))
        assert library.started.wait(10)
        server.stop(grace=0.2)
        assert library.cancelled.is_set()
        with pytest.raises(grpc.RpcError):
            call.result(10)


def test_a_taken_port_is_a_clear_error(server, library):
    port = int(server.target.rsplit(":", 1)[1])
    other = RunningServer(library, ServerConfig(port=port))
    with pytest.raises(e.ConfigError, match="cannot listen"):
        other.start()
    other._loop.call_soon_threadsafe(other._loop.stop)
    other._thread.join(10)
    other._loop.close()


def test_another_address_than_loopback_is_warned_of(library, caplog):
    running = RunningServer(library, ServerConfig(host="0.0.0.0"))
    running.start()
    running.stop()
    assert any("without TLS" in r.getMessage() for r in caplog.records)
