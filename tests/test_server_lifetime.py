"""A real server under way: deadlines, cancellation, load, health, reflection, drain."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import grpc
import grpc.aio
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from bookrag_fast import errors as e
from bookrag_fast.server import AsyncClient, Client, OverloadedError, ServerConfig
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2_grpc as rpc
from server_helpers import ANSWER, BOOK, SERVICE, RunningServer
from waiting import eventually

pytest_plugins = ["server_fixtures"]


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
