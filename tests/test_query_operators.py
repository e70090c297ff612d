"""Each operator on a small book whose right answers are known, and against obvious twins."""

from __future__ import annotations

import asyncio

import igraph
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookrag_fast.config import RetrievalSettings
from bookrag_fast.errors import BudgetError, QueryError
from bookrag_fast.models.roles import ModelSet
from bookrag_fast.query import reasoners, selectors
from bookrag_fast.query.executor import Executor
from bookrag_fast.query.formulators import extract
from bookrag_fast.query.plan import Category, Operation, SearchResult
from bookrag_fast.query.question import prepare
from bookrag_fast.query.sentences import clipped_at_word, split_sentences
from factories import HashEmbedder, small_index
from retrieval_twin import skyline_ranker

EMBEDDER = HashEmbedder()
INDEX = small_index(EMBEDDER)
SETTINGS = RetrievalSettings()
EXECUTOR = Executor(ModelSet(EMBEDDER), SETTINGS)


def search(text: str, budget: int) -> SearchResult:
    return asyncio.run(EXECUTOR.search(lambda: [INDEX], text, budget))


def linked(text: str, distance: float = 0.3) -> dict[str, float]:
    found = extract(INDEX, prepare(text, EMBEDDER), EMBEDDER, link_distance=distance)
    return {INDEX.entities[e.entity].name: e.cosine for e in found}


# --- Extract ----------------------------------------------------------------------------------


def test_extract_links_names_aliases_plurals_and_case() -> None:
    assert linked("What is the Net Positive  Suction Head of PUMPS?") == {"NPSH": 1.0, "pump": 1.0}


def test_extract_meets_names_of_unspaced_scripts() -> None:
    assert linked("東京はどこですか") == {"東京": 1.0}


def test_extract_takes_the_nearest_name_only_within_the_distance() -> None:
    near = linked("What about limits operation table 1 then?")
    assert set(near) == {"Table 1: Limits of operation"}
    assert linked("What about limits operation table?", distance=1e-6) == {}


def test_extract_links_nothing_rather_than_anything() -> None:
    assert linked("Who painted the ceiling?") == {}


# --- selectors --------------------------------------------------------------------------------


def selected(seeds: list[int], text: dict[int, float], added: int) -> list[int]:
    """Content nodes that Select_by_Entity and Select_by_Section select."""
    scores = np.zeros(len(INDEX.nodes), np.float32)
    scores[list(text)] = list(text.values())
    found = INDEX.retriever.retrieve(seeds, np.ones(len(seeds)), scores, added_sections=added)
    return sorted(found.nodes[: found.selected].tolist())


def test_select_by_entity_takes_whole_chapters() -> None:
    found = extract(INDEX, prepare("NPSH", EMBEDDER), EMBEDDER, link_distance=0.3)
    assert selected([e.entity for e in found], {}, 4) == [4, 6]
    assert selected([], {}, 4) == []


def test_select_by_section_takes_the_most_relevant_chapters() -> None:
    text = {8: 2.0, 4: 1.0}
    assert selected([], text, 1) == [8, 9, 10]
    assert selected([], text, 9) == [4, 6, 8, 9, 10]
    assert selected([1], text, 1) == [4, 6, 8, 9, 10]
    assert selected([], dict.fromkeys(text, 0.0), 9) == []


def test_filters() -> None:
    assert selectors.filter_modal(INDEX, "table").tolist() == [8]
    assert selectors.filter_range(INDEX, "5-").tolist() == [7, 8, 9, 10]
    nodes = np.array([8, 9], np.int32)
    assert selectors.filter_modal(INDEX, "image", nodes).tolist() == [9]


@pytest.mark.parametrize(
    ("value", "sections"),
    [
        ("Chapter 1", [3]),
        ("Section 1.1", [5]),
        ("1.1", [5]),
        ("Operation", [7]),
        ("operatoin", [7]),
        ("chapter 9", []),
        ("Section 1.10", []),
        (None, [3, 5, 7]),
    ],
)
def test_sections_are_found_by_number_or_title(value: str | None, sections: list[int]) -> None:
    assert selectors.find_sections(INDEX, value).tolist() == sections


# --- reasoners --------------------------------------------------------------------------------


def test_text_reasoning_puts_the_answer_first() -> None:
    question = prepare("How thick is the plate of steel?", EMBEDDER)
    scores = reasoners.text_reasoning(INDEX, question)
    assert scores.dtype == np.float32
    assert int(scores.argmax()) == 4
    assert scores[0] == 0  # the root says nothing


