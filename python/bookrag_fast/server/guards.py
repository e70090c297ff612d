"""What surrounds every call: errors to statuses, deadlines, admission, drain.

Each guard is an async context manager around the handler; one interceptor nests them in a fixed
order (outermost first):

1. ``_translate``    turns whatever leaves the inner ones into a status; nothing escapes it.
2. ``Admission``     refuses at once when too many calls run, before any work is done.
3. ``_deadline``     cancels the handler when the caller's deadline passes.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from bookrag_fast.errors import BookragError, DeadlineError, InvalidArgumentError
from bookrag_fast.server.errors import (
    CODE_KEY,
    OverloadedError,
    ServerUnavailableError,
    details_of,
    status_of,
    trailers_of,
)

__all__ = ["Admission", "GuardInterceptor"]

log = logging.getLogger("bookrag_fast.server")

_OURS = "/bookrag.v1."
Guard = Callable[[Any, str], AbstractAsyncContextManager[None]]


class Admission:
    """Counts the calls in work and bounds them.

    Calls beyond the bound are refused rather than queued: a queue hides the overload from the
    caller, who could go elsewhere. Standing streams that do no work (health Watch, reflection)
    are not counted, so that watchers cannot starve the service, but they are known here, so that
    a draining server can end them.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._running = 0
        self._standing: set[asyncio.Task[Any]] = set()
        self.draining = False  # set to refuse new calls; those in work go on

    @property
    def running(self) -> int:
        """BookRAG calls in work."""
        return self._running

    def end_standing(self) -> None:
        """Ends the standing streams, which would otherwise hold up a draining server."""
        for task in tuple(self._standing):
            task.cancel()

    @asynccontextmanager
    async def guard(self, context: Any, method: str) -> AsyncIterator[None]:
        if not method.startswith(_OURS):
            async with self._stand():
                yield
            return
        if self.draining:
            raise ServerUnavailableError("the server is shutting down", "try another server")
        if self._running >= self._limit:
            raise OverloadedError(
                f"the server already works on {self._running} calls", "try again later"
            )
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    @asynccontextmanager
    async def _stand(self) -> AsyncIterator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._standing.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if self.draining:
                _uncancel(task)
                raise ServerUnavailableError("the server is shutting down") from None
            raise
        finally:
            self._standing.discard(task)


@asynccontextmanager
async def _deadline(context: Any, method: str) -> AsyncIterator[None]:
    """asyncio.timeout for Python 3.10 too: cancels the handler, which cancels the work.

    gRPC ends the call at the deadline by itself, but the client's word alone would then decide
    the status; this says DEADLINE_EXCEEDED on the server's side as well, with our code.
    """
    left = context.time_remaining()
    task = asyncio.current_task()
    if left is None or task is None:
        yield
        return
    expired = False

    def expire() -> None:
        nonlocal expired
        expired = True
        task.cancel()

    timer = asyncio.get_running_loop().call_later(max(0.0, left), expire)
    try:
        yield
    except asyncio.CancelledError:
        if not expired:
            raise
        _uncancel(task)
        raise DeadlineError(
            "the deadline passed; the work was cancelled", "allow more time"
        ) from None
    finally:
        timer.cancel()


def _uncancel(task: asyncio.Task[Any]) -> None:
    uncancel = getattr(task, "uncancel", None)  # Python 3.11
    if uncancel is not None:
        uncancel()


@asynccontextmanager
async def _translate(context: Any, method: str) -> AsyncIterator[None]:
    """Foreseen errors keep their words; of others the caller learns only an id for the log."""
    try:
        yield
    except (asyncio.CancelledError, grpc.aio.AbortError, grpc.aio.BaseError):
        raise
    except BookragError as error:
        log.info("%s: %s: %s", method, error.code, details_of(error))
        await context.abort(status_of(error), details_of(error), trailers_of(error))
    except Exception:
        incident = secrets.token_hex(4)
        log.exception("%s: unexpected error %s", method, incident)
        await context.abort(
            grpc.StatusCode.INTERNAL,
            f"internal error {incident}; the server's log has the details",
            ((CODE_KEY, "internal"),),
        )


class _Malformed:
    """What a request that protobuf cannot read is decoded to."""


def _lenient(decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Left alone, gRPC answers UNKNOWN with the Python exception and logs a traceback."""

    def decode_or_mark(data: bytes) -> Any:
        try:
            return decode(data)
        except DecodeError:
            return _Malformed()

    return decode_or_mark


def _readable(request: Any) -> Any:
    if isinstance(request, _Malformed):
        raise InvalidArgumentError("the request is not a readable protobuf message")
    return request


async def _each_readable(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _readable(request)


class GuardInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Puts the guards around every handler, of whatever arity."""

    def __init__(self, admission: Admission) -> None:
        self._guards: tuple[Guard, ...] = (_translate, admission.guard, _deadline)

    async def intercept_service(
        self,
        continuation: Callable[[Any], Awaitable[Any]],
        handler_call_details: Any,
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method: str = handler_call_details.method
        around = self._around
        if handler.response_streaming:

            async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
                act = handler.stream_stream if handler.request_streaming else handler.unary_stream
                async with around(context, method):
                    check = _each_readable if handler.request_streaming else _readable
                    result = act(check(request), context)
                    if hasattr(result, "__aiter__"):
                        # Closed here and now when the call is cancelled, not whenever the
                        # garbage collector comes by: closing is what stops the work.
                        async with aclosing(result):
                            async for response in result:
                                yield response
                    else:  # a coroutine that writes to the context itself (health Watch)
                        await result

            make = (
                grpc.stream_stream_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_stream_rpc_method_handler
            )
            return make(stream, _lenient(handler.request_deserializer), handler.response_serializer)

        async def unary(request: Any, context: Any) -> Any:
            act = handler.stream_unary if handler.request_streaming else handler.unary_unary
            async with around(context, method):
                check = _each_readable if handler.request_streaming else _readable
                return await act(check(request), context)

        make = (
            grpc.stream_unary_rpc_method_handler
            if handler.request_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        return make(unary, _lenient(handler.request_deserializer), handler.response_serializer)

    @asynccontextmanager
    async def _around(self, context: Any, method: str) -> AsyncIterator[None]:
        first, second, third = (guard(context, method) for guard in self._guards)
        async with first, second, third:
            yield
