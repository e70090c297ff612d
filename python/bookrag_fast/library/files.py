"""Files to be indexed: their size and identity, checked before anything is read into memory."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bookrag_fast.errors import (
    BookragError,
    DocumentError,
    EmptyDocumentError,
    TooLargeError,
)

__all__ = ["book_id_of", "checked_sha256", "remembered", "sha256_of"]

_BOOK_ID_CHARS = 12  # of the content's sha256: 48 bits keep a shelf of a million books apart


def checked_sha256(path: Path, *, max_mb: int) -> str:
    """sha256 of a file that can be indexed: there, no folder, not empty, not beyond the limit.

    Raises:
        DocumentError, EmptyDocumentError, TooLargeError.
    """
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise DocumentError(f"{path} is a folder", "name the files in it")
        if not path.is_file():  # a pipe or device may never end
            raise DocumentError(f"{path} is not a regular file", "save it to a file first")
        limit = max_mb << 20
        if size > limit:
            raise TooLargeError(
                f"{path} has {size} bytes, more than {max_mb} MiB",
                "raise max_file_mb in the configuration to read it all the same",
            )
        if size == 0:
            raise EmptyDocumentError(f"{path} is empty", "copy the file again")
        return sha256_of(path)
    except (OSError, ValueError) as error:
        if isinstance(error, BookragError):
            raise
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise DocumentError(f"cannot read {path}: {why}", "check the path") from error


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as data:
        while chunk := data.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def book_id_of(sha256: str, pages: tuple[int, int | None] | None = None) -> str:
    """The file's digest cut short; where only some of its pages were read, one of both."""
    if pages is not None:
        sha256 = hashlib.sha256(f"{sha256}:{pages[0]}-{pages[1]}".encode()).hexdigest()
    return sha256[:_BOOK_ID_CHARS]


def remembered(path: Path) -> str | None:
    """A path as a saved book can hold it; None when its bytes are no text."""
    place = str(path.absolute())
    return place if place.isprintable() else None
