"""Questions put to the small book with scripted models, for the tests of `query`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bookrag_fast.config import RetrievalSettings
from bookrag_fast.errors import SpendingLimitError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.index.lexicon import build_lexicon
from bookrag_fast.index.model import Node
from bookrag_fast.models.roles import ModelSet, Role
from bookrag_fast.prompts import RenderedPrompt
from bookrag_fast.query.executor import Executor
from bookrag_fast.query.plan import Answer, SearchResult
from factories import HashEmbedder, small_index
from scripted_model import Script, ScriptedModel

EMBEDDER = HashEmbedder()
INDEX = small_index(EMBEDDER)
OTHER = small_index(EMBEDDER, "c0c0c0c0c0c0")
THICK = "How thick is the plate of steel?"
COMPARE = "Does the plate or the suction head need more room?"


def index_of(nodes: Sequence[Node], **more: Any) -> BookIndex:
    """The small book with other nodes, and no entities."""
    texts = [f"{n.title}\n{n.text}" for n in nodes]
    return replace(
        INDEX,
        nodes=tuple(nodes),
        entities=(),
        relations=(),
        node_vectors=EMBEDDER.embed(texts),
        entity_vectors=EMBEDDER.embed([]),
        lexicon=build_lexicon(texts),
        neighbours=replace(
            INDEX.neighbours, ids=INDEX.neighbours.ids[:0], cosines=INDEX.neighbours.cosines[:0]
        ),
        **more,
    )


def executor(
    roles: dict[Role, Script | ScriptedModel] | None = None,
    *,
    reranker: Any = None,
    picture_of: Any = None,
    settings: RetrievalSettings | None = None,
) -> Executor:
    models = {
        role: script if isinstance(script, ScriptedModel) else ScriptedModel(role, script)
        for role, script in (roles or {}).items()
    }
    return Executor(
        ModelSet(EMBEDDER, reranker, models), settings or RetrievalSettings(), picture_of
    )


def ask(running: Executor, text: str, budget: int = 4000, **more: Any) -> Answer:
    return asyncio.run(running.ask(lambda: [INDEX], text, budget, **more))


def search(running: Executor, text: str, books: list[BookIndex] | None = None) -> SearchResult:
    return asyncio.run(running.search(lambda: books or [INDEX], text, 2000))


def says(**reply: Any) -> Script:
    return lambda prompt: json.dumps(reply)


def down(prompt: RenderedPrompt) -> None:
    return None


def broke(prompt: RenderedPrompt) -> str:
    raise SpendingLimitError("the budget of today is spent")


def mark_of(prompt: RenderedPrompt, words: str) -> str:
    """The mark of the passage that says these words, as a model would find it."""
    for passage in prompt.user.split("<passage ")[1:]:
        if words in passage:
            return f"[{passage.partition('id=' + chr(34))[2].partition(chr(34))[0]}]"
    raise AssertionError(f"no passage says {words!r}")


def thick(prompt: RenderedPrompt) -> str:
    return json.dumps({"answer": f"It is 20 mm thick {mark_of(prompt, '20 mm')}.", "enough": True})


def detail(result: Answer | SearchResult, operator: str) -> dict[str, Any]:
    return next(
        o.detail for o in result.trace.operators if o.operator == operator and "by" in o.detail
    )


OFFLINE = ask(executor(), THICK)
