"""Shared fixtures: the sample book on a shelf, and the optional evaluation data."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from bookrag_fast import Book, Library

# How long an example takes is the machine's affair. All else is as Hypothesis has it, which in CI
# draws the same examples every time.
settings.register_profile(
    "untimed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")

DATA = Path(__file__).parent / "data"
HANDBOOK = DATA / "handbook.pdf"
TRUTH: dict[str, Any] = json.loads((DATA / "handbook.truth.json").read_text("utf-8"))


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """A shelf with the sample book; tests that change a shelf make their own."""
    with Library.open(tmp_path_factory.mktemp("shelf")) as lib:
        lib.add(HANDBOOK)
        yield lib


@pytest.fixture(scope="session")
def handbook(shelf: Library) -> Book:
    return shelf.books()[0]


@pytest.fixture
def own(tmp_path: Path, shelf: Library) -> Iterator[Library]:
    """A copy of the shelf with the sample book, to be changed at will."""
    target = tmp_path / "shelf"
    shutil.copytree(shelf.folder, target)
    with Library.open(target) as lib:
        yield lib


@pytest.fixture(scope="session")
def evaluation_data() -> Path:
    """Real documents with known answers; they are no part of the project."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("BOOKRAG_TEST_DATA", beside))
    if not (folder / "qa.jsonl").is_file():
        pytest.skip("no evaluation documents here (set BOOKRAG_TEST_DATA)")
    return folder


@pytest.fixture(autouse=True, scope="session")
def loopback_only() -> Iterator[None]:
    """Nothing in the tests may reach beyond this machine."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = str(address[0])  # type: ignore[index]
            if not (host.startswith("127.") or host in ("::1", "localhost")):
                raise OSError(f"a test tried to reach {host}")
        real(self, address)  # type: ignore[arg-type]

    socket.socket.connect = connect  # type: ignore[method-assign]
    yield
    socket.socket.connect = real  # type: ignore[method-assign]


def heed_interrupts() -> None:
    """For a process to be started: SIGINT ends it, even where the tests run in the background of a
    shell, which has its jobs ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
