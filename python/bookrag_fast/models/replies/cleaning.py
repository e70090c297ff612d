"""Replies without what models put around them: thoughts, code fences, introductions.

Thoughts stand before a reply. Tags further on are the reply's own and stay; so does all that
stands inside a JSON string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

__all__ = ["ThoughtFilter", "json_candidates", "json_remains", "prose"]

_NAMES = "think|thinking|thought|thoughts|reasoning"
_OPEN = re.compile(rf"<(?:{_NAMES})>|\[THINK\]", re.IGNORECASE)
_CLOSE = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]", re.IGNORECASE)
_TAG = re.compile(rf"(?P<open>{_OPEN.pattern})|{_CLOSE.pattern}", re.IGNORECASE)
_LONGEST_TAG = len("</reasoning>")
_SPACE = re.compile("[\ufeff\\s]*")
_FENCED = re.compile(r"\A```(?:text|txt|markdown|md)?[ \t]*\n(?P<inside>.*)```\Z", re.DOTALL)
_JSON_NEXT = re.compile(r"\s{0,64}(?:```\w{0,16}\s{0,64})?[\[{]")
_MOST_TRIES = 64  # places where a JSON text may begin
_decoder = json.JSONDecoder()


# --- thoughts -------------------------------------------------------------------------------------


def without_thoughts(text: str) -> str:
    """The text after the blocks of thoughts that it begins with; "" if there is nothing else."""
    return text[_start(text) :]


def _start(text: str, at: int = 0) -> int:
    """Where a reply begins behind its thoughts."""
    at = _skip_space(text, at)
    while _OPEN.match(text, at):
        at = _skip_space(text, _end_of_thoughts(text, at))
    return at


def _end_of_thoughts(text: str, at: int) -> int:
    """Where the block ends that begins there: at the tag that closes its first one, else (a tag
    was only spoken of) at the last closing one, else at the text's end."""
    depth, last = 0, len(text)
    for tag in _TAG.finditer(text, at):
        depth += 1 if tag["open"] else -1
        if depth == 0:
            return tag.end()
        if not tag["open"]:
            last = tag.end()
    return last


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


def prose(text: str) -> str:
    """A reply in prose, without thoughts before it and without a fence around all of it."""
    at = _start(text)
    if at == _skip_space(text, 0):
        # Some servers swallow the opening tag: thoughts, then a closing one that closes nothing.
        close = _CLOSE.search(text, at)
        if close and not _OPEN.search(text, at, close.start()):
            at = _start(text, close.end())
    rest = text[at:].strip()
    fenced = _FENCED.match(rest)
    if fenced and "```" not in fenced["inside"]:
        rest = fenced["inside"].strip()
    return rest


class ThoughtFilter:
    """`without_thoughts` for a text that comes in pieces: passes on what is surely none."""

    def __init__(self) -> None:
        self._held = ""
        self._depth = 0
        self._passing = False

    def feed(self, piece: str) -> str:
        """What can be shown now."""
        if self._passing:
            return piece
        held, at = self._held + piece, 0
        while True:
            if self._depth == 0:
                at = _skip_space(held, at)
                opened = _OPEN.match(held, at)
                if opened is None:
                    break
                self._depth, at = 1, opened.end()
            tag = _TAG.search(held, at)
            if tag is None:  # the beginning of one may be at the end
                self._held = held[max(at, len(held) - _LONGEST_TAG) :]
                return ""
            self._depth += 1 if tag["open"] else -1
            at = tag.end()
        self._held = held[at:]
        if _may_open(self._held):
            return ""
        self._passing = True
        return self._held


def _may_open(text: str) -> bool:
    """Whether an opening tag may come of it, once there is more of it."""
    if len(text) >= _LONGEST_TAG:
        return False
    starts = [f"<{name}>" for name in _NAMES.split("|")] + ["[think]"]
    return any(start.startswith(text.lower()) for start in starts)


# --- JSON -----------------------------------------------------------------------------------------


def json_candidates(text: str, opener: str = "{") -> list[str]:
    """The JSON texts in a reply that begin with ``opener`` ("{" or "["), likely ones first: all
    the text, or what stands behind thoughts, fences and introductions."""
    text = without_thoughts(text)
    spans = list(_spans(text, opener))
    after = _last_close_outside(text, spans)
    behind = [span for span in spans if span[0] >= after]
    return [text[start:end] for start, end in behind or spans]


def json_remains(text: str, opener: str = "{") -> str:
    """What to mend where no JSON text is whole: from where one seems to begin; "" for nothing."""
    text = without_thoughts(text)
    at = 0
    if not text.startswith((opener, "`")):  # thoughts, perhaps, whose beginning is swallowed
        closes = _CLOSE.finditer(text)
        at = next((close.end() for close in closes if _JSON_NEXT.match(text, close.end())), 0)
    start = text.find(opener, at)
    if start < 0:
        return ""
    rest = text[start:].rstrip()
    return rest.removesuffix("```").rstrip()


def _spans(text: str, opener: str) -> Iterator[tuple[int, int]]:
    """Where JSON texts begin and end; none inside another."""
    at = -1
    for _ in range(_MOST_TRIES):
        at = text.find(opener, at + 1)
        if at < 0:
            return
        try:
            _, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        yield at, end
        at = end - 1


def _last_close_outside(text: str, spans: list[tuple[int, int]]) -> int:
    """The end of the last closing tag that is in no JSON text: thoughts end there, whether their
    beginning is to be seen or not."""
    ends = [
        close.end()
        for close in _CLOSE.finditer(text)
        if not any(start <= close.start() < end for start, end in spans)
    ]
    return ends[-1] if ends else 0
