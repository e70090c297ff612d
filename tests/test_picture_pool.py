"""The pool of workers that look at pictures of pages, with a worker that needs no models."""

from __future__ import annotations

from pathlib import Path

import pytest

from bookrag_fast.document.pictures.jobs import PageJob
from bookrag_fast.document.pictures.pool import PicturePool, Task, UnavailableError

# Only the first `room` of them come up.
WORKER = """
import os, time
from bookrag_fast.document.pictures.worker import serve

def load(settings):
    for k in range(settings["room"]):
        try:
            os.close(os.open(f"{settings['folder']}/{k}", os.O_CREAT | os.O_EXCL))
            return answer
        except FileExistsError:
            pass
    while settings["room"] and not os.path.exists(f"{settings['folder']}/up"):
        time.sleep(0.01)
    os._exit(9)

def answer(job):
    open(os.path.dirname(job.path) + "/up", "w").close()
    time.sleep(0.2)
    return {"index": job.index}

serve(load, remedy="")
"""


def task(folder: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> Task[int]:
    (folder / "small_worker.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    settings = {"room": room, "folder": str(folder)}
    return Task("OCR", "ocr", "small_worker", settings, lambda a: int(a["index"]), 3, 30.0)


def jobs(folder: Path) -> list[PageJob]:
    return [PageJob("pdf", str(folder / "b.pdf"), None, k, 9.0, 9.0) for k in range(12)]


def test_workers_that_find_no_room_leave_the_pages_to_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PicturePool(task(tmp_path, monkeypatch, room=1)) as pool:
        found = [(job.index, outcome) for job, outcome in pool.read(jobs(tmp_path))]
        assert len(pool._workers) == 1
    assert sorted(found, key=lambda f: f[0]) == [(k, k) for k in range(12)]


def test_no_worker_comes_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        PicturePool(task(tmp_path, monkeypatch, room=0)) as pool,
        pytest.raises(UnavailableError, match="ended before it could read"),
    ):
        list(pool.read(jobs(tmp_path)))
