"""Acronym definitions: what is one, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast.index.acronyms import expands, find_definitions, is_acronym


def found(sentence: str) -> list[tuple[str, str]]:
    return [(d.short, d.long) for d in find_definitions(sentence)]


@pytest.mark.parametrize(
    ("sentence", "short", "long"),
    [
        ("We run Personalized PageRank (PPR) on it.", "PPR", "Personalized PageRank"),
        ("PPR (Personalized PageRank) ranks nodes.", "PPR", "Personalized PageRank"),
        ("PPR: Personalized PageRank", "PPR", "Personalized PageRank"),
        ("PPR – Personalized PageRank on a graph", "PPR", "Personalized PageRank"),
        ("PPR | Personalized PageRank", "PPR", "Personalized PageRank"),
        ("uses long short-term memory networks (LSTMs) here", "LSTM", ""),
        ("uses long short-term memory (LSTM) here", "LSTM", "long short-term memory"),
        (
            "the Securities and Exchange Commission (“SEC”)",
            "SEC",
            "Securities and Exchange Commission",
        ),
        (
            'the Securities and Exchange Commission ("SEC").',
            "SEC",
            "Securities and Exchange Commission",
        ),
        ("Retrieval-Augmented Generation (RAG)", "RAG", "Retrieval-Augmented Generation"),
        ("an application programming interface (API)", "API", "application programming interface"),
        ("a large language model (LLMs)", "LLM", "large language model"),
        ("Portable Document Format（PDF）", "PDF", "Portable Document Format"),
    ],
)
def test_definitions(sentence: str, short: str, long: str) -> None:
    assert found(sentence) == ([(short, long)] if long else [])


@pytest.mark.parametrize(
    "sentence",
    [
        "as shown in the figure (PPR)",
        "the committee met in May (NATO)",
        "the company (the “Company”) sells",
        "see the appendix (A)",
        "in 2015 (II)",
        "results (see Table 2) improve",
        "Note: Nodes of every tree",
        "WARNING: do not open",
        "text without any bracket PPR",
        "",
    ],
)
def test_no_definitions(sentence: str) -> None:
    assert found(sentence) == []


def test_letters_are_checked() -> None:
    assert expands("KG", "knowledge graph")
    assert expands("GT", "ground truth")
    assert not expands("KG", "graph knowledge")
    assert not expands("PPR", "Personalized")
    assert not expands("PPR", "Ripe Papers")
    assert not expands("SVM", "support vector machine learning")  # a word without a letter
    assert not expands("PPR", "a PPR run")


def test_what_an_acronym_is() -> None:
    assert all(is_acronym(s) for s in ("PPR", "LSTMs", "GPT-4", "R&D", "BiDAF"))
    assert not any(is_acronym(s) for s in ("P", "Paper", "BookIndex", "ABCDEFGHIJKL", "e.g."))


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    for definition in find_definitions(text):
        assert is_acronym(definition.short)
        assert expands(definition.short, definition.long)