def graph_twin(selected: list[int], seeds: dict[int, float], percentile: float) -> np.ndarray:
    """Graph_Reasoning in words of one syllable: n×n similarities, sets, and igraph."""
    inside = [i for i, e in enumerate(INDEX.entities) if set(e.nodes) & set(selected)]
    cosine = INDEX.entity_vectors @ INDEX.entity_vectors.T
    edges = [
        (r.source, r.target, r.weight)
        for r in INDEX.relations
        if r.source in inside and r.target in inside
    ]
    if edges:
        threshold = np.percentile([cosine[a, b] for a, b, _ in edges], percentile)
        most = max(1, int(np.ceil(2 * len(edges) / len(inside))))
        joined = {frozenset((a, b)) for a, b, _ in edges}
        new = set()
        for a in inside:
            near = sorted((b for b in inside if b != a), key=lambda b: (-cosine[a, b], b))
            good = [
                b
                for b in near
                if cosine[a, b] >= max(threshold, 1e-6) and frozenset((a, b)) not in joined
            ]
            new |= {(min(a, b), max(a, b)) for b in good[:most]}
        edges += [(a, b, float(cosine[a, b])) for a, b in sorted(new)]
    graph = igraph.Graph(n=len(INDEX.entities), edges=[e[:2] for e in edges])
    reset = [seeds.get(i, 0.0) for i in range(len(INDEX.entities))]
    rank = graph.personalized_pagerank(
        damping=0.5, reset=reset, weights=[e[2] for e in edges], directed=False
    )
    return np.array(
        [sum(rank[i] for i, e in enumerate(INDEX.entities) if n in e.nodes) for n in range(11)]
    )


@pytest.mark.parametrize("selected", [range(11), [3, 4, 5, 6], [7, 8, 9, 10], [8, 9]])
@pytest.mark.parametrize("percentile", [0.0, 50.0, 85.0])
def test_graph_reasoning_equals_its_twin(selected: list[int], percentile: float) -> None:
    question = prepare("pressure, pump and NPSH", EMBEDDER)
    links = extract(INDEX, question, EMBEDDER, link_distance=0.3)
    scores = reasoners.graph_reasoning(
        INDEX, np.array(selected, np.int32), links, damping=0.5, percentile=percentile
    )
    inside = {i for i, e in enumerate(INDEX.entities) if set(e.nodes) & set(selected)}
    seeds = {e.entity: e.weight for e in links if e.entity in inside}
    assert scores is not None
    np.testing.assert_allclose(
        scores, graph_twin(list(selected), seeds, percentile), rtol=1e-3, atol=1e-5
    )


def test_graph_reasoning_without_a_linked_entity_leaves_it_to_the_text() -> None:
    everything = np.arange(11, dtype=np.int32)
    assert reasoners.graph_reasoning(INDEX, everything, [], damping=0.5, percentile=85) is None


SCORES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30)


@given(SCORES, st.integers(1, 12))
def test_skyline_ranker_keeps_the_front_and_fills_up(
    points: list[tuple[int, int]], minimum: int
) -> None:
    values = np.array(points, np.float32)
    candidates = np.arange(100, 100 + len(points), dtype=np.int32)
    kept = skyline_ranker(candidates, list(values.T.copy()), minimum=minimum).tolist()
    front = [
        100 + i
        for i, p in enumerate(points)
        if not any(q[0] >= p[0] and q[1] >= p[1] and q != p for q in points)
    ]
    assert set(front) <= set(kept)
    assert len(kept) == max(len(front), min(minimum, len(points)))
    assert kept == sorted(set(kept))


# --- the whole chain --------------------------------------------------------------------------


def ask(text: str, budget: int = 4000):  # type: ignore[no-untyped-def]
    return asyncio.run(EXECUTOR.ask(lambda: [INDEX], text, budget))


def test_an_answer_quotes_and_cites() -> None:
    answer = ask("How thick is the plate of steel?")
    assert "20 mm" in answer.text
    assert answer.enough
    first = answer.citations[0]
    assert (first.pages, first.labels, first.section) == ((3,), ("1",), ("1 Installation",))
    assert first.quote in answer.text
    assert [o.operator for o in answer.trace.operators][:2] == ["Decompose", "Extract"]
    assert {"Map", "Reduce", "Skyline_Ranker"} <= set(answer.trace.timings_ms())


