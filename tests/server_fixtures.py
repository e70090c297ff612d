"""A fake library behind a real server on a loopback port, and the clients that call it.

A test file asks for these with ``pytest_plugins = ["server_fixtures"]``.
"""

from __future__ import annotations

import grpc
import pytest

from bookrag_fast.server import Client, Server, ServerConfig, ServicerLimits
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2_grpc as rpc
from server_helpers import FakeLibrary, RunningServer


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
