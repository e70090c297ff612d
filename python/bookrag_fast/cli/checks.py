"""What doctor looks at. A check never raises: what it runs into is its finding."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bookrag_fast.errors import BookragError

if TYPE_CHECKING:
    from bookrag_fast.config import Settings
    from bookrag_fast.models.doctor import Finding as ModelFinding

__all__ = ["ERROR", "OK", "WARNING", "Finding", "examine"]

OK, WARNING, ERROR = "ok", "warning", "error"
_LITTLE_SPACE = 1 << 30
_REINSTALL = "pip install --force-reinstall --no-deps bookrag-fast"


@dataclass(frozen=True, slots=True)
class Finding:
    """``level`` is "ok", "warning" or "error"; ``remedy`` is a command, or what else to do."""

    check: str
    level: str
    detail: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        return {
            "check": self.check,
            "level": self.level,
            "detail": self.detail,
            "remedy": self.remedy,
        }


def examine(folder: Path, embedder: str | None) -> Iterator[Finding]:
    """Every check, one after the other."""
    checks: list[tuple[str, Callable[[], Iterable[Finding]]]] = [
        ("python", _python),
        ("packages", _packages),
        ("core", _core),
        ("configuration", lambda: _configuration(embedder)),
        ("models", lambda: _models(folder, embedder)),
        ("ocr", _ocr),
        ("disk", lambda: _disk(folder)),
        ("shelf", lambda: _shelf(folder, embedder)),
    ]
    for name, check in checks:
        try:
            yield from check()
        except BookragError as error:
            yield Finding(name, ERROR, error.message, error.hint)
        except Exception as error:
            yield Finding(name, ERROR, f"{type(error).__name__}: {error}", _REINSTALL)


def _python() -> Iterator[Finding]:
    version = platform.python_version()
    where = f"{version} at {sys.executable} on {platform.system()} {platform.machine()}"
    yield Finding("python", OK, where)


def _packages() -> Iterator[Finding]:
    """Each requirement of ours is installed and not older than its lower bound."""
    from bookrag_fast._version import __version__

    missing, old, seen = [], [], []
    for line in importlib.metadata.requires("bookrag-fast") or ():
        requirement, _, marker = line.partition(";")
        # Platform markers mean onnxruntime, which has a check of its own; extras are optional.
        if "extra" in marker or "platform" in marker or "python_version" in marker:
            continue
        match = re.match(r"[A-Za-z0-9._-]+", requirement)
        if match is None:
            continue
        name = match.group()
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
            continue
        seen.append(f"{name} {found}")
        bound = re.search(r">=\s*([0-9.]+)", requirement)
        if bound is not None and _numbers(found) < _numbers(bound.group(1)):
            old.append(f"{name} {found} (needs {bound.group(1)})")
    if missing or old:
        wrong = [*(f"{name} is missing" for name in missing), *(f"{o} is too old" for o in old)]
        yield Finding("packages", ERROR, "; ".join(wrong), "pip install --upgrade bookrag-fast")
    else:
        yield Finding("packages", OK, f"bookrag-fast {__version__}; {', '.join(seen)}")


def _numbers(version: str) -> tuple[int, ...]:
    """(1, 76, 0) of "1.76.0rc1"; enough to compare with a lower bound."""
    return tuple(int(n) for n in re.findall(r"\d+", version.split("+")[0])[:3])


def _core() -> Iterator[Finding]:
    """The compiled core imports and computes what is known by hand.

    On the path 0 - 1 with damping 1/2 and the seed 0, p0 = 1/2 + p1/2 and p1 = p0/2, so that
    p = (2/3, 1/3).
    """
    try:
        from bookrag_fast import core
    except ImportError as error:
        remedy = "pip install --force-reinstall bookrag-fast, with gcc 12 or newer at hand"
        yield Finding("core", ERROR, f"cannot be imported: {error}", remedy)
        return
    import numpy as np

    graph = core.KnowledgeGraph(
        2, np.array([0], np.int32), np.array([1], np.int32), np.array([1.0], np.float32)
    )
    scores = core.personalized_pagerank(graph, np.array([0], np.int32), damping=0.5, tol=1e-6)
    best = core.skyline(np.array([[1, 0], [0, 1], [0, 0]], np.float32))
    if not np.allclose(scores, [2 / 3, 1 / 3], atol=1e-4) or best.tolist() != [0, 1]:
        detail = f"computes wrong values: PageRank {scores.tolist()}, skyline {best.tolist()}"
        yield Finding("core", ERROR, detail, _REINSTALL)
        return
    version = getattr(core, "__version__", "")
    detail = f"compiled core {version} ({core.isa()}) computes a known PageRank and skyline"
    yield Finding("core", OK, detail)


def _configuration(embedder: str | None) -> Iterator[Finding]:
    from bookrag_fast.config import load_settings
    from bookrag_fast.config.prices import unbounded

    settings = load_settings(embedder=embedder)
    played = {name: use.model for name, use in settings.roles if use is not None}
    by_models = ", ".join(f"{role} by {model}" for role, model in played.items())
    by_rules = ", ".join(role for role, _ in settings.roles if role not in played)
    roles = "; ".join(filter(None, (by_models, f"by rules: {by_rules}" if by_rules else "")))
    ranked = f"reranker {settings.reranker or 'none'}"
    yield Finding("configuration", OK, f"embedder {settings.embedder}; {ranked}; {roles}")
    for problem, remedy in unbounded(settings):
        yield Finding("budget", WARNING, problem, remedy)


def _models(folder: Path, embedder: str | None) -> Iterator[Finding]:
    """The embedder, and each configured model, called once; booked where there is a shelf."""
    from bookrag_fast.config import load_settings
    from bookrag_fast.models import doctor

    found: list[doctor.Finding] = []
    try:
        settings = load_settings(embedder=embedder)
    except BookragError:  # reported by the check before
        found += doctor.runtime_report(doctor.DEFAULT_EMBEDDERS)
    else:
        builtin = () if settings.embedder in settings.models else (settings.embedder,)
        found += doctor.runtime_report(builtin) + _probed(folder, settings)
    for finding in found:
        level = OK if finding.ok else ERROR if finding.needed else WARNING
        yield Finding(finding.name, level, finding.detail, finding.remedy)


def _probed(folder: Path, settings: Settings) -> list[ModelFinding]:
    from bookrag_fast.models.create import LEDGER_FILE
    from bookrag_fast.models.ledger import UsageLedger
    from bookrag_fast.models.probes import DEADLINE_S, probe_models

    if not folder.is_dir():  # looking must not make one
        return probe_models(settings, deadline_s=DEADLINE_S)
    with closing(UsageLedger(folder / LEDGER_FILE)) as ledger:
        return probe_models(settings, deadline_s=DEADLINE_S, ledger=ledger)


def _ocr() -> Iterator[Finding]:
    from bookrag_fast.document.ocr.stage import INSTALL, is_installed

    both = ("opencv-python", "opencv-python-headless")
    if is_installed() and all(map(_is_there, both)):
        yield Finding(
            "ocr",
            WARNING,
            f"{both[0]} and {both[1]} are installed, and overwrite each other",
            f"pip uninstall -y {both[0]}; pip install --force-reinstall --no-deps {both[1]}",
        )
    if is_installed():
        yield Finding("ocr", OK, f"rapidocr {importlib.metadata.version('rapidocr')}")
    else:
        yield Finding("ocr", OK, f"not installed: scans are not read ({INSTALL})")


def _is_there(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _disk(folder: Path) -> Iterator[Finding]:
    place = folder.resolve()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    detail = f"{free / (1 << 30):.1f} GiB free at {place}"
    if free < _LITTLE_SPACE:
        yield Finding("disk", WARNING, detail, "free some space, or use --library elsewhere")
    else:
        yield Finding("disk", OK, detail)


def _shelf(folder: Path, embedder: str | None) -> Iterator[Finding]:
    if not folder.exists():  # looking must not make one
        yield Finding("shelf", OK, f"{folder} does not exist yet; `bookrag index` makes it")
        return
    from bookrag_fast.library import Library

    with Library.open(folder, settings=_impatient_settings(embedder)) as shelf:
        count = len(shelf.books())
        problems = shelf.check()
    for problem in problems:
        level = ERROR if problem.level == ERROR else WARNING
        yield Finding("shelf", level, f"{problem.where}: {problem.what}", problem.remedy)
    if not problems:
        books = "1 book, sound" if count == 1 else f"{count} books, all of them sound"
        yield Finding("shelf", OK, f"{folder} has {books}")


def _impatient_settings(embedder: str | None) -> Settings:
    """What books were embedded with shows only when the model is asked: here not for long."""
    from bookrag_fast.config import EmbeddingsModelSettings, load_settings
    from bookrag_fast.models.probes import DEADLINE_S

    settings = load_settings(embedder=embedder)
    model = settings.models.get(settings.embedder)
    if not isinstance(model, EmbeddingsModelSettings) or model.timeout_s <= DEADLINE_S:
        return settings
    hurried = model.model_copy(update={"timeout_s": DEADLINE_S})
    models = {**settings.models, settings.embedder: hurried}
    return settings.model_copy(update={"models": models})
