"""Questions with language models: each operator with a good, a failing and a hostile model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from asking import (
    COMPARE,
    EMBEDDER,
    INDEX,
    OFFLINE,
    OTHER,
    THICK,
    ask,
    broke,
    detail,
    down,
    executor,
    mark_of,
    says,
    search,
    thick,
)
from bookrag_fast.config import RetrievalSettings
from bookrag_fast.errors import ModelTimeoutError
from bookrag_fast.models.protocols import ModelInfo, Scores, TokenUsage
from bookrag_fast.models.roles import ModelSet, Role
from bookrag_fast.models.twins import AwaitedEmbedder, AwaitedReranker
from bookrag_fast.prompts import RenderedPrompt
from bookrag_fast.query.executor import Executor
from bookrag_fast.query.plan import Answer, Category, SearchResult
from scripted_model import ScriptedModel

# --- Decompose --------------------------------------------------------------------------------


def planned(text: str, **reply: Any) -> Answer:
    return ask(executor({Role.PLAN: says(**{"sections": [], **reply})}), text)


def test_a_model_classifies() -> None:
    answer = planned("What is the plate made of?", category="single-hop")
    assert answer.plan.category is Category.SINGLE_HOP
    assert answer.plan.reason == "the planning model: one place may answer it"
    assert detail(answer, "Decompose")["by"] == "model"
    assert answer.notes == ()


def test_a_model_decomposes() -> None:
    answer = planned(
        COMPARE,
        category="Multi_Hop",
        sub_questions=[
            {"question": "How thick is the plate of steel?"},
            {"question": "What must net positive suction head exceed?", "kind": "Retrieval"},
            {"question": "Which is more?", "kind": "synthesis"},
        ],
    )
    assert answer.plan.category is Category.MULTI_HOP
    assert [p.question for p in answer.plan.sub_plans] == [
        "How thick is the plate of steel?",
        "What must net positive suction head exceed?",
    ]
    assert answer.plan.synthesis == ("Which is more?",)


@pytest.mark.parametrize(
    "subs",
    [
        [],
        ["How thick is the plate of steel?"],
        ["How thick is the plate?", "The plate is how thick?"],
        ["Does the plate or the suction head need more room", "How thick is the plate?"],
        ["How thick is the plate of steel?", "Is the pump plate level?"],
        ["zqx vbn", "qqq www", "How thick is the plate?"],
        ["Where does the plate or suction head need more room?", "What is the limit?"],
    ],
    ids=[
        "none",
        "one",
        "the same twice",
        "the question again",
        "one place",
        "nonsense",
        "the question and more",
    ],
)
def test_over_decomposition_is_undone(subs: list[str]) -> None:
    answer = planned(COMPARE, category="multi-hop", sub_questions=[{"question": s} for s in subs])
    assert answer.plan.category is Category.SINGLE_HOP
    assert answer.plan.question == COMPARE
    assert answer.plan.reason.startswith("the planning model: ")


def test_too_many_sub_questions_are_cut() -> None:
    subs = [f"What is said of pump part {n} and thing{n} of it{n}?" for n in range(400)]
    subs[1] = "What is the temperature limit?"
    answer = planned(COMPARE, category="multi-hop", sub_questions=[{"question": s} for s in subs])
    assert len(answer.plan.sub_plans) <= 5


def test_certain_structure_is_planned_without_the_model() -> None:
    model = ScriptedModel(Role.PLAN, says(category="single-hop"))
    answer = ask(executor({Role.PLAN: model}), "How many tables are there?")
    assert (answer.text, model.asked) == ("1 table", [])


@pytest.mark.parametrize(
    ("filters", "operation", "text"),
    [
        ([{"type": "table"}], "COUNT", "1 table"),
        ([{"type": "IMAGE", "value": None}, {"type": "section", "value": "Operation"}], "count",
         "1 figure"),
        ([{"type": "section", "value": ""}], "LIST",
         "1 Installation (p. 1)\n1.1 Wiring (p. 2)\n2 Operation (p. 3)"),
        ([{"type": "table"}, {"type": "page", "value": "1-4"}], "COUNT", "0 tables"),
    ],
)  # fmt: skip
def test_a_model_aggregates(filters: list[Any], operation: str, text: str) -> None:
    answer = planned(
        "Please say what it all comes to", category="global", filters=filters, operation=operation
    )
    assert answer.text == text
    assert answer.plan.reason.startswith("the planning model: ")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"filters": [{"type": "table"}]}, "no operation"),
        ({"filters": [], "operation": "COUNT"}, "what to count"),
        ({"filters": [{"type": "table"}, {"type": "image"}], "operation": "LIST"}, "what to list"),
        ({"filters": [{"type": "section", "value": "Chapter 99"}, {"type": "table"}],
          "operation": "COUNT"}, "no book has the section"),
        ({"filters": [{"type": "page", "value": "ninety"}, {"type": "table"}],
          "operation": "COUNT"}, "no book has the page"),
        ({"filters": [{"type": "table"}], "operation": "COUNT", "condition": "that are red"},
         "no model to analyse"),
    ],
)  # fmt: skip
def test_a_global_plan_of_nothing_real_is_refused(reply: dict[str, Any], why: str) -> None:
    answer = planned("What does it all come to?", category="global", **reply)
    assert answer.plan.category is Category.SINGLE_HOP
    assert len(answer.notes) == 1
    assert "was not followed" in answer.notes[0]
    assert why in answer.notes[0]
    assert detail(answer, "Decompose")["by"] == "rules"


def test_rules_that_decide_beside_a_model_say_so() -> None:
    answer = ask(executor({Role.PLAN: down}), "How many tables are there?")
    assert answer.plan.reason.startswith("rules: COUNT")
    assert answer.notes == ()


def test_models_of_other_work_do_not_make_questions_wait() -> None:
    assert not executor({Role.SECTIONS: down}).waits
    assert executor({Role.PLAN: down}).waits


def test_a_planner_that_fails_is_replaced_and_said() -> None:
    answer = ask(executor({Role.PLAN: down}), THICK)
    assert answer.notes == ("the planning model failed (the model is down): planned by rules",)
    assert (answer.text, answer.citations) == (OFFLINE.text, OFFLINE.citations)
    assert answer.usage.model_calls == 1
    decided = detail(answer, "Decompose")
    assert (decided["by"], decided["steps"]) == ("rules", ["offline"])
    assert decided["problem"] == "the model is down"


# --- Extract, Select_by_Section, Text_Reasoning -------------------------------------------------


def entities(result: Answer | SearchResult) -> set[str]:
    extract = next(o for o in result.trace.operators if o.operator == "Extract")
    return {e["name"] for e in extract.detail["entities"]}


def test_extract_joins_what_the_model_names() -> None:
    model = says(entities=[{"name": "Net Positive Suction Head", "type": "concept"},
                           {"name": "qqq"}, {"name": "x" * 10_000}, {"name": ""}])  # fmt: skip
    result = search(executor({Role.EXTRACT: model}), "How high must the pump stand?")
    assert entities(result) == {"pump", "NPSH"}
    assert result.usage.model_calls == 1
    assert result.to_json()["usage"]["model_calls"] == 1


def test_extract_prefers_the_type_that_the_model_names() -> None:
    twins = replace(INDEX.entities[0], name="Pressure", type="person", nodes=(4,), aliases=())
    index = replace(INDEX, entities=(*INDEX.entities[:4], twins))
    running = executor({Role.EXTRACT: says(entities=[{"name": "pressure", "type": "Person"}])})
    result = asyncio.run(running.search(lambda: [index], "Who?", 2000))
    assert entities(result) == {"Pressure"}


def test_extract_links_in_each_book_what_that_book_has() -> None:
    bare = replace(OTHER, entities=(replace(OTHER.entities[0], name="impeller", aliases=()),
                                    *OTHER.entities[1:]))  # fmt: skip
    for question in ("What is a pump?", "pump impeller", "zzz"):
        both = search(executor(), question, [INDEX, bare])
        alone = [search(executor(), question, [book]) for book in (INDEX, bare)]
        assert entities(both) == entities(alone[0]) | entities(alone[1])


def test_extract_without_its_model_is_as_before() -> None:
    result = search(executor({Role.EXTRACT: down}), THICK)
    assert result.evidence == search(executor(), THICK).evidence
    assert result.notes == (
        "the extracting model failed (the model is down): entities found by name",
    )


def test_sections_are_chosen_from_the_list_only() -> None:
    settings = RetrievalSettings(added_sections=1)
    plan = ScriptedModel(
        Role.PLAN,
        lambda p: json.dumps(
            {"category": "single-hop"} if p.id.startswith("plan") else {"sections": [99, -1, 2, 1]}
        ),
    )
    result = search(executor({Role.PLAN: plan}, settings=settings), "Who painted the ceiling?")
    assert "  2: 1.1 Wiring" in plan.asked[1].user
    chosen = detail(result, "Select_by_Section")
    assert chosen["sections"] == ["1.1 Wiring"]
    assert result.evidence[0].node_id == 6


def test_sections_without_their_model_are_as_before() -> None:
    settings = RetrievalSettings(added_sections=1)
    plan = ScriptedModel(
        Role.PLAN, lambda p: '{"category": "single-hop"}' if p.id.startswith("plan") else None
    )
    result = search(executor({Role.PLAN: plan}, settings=settings), THICK)
    assert result.evidence == search(executor(settings=settings), THICK).evidence
    assert result.notes == (
        "the planning model failed (the model is down): sections chosen by relevance",
    )


def test_nothing_is_asked_where_all_sections_are_looked_at() -> None:
    model = ScriptedModel(Role.PLAN, says(category="single-hop"))
    search(executor({Role.PLAN: model}, settings=RetrievalSettings(added_sections=3)), THICK)
    assert [prompt.id.split("@")[0] for prompt in model.asked] == ["plan"]


class WordReranker(AwaitedReranker):
    """Scores by a word; what it is given and how it fails is up to the test."""

    def __init__(self, word: str, make: Callable[[list[float]], Any] = list) -> None:
        self.word, self.make, self.seen = word, make, 0
        self.info = ModelInfo("word", "word")

    async def arerank(self, question: str, texts: Any) -> Scores:
        self.seen = len(texts)
        return Scores(self.make([float(self.word in t) for t in texts]), TokenUsage(7, 0, 1))


def test_a_reranker_decides_among_the_best() -> None:
    question = "pump pressure plate metres limit"
    reranker = WordReranker("suction")
    before, after = search(executor(), question), search(executor(reranker=reranker), question)

    def scores(result: SearchResult) -> dict[int, float]:
        return {e.node_id: e.scores["text"] for e in result.evidence}

    old, new = scores(before), scores(after)
    assert max(old, key=old.__getitem__) != 6
    assert max(new, key=new.__getitem__) == 6
    assert detail(after, "Text_Reasoning") == {
        "nodes": 11, "by": "model", "reranked": reranker.seen
    }  # fmt: skip
    assert after.usage.prompt_tokens == 7
    assert max(new.values()) <= max(old.values()) + 1e-6  # books stay comparable


def timeout(scores: list[float]) -> Any:
    raise ModelTimeoutError("it took more than 60 s")


@pytest.mark.parametrize(
    "make",
    [timeout, lambda s: s[1:], lambda s: [float("nan")] * len(s), lambda s: [s]],
    ids=["timeout", "too few", "not a number", "shape"],
)
def test_a_reranker_that_fails_changes_nothing_and_is_said(make: Callable[[Any], Any]) -> None:
    result = search(executor(reranker=WordReranker("suction", make)), THICK)
    assert result.evidence == search(executor(), THICK).evidence
    assert "the reranker failed" in result.notes[0]


def test_several_books_are_reranked_in_one_call() -> None:
    reranker = WordReranker("plate")
    result = search(executor(reranker=reranker), THICK, [INDEX, OTHER])
    assert {e.book for e in result.evidence[:2]} == {INDEX.meta.book_id, OTHER.meta.book_id}
    assert {e.node_id for e in result.evidence[:2]} == {4}


class FailingEmbedder(AwaitedEmbedder):
    info = EMBEDDER.info

    async def aembed(self, texts: Any, *, query: bool = False) -> Any:
        raise ModelTimeoutError("it took more than 60 s")


def test_words_alone_carry_a_question_whose_embedder_fails() -> None:
    running = Executor(ModelSet(FailingEmbedder()), RetrievalSettings())
    answer = ask(running, THICK)
    assert "20 mm" in answer.text
    assert answer.notes == (
        "the embedding model failed (it took more than 60 s): ranked by words alone",
    )


# --- Map and Reduce -----------------------------------------------------------------------------


def test_a_model_answers_and_the_book_is_quoted() -> None:
    answer = ask(executor({Role.ANSWER: thick}), THICK)
    assert answer.text == "It is 20 mm thick [1]."
    assert answer.enough
    assert [(c.node_id, c.quote) for c in answer.citations] == [(4, "The plate is 20 mm of steel.")]
    assert answer.notes == ()
    assert answer.usage.model_calls == 1
    assert answer.usage.prompt_tokens > 0
    assert answer.usage.completion_tokens > 0


def test_the_model_is_shown_where_things_stand_and_the_cells_of_tables() -> None:
    model = ScriptedModel(Role.ANSWER, thick)
    ask(executor({Role.ANSWER: model}), "What does Table 1 say of the plate of 20 mm?")
    user = model.asked[0].user
    assert 'kind="table" node="8" section="2 Operation" pages="5"' in user
    assert "| Quantity | Limit |\n| --- | --- |\n| Pressure | 16 bar |" in user


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "no JSON",
        '{"answer": ""}',
        '{"answer": "It is made of cheese."}',
        '{"answer": "It is made of cheese [E99].", "citations": [0, -1, 4711, "E98"]}',
        '{"answer": "[E1", "citations": "all"}',
        '{"enough": true}',
    ],
)
def test_what_shows_nothing_is_not_given(reply: str | None) -> None:
    answer = ask(executor({Role.ANSWER: lambda p: reply}), THICK)
    assert (answer.text, answer.citations) == (OFFLINE.text, OFFLINE.citations)
    assert len(answer.notes) == 1
    assert "quoted from the book instead" in answer.notes[0]


def test_a_model_may_say_that_the_book_does_not_tell() -> None:
    answer = ask(
        executor({Role.ANSWER: says(answer="The book does not tell.", enough=False)}), THICK
    )
    assert (answer.text, answer.citations, answer.enough) == ("The book does not tell.", (), False)


def test_citations_are_those_that_were_shown_in_the_order_of_the_text() -> None:
    def reply(prompt: RenderedPrompt) -> str:
        a, b = mark_of(prompt, "level plate"), mark_of(prompt, "suction head")
        return json.dumps({"answer": f"One {b}{a}, two [{a[1:-1]}, {b[1:-1]}], three [E77]."})

    answer = ask(executor({Role.ANSWER: reply}), THICK)
    assert answer.text == "One [1][2], two [2][1], three."
    assert [c.node_id for c in answer.citations] == [6, 4]


def test_no_money_is_no_reason_to_fail() -> None:
    answer = ask(executor(dict.fromkeys((Role.PLAN, Role.EXTRACT, Role.ANSWER), broke)), THICK)
    assert (answer.text, answer.citations) == (OFFLINE.text, OFFLINE.citations)
    assert answer.notes == (
        "the planning model failed (the budget of today is spent): planned by rules",
        "the extracting model failed (the budget of today is spent): entities found by name",
        "the answering model failed (the budget of today is spent): quoted from the book instead",
    )
    assert answer.usage.model_calls == 0


def test_a_small_context_is_kept_to() -> None:
    for context in (512, 1200, 2048):
        model = ScriptedModel(Role.ANSWER, thick, context_tokens=context)
        answer = ask(executor({Role.ANSWER: model}), THICK)
        assert "20 mm" in answer.text
        for prompt in model.asked:
            assert len(prompt.system + prompt.user) / 4 < context * 0.75
        assert bool(model.asked) != bool(answer.notes)
