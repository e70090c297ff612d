"""What the server's and the command line's tests share.

``FakeLibrary`` stands in where the real one cannot be made to do a thing on demand: to fail with
a given error, to be slow, to notice its own cancellation. Everything else uses a real Library.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bookrag_fast.document.model import BBox, Region
from bookrag_fast.errors import BookragError
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.library.types import AnswerEvent, Book, Progress, TreeNode
from bookrag_fast.models.protocols import TokenUsage
from bookrag_fast.query.plan import (
    Answer,
    Category,
    Citation,
    Evidence,
    Filter,
    FilterType,
    Operation,
    OperatorTrace,
    QueryPlan,
    SearchResult,
    Step,
    Trace,
    Usage,
)
from bookrag_fast.server import Server, ServerConfig

SERVICE = "bookrag.v1.BookRAG"
PLAN = QueryPlan(
    question="How many tables are in 第3章?",
    category=Category.GLOBAL,
    steps=(
        Step("Filter_Modal", {"modal_type": "table"}),
        Step("Map", {"k": 5, "g": 0.6, "deep": {"list": [1, None, True, "x"]}}),
    ),
    filters=(Filter(FilterType.TABLE), Filter(FilterType.SECTION, "第3章")),
    operation=Operation.COUNT,
    sub_plans=(QueryPlan("a sub-question", Category.SINGLE_HOP, (Step("Extract"),)),),
    synthesis=("which is larger?",),
    reason="rule: how many",
)
TRACE = Trace((OperatorTrace("Map", 1.25, {"in": 3, "scores": [0.5, 0.25]}),))
EVIDENCE = Evidence(
    book="0123456789abcdef",
    node_id=7,
    kind="table",
    text="第3章 α",
    pages=(4, 5),
    labels=("iv", None),
    boxes=(Region(4, BBox(72.0, 100.5, 300.25, 200.0)), Region(5, BBox(72.0, 72.0, 300.0, 90.0))),
    section=("3 Results", "3.1 Tables"),
    scores={"text": 0.75, "graph": 0.125},
    tokens=12,
)
CITATION = Citation(
    book="0123456789abcdef",
    node_id=7,
    pages=(4, 5),
    labels=("iv", None),
    boxes=EVIDENCE.boxes,
    section=EVIDENCE.section,
    quote="第3章",
)
ANSWER = Answer("There are 2.", (CITATION,), PLAN, TRACE, Usage(12, 3, 2, 1), enough=True)
BOOK = Book(
    id="0123456789abcdef",
    title="TCP/IP Handbook",
    name="handbook.pdf",
    pages=25,
    nodes=3,
    entities=2,
    relations=1,
    sha256="ab" * 32,
    embedder="wordllama",
    created="2026-01-01T00:00:00Z",
    toc_source="outline",
    warnings=("page 3 has no text",),
    confidence=0.75,
    models=(ModelUse("sections", "small", "Qwen/Qwen3-8B", TokenUsage(900, 80, 2, 1), 0.25, 1),),
)
TREE = TreeNode(
    0, "root", 0, "", 0, 25, None, "",
    (
        TreeNode(1, "section", 1, "TCP/IP", 1, 25, "i", "", (
            TreeNode(2, "text", 2, "", 1, 1, "i", "body"),
            TreeNode(3, "section", 2, "Two", 2, 25, None, "", (), ("outline", "printed"), 0.98,
                     "It says what two is."),
        ), ("title",)),
        TreeNode(4, "image", 1, "Figure", 2, 2, None, ""),
    ),
    ("outline",), 0.75,
)  # fmt: skip


class FakeLibrary:
    """Does on demand what is asked by the question, the password or the file's content."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.started = threading.Event()
        self.cancelled = threading.Event()
        self.release = threading.Event()
        self.seen: list[dict[str, Any]] = []

    def _note(self, **seen: Any) -> None:
        self.seen.append(seen)
        if self.error is not None:
            raise self.error

    async def _work(self, question: str) -> None:
        """ "slow" never ends by itself; "wait" ends when the test says so."""
        self.started.set()
        try:
            if question == "slow":
                await asyncio.sleep(600)
            while question == "wait" and not self.release.is_set():
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    def books(self) -> list[Book]:
        return [BOOK]

    def tree(self, ref: str) -> TreeNode:
        self._note(ref=ref)
        return TREE

    async def aremove(self, ref: str) -> Book:
        self._note(ref=ref)
        return BOOK

    async def aadd(self, path: Path, *, password: str | None = None, progress: Any = None) -> Book:
        self._note(path=path, password=password, content=path.read_bytes())
        if isinstance(self.error, BookragError):
            raise self.error
        step = Progress("parse", 1, None, "pages", np.float64(2.5), None)
        await asyncio.to_thread(progress, step)
        await self._work(password or "")
        return BOOK

    async def asearch_result(
        self,
        question: str,
        *,
        books: Any = None,
        budget_tokens: int = 2000,
        timeout_s: float | None = None,
    ) -> SearchResult:
        self._note(question=question, books=books, budget_tokens=budget_tokens)
        await self._work(question)
        return SearchResult((EVIDENCE,), PLAN, TRACE)

    async def aask(
        self,
        question: str,
        *,
        books: Any = None,
        budget_tokens: int = 4000,
        timeout_s: float | None = None,
    ) -> Answer:
        self._note(question=question, books=books, budget_tokens=budget_tokens)
        await self._work(question)
        return ANSWER

    async def aask_stream(
        self,
        question: str,
        *,
        books: Any = None,
        budget_tokens: int = 4000,
        timeout_s: float | None = None,
    ) -> AsyncIterator[AnswerEvent]:
        self._note(question=question, books=books, budget_tokens=budget_tokens)
        yield AnswerEvent(kind="plan", plan=PLAN)
        await self._work(question)
        yield AnswerEvent(kind="evidence", evidence=(EVIDENCE,))
        yield AnswerEvent(kind="text", text="There ")
        yield AnswerEvent(kind="text", text="are 2.")
        yield AnswerEvent(kind="answer", answer=ANSWER)


