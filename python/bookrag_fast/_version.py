"""The installed version, from the package's own metadata."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("bookrag_fast")
except PackageNotFoundError:  # a source tree on sys.path that was never installed
    __version__ = "0+unknown"
