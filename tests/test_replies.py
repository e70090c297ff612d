"""What a model in a role makes of replies: values, steps, problems, costs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel, Field

from bookrag_fast.errors import ModelError, ModelUnavailableError, SpendingLimitError
from bookrag_fast.models.protocols import (
    ChatRequest,
    Completion,
    Image,
    ModelInfo,
    TokenUsage,
)
from bookrag_fast.models.replies import CheckedModel
from bookrag_fast.models.replies.reading import read_reply
from bookrag_fast.models.roles import Outcome, Role, Terms
from bookrag_fast.prompts import RenderedPrompt

PROMPT = RenderedPrompt("plan@1/en", "Be brief.", "Who, and how old?")
GOOD = '{"name": "Ada", "age": 36}'


class Person(BaseModel):
    name: str
    age: int = Field(ge=0)


class Names(BaseModel):
    names: list[str]
    total: int = 0


Said = str | Completion | BaseException


@dataclass
class Speaker:
    """A language model that says one thing after the other, a call each."""

    said: list[Said]
    info: ModelInfo = field(default_factory=lambda: ModelInfo("speaker", "speaker"))
    asked: list[ChatRequest] = field(default_factory=list)

    async def complete(self, request: ChatRequest) -> Completion:
        self.asked.append(request)
        said = self.said.pop(0)
        if isinstance(said, BaseException):
            raise said
        if isinstance(said, Completion):
            return said
        return Completion(said, TokenUsage(10, 5, 1))

    async def complete_batch(
        self, requests: Sequence[ChatRequest]
    ) -> list[Completion | ModelError]:
        raise NotImplementedError

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        said = self.said[0]
        if isinstance(said, tuple):  # some pieces, then an error
            for piece in said[:-1]:
                yield piece
            self.said.pop(0)
            raise said[-1]
        completion = await self.complete(request)
        for at in range(0, len(completion.text), 3):
            yield completion.text[at : at + 3]
        yield completion


def checked(*said: Said, **values) -> tuple[CheckedModel, Speaker, list[tuple[Role, str]]]:
    speaker, steps = Speaker(list(said)), []
    model = CheckedModel(
        Role.PLAN, speaker, on_step=lambda role, step: steps.append((role, step)), **values
    )
    return model, speaker, steps


def cut(text: str) -> Completion:
    return Completion(text, TokenUsage(10, 5, 1), "length")


# --- asking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "steps"),
    [
        (GOOD, ()),
        (f"  {GOOD}\n", ()),
        (f"<think>hm</think>{GOOD}", ("cleaned",)),
        (f"Here is the JSON:\n```json\n{GOOD}\n```\nI hope that helps!", ("cleaned",)),
        (f"A draft: {{}}. The reply: {GOOD}", ("cleaned",)),
        ("{'name': 'Ada', 'age': 36,}", ("repaired",)),
        ('```json\n{"name": "Ada", "age": 36\n```', ("repaired",)),
    ],
)
async def test_a_usable_reply_takes_one_call(reply, steps):
    model, speaker, told = checked(reply)
    outcome = await model.ask(PROMPT, Person, Terms("b", max_tokens=100, expected_tokens=20))
    assert outcome == Outcome(Person(name="Ada", age=36), TokenUsage(10, 5, 1), steps)
    assert told == [(Role.PLAN, step) for step in steps]
    request = speaker.asked[0]
    assert [m.role for m in request.messages] == ["system", "user"]
    assert (request.role, request.book, request.prompt) == ("plan", "b", "plan@1/en")
    assert (request.max_tokens, request.expected_tokens) == (100, 20)
    assert request.schema == Person.model_json_schema()


async def test_a_model_is_told_once_what_is_wrong_with_its_reply():
    model, speaker, _ = checked('{"name": "Ada", "age": -1}', GOOD)
    outcome = await model.ask(PROMPT, Person)
    assert outcome.value == Person(name="Ada", age=36)
    assert outcome.steps == ("asked again",)
    assert outcome.usage == TokenUsage(20, 10, 2)
    first, again = speaker.asked
    assert again.messages[:2] == first.messages
    assert again.messages[2].role == "assistant"
    assert "-1" in again.messages[2].text
    correction = again.messages[3].text
    assert "age: Input should be greater than or equal to 0" in correction
    assert json.dumps(Person.model_json_schema()) in correction
    assert again.prompt != first.prompt  # or a cache would give the same reply again


async def test_a_second_useless_reply_is_the_last():
    model, speaker, told = checked("I would rather not.", "No.", GOOD)
    outcome = await model.ask(PROMPT, Person)
    assert outcome.value is None
    assert outcome.problem == "the reply holds no JSON"
    assert outcome.steps == ("asked again", "offline")
    assert outcome.usage.calls == 2
    assert told == [(Role.PLAN, "asked again"), (Role.PLAN, "offline")]
    assert len(speaker.asked) == 2


async def test_a_long_useless_reply_is_shown_in_part():
    model, speaker, _ = checked("word " * 10_000, GOOD)
    assert (await model.ask(PROMPT, Person)).value is not None
    assert len(speaker.asked[1].messages[2].text) <= 4000


async def test_thoughts_alone_are_asked_past_without_two_messages_in_a_row():
    model, speaker, _ = checked("<think>hm", GOOD)
    outcome = await model.ask(PROMPT, Person)
    assert outcome.value == Person(name="Ada", age=36)
    assert outcome.steps == ("asked again",)
    again = speaker.asked[1]
    assert [m.role for m in again.messages] == ["system", "user"]
    assert again.messages[1].text.startswith(PROMPT.user)
    assert again.prompt != PROMPT.id


async def test_a_japanese_question_is_repeated_in_japanese():
    model, speaker, _ = checked("いいえ", GOOD)
    await model.ask(RenderedPrompt("plan@1/ja", "", "誰ですか"), Person)
    assert [m.role for m in speaker.asked[0].messages] == ["user"]  # no empty system message
    assert "JSON スキーマ" in speaker.asked[1].messages[-1].text


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ('{"names": ["Ada", "Grace", "Kat', ["Ada", "Grace"]),
        ('{"names": ["Ada, Countess", "Gra', ["Ada, Countess"]),
        ('<think>hm</think>```json\n{"names": ["Ada", "G', ["Ada"]),
        ('{"names": ["Ada"', ["Ada"]),
    ],
)
async def test_a_reply_that_was_cut_off_keeps_what_was_whole(reply, names):
    model, _, _ = checked(cut(reply))
    outcome = await model.ask(PROMPT, Names)
    assert outcome.value == Names(names=names)
    assert outcome.steps == ("repaired", "cut short")


async def test_a_reply_that_was_cut_off_too_soon_is_asked_for_again():
    model, speaker, _ = checked(cut('{"name": "Ad'), GOOD)
    outcome = await model.ask(PROMPT, Person)
    assert outcome.value == Person(name="Ada", age=36)
    assert outcome.steps == ("asked again",)
    assert "cut off" in speaker.asked[1].messages[-1].text


@pytest.mark.parametrize("said", [ModelUnavailableError("model 'x' is down"), "{", "no", ""])
async def test_whatever_goes_wrong_becomes_an_outcome(said):
    again = ModelUnavailableError("model 'x' is down")
    model, _, _ = checked(said, again)
    outcome = await model.ask(PROMPT, Person)
    assert outcome.value is None
    assert outcome.steps[-1] == "offline"
    assert outcome.problem == "model 'x' is down"
    assert outcome.usage.calls == (0 if isinstance(said, ModelError) else 1)


@pytest.mark.parametrize("passing", [SpendingLimitError("spent"), asyncio.CancelledError()])
async def test_a_spent_budget_and_a_cancellation_pass(passing):
    for ask in (
        lambda model: model.ask(PROMPT, Person),
        lambda model: model.write(PROMPT),
        lambda model: anext(model.stream(PROMPT)),
    ):
        model, _, _ = checked(passing)
        with pytest.raises(type(passing)):
            await ask(model)


async def test_images_beyond_the_most_are_dropped_and_told():
    images = tuple(Image(bytes([n])) for n in range(5))
    model, speaker, _ = checked(GOOD, GOOD, max_images=2)
    outcome = await model.ask(PROMPT, Person, Terms(images=images))
    assert speaker.asked[0].messages[-1].images == tuple(images[:2])
    assert outcome.steps == ("images dropped",)
    assert (await model.ask(PROMPT, Person, Terms(images=images[:2]))).steps == ()


async def test_no_image_goes_to_a_model_that_does_not_see():
    model, speaker, _ = checked("Fine.")
    outcome = await model.write(PROMPT, Terms(images=(Image(b"x"),)))
    assert speaker.asked[0].messages[-1].images == ()
    assert outcome.steps == ("images dropped",)


# --- hostile replies ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        '{"name":' * 20_000,
        "{" + '"a":[' * 5_000,
        '{"name": "' + "x" * 300_000,
        "{" * 100_000,
        '{"name": "Ada", "age": 1e999}',
        '{"name": "Ada", "age": NaN}',
        '{"name": "Ada", "age": ' + "9" * 5000 + "}",
        "{" + "(" * 4000,
    ],
)
def test_a_hostile_reply_is_refused_in_words(reply):
    reading = read_reply(reply, Person)
    assert reading.value is None
    assert reading.problem
    assert len(reading.problem) < 800


def test_half_a_character_is_in_no_value():
    value = read_reply('{"name": "\\ud800", "age": 3}', Person).value
    assert value is None or value.name.encode("utf-8")


def test_a_problem_does_not_quote_the_reply():
    reading = read_reply('{"name": ["my secret"], "age": "my secret"}', Person)
    assert reading.value is None
    assert "secret" not in reading.problem


# --- prose ----------------------------------------------------------------------------------------


async def test_prose_without_thoughts():
    model, speaker, _ = checked("<think>hm</think>\nAda was 36.")
    outcome = await model.write(PROMPT)
    assert outcome == Outcome("Ada was 36.", TokenUsage(10, 5, 1), ("cleaned",))
    assert speaker.asked[0].schema is None


async def test_prose_keeps_tags_of_its_own():
    model, _, _ = checked("x<think>y</think>z")
    assert await model.write(PROMPT) == Outcome("x<think>y</think>z", TokenUsage(10, 5, 1))


async def test_thoughts_alone_get_one_more_try():
    model, _, _ = checked("<think>hm", "Ada.")
    outcome = await model.write(PROMPT)
    assert outcome.value == "Ada."
    assert outcome.steps == ("cleaned", "asked again")
    assert outcome.usage == TokenUsage(20, 10, 2)


async def test_the_hint_of_a_failure_has_no_brackets_of_its_own():
    down = ModelUnavailableError("the model is down", "start it")
    for outcome in (
        await checked(down)[0].write(PROMPT),
        await checked(down)[0].ask(PROMPT, Person),
    ):
        assert outcome.problem == "the model is down; start it"


async def test_thoughts_alone_twice_are_no_reply():
    model, _, _ = checked("<think>hm", cut("<think>hmm"))
    outcome = await model.write(PROMPT)
    assert outcome.value is None
    assert outcome.steps == ("cleaned", "asked again", "cut short", "offline")
    assert "empty but for thoughts, and ended for 'length'" in outcome.problem
    assert outcome.usage.calls == 2


async def test_prose_that_was_cut_off_is_marked():
    model, _, _ = checked(cut("Ada was thirty-"))
    outcome = await model.write(PROMPT)
    assert outcome.value == "Ada was thirty-"
    assert outcome.steps == ("cut short",)


# --- streams --------------------------------------------------------------------------------------


async def collected(model: CheckedModel) -> tuple[list[str], Outcome[str]]:
    parts = [part async for part in model.stream(PROMPT)]
    *pieces, outcome = parts
    assert isinstance(outcome, Outcome)
    return pieces, outcome


async def test_a_stream_shows_the_reply_as_it_comes_and_none_of_the_thoughts():
    model, _, _ = checked("<think>Ada or Grace?</think>\nAda was 36, <think> of it.")
    pieces, outcome = await collected(model)
    assert len(pieces) > 3
    assert "".join(pieces) == outcome.value == "Ada was 36, <think> of it."
    assert outcome.steps == ("cleaned",)
    assert outcome.usage == TokenUsage(10, 5, 1)


async def test_a_stream_of_thoughts_alone_is_asked_once_more():
    model, _, _ = checked("<think>hm", "Ada.")
    pieces, outcome = await collected(model)
    assert pieces == ["Ada."]
    assert outcome.value == "Ada."
    assert outcome.usage.calls == 2


async def test_a_stream_that_breaks_off_says_so_after_its_pieces():
    model, _, told = checked(("Ada ", "was ", ModelUnavailableError("gone")))
    pieces, outcome = await collected(model)
    assert pieces == ["Ada ", "was "]
    assert outcome.value is None
    assert outcome.problem == "gone"
    assert told == [(Role.PLAN, "offline")]


async def test_a_stream_that_nobody_wants_any_more_is_closed():
    closed = []

    class Endless(Speaker):
        async def stream(self, request):
            try:
                while True:
                    yield "word "
            finally:
                closed.append(True)

    stream = CheckedModel(Role.ANSWER, Endless([])).stream(PROMPT)
    assert await anext(stream) == "word "
    await stream.aclose()
    assert closed == [True]
