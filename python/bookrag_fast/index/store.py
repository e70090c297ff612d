"""A BookIndex on disk: one immutable folder, written beside, fsynced, renamed.

``manifest.json`` carries the format version, the source's sha256, the embedding model, counts and
a checksum of every table and of itself. A reader distrusts all of it: sizes and checksums are
compared before anything is parsed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from bookrag_fast._version import __version__
from bookrag_fast.errors import (
    BookragError,
    CorruptIndexError,
    IndexStoreError,
    NewerIndexError,
)
from bookrag_fast.index.book_index import BookIndex, BookMeta
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.index.tables import ADDED, OPTIONAL, SCHEMAS, from_tables, to_tables
from bookrag_fast.models.protocols import EmbedderInfo

__all__ = ["FORMAT", "load_book", "read_meta", "remove_leftovers", "save_book"]

FORMAT = 3  # 1 had no confidence and no source, 2 no summaries and no models
_MANIFEST = "manifest.json"
_PARTIAL = ".partial-"
_MANIFEST_LIMIT = 1 << 20  # bytes; a real one has a few thousand


def save_book(index: BookIndex, folder: Path) -> None:
    """Write a book to a folder that does not exist yet; it appears complete or not at all.

    Raises:
        IndexStoreError: the folder exists, or the disk is full or not writable. Nothing is left
            behind.
    """
    if folder.exists():
        raise IndexStoreError(f"{folder} exists already; a saved book is never overwritten")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _partial_folder(folder.parent) as partial:
            files = {
                f"{name}.arrow": _write_table(partial / f"{name}.arrow", table)
                for name, table in to_tables(index).items()
            }
            _write_manifest(partial / _MANIFEST, index, files)
            _sync(partial)
            partial.rename(folder)
            _sync(folder.parent)
    except OSError as error:
        raise IndexStoreError(
            f"cannot write the index {folder}: {error.strerror or error}",
            "free some space or choose another --library, then index again",
        ) from error


def load_book(folder: Path) -> BookIndex:
    """Open a saved book; its numeric tables stay memory-mapped.

    Raises:
        NewerIndexError: written by a later format.
        CorruptIndexError: a file is missing, cut short, changed, or contradicts another.
    """
    manifest = _read_manifest(folder)
    tables: dict[str, pa.Table] = {}
    for name in SCHEMAS:
        entry = manifest["files"].get(f"{name}.arrow")
        if entry is None and name in OPTIONAL:
            tables[name] = pa.schema(list(SCHEMAS[name].items())).empty_table()
            continue
        if entry is None:
            raise _corrupt(folder, f"the manifest does not list {name}.arrow")
        tables[name] = _read_table(folder, name, entry, manifest["format"])
    try:
        return from_tables(tables, _meta(manifest["book"]))
    except (BookragError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise _corrupt(folder, str(error)) from error


def read_meta(folder: Path) -> BookMeta:
    """Only what the manifest says of a book; same errors as `load_book`."""
    return _meta(_read_manifest(folder)["book"])


def remove_leftovers(parent: Path) -> list[Path]:
    """Delete what killed writers left behind. A folder whose writer lives is locked and stays."""
    removed = []
    for partial in parent.glob(f"{_PARTIAL}*"):
        # Refused: its writer is alive, or someone else removed it first.
        with contextlib.suppress(OSError), _held(partial):
            shutil.rmtree(partial, ignore_errors=True)
            removed.append(partial)
    return removed


# --- writing ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _partial_folder(parent: Path) -> Iterator[Path]:
    """A locked folder to write into; gone afterwards unless it was renamed."""
    while True:
        partial = parent / f"{_PARTIAL}{uuid.uuid4().hex}"
        partial.mkdir()
        try:
            lock = _held(partial)
            lock.__enter__()
        except (BlockingIOError, FileNotFoundError):
            continue  # a cleaner saw the folder before it was locked
        try:
            if partial.exists():
                yield partial
                return
        finally:  # also after an interrupt: leave nothing half-written
            shutil.rmtree(partial, ignore_errors=True)
            lock.__exit__(None, None, None)


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """An exclusive lock on a folder that the system drops when this process dies."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _write_table(path: Path, table: pa.Table) -> dict[str, Any]:
    """Arrow IPC file format, one record batch, so that columns map in one piece."""
    with path.open("xb") as out:
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table.combine_chunks(), max_chunksize=max(1, table.num_rows))
        out.flush()
        os.fsync(out.fileno())
    return {"bytes": path.stat().st_size, "rows": table.num_rows, "sha256": _sha256(path)}


