"""What callers hand to a model, checked before it is taken apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bookrag_fast.errors import InvalidArgumentError

__all__ = ["check_question", "check_texts"]


def check_texts(texts: Sequence[str]) -> None:
    """Raises InvalidArgumentError for what is no sequence of texts, one text included, and for an
    item that is none."""
    if not _is_sequence(texts):
        raise InvalidArgumentError(
            f"a sequence of texts is needed, not {type(texts).__name__}",
            "put a single text into a list, and make one of what is no sequence",
        )
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise _no_text(f"texts[{place}]", text)


def check_question(question: str) -> None:
    """Raises InvalidArgumentError for what is no text."""
    if not isinstance(question, str):
        raise _no_text("the question", question)


def _is_sequence(texts: object) -> bool:
    if isinstance(texts, str | bytes | Mapping) or not hasattr(texts, "__getitem__"):
        return False
    try:
        return len(texts) >= 0  # type: ignore[arg-type]
    except TypeError:  # a class, an array without dimensions
        return False


def _no_text(what: str, value: object) -> InvalidArgumentError:
    hint = "decode bytes before" if isinstance(value, bytes) else "leave out what has no text"
    return InvalidArgumentError(f"{what} is {type(value).__name__}; it must be str", hint)