class RunningServer:
    """A Server on a loop in a thread of its own, as in another process, for blocking clients."""

    def __init__(self, library: Any, config: ServerConfig | None = None) -> None:
        self._library = library
        self._config = config
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.server: Server | None = None

    def start(self) -> str:
        self._thread.start()
        return self.run(self._start())

    def run(self, work: Any, timeout: float = 20) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    async def _start(self) -> str:
        self.server = Server(self._library, self._config)
        return str(await self.server.start())

    def stop(self, grace: float = 0.0) -> None:
        assert self.server is not None
        self.run(self.server.stop(grace))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@contextmanager
def running(library: Any, config: ServerConfig | None = None) -> Iterator[str]:
    """The address of a server that runs as long as the block."""
    server = RunningServer(library, config)
    address = server.start()
    try:
        yield address
    finally:
        server.stop()


def bookrag(*args: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a shell would run it."""
    return subprocess.run(
        command(*args), capture_output=True, text=True, timeout=120, env=environment(), **options
    )


def command(*args: str | Path) -> list[str]:
    return [sys.executable, "-m", "bookrag_fast.cli", *map(str, args)]


def environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BOOKRAG_")}
    return {**kept, "NO_COLOR": "1", "PYTHONUTF8": "1"}


def make_pdf(path: Path, *, title: str = "A Small Handbook", password: str | None = None) -> Path:
    """A PDF of three pages with an outline, two chapters and sentences to ask for."""
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen import canvas

    page = canvas.Canvas(str(path), pagesize=A4, encrypt=password)
    page.setTitle(title)
    chapters = [
        ("1 Pumps", [
            ("The primary pump moves 40 litres of coolant per minute.", "pump"),
            ("Replace the impeller of the primary pump every 900 hours.", "impeller"),
        ]),
        ("2 Valves", [
            ("The relief valve opens at a pressure of 12 bar.", "valve"),
            ("A stuck relief valve must be cleaned with acetone.", "acetone"),
        ]),
    ]  # fmt: skip
    page.setFont("Helvetica-Bold", 24)
    page.drawString(72, 700, title)
    page.setFont("Helvetica", 11)
    page.drawString(72, 660, "This handbook describes the cooling circuit of the test bench.")
    page.showPage()
    for number, (heading, sentences) in enumerate(chapters):
        page.bookmarkPage(f"c{number}")
        page.addOutlineEntry(heading, f"c{number}", 0)
        page.setFont("Helvetica-Bold", 16)
        page.drawString(72, 760, heading)
        page.setFont("Helvetica", 11)
        for line, (sentence, _) in enumerate(sentences):
            page.drawString(72, 720 - 40 * line, sentence)
        page.showPage()
    page.save()
    return path
