"""Errors of the wire, and the one table that says which gRPC status an error becomes.

Server side, ``status_of`` turns an exception into a status; client side, ``from_rpc_error`` turns
a failed call back into the exception class it was, by the ``bookrag-code`` in its trailers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import grpc

from bookrag_fast import errors as e

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "CODE_KEY",
    "HINT_KEY",
    "OverloadedError",
    "PathNotAllowedError",
    "RemoteError",
    "ServerUnavailableError",
    "details_of",
    "from_rpc_error",
    "status_of",
    "trailers_of",
]

CODE_KEY = "bookrag-code"
HINT_KEY = "bookrag-hint-bin"  # -bin: metadata is ASCII, hints are UTF-8
# Of a message and of a hint. All headers together may have 8 KiB, and each byte of a message
# that is not ASCII takes three there.
_MOST_BYTES = 1500


class PathNotAllowedError(e.BookragError):
    """The server was asked for a file outside the folders that it may read."""

    code = "path_not_allowed"
    exit_code = 50


class OverloadedError(e.BookragError):
    """The server works on as many calls as it may; try again later."""

    code = "overloaded"
    exit_code = 51


class ServerUnavailableError(e.BookragError):
    """The server cannot be reached, or is shutting down."""

    code = "unavailable"
    exit_code = 52


class RemoteError(e.BookragError):
    """The server failed in a way it did not foresee, or sent what this client cannot read."""

    code = "remote"
    exit_code = 53


_STATUS: dict[type[e.BookragError], grpc.StatusCode] = {
    # The nearest class in the exception's ancestry decides.
    e.BookragError: grpc.StatusCode.INTERNAL,
    e.InvalidArgumentError: grpc.StatusCode.INVALID_ARGUMENT,
    e.TooLargeError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    e.ConfigError: grpc.StatusCode.FAILED_PRECONDITION,
    e.DocumentError: grpc.StatusCode.INVALID_ARGUMENT,  # not a PDF, empty, damaged, no text …
    e.EncryptedPdfError: grpc.StatusCode.FAILED_PRECONDITION,
    e.WrongPasswordError: grpc.StatusCode.INVALID_ARGUMENT,
    e.LibraryError: grpc.StatusCode.FAILED_PRECONDITION,
    e.UnknownBookError: grpc.StatusCode.NOT_FOUND,
    e.UnknownNodeError: grpc.StatusCode.NOT_FOUND,
    e.ShelfBusyError: grpc.StatusCode.UNAVAILABLE,
    e.IndexStoreError: grpc.StatusCode.INTERNAL,
    e.CorruptIndexError: grpc.StatusCode.DATA_LOSS,
    e.NewerIndexError: grpc.StatusCode.FAILED_PRECONDITION,
    e.ModelMismatchError: grpc.StatusCode.FAILED_PRECONDITION,
    e.ModelError: grpc.StatusCode.UNAVAILABLE,
    e.ModelNotFoundError: grpc.StatusCode.FAILED_PRECONDITION,
    e.ModelRefusedError: grpc.StatusCode.FAILED_PRECONDITION,
    e.SpendingLimitError: grpc.StatusCode.FAILED_PRECONDITION,  # no use in trying again as it is
    e.QueryError: grpc.StatusCode.INVALID_ARGUMENT,
    e.DeadlineError: grpc.StatusCode.DEADLINE_EXCEEDED,
    PathNotAllowedError: grpc.StatusCode.PERMISSION_DENIED,
    OverloadedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ServerUnavailableError: grpc.StatusCode.UNAVAILABLE,
    RemoteError: grpc.StatusCode.INTERNAL,
}


def status_of(error: e.BookragError) -> grpc.StatusCode:
    """The gRPC status of an error, by its nearest ancestor in the table."""
    return next(_STATUS[c] for c in type(error).__mro__ if c in _STATUS)


def details_of(error: e.BookragError) -> str:
    """The message, as long as it may be: a status travels in headers, which gRPC bounds."""
    return _cut(error.message)


def _cut(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= _MOST_BYTES:
        return data.decode()
    return data[:_MOST_BYTES].decode("utf-8", "ignore") + "…"


def trailers_of(error: e.BookragError) -> tuple[tuple[str, str | bytes], ...]:
    """Trailing metadata that lets a client rebuild the error."""
    code: tuple[str, str | bytes] = (CODE_KEY, error.code)
    if not error.hint:
        return (code,)
    return (code, (HINT_KEY, _cut(error.hint).encode()))


def _classes(base: type[e.BookragError]) -> Iterable[type[e.BookragError]]:
    yield base
    for derived in base.__subclasses__():
        yield from _classes(derived)


def from_rpc_error(error: Any) -> e.BookragError:
    """The exception that a failed call stands for.

    Args:
        error: a ``grpc.RpcError`` of a sync or an aio channel. Both also have the methods of
            ``grpc.Call``, which the type of the one and the signature of the other hide.
    """
    status: grpc.StatusCode = error.code()
    message: str = error.details() or status.name.lower().replace("_", " ")
    trailers = _as_dict(error.trailing_metadata() or ())
    code = trailers.get(CODE_KEY)
    if code is not None:
        hint = trailers.get(HINT_KEY, b"")
        text = hint.decode("utf-8", "replace") if isinstance(hint, bytes) else hint
        for known in _classes(e.BookragError):
            if known.code == code and known is not e.BookragError:
                return known(message, text)
        return RemoteError(message, text)
    # No code: gRPC itself ended the call, on this side or the other.
    if status is grpc.StatusCode.DEADLINE_EXCEEDED:
        return e.DeadlineError(
            "the deadline passed before the server answered", "allow more time with timeout="
        )
    if status is grpc.StatusCode.UNAVAILABLE:
        return ServerUnavailableError(
            f"the server cannot be reached: {message}",
            "is `bookrag serve` running at this address?",
        )
    if status is grpc.StatusCode.RESOURCE_EXHAUSTED:
        if "larger than" in message:  # gRPC's own size check, of a message in or out
            return e.TooLargeError(message)
        return OverloadedError(message, "try again later")
    if status is grpc.StatusCode.UNIMPLEMENTED:
        return RemoteError(
            f"the server does not know this call: {message}",
            "upgrade the server to the client's version",
        )
    if status is grpc.StatusCode.INVALID_ARGUMENT:
        return e.InvalidArgumentError(message)
    return RemoteError(f"{status.name}: {message}")


def _as_dict(metadata: Sequence[tuple[str, str | bytes]] | Any) -> dict[str, str | bytes]:
    return dict(iter(metadata))  # pairs; dict(metadata) would take grpc.aio's for a mapping
