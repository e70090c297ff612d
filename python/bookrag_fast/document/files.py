"""A file before it is read: there, of a size that can be held, and its identity."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bookrag_fast.errors import DocumentError, EmptyDocumentError, TooLargeError

__all__ = ["file_bytes", "file_head", "file_sha256"]


def file_head(path: Path, length: int, *, most: int) -> tuple[int, bytes]:
    """Size in bytes of a file, and its first ``length`` bytes.

    Raises:
        DocumentError: there is no such file, it is no regular file, or it may not be read.
        EmptyDocumentError: it has no bytes.
        TooLargeError: it has more than ``most``.
    """
    try:
        if path.is_dir():
            raise DocumentError(
                f"{path} is a folder, not a file", "name the files inside it one by one"
            )
        size = path.stat().st_size
        if size == 0 and path.is_file():
            raise EmptyDocumentError(
                f"{path.name} is empty (0 bytes)", "copy or download the file again"
            )
        if not path.is_file():  # a pipe or device may never end
            raise DocumentError(f"{path} is not a regular file", "save it to a file first")
        if size > most:
            raise TooLargeError(
                f"{path.name} has {size:,} bytes, more than the limit of {most:,}",
                "split the file",
            )
        with path.open("rb") as file:
            return size, file.read(length)
    except FileNotFoundError:
        raise DocumentError(f"there is no file {path}", "check the path") from None
    except OSError as error:
        raise DocumentError(
            f"{path} cannot be read: {error.strerror or error}", "check its permissions"
        ) from None
    except ValueError:
        raise DocumentError(f"{str(path)!r} can be no path", "take the NUL out of it") from None


def file_bytes(path: Path, *, most: int) -> bytes:
    """A whole file; errors as for `file_head`."""
    file_head(path, 0, most=most)
    try:
        return path.read_bytes()
    except OSError as error:
        raise _changed(path, error) from None


def file_sha256(path: Path) -> str:
    """Of the file's bytes, hexadecimal.

    Raises:
        DocumentError: it is gone, or no file any more.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise _changed(path, error) from None
    return digest.hexdigest()


def _changed(path: Path, error: OSError) -> DocumentError:
    return DocumentError(
        f"{path} changed while it was being read: {error.strerror or error}",
        "wait until nothing writes to it, then read it again",
    )
