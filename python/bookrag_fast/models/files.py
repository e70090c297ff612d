"""Identity of model files: what a fingerprint in an index means."""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["fingerprint"]

_hashes: dict[tuple[str, int, int], str] = {}


def fingerprint(*paths: Path, settings: str = "") -> str:
    """ "size-hash": bytes of the files, and 16 hexadecimal digits of their SHA-256.

    ``settings`` is whatever else decides the vectors (pooling, prefixes). A file is read once a
    process and state (path, size, modification time). Raises OSError.
    """
    size = 0
    digests = [settings]
    for path in paths:
        stat = path.stat()
        size += stat.st_size
        key = (str(path), stat.st_size, stat.st_mtime_ns)
        if key not in _hashes:
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
            _hashes[key] = digest.hexdigest()
        digests.append(_hashes[key])
    if len(digests) == 2 and not settings:
        return f"{size}-{digests[1][:16]}"
    return f"{size}-{hashlib.sha256('|'.join(digests).encode()).hexdigest()[:16]}"
