"""Replies lose what models put around them, and nothing else."""

from __future__ import annotations

import json
import string
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookrag_fast.models.replies.cleaning import (
    ThoughtFilter,
    json_candidates,
    json_remains,
    prose,
)

OBJECT = '{"answer": "pong"}'
TRAPS = ["<think>", "</think>", "```", "{", "}", "[", '"', "\\", "Here is the JSON:", "\n"]

# Text with everything in it that cleaning looks for.
tricky = st.lists(st.sampled_from(TRAPS) | st.text(max_size=8), max_size=6).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | tricky,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(tricky, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(tricky, values, max_size=4)
plain = st.text(alphabet=string.ascii_letters + " .,:\n日本語", max_size=40)


def closed(thoughts: str) -> str:
    return f"<think>{thoughts}</think>\n\n"


def swallowed(thoughts: str) -> str:
    return f"{thoughts}\n</think>\n"


def fenced(text: str) -> str:
    return f"```json\n{text}\n```"


@given(
    value=objects,
    thoughts=plain,
    before=st.sampled_from([lambda _: "", closed, swallowed]),
    introduction=st.sampled_from(["", "Here is the JSON:\n", "Sure!\n\n", "答え:"]),
    around=st.sampled_from([str, fenced]),
    indent=st.sampled_from([None, 2]),
    ascii_only=st.booleans(),
)
def test_an_object_comes_back_from_whatever_is_wrapped_around_it(
    value, thoughts, before, introduction, around, indent, ascii_only
):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    reply = before(thoughts) + introduction + around(text)
    assert json.loads(json_candidates(reply)[0]) == value


@given(value=objects, thoughts=tricky)
def test_a_draft_in_the_thoughts_is_not_the_reply(value, thoughts):
    # Whatever stands in a closed block, as long as it opens and closes no block itself.
    inner = thoughts.replace("<think>", "").replace("</think>", "")
    reply = closed(f"{inner} perhaps {OBJECT}?") + json.dumps(value)
    assert json.loads(json_candidates(reply)[0]) == value


def test_a_draft_in_thoughts_whose_beginning_is_swallowed_is_not_the_reply():
    reply = f'I could say {OBJECT} but no.</think>{{"answer": "a </think> b"}}'
    assert json_candidates(reply) == ['{"answer": "a </think> b"}']


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Pong.", "Pong."),
        ("x<think>y</think>z", "x<think>y</think>z"),
        ("<think>a</think>The tag </think> ends it.", "The tag </think> ends it."),
        ("<think>a</think>\n\n<think>b</think>\nPong.", "Pong."),
        ("<THINKING>a</THINKING>Pong.", "Pong."),
        ("[THINK]a[/THINK]Pong.", "Pong."),
        ("<think>a <think> b</think> c</think>Pong.", "Pong."),
        ("<think>I write <think> first.</think>Pong.", "Pong."),
        ("the user wants …</think>\nPong.", "Pong."),
        ("<think>\n\n</think>\n\nPong.", "Pong."),
        ("<think>for ever and ever", ""),
        ("```markdown\n# Pong\n```", "# Pong"),
        ("```python\nprint()\n```", "```python\nprint()\n```"),
        ("```\na\n```\nand\n```\nb\n```", "```\na\n```\nand\n```\nb\n```"),
        ("<thinking_about> is a name", "<thinking_about> is a name"),
        ("", ""),
    ],
)
def test_prose_loses_its_thoughts_alone(reply, text):
    assert prose(reply) == text


def test_prose_that_begins_with_no_thoughts_is_kept_whole():
    text = "In HTML, <think>x</think> is unknown."
    assert prose(text) == text


@pytest.mark.parametrize(
    ("reply", "remains"),
    [
        ('Here: {"a": [1, 2', '{"a": [1, 2'),
        ('```json\n{"a": "b\n```', '{"a": "b'),
        ('<think>{"no": 1}</think>{"a": ', '{"a":'),
        ('thoughts of {this}</think>\n{"a": tru', '{"a": tru'),
        ("no JSON at all", ""),
    ],
)
def test_what_is_left_to_mend(reply, remains):
    assert json_remains(reply) == remains


@given(text=st.lists(st.sampled_from(["<think>", "</think>", "a b", " ", "<th", "{"])).map("".join),
       cuts=st.lists(st.integers(0, 60), max_size=8))  # fmt: skip
def test_what_a_stream_shows_is_the_beginning_of_what_is_left_of_the_whole(text, cuts):
    thoughts = ThoughtFilter()
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    shown = "".join(thoughts.feed(text[a:b]) for a, b in pairwise(edges)).strip()
    # A closing tag alone cannot be foreseen: then the whole is less than what was shown.
    assert prose(text).startswith(shown) or shown.endswith(prose(text))
    if not text.lstrip().startswith("<"):
        assert shown == text.strip()


@pytest.mark.parametrize(
    "reply",
    [
        "[" * 200_000 + "{" * 200_000,
        '{"a": ' * 50_000,
        "<think></think>" * 100_000,
        "<think>" * 200_000,
        "</think>" * 200_000,
        "<think> </think>\n{" * 30_000,
        "x</think>" * 100_000,
        "```json\n" * 100_000,
        "<think>" + " " * 1_000_000,
        "{}</think>" * 50_000,
    ],
)
def test_hostile_replies_are_cleaned_in_time_that_grows_with_their_length(reply):
    started = time.perf_counter()
    prose(reply)
    json_candidates(reply)
    json_remains(reply)
    assert ThoughtFilter().feed(reply) is not None
    assert time.perf_counter() - started < 5.0  # a second or less; hours if it were its square
