"""Questions looked up while a model plans them: what is out at once, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from asking import COMPARE, EMBEDDER, INDEX, THICK, thick
from bookrag_fast.config import RetrievalSettings
from bookrag_fast.models.protocols import Embeddings, TokenUsage
from bookrag_fast.models.roles import ModelSet, Role
from bookrag_fast.models.twins import AwaitedEmbedder
from bookrag_fast.prompts import RenderedPrompt
from bookrag_fast.query.executor import Executor
from bookrag_fast.query.plan import Answer, Category, SearchResult
from bookrag_fast.query.planner import seems_global
from scripted_model import ScriptedModel

SUBS = [
    {"question": "How thick is the plate of steel?"},
    {"question": "What must net positive suction head exceed?"},
]
SINGLE = {"category": "single-hop"}
MULTI = {"category": "multi-hop", "sub_questions": SUBS}
TABLES = {"category": "global", "operation": "LIST", "filters": [{"type": "table"}]}
UNFORESEEN = "What is there to be read in rows?"


@dataclass
class Models:
    """Models of all roles that log who is asked, answered and cancelled; a call named in
    ``after`` is answered once those it names have been, in ``beside`` once they have been asked."""

    plan: dict[str, Any]
    after: dict[str, Sequence[str]] = field(default_factory=dict)
    beside: dict[str, Sequence[str]] = field(default_factory=dict)
    down: Sequence[str] = ()
    log: list[tuple[str, str]] = field(default_factory=list)

    async def reply(self, prompt: RenderedPrompt) -> str | None:
        name = prompt.id.split("@")[0]
        self.log.append(("asked", name))
        try:
            first = [("answered", other) for other in self.after.get(name, ())]
            first += [("asked", other) for other in self.beside.get(name, ())]
            while not all(what in self.log for what in first):
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            self.log.append(("cancelled", name))
            raise
        self.log.append(("answered", name))
        if name in self.down:
            return None
        replies: dict[str, Callable[[], str]] = {
            "plan": lambda: json.dumps(self.plan),
            "extract": lambda: json.dumps({"entities": [{"name": "NPSH"}]}),
            "sections_for": lambda: json.dumps({"sections": [2]}),
        }
        wanted = replies.get(name)
        return wanted() if wanted else '{"answer": "So it is [E1].", "citations": [1]}'

    def executor(self, embedder: Any = EMBEDDER) -> Executor:
        roles = (Role.PLAN, Role.EXTRACT, Role.ANSWER)
        models = {role: ScriptedModel(role, self.reply) for role in roles}
        return Executor(ModelSet(embedder, None, models), RetrievalSettings(added_sections=1))

    def asked(self) -> Counter[str]:
        return Counter(name for what, name in self.log if what == "asked")

    def ask(self, question: str) -> Answer:
        return asyncio.run(within(self.executor().ask(lambda: [INDEX], question, 600)))

    def search(self, question: str) -> SearchResult:
        return asyncio.run(within(self.executor().search(lambda: [INDEX], question, 600)))


async def within(question: Any) -> Any:
    """Fails rather than never end."""
    return await asyncio.wait_for(question, 20)


def untimed(result: Answer | SearchResult) -> dict[str, Any]:
    values = result.to_json()
    del values["timings_ms"]
    for operator in values.get("trace", []):
        del operator["ms"]
    if "trace" in values:  # what runs at once ends in any order
        values["trace"].sort(key=lambda o: json.dumps(o, sort_keys=True))
    return values


def test_a_single_hop_question_is_looked_up_while_it_is_planned() -> None:
    models = Models(SINGLE, after={"plan": ["extract", "sections_for"]})
    answer = models.ask(THICK)
    assert answer.plan.reason == "the planning model: one place may answer it"
    assert answer.trace.operators[0].operator == "Decompose"
    assert models.asked() == {"plan": 1, "extract": 1, "sections_for": 1, "answer": 1}
    assert answer.usage.model_calls == 4


PLANNED = [(THICK, SINGLE), (COMPARE, MULTI), ("How many tables are red?", TABLES)]


@pytest.mark.parametrize(("question", "plan"), PLANNED, ids=["single", "multi", "global"])
def test_the_result_does_not_depend_on_who_is_first(question: str, plan: dict[str, Any]) -> None:
    first = Models(plan, after={"extract": ["plan"], "sections_for": ["plan"]})
    last = Models(plan, after={} if plan is TABLES else {"plan": ["extract", "sections_for"]})
    assert untimed(first.ask(question)) == untimed(last.ask(question))
    assert first.asked() == last.asked()


def test_a_multi_hop_question_is_looked_up_whole_no_more_than_once() -> None:
    models = Models(MULTI)
    answer = models.ask(COMPARE)
    assert answer.plan.category is Category.MULTI_HOP
    assert models.asked() == {"plan": 1, "extract": 3, "sections_for": 3, "map": 2, "reduce": 1}


def test_what_a_global_plan_has_no_use_for_is_ended_and_told() -> None:
    models = Models(
        TABLES,
        after={"plan": ["extract"], "sections_for": ["never"]},
        beside={"plan": ["sections_for"]},
        down=["extract"],
    )
    answer = models.ask(UNFORESEEN)
    assert answer.plan.category is Category.GLOBAL
    assert models.log[-1] == ("cancelled", "sections_for")
    extract = next(o for o in answer.trace.operators if o.operator == "Extract")
    assert extract.detail["unused"]
    assert answer.usage.model_calls == 2  # it was paid for
    assert answer.notes == ()


def test_a_search_wants_the_look_up_whatever_the_plan() -> None:
    for question in (UNFORESEEN, "Summarise all tables that are red"):
        models = Models(TABLES, after={"plan": ["extract", "sections_for"]})
        result = models.search(question)
        assert result.plan.category is Category.GLOBAL
        assert len(result.evidence) > 1
        assert models.asked() == {"plan": 1, "extract": 1, "sections_for": 1}


def test_what_seems_global_is_planned_first() -> None:
    models = Models(TABLES)
    models.ask("How many tables are red?")
    assert models.asked() == {"plan": 1}


@pytest.mark.parametrize(
    ("question", "seems"),
    [
        ("How many tables are red?", True),
        ("List the chapters on pumps", True),
        ("Please summarize the book", True),
        ("Give me an overview of it", True),
        ("In which sections is wiring treated?", True),
        ("この本を要約してください", True),
        ("赤い表はいくつありますか", True),
        (THICK, False),
        (COMPARE, False),
        ("What does Table 3 say of pressure?", False),
        ("What do sections 3 and 4 require?", False),
    ],
)
def test_how_a_global_question_sounds(question: str, seems: bool) -> None:
    assert seems_global(question) is seems


@pytest.mark.parametrize("after", [{"plan": ["never"]}, {"extract": ["never"]}])
def test_cancelling_a_question_ends_all_its_calls(after: dict[str, Sequence[str]]) -> None:
    models = Models(SINGLE, after={**after, "sections_for": ["never"]})

    async def cancel() -> None:
        before = asyncio.all_tasks()
        asking = asyncio.ensure_future(models.executor().ask(lambda: [INDEX], THICK, 600))
        while not models.asked() >= Counter(("plan", "extract", "sections_for")):
            await asyncio.sleep(0.001)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert asyncio.all_tasks() == before

    asyncio.run(within(cancel()))
    ended = [name for what, name in models.log if what != "asked"]
    assert sorted(ended) == ["extract", "plan", "sections_for"]


def test_a_question_is_embedded_once_though_its_plan_comes_first() -> None:
    planned = asyncio.Event()
    texts: list[str] = []

    class Slow(AwaitedEmbedder):
        info = EMBEDDER.info

        async def aembed(self, new: Sequence[str], *, query: bool = False) -> Embeddings:
            texts.extend(new)
            await planned.wait()
            await asyncio.sleep(0)
            return Embeddings(EMBEDDER.embed(new, query=query), TokenUsage(0, 0, 1))

    def plan(prompt: RenderedPrompt) -> str:
        planned.set()
        return json.dumps(SINGLE)

    models = {
        Role.PLAN: ScriptedModel(Role.PLAN, plan),
        Role.ANSWER: ScriptedModel(Role.ANSWER, thick),
    }
    running = Executor(ModelSet(Slow(), None, models), RetrievalSettings())
    answer = asyncio.run(within(running.ask(lambda: [INDEX], THICK, 2000)))
    assert "20 mm" in answer.text
    assert texts.count(THICK) == 1