def _write_manifest(path: Path, index: BookIndex, files: dict[str, Any]) -> None:
    content = {
        "format": FORMAT,
        "written_by": f"bookrag_fast {__version__}",
        "book": {**asdict(index.meta), "models": [use.to_json() for use in index.meta.models]},
        "counts": {
            "pages": len(index.pages),
            "nodes": len(index.nodes),
            "entities": len(index.entities),
            "relations": len(index.relations),
            "merges": len(index.merges),
        },
        "files": files,
    }
    content["checksum"] = _checksum(content)
    with path.open("x", encoding="utf-8") as out:
        json.dump(content, out, ensure_ascii=False, indent=1)
        out.flush()
        os.fsync(out.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _checksum(manifest: dict[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    canonical = json.dumps(rest, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as data:
        while chunk := data.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


# --- reading ----------------------------------------------------------------------------------


def _corrupt(folder: Path, why: str) -> CorruptIndexError:
    return CorruptIndexError(
        f"the saved index {folder} is corrupt: {why}",
        "index the file again with `bookrag index FILE`: it replaces the damaged book",
    )


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / _MANIFEST
    try:
        if path.stat().st_size > _MANIFEST_LIMIT:
            raise _corrupt(folder, f"{_MANIFEST} has {path.stat().st_size} bytes")
        manifest: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _corrupt(folder, f"{_MANIFEST}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise _corrupt(folder, f"{_MANIFEST} is not JSON: {error}") from error
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(version, int):
        raise _corrupt(folder, f"{_MANIFEST} names no format version")
    if version > FORMAT:
        raise NewerIndexError(
            f"{folder} has index format {version}, written by "
            f"{str(manifest.get('written_by', 'a newer version'))[:80]}; this version reads up to "
            f"{FORMAT}",
            "upgrade with `pip install -U bookrag_fast`, or index the file again",
        )
    if manifest.get("checksum") != _checksum(manifest):
        raise _corrupt(folder, f"{_MANIFEST} does not match its checksum")
    if not isinstance(manifest.get("files"), dict) or not isinstance(manifest.get("book"), dict):
        raise _corrupt(folder, f"{_MANIFEST} is incomplete")
    return dict(manifest)


def _meta(book: dict[str, Any]) -> BookMeta:
    fields = dict(book)
    fields["embedder"] = EmbedderInfo(**fields["embedder"])
    fields["warnings"] = tuple(fields.get("warnings", ()))
    fields["models"] = tuple(ModelUse.from_json(use) for use in fields.get("models", ()))
    return BookMeta(**fields)


def _read_table(folder: Path, name: str, entry: dict[str, Any], version: int) -> pa.Table:
    path = folder / f"{name}.arrow"
    try:
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise _corrupt(folder, f"{path.name} has {size} bytes, {entry['bytes']} expected")
        if _sha256(path) != entry["sha256"]:
            raise _corrupt(folder, f"{path.name} does not match its checksum")
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
    except OSError as error:
        raise _corrupt(folder, f"{path.name}: {error.strerror or error}") from error
    except (pa.ArrowException, KeyError, TypeError) as error:
        raise _corrupt(folder, f"{path.name}: {error}") from error
    later = [column for column, since in ADDED.get(name, {}).items() if since > version]
    expected = [column for column in SCHEMAS[name] if column not in later]
    if list(table.schema.names) != expected or table.num_rows != entry["rows"]:
        raise _corrupt(folder, f"{path.name} does not have the columns and rows it should")
    for column in later:
        nothing = pa.nulls(table.num_rows, SCHEMAS[name][column])
        table = table.add_column(list(SCHEMAS[name]).index(column), column, nothing)
    return table
