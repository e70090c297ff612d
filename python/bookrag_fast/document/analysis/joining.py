"""Lines → running text: hyphens at line ends, and scripts without spaces."""

from __future__ import annotations

from collections.abc import Iterable

from bookrag_fast.document.analysis.lettering import is_cjk

__all__ = ["ends_sentence", "join_lines", "join_two", "runs_on"]

_HYPHENS = "-‐\u00ad"
_TERMINAL = ".!?:;。！？：；…\"'”’」』)）]"


def join_two(first: str, second: str) -> str:
    """``second`` goes on where ``first`` ends."""
    if not first or not second:
        return first or second
    last, following = first[-1], second[0]
    if last == "\u00ad":
        return first[:-1] + second
    if last in _HYPHENS and len(first) > 1 and first[-2].isalpha():
        if following.islower() and first[-2].islower():
            return first[:-1] + second
        if following.isalnum():
            return first + second
    if is_cjk(ord(last)) and is_cjk(ord(following)):
        return first + second
    return f"{first} {second}"


def join_lines(lines: Iterable[str]) -> str:
    text = ""
    pieces: list[str] = []
    for line in lines:
        if not pieces:
            pieces.append(line)
            continue
        # Only the seam is looked at, so that long paragraphs stay linear.
        text = pieces[-1]
        joined = join_two(text[-2:], line)
        head = text[:-2]
        pieces[-1] = head + joined[: max(0, len(joined) - len(line))]
        pieces.append(line)
    return "".join(pieces).replace("\u00ad", "")


def ends_sentence(text: str) -> bool:
    return text.rstrip()[-1:] in _TERMINAL


def runs_on(first: str, second: str) -> bool:
    """Whether a paragraph that ends a column with ``first`` goes on with ``second``."""
    first, second = first.rstrip(), second.lstrip()
    if not first or not second:
        return False
    last, following = first[-1], second[0]
    if last in _HYPHENS and len(first) > 1 and first[-2].islower() and following.islower():
        return True
    if ends_sentence(first):
        return False
    if is_cjk(ord(last)):
        return is_cjk(ord(following)) and not second.startswith(
            ("第", "図", "表", "（", "「", "・")
        )
    return following.islower() or (last == "," and following.isalnum())
