"""The server around the servicer: binding, health, reflection, signals, draining."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from bookrag_fast.errors import ConfigError
from bookrag_fast.library import Library
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2_grpc as rpc
from bookrag_fast.server.guards import Admission, GuardInterceptor
from bookrag_fast.server.servicer import BookragServicer, ServicerLimits

__all__ = ["SERVICE", "Address", "Server", "ServerConfig", "serve"]

log = logging.getLogger("bookrag_fast.server")

SERVICE: str = pb.DESCRIPTOR.services_by_name["BookRAG"].full_name
_NOTICE_S = 0.1  # between NOT_SERVING and the end of health watches: time to hear of it


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How to serve. Port 0 lets the system choose a free one."""

    host: str = "127.0.0.1"
    port: int = 0
    max_calls: int = 64  # calls in work at once; more are refused with RESOURCE_EXHAUSTED
    max_message_bytes: int = 16 << 20  # of one message received; uploads come in chunks
    grace_s: float = 10.0  # how long calls in work may go on after a stop is asked for
    limits: ServicerLimits = field(default_factory=ServicerLimits)


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class Server:
    """A BookRAG server; ``async with Server(library) as server: server.address``.

    The library stays the caller's: it is neither opened nor closed here.
    """

    def __init__(self, library: Library, config: ServerConfig | None = None) -> None:
        self._library = library
        self.config = config or ServerConfig()
        self._admission = Admission(self.config.max_calls)
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None
        self.address: Address | None = None

    async def start(self) -> Address:
        """Binds and serves.

        Raises:
            ConfigError: the address cannot be bound.
        """
        config = self.config
        server = grpc.aio.server(
            interceptors=[GuardInterceptor(self._admission)],
            # Above the admission's bound, which answers better; this one bounds the rest:
            # health watches, reflection, and calls on their way to being refused.
            maximum_concurrent_rpcs=config.max_calls * 2 + 64,
            options=[
                ("grpc.so_reuseport", 0),  # else two servers would share a port unnoticed
                ("grpc.max_receive_message_length", config.max_message_bytes),
                ("grpc.max_send_message_length", -1),
                # Notice a vanished client, so that its work is cancelled.
                ("grpc.keepalive_time_ms", 30_000),
                ("grpc.keepalive_timeout_ms", 10_000),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
            ],
        )
        servicer = BookragServicer(self._library, config.limits)
        rpc.add_BookRAGServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection.enable_server_reflection(
            (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
        wanted = Address(config.host, config.port)
        try:
            port = server.add_insecure_port(str(wanted))
        except RuntimeError:
            port = 0
        if port == 0:
            raise ConfigError(
                f"cannot listen on {wanted}",
                "is the port taken, or the address not this machine's? Try --port 0",
            )
        self.address = Address(config.host, port)
        if not self.address.loopback:
            log.warning(
                "listening on %s without TLS or authentication: everyone who reaches this "
                "address can read the books and change the shelf",
                self.address,
            )
        await server.start()
        self._server = server
        for service in ("", SERVICE):
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
        return self.address

    async def stop(self, grace_s: float | None = None) -> None:
        """Says NOT_SERVING, refuses new calls, lets those in work finish within the grace."""
        if self._server is None:
            return
        server, self._server = self._server, None
        grace = self.config.grace_s if grace_s is None else grace_s
        self._admission.draining = True
        await self._health.enter_graceful_shutdown()
        await asyncio.sleep(min(_NOTICE_S, grace))
        self._admission.end_standing()
        if self._admission.running:
            log.info("draining: %d calls in work, at most %g s", self._admission.running, grace)
        await server.stop(grace or None)

    async def __aenter__(self) -> Server:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


async def serve(
    library: Library,
    config: ServerConfig | None = None,
    *,
    ready: Callable[[Address], None] | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT, then drains. A second signal ends the grace at once.

    Args:
        ready: called once with the bound address.
    """
    loop = asyncio.get_running_loop()
    first, second = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (second if first.is_set() else first).set()

    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, on_signal)
    server = Server(library, config)
    try:
        address = await server.start()
        log.info("serving on %s", address)
        if ready is not None:
            ready(address)
        await first.wait()
        log.info("stopping")
        inner = server._server
        stopping = asyncio.ensure_future(server.stop())
        hurry = asyncio.ensure_future(second.wait())
        await asyncio.wait([stopping, hurry], return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done() and inner is not None:
            await inner.stop(None)
        await stopping
        hurry.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await hurry
        log.info("stopped")
    finally:
        await server.stop(0)
        for number in signals:
            loop.remove_signal_handler(number)
