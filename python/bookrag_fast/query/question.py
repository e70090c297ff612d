"""A question, prepared once: its terms and its vector."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bookrag_fast.errors import InvalidArgumentError, QueryError
from bookrag_fast.index.lexicon import STOP_WORDS, tokenize
from bookrag_fast.models.protocols import Embedder

__all__ = ["MAX_QUESTION_CHARS", "Question", "checked", "prepare", "worded"]

MAX_QUESTION_CHARS = 10_000

# "List the operators" asks for operators; what speaks of lists is no better an answer.
_COMMAND = re.compile(
    r"^(?:please |can you |could you )*(?:list|name|enumerate|describe|explain|define|summari[sz]e"
    r"|show me|give me|tell me(?: about)?|write down)\s+",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Question:
    """``terms`` are the distinct content terms in order; ``vector`` is float32[d], of length 1
    (or 0 when the model knows no token of the text)."""

    text: str
    terms: tuple[str, ...]
    vector: npt.NDArray[np.float32]


def prepare(text: str, embedder: Embedder) -> Question:
    """`checked` and `worded`, with the vector of an embedder. Blocking."""
    clean = checked(text)
    return Question(clean, worded(clean), embedder.embed([clean], query=True)[0])


def checked(text: str) -> str:
    """A question's text, composed and stripped.

    Raises:
        InvalidArgumentError: no string.
        QueryError: empty, or longer than MAX_QUESTION_CHARS.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(f"a question is a string, not {type(text).__name__}")
    if len(text) > 4 * MAX_QUESTION_CHARS:  # composing characters may shorten it, but not so far
        raise _too_long(len(text))
    # A lone surrogate (an undecodable byte of a command line) would break tokenizers and JSON.
    clean = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8")).strip()
    if not clean:
        raise QueryError("the question is empty", 'ask something, e.g. "What is …?"')
    if len(clean) > MAX_QUESTION_CHARS:
        raise _too_long(len(clean))
    return clean


def worded(text: str) -> tuple[str, ...]:
    """The distinct content terms of a question, in order."""
    terms = list(dict.fromkeys(tokenize(_COMMAND.sub("", text, count=1) or text)))
    return tuple(t for t in terms if t not in STOP_WORDS) or tuple(terms)


def _too_long(chars: int) -> QueryError:
    return QueryError(
        f"the question has {chars} characters; at most {MAX_QUESTION_CHARS} are read",
        "ask for less at once",
    )
