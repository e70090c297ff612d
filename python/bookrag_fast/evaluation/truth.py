"""True section trees: JSON files beside their PDFs, or the PDFs' own bookmarks.

A truth file is one JSON object::

    {"doc": "manual.pdf", "levels_reliable": true,
     "entries": [{"title": "1 Start", "level": 1, "page": 3}, …]}

``entries`` are the headings in document order, ``page`` physical and 1-based. ``doc`` is the PDF,
relative to the truth file's folder or the one above it; without it the PDF is the file of the
same name. ``levels_reliable: false`` says that levels and parents are not to be compared; a list
``INDEX.json`` of {"doc", "levels_reliable"} in the folder says so, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bookrag_fast.document.model import Document
from bookrag_fast.errors import BookragError, InvalidArgumentError, TooLargeError
from bookrag_fast.evaluation.scores import Heading
from bookrag_fast.index.outline import usable_entries

__all__ = ["Truth", "find_truths", "outline_truth"]

MAX_BYTES = 32 << 20
MAX_ENTRIES = 100_000
_INDEX = "INDEX.json"
_FORMAT = '{"entries": [{"title": "1 Start", "level": 1, "page": 3}, …]} is wanted'


@dataclass(frozen=True, slots=True)
class Truth:
    """A document and its true headings; None when its own outline is to be the truth.

    ``error`` says why there is no truth for the document: it fails alone.
    """

    document: Path
    headings: tuple[Heading, ...] | None
    levels_reliable: bool = True
    error: BookragError | None = None


def find_truths(paths: Sequence[Path], *, from_outline: bool = False) -> list[Truth]:
    """The documents to measure, in the order of their paths.

    Args:
        paths: folders, truth files or PDFs.
        from_outline: take PDFs and their bookmarks instead of truth files.

    Raises:
        InvalidArgumentError: a path does not exist, or there is nothing to measure.
    """
    out: list[Truth] = []
    for path in paths:
        if not path.exists():
            raise InvalidArgumentError(f"there is no {path}", "check the path")
        if from_outline:
            pdfs = sorted(path.rglob("*.pdf")) if path.is_dir() else [path]
            out += [Truth(pdf, None) for pdf in pdfs]
            continue
        files = sorted(path.glob("*.json")) if path.is_dir() else [path.with_suffix(".json")]
        out += [_read(file) for file in files if file.name != _INDEX]
    if not out:
        what = "PDF" if from_outline else "truth file (*.json)"
        raise InvalidArgumentError(
            f"no {what} is in {', '.join(map(str, paths))}", "`bookrag eval trees --help` says more"
        )
    return out


def outline_truth(document: Document) -> tuple[Heading, ...]:
    """The bookmarks of a PDF as truth, without those that lead nowhere or repeat another.

    Raises:
        InvalidArgumentError: there are none, or they are no table of contents.
    """
    entries, warnings = usable_entries(document)
    seen = dict.fromkeys(Heading(e.title, e.level, e.page) for e in entries)
    if not seen:
        why = warnings[-1] if warnings else "it has none"
        raise InvalidArgumentError(
            f"{document.name}: its outline cannot be the truth: {why}",
            "give a truth file, or leave the document out",
        )
    return tuple(seen)


def _read(file: Path) -> Truth:
    try:
        found = _loaded(file)
        entries = found.get("entries")
        if not isinstance(entries, list) or not entries:
            raise _wrong(file, "it has no entries")
        if len(entries) > MAX_ENTRIES:
            raise TooLargeError(
                f"{file} has {len(entries):,} entries, the limit is {MAX_ENTRIES:,}"
            )
        headings = tuple(_heading(file, k, entry) for k, entry in enumerate(entries, 1))
        document = _document_of(file, found.get("doc"))
        reliable = found.get("levels_reliable")
        if reliable is None:
            reliable = _indexed_reliable(file.with_name(_INDEX), document.name)
        return Truth(document, headings, bool(reliable))
    except BookragError as error:
        return Truth(file, None, error=error)


def _loaded(file: Path) -> dict[str, Any]:
    try:
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise TooLargeError(f"{file} has {size:,} bytes, the limit is {MAX_BYTES:,}")
        found = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InvalidArgumentError(
            f"cannot read the truth file {file}: {error.strerror or error}",
            "give the PDF's headings in it, or use --truth outline",
        ) from error
    except (ValueError, RecursionError) as error:
        raise _wrong(file, f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise _wrong(file, "not an object")
    return found


def _wrong(file: Path, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{file} is no truth file: {why}", _FORMAT)


def _heading(file: Path, number: int, entry: Any) -> Heading:
    if not isinstance(entry, dict):
        raise _wrong(file, f"entry {number} is not an object")
    title, level, page = entry.get("title"), entry.get("level"), entry.get("page")
    if not isinstance(title, str) or not title.strip():
        raise _wrong(file, f"entry {number} has no title")
    for name, value in (("level", level), ("page", page)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise _wrong(file, f"the {name} of entry {number} is {value!r}, not a number from 1")
    assert isinstance(level, int)
    assert isinstance(page, int)
    return Heading(title, level, page)


def _document_of(file: Path, named: Any) -> Path:
    name = named if isinstance(named, str) and named else f"{file.stem}.pdf"
    places = (file.parent / name, file.parent.parent / name)
    for place in places:
        if place.is_file():
            return place
    raise InvalidArgumentError(
        f"{file}: there is no document {name} in its folder or the one above",
        'name it in the truth file as "doc"',
    )


def _indexed_reliable(index: Path, name: str) -> bool:
    """What an index beside the truth files says of the levels; they are good where it is silent."""
    if not index.is_file() or index.stat().st_size > MAX_BYTES:
        return True
    try:
        rows = json.loads(index.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return True
    for row in rows if isinstance(rows, Iterable) else ():
        if isinstance(row, dict) and Path(str(row.get("doc", ""))).name == name:
            return row.get("levels_reliable") is not False
    return True
