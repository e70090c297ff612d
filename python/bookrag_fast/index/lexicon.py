"""Words of a book: tokens, and BM25 over its nodes.

Scripts that write no spaces (CJK, kana, hangul runs, Thai …) are cut into character bigrams, which
find Japanese pages far better than dictionary words do; everything else is cut into words. The BM25
weights are computed once, when a book is indexed; a question only adds up rows of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["STOP_WORDS", "Lexicon", "build_lexicon", "tokenize"]

_UNSPACED = (  # kana, CJK ideographs, half-width katakana, Thai
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\u0e00-\u0e7f々〆"
)
_TOKEN = re.compile(
    rf"[{_UNSPACED}]+"  # cut into bigrams below
    r"|\d+(?:[.,]\d+)*%?"  # numbers keep their inner points and commas
    rf"|[^\W\d_{_UNSPACED}][^\W_{_UNSPACED}]*(?:['’][^\W\d_]+)?"
)
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")

# Function words of the question say nothing of where the answer stands.
STOP_WORDS = frozenset(
    (
        "a an the and or of in on at to for from by with without as is are was were be been being "
        "it its this that these those there their them they he she his her we our you your i what "
        "which who whom whose when where why how do does did done has have had can could may might "
        "should would will shall not no nor if then than so such into about between within during "
        "per each any all some more most other also et al "
        "и в во не на что с со а как по из за от к у о для это или "
        "の に は を が と で へ も や から まで より"
    ).split()
)


def _stem(word: str) -> str:
    """Harman's S-stemmer: plural endings only, so that nothing unlike is joined."""
    if len(word) > 3 and word.isascii():
        if word.endswith("ies") and word[-4] not in "ae":
            return word[:-3] + "y"
        if word.endswith("es") and word[-3] not in "aeo":
            return word[:-1]
        if word.endswith("s") and word[-2] not in "us":
            return word[:-1]
    return word


def tokenize(text: str) -> list[str]:
    """Index terms of a text, in order: NFKC, casefolded words (plural stripped), numbers, and
    overlapping character bigrams of unspaced scripts. Stop words are left in."""
    tokens: list[str] = []
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text).casefold()):
        word = match.group()
        if _IS_UNSPACED.match(word):
            if len(word) == 1:
                tokens.append(word)
            else:
                tokens.extend(word[i : i + 2] for i in range(len(word) - 1))
            continue
        word = word.removesuffix("'s").removesuffix("’s")
        tokens.append(_stem(word))
    return tokens


@dataclass(frozen=True, slots=True)
class Lexicon:
    """BM25 (Lucene's variant, k1 = 1.2, b = 0.75) as postings by term.

    Attributes:
        vocabulary: term → row of ``indptr``.
        indptr: int64[terms + 1]; postings of term t are ``indptr[t]:indptr[t+1]``.
        nodes: int32[postings]; weights: float32[postings].
        num_nodes: length of a score vector.
    """

    vocabulary: dict[str, int]
    indptr: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    num_nodes: int

    K1 = 1.2
    B = 0.75

    def idf(self, term: str) -> float:
        """Inverse document frequency; that of a term in no node for an unknown one."""
        row = self.vocabulary.get(term)
        count = 0 if row is None else int(self.indptr[row + 1] - self.indptr[row])
        return float(np.log1p((self.num_nodes - count + 0.5) / (count + 0.5)))

    def scores(self, terms: Iterable[str]) -> npt.NDArray[np.float32]:
        """BM25 of every node, float32[num_nodes]. Cost: the postings of the terms."""
        total = np.zeros(self.num_nodes, dtype=np.float32)
        for term in terms:
            row = self.vocabulary.get(term)
            if row is not None:
                where = slice(int(self.indptr[row]), int(self.indptr[row + 1]))
                total[self.nodes[where]] += self.weights[where]  # a node stands once a term
        return total

    def ceiling(self, terms: Iterable[str]) -> float:
        """The score that no node can exceed: every term at its saturation. Scores divided by it
        lie in [0, 1] and compare across books."""
        return sum(self.idf(t) for t in terms)


def build_lexicon(texts: Sequence[str]) -> Lexicon:
    """Index texts, one a node, in node order; an empty text has no postings.

    Source: Robertson and Zaragoza 2009, in the variant that Lucene uses, where a term's weight
    is idf * tf / (tf + k1 * (1 - b + b * length / mean length)).
    """
    vocabulary: dict[str, int] = {}  # numbered in order of appearance: the same in every run
    lengths = np.zeros(len(texts), dtype=np.int64)
    terms: list[int] = []
    for node, text in enumerate(texts):
        tokens = tokenize(text)
        lengths[node] = len(tokens)
        terms += [vocabulary.setdefault(t, len(vocabulary)) for t in tokens]
    # One key for each (term, node): sorting them puts postings in order and counts them.
    nodes = np.repeat(np.arange(len(texts), dtype=np.int64), lengths)
    keys = np.asarray(terms, dtype=np.int64) * max(1, len(texts)) + nodes
    pairs, frequency = np.unique(keys, return_counts=True)
    term, node_of = np.divmod(pairs, max(1, len(texts)))
    counts = np.bincount(term, minlength=len(vocabulary)).astype(np.int64)
    idf = np.log1p((len(texts) - counts + 0.5) / (counts + 0.5))
    share = lengths / max(float(lengths.mean()) if len(texts) else 0.0, 1e-9)
    norm = Lexicon.K1 * (1 - Lexicon.B + Lexicon.B * share)
    weights = idf[term] * frequency / (frequency + norm[node_of])
    indptr = np.zeros(len(vocabulary) + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    return Lexicon(
        vocabulary=vocabulary,
        indptr=indptr,
        nodes=node_of.astype(np.int32),
        weights=weights.astype(np.float32),
        num_nodes=len(texts),
    )
