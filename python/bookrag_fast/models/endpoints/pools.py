"""Many connections in several pools: a pool looks through all its connections at every call."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import httpx2

__all__ = ["PooledTransport"]

_SIZE = 8  # connections of a pool; with 64 calls at once, a third less work a call than in one
_IDLE_S = 30.0


class PooledTransport(httpx2.AsyncBaseTransport):
    """Calls go to the pool with the fewest, so that few connections are open and all are used.
    How many calls there are at once is others' to limit.

    ``verify`` are the certificates to trust, or whether those of the system are.
    """

    def __init__(self, calls: int, verify: ssl.SSLContext | bool) -> None:
        count = -(-calls // _SIZE)
        if verify is True:  # made once: reading the system's certificates takes a while
            verify = httpx2.create_ssl_context(trust_env=False)
        self._pools = [_Pool(verify) for _ in range(count)]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        pool = min(self._pools, key=lambda pool: pool.calls)
        pool.calls += 1
        try:
            response = await pool.transport.handle_async_request(request)
        except BaseException:
            pool.calls -= 1
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Counted(response.stream, pool)
        return response

    async def aclose(self) -> None:
        for pool in self._pools:
            await pool.transport.aclose()


class _Pool:
    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self.calls = 0
        self.transport = httpx2.AsyncHTTPTransport(
            verify=verify,
            trust_env=False,
            limits=httpx2.Limits(max_keepalive_connections=_SIZE, keepalive_expiry=_IDLE_S),
        )


class _Counted(httpx2.AsyncByteStream):
    """A reply whose call is over when it is closed, which may be said twice."""

    def __init__(self, stream: httpx2.AsyncByteStream, pool: _Pool) -> None:
        self._stream = stream
        self._pool: _Pool | None = pool

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            if self._pool is not None:
                self._pool.calls -= 1
                self._pool = None
