"""The gRPC service bookrag.v1 and its typed clients.

>>> from bookrag_fast.server import Client
>>> with Client("127.0.0.1:50051") as client:
...     client.search("What is the default damping?")[0].pages
"""

from __future__ import annotations

from bookrag_fast.server.app import Address, Server, ServerConfig, serve
from bookrag_fast.server.client import AsyncClient, Client
from bookrag_fast.server.errors import (
    OverloadedError,
    PathNotAllowedError,
    RemoteError,
    ServerUnavailableError,
)
from bookrag_fast.server.servicer import ServicerLimits

__all__ = [
    "Address",
    "AsyncClient",
    "Client",
    "OverloadedError",
    "PathNotAllowedError",
    "RemoteError",
    "Server",
    "ServerConfig",
    "ServerUnavailableError",
    "ServicerLimits",
    "serve",
]
