"""Where the bytes of IndexBook come from: a bounded upload, or a file that the server may read."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from bookrag_fast.errors import InvalidArgumentError, LibraryError, TooLargeError
from bookrag_fast.server.errors import PathNotAllowedError
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb

__all__ = ["allowed_file", "next_part", "receive"]

_NAME_BYTES = 255  # the limit of every common file system


def allowed_file(path: str, roots: Sequence[Path]) -> Path:
    """The real path of a server-side file, if it lies in one of the allowed folders.

    Symlinks are resolved before the comparison, and whether a file exists is told only inside
    the allowed folders.

    Args:
        path: as the client sent it.
        roots: allowed folders, already resolved.
    """
    if not path or "\0" in path:
        raise InvalidArgumentError("the path is empty or has a NUL character")
    try:
        real = Path(path).resolve()
    except (OSError, RuntimeError):  # RuntimeError: a loop of symlinks, before Python 3.13
        raise _refused(path) from None
    if not any(real.is_relative_to(root) for root in roots):
        raise _refused(path)
    try:
        readable = real.is_file()  # also refuses devices and pipes, which never end
    except OSError:  # a name too long, or a folder that may not be searched
        readable = False
    if not readable:
        raise InvalidArgumentError(f"{path} is not a file on the server")
    return real


def _refused(path: str) -> PathNotAllowedError:
    return PathNotAllowedError(
        f"the server may not read {path}",
        "send the file's bytes, or start the server with --allow-path FOLDER",
    )


def safe_name(name: str) -> str:
    """The upload's file name, refused if it is more than a name."""
    plain = PureWindowsPath(PurePosixPath(name).name).name
    if not name or plain != name or name in {".", ".."}:
        raise InvalidArgumentError(
            f"the upload's name {name!r} is not a plain file name", "leave out the folders"
        )
    if any(ord(c) < 32 or ord(c) == 127 for c in name):
        raise InvalidArgumentError("the upload's name has control characters")
    if len(name.encode("utf-8")) > _NAME_BYTES:
        raise InvalidArgumentError(f"the upload's name is longer than {_NAME_BYTES} bytes")
    return name


async def next_part(
    requests: AsyncIterator[pb.IndexBookRequest], idle_s: float
) -> pb.IndexBookRequest | None:
    """The next message, None at the end; a client that stalls does not hold its place for ever."""
    try:
        return await asyncio.wait_for(anext(requests), idle_s)
    except StopAsyncIteration:
        return None
    except asyncio.TimeoutError:
        raise InvalidArgumentError(
            f"nothing was sent for {idle_s:g} s; the upload was given up"
        ) from None


async def receive(
    upload: pb.Upload,
    requests: AsyncIterator[pb.IndexBookRequest],
    folder: Path,
    *,
    limit: int,
    idle_s: float,
) -> Path:
    """Writes the chunks to a file in ``folder``; never holds more than one of them in memory.

    Raises:
        TooLargeError, InvalidArgumentError: what was sent is not what may be or was announced.
        LibraryError: the disk is full, or the file cannot be written.
    """
    path = folder / safe_name(upload.name)
    declared = upload.size if upload.HasField("size") else None
    if declared is not None and declared > limit:
        raise _too_large(declared, limit)
    digest = hashlib.sha256()
    received = 0
    try:
        with path.open("xb") as file:
            while (part := await next_part(requests, idle_s)) is not None:
                if part.WhichOneof("part") != "chunk":
                    raise InvalidArgumentError("after the header, every message must be a chunk")
                received += len(part.chunk)
                if received > limit:
                    raise _too_large(received, limit)
                digest.update(part.chunk)
                await asyncio.to_thread(file.write, part.chunk)
    except OSError as error:
        raise LibraryError(
            f"the server cannot keep the upload of {upload.name}: {error.strerror or error}",
            "free some space where the server keeps temporary files",
        ) from error
    if declared is not None and received != declared:
        raise InvalidArgumentError(
            f"the upload of {upload.name} has {received} bytes, {declared} were announced",
            "send the file again",
        )
    if upload.HasField("sha256") and digest.hexdigest() != upload.sha256.lower():
        raise InvalidArgumentError(
            f"the upload of {upload.name} does not have the announced SHA-256",
            "send the file again",
        )
    return path


def _too_large(size: int, limit: int) -> TooLargeError:
    return TooLargeError(
        f"the upload has {size} bytes or more, the server accepts {limit}",
        "start the server with a larger --max-upload-mb",
    )
