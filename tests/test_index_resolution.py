"""Entity resolution: what may merge, what must not, and that nothing is lost by merging."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.index import resolution
from bookrag_fast.index.model import Entity, ExtractedGraph, Relation, normalise_name
from bookrag_fast.index.sameness import form_of, rule_for
from bookrag_fast.models.protocols import EmbedderInfo, FloatMatrix
from bookrag_fast.models.static import WordLlamaEmbedder
from bookrag_fast.models.twins import LocalEmbedder

WORDLLAMA = WordLlamaEmbedder()


class LetterEmbedder(LocalEmbedder):
    """Counts of letter pairs: near for near spellings, and fast."""

    info = EmbedderInfo("letters", 64)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> FloatMatrix:
        out = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            for a, b in zip(f" {text.casefold()}", f"{text.casefold()} ", strict=True):
                out[row, (ord(a) * 31 + ord(b)) % 64] += 1.0
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


def graph_of(*names: str | Entity) -> ExtractedGraph:
    entities = [
        name if isinstance(name, Entity) else Entity(name, "concept", nodes=(i,))
        for i, name in enumerate(names)
    ]
    return ExtractedGraph(tuple(entities), ())


def resolve(
    graph: ExtractedGraph, embedder: LocalEmbedder, **limits: Any
) -> tuple[ExtractedGraph, FloatMatrix]:
    return resolution.resolve(graph, embedder.embed([e.name for e in graph.entities]), **limits)


def rule(left: str, right: str, kind: str = "concept") -> str:
    a, b = form_of(Entity(left, kind)), form_of(Entity(right, kind))
    assert rule_for(a, b) == rule_for(b, a)
    return rule_for(a, b)


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("knowledge graph", "Knowledge  Graph", "same name"),
        ("knowledge graph", "knowledge graphs", "plural"),
        ("query category", "query categories", "plural"),
        ("data set", "dataset", "spacing"),
        ("ground-truth answer", "ground truth answer", "same words"),
        ("plot", "plot()", "same words"),
        ("the Library", "Library", "same words"),
        ("colour model", "color model", "spelling variant"),
        ("tokenisation", "tokenization", "spelling variant"),
        ("Netflix", "Netflix, Inc.", "company suffix"),
        ("PPR", "Personalized PageRank", "acronym"),
        ("GPT-4", "GPT4", "spacing"),
    ],
)
def test_rules_that_merge(left: str, right: str, expected: str) -> None:
    assert rule(left, right) == expected


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Event Detection", "Named Entity Recognition"),
        ("Event Detection", "Event Extraction"),
        ("Model A", "Model B"),
        ("Model A", "Model"),
        ("fiscal 2015", "fiscal 2016"),
        ("Python 3.1", "Python 3.11"),
        ("Python 3.11", "Python 31.1"),
        ("Section 3", "Section 13"),
        ("Rung 1", "Rung 2"),
        ("World War I", "World War II"),
        ("first quarter", "second quarter"),
        ("supervised learning", "unsupervised learning"),
        ("linear model", "nonlinear model"),
        ("causal graph", "casual graph"),
        ("input layer", "output layer"),
        ("C", "C++"),
        ("-b", "\\b"),
        ("gross sales", "gross sales %"),
        ("support vector machine", "state vector machine"),
        ("Ann Smith", "Anne Smith"),
        ("New York", "New York Times"),
        ("PPR", "Paper Products"),
        ("CNN", "condensed news"),
        ("precision", "precision and recall"),
        ("knowledge graph", "graph knowledge"),
        ("UTF-8", "UTF-16"),
        ("", "()"),
    ],
)
def test_names_that_stay_apart(left: str, right: str) -> None:
    assert rule(left, right) == ""


def test_misspellings_are_believed_only_when_rare() -> None:
    often = Entity("personalization", "concept", nodes=(1, 2, 3))
    once = Entity("persomalization", "concept", nodes=(4,))
    assert rule_for(form_of(often), form_of(once)) == "misspelling"
    twice = replace(once, nodes=(4, 5))
    assert rule_for(form_of(often), form_of(twice)) == ""
    people = (replace(often, type="person"), replace(once, type="person"))
    assert rule_for(form_of(people[0]), form_of(people[1])) == ""


@pytest.mark.parametrize("kind", ["section", "table", "image", "equation"])
def test_places_in_the_book_never_merge(kind: str) -> None:
    assert rule("Summary", "Summaries", kind) == ""


def test_types_must_agree() -> None:
    concept, name = Entity("apple", "concept"), Entity("Apple", "name")
    header, person = Entity("apple", "header"), Entity("apple", "person")
    assert rule_for(form_of(concept), form_of(name)) == "same name"
    for other in (header, person):
        assert rule_for(form_of(concept), form_of(other)) == ""


# --- resolve --------------------------------------------------------------------------------------


def test_merging_unites_everything() -> None:
    graph = ExtractedGraph(
        (
            Entity("knowledge graph", "concept", "Links entities.", ("KG",), (1, 5)),
            Entity("knowledge graphs", "name", "Are built.", ("graphs of knowledge",), (2, 5, 9)),
            Entity("entity linking", "concept", nodes=(5,)),
        ),
        (
            Relation(0, 2, "CoOccurs", weight=1.5, nodes=(5,)),
            Relation(2, 1, "CoOccurs", weight=0.5, nodes=(9,)),
            Relation(0, 1, "CoOccurs", weight=2.0, nodes=(5,)),
            Relation(2, 2, "RefersTo", nodes=(5,)),
        ),
    )
    merged, vectors = resolve(graph, WORDLLAMA)
    # The one of most places is kept, where it stood.
    united, other = merged.entities
    assert (united.name, united.type) == ("knowledge graphs", "name")
    assert united.nodes == (1, 2, 5, 9)
    assert united.aliases == ("graphs of knowledge", "knowledge graph", "KG")
    assert united.description == "Are built.\nLinks entities."
    assert other == graph.entities[2]
    # Ends remapped, the relation between the two gone, parallel ones and old loops kept.
    assert merged.relations == (
        replace(graph.relations[0], source=0, target=1),
        replace(graph.relations[1], source=1, target=0),
        replace(graph.relations[3], source=1, target=1),
    )
    assert vectors.shape == (2, 256)
    assert np.allclose(vectors, WORDLLAMA.embed(["knowledge graphs", "entity linking"]))
    (record,) = merged.merges
    assert (record.kept, record.merged) == (1, 0)
    assert (record.kept_name, record.merged_name) == ("knowledge graphs", "knowledge graph")
    assert record.rule == "plural"
    assert record.case in ("merge", "ambiguous")
    assert 0.5 <= record.score <= record.similarity <= 1.0


def test_parallel_names_stay_apart_together() -> None:
    names = [f"Model {c}" for c in "ABCDEFGH"] + [f"fiscal {y}" for y in range(2010, 2022)]
    names += ["Event Detection", "Event Extraction", "Named Entity Recognition"]
    graph, _ = resolve(graph_of(*names), WORDLLAMA)
    assert [e.name for e in graph.entities] == names
    assert graph.merges == ()


def test_a_chain_never_joins_names_in_conflict() -> None:
    # Each neighbour pair might pass for the same; the ends must not.
    graph, _ = resolve(graph_of("GPT-3 model", "GPT3 models", "GPT-4 model"), LetterEmbedder())
    assert {e.name for e in graph.entities} >= {"GPT-4 model"}
    assert all("4" not in m.merged_name or "4" in m.kept_name for m in graph.merges)


def test_same_name_of_incompatible_type_stays() -> None:
    same = [
        Entity("revenue", t, nodes=(i,)) for i, t in enumerate(("concept", "header", "section"))
    ]
    graph, _ = resolve(graph_of(*same), WORDLLAMA)
    assert len(graph.entities) == 3


def test_gates_and_arguments() -> None:
    pair = graph_of("data set", "data sets")
    assert len(resolve(pair, WORDLLAMA)[0].entities) == 1
    assert len(resolve(pair, WORDLLAMA, max_distance=0.0)[0].entities) == 2
    assert len(resolve(pair, WORDLLAMA, min_score=1.0)[0].entities) == 2
    assert len(resolve(pair, WORDLLAMA, k=1)[0].entities) == 1
    with pytest.raises(InvalidArgumentError, match="k must"):
        resolve(pair, WORDLLAMA, k=0)
    with pytest.raises(InvalidArgumentError):
        resolve(pair, WORDLLAMA, g=0.0)


def test_a_graph_without_entities() -> None:
    graph, vectors = resolve(ExtractedGraph((), ()), WORDLLAMA)
    assert graph == ExtractedGraph((), ())
    assert vectors.shape == (0, 256)


WORDS = (
    *"graph graphs Graph dataset data-set model A B 1 2 colour color Inc node nodes () %".split(),
    *("data set", "知識", "グラフ", "naïve"),
)
name = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


@st.composite
def graphs(draw: st.DrawFn) -> ExtractedGraph:
    kinds = st.sampled_from(("concept", "name", "header", "section"))
    found: dict[tuple[str, str], Entity] = {}
    for text, kind in draw(st.lists(st.tuples(name, kinds), min_size=1, max_size=14)):
        nodes = tuple(sorted(draw(st.sets(st.integers(1, 30), min_size=1, max_size=4))))
        entity = Entity(text, kind, draw(st.sampled_from(("", f"About {text}."))), (), nodes)
        found.setdefault(entity.key, entity)
    ends = st.integers(0, len(found) - 1)
    some = draw(st.lists(st.tuples(ends, ends, st.integers(1, 30)), max_size=12))
    relations = tuple(
        Relation(a, b, "CoOccurs", f"r{i}", 1.0 + i, (n,)) for i, (a, b, n) in enumerate(some)
    )
    return ExtractedGraph(tuple(found.values()), relations)


def nodes_of(graph: ExtractedGraph) -> set[int]:
    return {n for e in graph.entities for n in e.nodes}


@settings(max_examples=150)
@given(graphs())
def test_nothing_is_lost(graph: ExtractedGraph) -> None:
    merged, vectors = resolve(graph, LetterEmbedder())
    assert len(vectors) == len(merged.entities)
    assert len(merged.entities) + len(merged.merges) == len(graph.entities)
    keys = [e.key for e in merged.entities]
    assert len(set(keys)) == len(keys)
    # Every node and every name is still there.
    assert {n for e in merged.entities for n in e.nodes} == {
        n for e in graph.entities for n in e.nodes
    }
    names = {normalise_name(n) for e in merged.entities for n in (e.name, *e.aliases)}
    assert names == {normalise_name(e.name) for e in graph.entities}
    # Every relation is still there, but for those between entities that became one.
    home = {i: i for i in range(len(graph.entities))}
    for m in merged.merges:
        home[m.merged] = m.kept
    for i in home:
        while home[home[i]] != home[i]:
            home[i] = home[home[i]]
    gone = {r.description for r in graph.relations} - {r.description for r in merged.relations}
    for r in graph.relations:
        one = home[r.source] == home[r.target] and r.source != r.target
        assert (r.description in gone) == one
    for r in merged.relations:
        old = next(o for o in graph.relations if o.description == r.description)
        assert (r.weight, r.nodes, r.name) == (old.weight, old.nodes, old.name)
        for new, before in ((r.source, old.source), (r.target, old.target)):
            assert merged.entities[new].key == graph.entities[home[before]].key


@settings(max_examples=80)
@given(graphs(), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_twice_is_once(graph: ExtractedGraph, rng: random.Random) -> None:
    once, _ = resolve(graph, LetterEmbedder(), k=20)
    again, _ = resolve(once, LetterEmbedder(), k=20)
    assert again.entities == once.entities
    assert again.relations == once.relations
    order = list(range(len(graph.entities)))
    rng.shuffle(order)
    shuffled = ExtractedGraph(tuple(graph.entities[i] for i in order), ())
    other, _ = resolve(shuffled, LetterEmbedder(), k=20)
    assert {(e.key, e.nodes) for e in other.entities} == {(e.key, e.nodes) for e in once.entities}


# --- measured on real pairs -----------------------------------------------------------------------


def data_folder() -> Path | None:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("BOOKRAG_TEST_DATA", beside)) / "er"
    return folder if folder.is_dir() else None


@pytest.mark.skipif(data_folder() is None, reason="no evaluation data (BOOKRAG_TEST_DATA)")
@pytest.mark.parametrize(
    "source", ["Structured_Beer", "Structured_Fodors-Zagats", "Structured_iTunes-Amazon"]
)
def test_no_false_merge_among_labelled_pairs(source: str) -> None:
    folder = data_folder()
    assert folder is not None
    labels: dict[tuple[str, str], set[int]] = {}
    names: dict[str, None] = {}
    for line in (folder / source / "test.txt").read_text(encoding="utf-8").splitlines():
        left, right, label = line.rsplit("\t", 2)
        pair = tuple(
            re.sub(r"\s+", " ", re.sub(r"COL \S+ VAL (.*?) COL .*", r"\1", side)).strip(" `'")
            for side in (left, right)
        )
        if all(pair):
            labels.setdefault((pair[0], pair[1]), set()).add(int(label))
            names.update(dict.fromkeys(pair))
    keys: dict[str, str] = {}
    for found in names:
        keys.setdefault(normalise_name(found), found)
    graph, _ = resolve(graph_of(*keys.values()), WORDLLAMA)
    home = {normalise_name(n): e.name for e in graph.entities for n in (e.name, *e.aliases)}
    false = [
        (a, b)
        for (a, b), label in labels.items()
        if label == {0}
        and normalise_name(a) != normalise_name(b)
        and home[normalise_name(a)] == home[normalise_name(b)]
    ]
    assert false == []
