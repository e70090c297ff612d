"""Extraction by rules: what becomes an entity, where it occurs, and what it is related to."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast.index.cooccurrence import Windows, associate
from bookrag_fast.index.extraction import extract_graph
from bookrag_fast.index.lexing import Lexer, Part, Shape, split_sentences
from bookrag_fast.index.model import ExtractedGraph, NodeKind
from graph_trees import TreeBuilder, find, relation, relations


def of(*paragraphs: str) -> ExtractedGraph:
    book = TreeBuilder()
    for paragraph in paragraphs:
        book.text(paragraph)
    return extract_graph(book.tree())


def names(graph: ExtractedGraph, kind: str) -> set[str]:
    return {e.name for e in graph.entities if e.type == kind}


# --- words and sentences ------------------------------------------------------------------------


def test_sentences() -> None:
    text = "Dr. Smith came. He saw Fig. 2 first! See e.g. this.\n\n• One\n• Two\n\n日本語。次の文。"
    assert split_sentences(text) == [
        "Dr. Smith came.", "He saw Fig. 2 first!", "See e.g. this.", "• One", "• Two",
        "日本語。", "次の文。",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("graph", Shape.LOWER), ("Graph", Shape.CAPITAL), ("PDF", Shape.UPPER),
        ("personalized_pagerank", Shape.IDENTIFIER), ("BookRAG", Shape.IDENTIFIER),
        ("GPT-4.5", Shape.IDENTIFIER), ("--verbose", Shape.IDENTIFIER), ("3.14", Shape.NUMBER),
        ("the", Shape.STOP), ("知識", Shape.CJK), ("グラフ", Shape.CJK), ("の", Shape.BREAK),
        ("(", Shape.BREAK), ("US", Shape.UPPER), ("us", Shape.STOP), ("x@y.org", Shape.BREAK),
        ("https://x.org/a", Shape.BREAK), ("граф", Shape.LOWER), ("Москва", Shape.CAPITAL),
    ],
)  # fmt: skip
def test_shapes_of_words(word: str, shape: Shape) -> None:
    lexer = Lexer()
    (sentence,) = lexer.read(1, Part.BODY, f"{word}")
    assert [lexer.words[i].shape for i in sentence.words] == [shape]


def test_a_line_in_capitals_is_read_as_ordinary_words() -> None:
    lexer = Lexer()
    (sentence,) = lexer.read(1, Part.HEADING, "RISK FACTORS OF THE COMPANY")
    assert lexer.phrase(sentence.words[:2]) == "risk factors"


# --- entities -----------------------------------------------------------------------------------


def test_noun_phrases_that_recur() -> None:
    graph = of(
        "The knowledge graph is built first. A knowledge graph links entities.",
        "We query the knowledge graphs quickly. The weather was fine.",
    )
    entity = find(graph, "knowledge graph", "concept")
    assert entity is not None
    assert entity.nodes == (2, 3)
    assert entity.aliases == ("knowledge graphs",)
    assert find(graph, "weather") is None
    assert find(graph, "knowledge") is None  # only ever a part of the longer one


def test_names_and_identifiers() -> None:
    graph = of(
        "The library was written by Ada Lovelace in London. Then Ada Lovelace left London.",
        "Call personalized_pagerank to rank; BookRAG uses GPT-4.5 and PDF files. The PDF is read.",
        "The Best Buy stores of Best Buy and the Bank of England sold it.",
    )
    assert {"Ada Lovelace", "London", "PDF", "Best Buy", "Bank of England"} <= names(graph, "name")
    assert {"personalized_pagerank", "BookRAG", "GPT-4.5"} <= names(graph, "identifier")
    assert find(graph, "Then") is None
    assert find(graph, "Call") is None


def test_people_and_organisations_where_rules_are_safe() -> None:
    graph = of("We met Mr. Hubert Joly at Danka Systems Inc. and Mr. Hubert Joly spoke.")
    assert names(graph, "person") == {"Hubert Joly"}
    assert "Danka Systems Inc" in names(graph, "organization")


def test_a_name_that_is_also_a_word_is_met_only_with_a_capital() -> None:
    graph = of("He went to Target and Target was shut.", "The aim is to target users of shops.")
    entity = find(graph, "Target", "name")
    assert entity is not None
    assert entity.nodes == (2,)


def test_acronyms_are_aliases_of_their_long_form() -> None:
    graph = of("Personalized PageRank (PPR) ranks.", "PPR is fast.", "It uses PPR twice.")
    entity = find(graph, "PPR")
    assert entity is not None
    assert entity.name == "Personalized PageRank"
    assert entity.nodes == (2, 3, 4)
    assert "(PPR)" in entity.description
    assert len([e for e in graph.entities if "PPR" in (e.name, *e.aliases)]) == 1


def test_an_acronym_of_two_things_keeps_them_apart() -> None:
    graph = of(
        "The convolutional neural network (CNN) won.",
        "The Cable News Network (CNN) reported. CNN went on.",
    )
    assert relations(graph, "AliasOf") == {
        ("CNN", "convolutional neural network"),
        ("CNN", "Cable News Network"),
    }
    assert relation(graph, "AliasOf", "CNN", "Cable News Network").nodes == (3,)
    network = find(graph, "convolutional neural network")
    assert network is not None
    assert network.nodes == (2,)
    assert "CNN" not in network.aliases


def test_glossary_lines_and_tables_define() -> None:
    book = TreeBuilder()
    book.text("• LLM: large language model\n• KG: knowledge graph", kind=NodeKind.LIST)
    book.text("The LLM reads the KG.")
    book.table("Table 1: Terms", [["Term", "Meaning"], ["API (application interface)", "x"]])
    graph = extract_graph(book.tree())
    for short, long in (("LLM", "large language model"), ("KG", "knowledge graph")):
        entity = find(graph, short)
        assert entity is not None
        assert entity.name == long
        assert entity.nodes == (2, 3)


def test_definitions_become_descriptions() -> None:
    graph = of(
        "The skyline operator is used. The skyline operator is fast.",
        "A skyline operator is a filter that keeps undominated nodes. It is quick.",
        "This set is called a Pareto front by economists.",
    )
    skyline = find(graph, "skyline operator")
    assert skyline is not None
    assert skyline.description == "A skyline operator is a filter that keeps undominated nodes."
    front = find(graph, "Pareto front")
    assert front is not None
    assert "is called" in front.description


def test_descriptions_are_short() -> None:
    graph = of("A skyline operator is a filter " + "that keeps nodes " * 60 + ". Skyline operator.")
    skyline = find(graph, "skyline operator")
    assert skyline is not None
    assert 0 < len(skyline.description) <= 300


def test_bibliographies_yield_no_names_but_are_searched() -> None:
    book = TreeBuilder()
    book.text("We follow Ada Lovelace and the Analytical Engine. Ada Lovelace began it.")
    references = book.section("References")
    cited = book.text("Ada Lovelace and Jane Unknown. Notes. Taylor Journal.", parent=references)
    graph = extract_graph(book.tree())
    assert find(graph, "Jane Unknown") is None
    ada = find(graph, "Ada Lovelace")
    assert ada is not None
    assert cited in ada.nodes


def test_contents_pages_are_left_out() -> None:
    book = TreeBuilder()
    contents = book.section("Contents")
    book.text("The knowledge graph ...... 3\n\nThe knowledge graph again .... 4", parent=contents)
    text = book.text("The knowledge graph and one more knowledge graph.")
    graph = extract_graph(book.tree())
    found = find(graph, "knowledge graph")
    assert found is not None
    assert found.nodes == (text,)
    assert find(graph, "Contents", "section") is not None


def test_verbs_and_page_furniture_are_no_concepts() -> None:
    graph = of(*["The agent reformulates the question. See page 3 of the following table."] * 5)
    concepts = names(graph, "concept")
    assert not concepts & {"agent reformulates", "page", "table", "following table", "See page"}


def test_japanese_and_russian() -> None:
    graph = of(
        "本書では知識グラフを構築する。知識グラフはエンティティを結ぶ。エンティティは節である。",
        "Мы строим граф знаний. В графе знаний есть узлы. Анна Каренина и Анна Каренина.",
    )
    assert {"知識グラフ", "エンティティ"} <= names(graph, "concept")
    knowledge = find(graph, "граф знаний")
    assert knowledge is not None
    assert knowledge.nodes == (3,)
    assert find(graph, "Анна Каренина") is not None
    assert find(graph, "本書") is None or "本書" not in names(graph, "name")


def test_numbers_follow_no_japanese_counter() -> None:
    graph = of("20歳未満の者は禁止。20歳未満の者に販売禁止。第三百条と第三百条。")
    assert find(graph, "歳未満") is None
    assert find(graph, "第三百条") is None


# --- relations ----------------------------------------------------------------------------------


def test_names_met_together_are_related() -> None:
    pairs = [f"The red apple pie and the green pear tart stood there. Day {i}." for i in range(3)]
    others = [f"The blue cheese cake stood alone on shelf {i}. Blue cheese cake." for i in range(6)]
    graph = of(*pairs, *others)
    together = {frozenset(p) for p in relations(graph, "CoOccurs")}
    assert frozenset({"red apple pie", "green pear tart"}) in together
    assert not any("blue cheese cake" in p for p in together)


def test_association_is_sparse_weighted_and_positive() -> None:
    rng = np.random.default_rng(7)
    windows = Windows(np.ones(400, dtype=np.float32))
    for node in range(2000):
        windows.add(node, set(rng.integers(0, 400, size=40).tolist()))
    found = associate(windows, 400)
    assert len(found) <= 8 * 400
    assert all(r.source < r.target and math.isfinite(r.weight) and r.weight > 0 for r in found)
    assert all(1 <= len(r.nodes) <= 16 and list(r.nodes) == sorted(set(r.nodes)) for r in found)
    assert len({(r.source, r.target) for r in found}) == len(found)


def test_a_window_keeps_its_most_salient() -> None:
    salience = np.arange(100, dtype=np.float32)
    windows = Windows(salience)
    windows.add(0, set(range(100)))
    assert windows.rows[0].tolist() == list(range(76, 100))


def test_association_by_hand() -> None:
    windows = Windows(np.ones(3, dtype=np.float32))
    for node, row in enumerate([{0, 1}, {0, 1}, {2}, {2}]):
        windows.add(node, row)
    (pair,) = associate(windows, 3)
    # p(0) = p(1) = p(0, 1) = 1/2: NPMI is 1, and two windows are shared.
    assert (pair.source, pair.target, pair.nodes) == (0, 1, (0, 1))
    assert pair.weight == pytest.approx(math.log2(3), abs=1e-4)
    assert associate(Windows(np.ones(3, dtype=np.float32)), 3) == []


# --- invariants ---------------------------------------------------------------------------------

words = st.sampled_from(
    ["knowledge graph", "Knowledge Graph", "PPR", "Ada Lovelace", "the", "is a", "see Table 1",
     "(PPR)", "Personalized PageRank (PPR)", "Section 2", ".", "\n\n", "知識グラフ", "を", "граф",
     "3.14", "snake_case", "--option", ":", "is called", "In Proceedings of"]
)  # fmt: skip
paragraph = st.lists(words, max_size=25).map(" ".join) | st.text(max_size=80)


KINDS = ("text", "section", "table", "image", "code", "list", "equation")


@st.composite
def books(draw: st.DrawFn) -> TreeBuilder:
    book = TreeBuilder(draw(paragraph))
    for text in draw(st.lists(paragraph, max_size=6)):
        kind = draw(
            st.sampled_from(["text", "section", "table", "image", "code", "list", "equation"])
        )
        if kind == "section":
            book.section(text, numbering=draw(st.sampled_from(["", "1", "2", "Appendix A"])))
        elif kind == "table":
            book.table(text, [[text, "x"], ["y", text]], headers=draw(st.booleans()))
        elif kind == "image":
            book.image(text)
        elif kind == "equation":
            book.equation(text)
        else:
            book.text(text, kind=NodeKind[kind.upper()])
    return book


@settings(max_examples=150)
@given(books())
def test_the_graph_is_sound(book: TreeBuilder) -> None:
    tree = book.tree()
    graph = extract_graph(tree)
    assert graph == extract_graph(tree)
    keys = [e.key for e in graph.entities]
    assert len(set(keys)) == len(keys)
    for entity in graph.entities:
        assert entity.name.strip()
        assert entity.nodes
        assert list(entity.nodes) == sorted(set(entity.nodes))
        assert all(0 < n < len(tree.nodes) for n in entity.nodes)
        assert len(entity.description) <= 300
    for r in graph.relations:
        assert 0 <= r.source < len(keys)
        assert 0 <= r.target < len(keys)
        assert r.source != r.target or r.name != "CoOccurs"
        assert math.isfinite(r.weight)
        assert r.weight > 0
        assert r.nodes
        assert all(0 < n < len(tree.nodes) for n in r.nodes)


def test_entities_are_bounded_by_the_text() -> None:
    rng = np.random.default_rng(3)
    stems = ["".join(rng.choice(list("bcdfghjklm"), 6)) for _ in range(3000)]
    text = [
        " and ".join(f"the {a} {b}" for a, b in rng.choice(stems, (200, 2))) + "."
        for _ in range(30)
    ]
    graph = of(*text, *text)
    tokens = sum(len(t.split()) for t in text) * 2
    assert len(graph.entities) <= 45 * tokens / 1000 + 50
    assert len(graph.relations) <= 10 * len(graph.entities)


@pytest.mark.parametrize(
    "piece",
    [".", "_", "-", "a-.", "A.", "A.A(", "a@", "(A", "\n ", "Section 1, ", "Aa ", "Aa of ", "。",
     "漢", "x_", "'s", "(", "A (b ", "1.", "\u0301", "Table 1 and "],
)  # fmt: skip
def test_no_text_takes_quadratic_time(piece: str) -> None:
    started = time.process_time()
    of(piece * (200_000 // len(piece)))
    assert time.process_time() - started < 5.0
