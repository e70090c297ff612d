"""A page to be looked at by a process of its own, and what is said when that fails."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PageFailure", "PageJob"]


@dataclass(frozen=True, slots=True)
class PageJob:
    """A page to read: ``index`` is 0-based, ``kind`` is "pdf" or "image"; the size in points as
    displayed."""

    kind: str
    path: str
    password: str | None
    index: int
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class PageFailure:
    """Why a page could not be read; the others are."""

    reason: str