def test_nothing_to_say_is_said() -> None:
    answer = ask("Who painted the Sistine ceiling?")
    assert not answer.enough


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many tables are there?", "1 table"),
        ("How many figures are in chapter 1?", "0 figures"),
        ("How many figures are in chapter 2?", "1 figure"),
        ("How many chapters does the book have?", "2 chapters"),
        ("How many sections are there?", "3 sections"),
        ("How many pages does the book have?", "6 pages"),
        ("How many tables are on pages 1-4?", "0 tables"),
        ("How many tables are there and how many figures are in chapter 1?", "1 table, 0 figures"),
        ("How many figures and chapters are there?", "1 figure, 2 chapters"),
    ],
)
def test_counts(question: str, text: str) -> None:
    answer = ask(question)
    assert {p.operation for p in answer.plan.sub_plans or (answer.plan,)} == {Operation.COUNT}
    assert answer.text == text
    assert answer.notes == ()


def test_lists_name_titles_and_printed_pages() -> None:
    answer = ask("List the chapters")
    assert answer.text == "1 Installation (p. 1)\n2 Operation (p. 3)"
    assert [c.pages for c in answer.citations] == [(3,), (5,)]


def test_a_filter_on_a_part_that_is_not_there_falls_back() -> None:
    answer = ask("How many tables are in chapter 17?")
    assert answer.plan.category is Category.SINGLE_HOP
    assert "structural filter" in answer.plan.reason
    assert answer.notes == ("no book asked has the part that the question names",)


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("What is on page 99?", "there is no page 99: the last one is 6"),
        ("What is said on pages 5-3?", "is no page range, so the whole book was searched"),
        ("What is on page ii?", None),
    ],
)
def test_pages_that_are_not_there_are_spoken_of(question: str, note: str | None) -> None:
    for result in (
        ask(question),
        search(question, 500),
    ):
        assert len(result.notes) == (note is not None)
        assert not note or note in result.notes[0]
        assert result.to_json()["notes"] == list(result.notes)


def test_named_tables_and_pages_come_first() -> None:
    assert search("What does Table 1 say?", 2000).evidence[0].node_id == 8
    assert search("What is on page ii?", 2000).evidence[0].node_id == 2


def test_evidence_stays_within_the_budget() -> None:
    for budget in (1, 5, 20, 60, 2000):
        result = search("pressure of the pump", budget)
        assert len(result.evidence) >= 1
        assert sum(e.tokens for e in result.evidence) <= budget
    ids = [e.node_id for e in result.evidence]
    assert len(ids) == len(set(ids))


def test_what_must_be_shortened_ends_with_a_sentence_or_a_word() -> None:
    first = search("level plate of steel", 10).evidence[0]
    assert first.text == "Mount the pump on a level plate."
    first = search("level plate of steel", 4).evidence[0]
    assert first.text == "Mount the pump…"
    assert first.tokens <= 4
    assert search("level plate of steel", 1).evidence[0].tokens == 1


def test_searching_for_an_aggregate_fills_the_budget() -> None:
    result = search("How many tables are there?", 2000)
    assert result.plan.category is Category.GLOBAL
    assert result.evidence[0].node_id == 8
    assert len(result.evidence) > 1
    small = search("How many tables are there?", 16)
    assert sum(e.tokens for e in small.evidence) <= 16


@pytest.mark.parametrize("budget", [0, -1, 1_000_001])
def test_impossible_budgets_are_refused(budget: int) -> None:
    with pytest.raises(BudgetError):
        ask("pump", budget)


@pytest.mark.parametrize("question", ["", "   \n", "x" * 10_001])
def test_impossible_questions_are_refused(question: str) -> None:
    with pytest.raises(QueryError):
        ask(question)


@given(st.text(min_size=1, max_size=60).filter(str.strip))
def test_no_question_breaks_the_engine(question: str) -> None:
    answer = ask(question)
    assert answer.to_json()["answer"]


# --- sentences --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("See Fig. 3 for it. Then go.", ["See Fig. 3 for it.", "Then go."]),
        ("Use e.g. This one. End.", ["Use e.g. This one.", "End."]),
        ("3.5 metres. Next.", ["3.5 metres.", "Next."]),
        ("東京です。次の文です。", ["東京です。", "次の文です。"]),
        ("J. Smith came. He left.", ["J. Smith came.", "He left."]),
        ("", []),
    ],
)
def test_sentences(text: str, pieces: list[str]) -> None:
    assert split_sentences(text) == pieces


@pytest.mark.parametrize(
    ("text", "characters", "cut"),
    [
        ("the Pareto front", 16, "the Pareto front"),
        ("the Pareto front.", 16, "the Pareto…"),
        ("the Pareto front", 11, "the Pareto…"),
        ("the Pareto front", 14, "the Pareto…"),
        ("a incomprehensibilities", 9, "a incomp…"),
        ("東京です次の文", 4, "東京で…"),
    ],
)
def test_a_text_is_cut_at_the_end_of_a_word(text: str, characters: int, cut: str) -> None:
    found = clipped_at_word(text, characters)
    assert found == cut
    assert len(found) <= characters
