"""Folders on the command line: the books in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bookrag_fast.errors import DocumentError

__all__ = ["expanded"]


def expanded(paths: Sequence[Path]) -> tuple[list[Path], list[tuple[Path, DocumentError]]]:
    """Files as they are, a folder as the files in it that can be read, by name, subfolders after.

    Returns also the folders in which there is none, each with the error that says so.
    """
    files: list[Path] = []
    problems: list[tuple[Path, DocumentError]] = []
    for path in paths:
        if not _is_folder(path):
            files.append(path)
            continue
        inside = list(_books_in(path))
        files += inside
        if not inside:
            error = DocumentError(
                f"the folder {path} has no file that can be read", "name the files themselves"
            )
            problems.append((path, error))
    return list(dict.fromkeys(files)), problems


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a NUL in the path, a name too long
        return False


def _books_in(folder: Path) -> Iterator[Path]:
    """Hidden files and folders are passed over, and so is JSON that no layout parser wrote: there
    may be any amount of it. Links to folders are not followed."""
    from bookrag_fast.document.formats.kinds import SUFFIXES, is_layout_json

    waiting = [folder]
    while waiting:
        try:
            entries = sorted(waiting.pop().iterdir())
        except OSError:  # no leave to look inside
            continue
        subfolders = []
        for entry in entries:
            suffix = entry.suffix.lower()
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                if not entry.is_symlink():
                    subfolders.append(entry)
            elif suffix in SUFFIXES and (suffix != ".json" or is_layout_json(entry)):
                yield entry
        waiting += reversed(subfolders)
