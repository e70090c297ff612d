"""Tokens and BM25 against the formula written out."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookrag_fast.index.book_index import count_tokens
from bookrag_fast.index.lexicon import Lexicon, build_lexicon, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The cats' policies", ["the", "cat", "policy"]),
        ("the pump's flow", ["the", "pump", "flow"]),
        ("1,577.5 and 3.2%", ["1,577.5", "and", "3.2%"]),
        ("GPT-4.5 (café)", ["gpt", "4.5", "café"]),
        ("東京都の人口", ["東京", "京都", "都の", "の人", "人口"]),
        ("東", ["東"]),
        ("ＡＢＣ", ["abc"]),
        ("Глава 3", ["глава", "3"]),
        ("snake_case", ["snake", "case"]),
        ("", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


def bm25(term: str, texts: list[str], node: int) -> float:
    """Robertson/Lucene BM25 (k1 = 1.2, b = 0.75), term by term, from its definition."""
    docs = [tokenize(t) for t in texts]
    tf = docs[node].count(term)
    df = sum(term in d for d in docs)
    mean = max(sum(map(len, docs)) / len(docs), 1e-9)  # a book without a word
    idf = math.log(1 + (len(docs) - df + 0.5) / (df + 0.5))
    return idf * tf / (tf + 1.2 * (1 - 0.75 + 0.75 * len(docs[node]) / mean))


WORDS = st.sampled_from(["alpha", "beta", "gamma", "delta", "東京", "1,000"])
TEXTS = st.lists(st.lists(WORDS, max_size=8).map(" ".join), min_size=1, max_size=12)


@given(TEXTS, st.lists(WORDS, min_size=1, max_size=3))
def test_scores_equal_the_definition(texts: list[str], words: list[str]) -> None:
    lexicon = build_lexicon(texts)
    terms = list(dict.fromkeys(t for w in words for t in tokenize(w)))
    scores = lexicon.scores(terms)
    for node in range(len(texts)):
        expected = sum(bm25(t, texts, node) for t in terms)
        assert scores[node] == pytest.approx(expected, abs=1e-4)
    assert scores.max(initial=0) <= lexicon.ceiling(terms) + 1e-4


def test_unknown_terms_and_empty_books() -> None:
    assert build_lexicon([]).scores(["x"]).shape == (0,)
    assert build_lexicon(["", ""]).scores(["x"]).tolist() == [0, 0]
    assert isinstance(build_lexicon(["a"]), Lexicon)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("東京", 2),
                                              ("東京ab", 3), ("日本語。", 4)])  # fmt: skip
def test_budget_tokens(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens
