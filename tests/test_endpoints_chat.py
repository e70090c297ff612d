"""What is asked of a chat endpoint, how the server's limits are learnt, what is read from it."""

from __future__ import annotations

import base64
import json
from contextlib import asynccontextmanager
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from bookrag_fast.errors import ModelError, ModelRefusedError, ModelUnavailableError
from bookrag_fast.models.endpoints import ChatEndpoint
from bookrag_fast.models.endpoints.schemas import strictly
from bookrag_fast.models.protocols import (
    ChatRequest,
    Completion,
    Image,
    LanguageModel,
    Message,
    ModelInfo,
    TokenUsage,
    VisionModel,
)
from endpoint_settings import PROMPT, SCHEMA, chat_settings, request
from fake_endpoint import Behaviour, Exchange, FakeEndpoint, chat, delta, ok, sequence, together
from fake_faults import raw, status


@asynccontextmanager
async def endpoint(server: FakeEndpoint, **values):
    model = ChatEndpoint("small", chat_settings(server.base_url, **values))
    try:
        yield model
    finally:
        await model.aclose()


def refusing(field: str, message: str, code: int = 400) -> Behaviour:
    """A server that takes no request in whose body something is."""

    async def behave(x: Exchange) -> None:
        refused = field in json.dumps(x.call.body)
        await (status(code, message) if refused else ok())(x)

    return behave


# --- asking ---------------------------------------------------------------------------------------


async def test_a_request_as_it_goes_out():
    with FakeEndpoint() as server:
        async with endpoint(server, max_tokens=300, extra_body={"seed": 7}) as model:
            assert isinstance(model, LanguageModel)
            assert isinstance(model, VisionModel)
            assert model.info == ModelInfo("small", "fake-1", 8192)
            completion = await model.complete(request(max_tokens=1000, temperature=0.5))
    assert server.calls[0].path == "/v1/chat/completions"
    assert server.calls[0].body == {
        "model": "fake-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": PROMPT},
        ],
        "max_tokens": 300,
        "temperature": 0.5,
        "seed": 7,
    }
    assert (completion.text, completion.finish) == ("pong", "stop")
    assert completion.usage.calls == 1
    assert completion.usage.completion_tokens == 2


async def test_images_go_along_as_data():
    png, jpeg = Image(b"\x89PNG"), Image(b"\xff\xd8", "image/jpeg")
    seen = ChatRequest((Message("user", "What is this?", (png, jpeg)),))
    with FakeEndpoint() as server:
        async with endpoint(server, vision=True, max_images=2) as model:
            assert model.max_images == 2
            await model.complete(seen)
    parts = server.calls[0].body["messages"][0]["content"]
    assert parts[0] == {"type": "text", "text": "What is this?"}
    for part, image in zip(parts[1:], (png, jpeg), strict=True):
        head, data = part["image_url"]["url"].split(",")
        assert head == f"data:{image.media_type};base64"
        assert base64.b64decode(data) == image.data


@pytest.mark.parametrize(("values", "most"), [({}, 0), ({"vision": True, "max_images": 1}, 1)])
async def test_more_images_than_a_model_sees_are_refused_unsent(values, most):
    seen = ChatRequest((Message("user", "What?", (Image(b"a"), Image(b"b"))),))
    with FakeEndpoint() as server:
        async with endpoint(server, **values) as model:
            assert model.max_images == most
            with pytest.raises(ModelRefusedError, match=f"takes {most} images"):
                await model.complete(seen)
            with pytest.raises(ModelRefusedError):
                await anext(model.stream(seen))
    assert not server.calls


async def test_halves_of_characters_are_no_trouble_either_way():
    reply = b'{"choices": [{"message": {"content": "a\\ud800b"}, "finish_reason": "stop"}]}'
    with FakeEndpoint(raw(reply)) as server:
        async with endpoint(server) as model:
            completion = await model.complete(request("broken \udcff text 日本"))
    assert server.calls[0].body["messages"][1]["content"] == "broken ? text 日本"
    assert completion.text == "a?b"


# --- structured output ----------------------------------------------------------------------------


async def test_a_schema_is_asked_for_strictly():
    with FakeEndpoint(ok('{"answer": "pong"}')) as server:
        async with endpoint(server) as model:
            await model.complete(request(schema=SCHEMA))
    wanted = server.calls[0].body["response_format"]
    assert wanted == {
        "type": "json_schema",
        "json_schema": {
            "name": "reply",
            "strict": True,
            "schema": {**SCHEMA, "additionalProperties": False},
        },
    }
    assert "schema" not in server.calls[0].body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("structured", "wanted"), [("json", {"type": "json_object"}), ("prompt", None)]
)
async def test_a_schema_is_said_in_words_where_it_cannot_be_asked_for(structured, wanted):
    with FakeEndpoint() as server:
        async with endpoint(server, structured=structured) as model:
            await model.complete(request(schema=SCHEMA, prompt="plan@1/en"))
            await model.complete(
                ChatRequest((Message("user", "誰"),), schema=SCHEMA, prompt="plan@1/ja")
            )
    first, second = (call.body for call in server.calls)
    assert first.get("response_format") == wanted
    system = first["messages"][0]["content"]
    assert system.startswith("Be brief.\n\n")
    assert "JSON schema" in system
    assert json.dumps(SCHEMA) in system
    assert [m["role"] for m in second["messages"]] == ["system", "user"]
    assert "JSON スキーマ" in second["messages"][0]["content"]


REFUSALS = [
    (400, "response_format json_schema is not supported"),
    (422, "Unknown field: response_format"),
    (400, "'json_schema' is unsupported, use 'json_object'"),
    (501, "not implemented"),
]


@pytest.mark.parametrize(("code", "message"), REFUSALS)
async def test_what_a_server_refuses_is_asked_for_otherwise_and_remembered(code, message):
    with FakeEndpoint(refusing("json_schema", message, code)) as server:
        async with endpoint(server) as model:
            for _ in range(3):
                assert (await model.complete(request(schema=SCHEMA))).text == "pong"
    kinds = [call.body["response_format"]["type"] for call in server.calls]
    assert kinds == ["json_schema", "json_object", "json_object", "json_object"]


async def test_a_server_with_no_json_of_any_kind_is_asked_in_words():
    with FakeEndpoint(refusing("response_format", "response_format?")) as server:
        async with endpoint(server) as model:
            await model.complete(request(schema=SCHEMA))
            await model.complete(request(schema=SCHEMA))
    kinds = [call.body.get("response_format", {}).get("type") for call in server.calls]
    assert kinds == ["json_schema", "json_object", None, None]


async def test_many_calls_at_once_learn_a_server_s_limit_without_falling_too_far():
    with FakeEndpoint(refusing("json_schema", "no json_schema here")) as server:
        async with endpoint(server) as model:
            outcomes = await model.complete_batch([request(schema=SCHEMA)] * 8)
            await model.complete(request(schema=SCHEMA))
    assert all(isinstance(outcome, Completion) for outcome in outcomes)
    assert server.calls[-1].body["response_format"]["type"] == "json_object"


@pytest.mark.parametrize("structured", ["schema", "json"])
async def test_what_is_set_is_not_given_up(structured):
    with FakeEndpoint(refusing("response_format", "response_format?")) as server:
        async with endpoint(server, structured=structured) as model:
            with pytest.raises(ModelRefusedError):
                await model.complete(request(schema=SCHEMA))
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    "behaviour", [status(400, "the model is asleep"), status(401, "json_schema"), status(500)]
)
async def test_other_failures_change_nothing(behaviour):
    with FakeEndpoint(sequence(behaviour, ok())) as server:
        async with endpoint(server) as model:
            with pytest.raises(ModelError):
                await model.complete(request(schema=SCHEMA))
            await model.complete(request(schema=SCHEMA))
    assert server.calls[0].body == server.calls[1].body


async def test_a_server_that_counts_by_another_name():
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model."
        " Use 'max_completion_tokens' instead."
    )
    with FakeEndpoint(refusing('"max_tokens"', message)) as server:
        async with endpoint(server) as model:
            await model.complete(request(max_tokens=50, schema=SCHEMA))
    assert server.calls[-1].body["max_completion_tokens"] == 50
    assert "max_tokens" not in server.calls[-1].body
    assert server.calls[-1].body["response_format"]["type"] == "json_schema"


async def test_a_server_that_chooses_its_own_temperature():
    message = "Unsupported value: 'temperature' does not support 0.0 with this model."
    with FakeEndpoint(refusing('"temperature"', message)) as server:
        async with endpoint(server) as model:
            await model.complete(request(schema=SCHEMA))
    assert [("temperature" in call.body) for call in server.calls] == [True, False]
    assert server.calls[-1].body["response_format"]["type"] == "json_schema"


# --- schemas --------------------------------------------------------------------------------------


class Entity(BaseModel):
    name: str = Field(min_length=1, max_length=80, description="as written")
    kind: Literal["person", "place"] = "person"


class Extraction(BaseModel):
    entities: list[Entity]
    first: Entity | None = None


class Tree(BaseModel):
    children: list[Tree] = []


class Free(BaseModel):
    names: dict[str, int]


def test_a_strict_schema_is_closed_whole_and_without_references():
    schema, strict = strictly(Extraction.model_json_schema())
    entity = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "as written"},
            "kind": {"type": "string", "enum": ["person", "place"]},
        },
        "required": ["name", "kind"],
        "additionalProperties": False,
    }
    assert strict
    assert schema == {
        "type": "object",
        "properties": {
            "entities": {"type": "array", "items": entity},
            "first": {"anyOf": [entity, {"type": "null"}]},
        },
        "required": ["entities", "first"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("kind", [Tree, Free])
def test_a_schema_that_cannot_be_strict_says_so(kind):
    original = kind.model_json_schema()
    schema, strict = strictly(original)
    assert not strict
    json.dumps(schema)
    if kind is Tree:
        assert schema == original


class Title(BaseModel):
    title: str
    default: int


def test_fields_named_like_words_of_schemas_are_kept():
    schema, strict = strictly(Title.model_json_schema())
    assert strict
    assert set(schema["properties"]) == {"title", "default"}


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stated", [{}, {"prompt_tokens": -1}, {"prompt_tokens": "many"}, "x", 7])
async def test_tokens_that_a_server_does_not_state_are_estimated(stated):
    body = {
        "choices": [{"message": {"content": "four characters"}, "finish_reason": "stop"}],
        "usage": stated,
    }
    with FakeEndpoint(raw(json.dumps(body))) as server:
        async with endpoint(server) as model:
            usage = (await model.complete(request("日本語です"))).usage
    # "Be brief." is 3 tokens, each CJK character one, each message 4 more.
    assert usage == TokenUsage(prompt_tokens=3 + 5 + 8, completion_tokens=4, calls=1)


async def test_tokens_as_the_server_states_them():
    body = {
        "choices": [{"message": {"content": "pong"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 123, "completion_tokens": 45},
    }
    with FakeEndpoint(raw(json.dumps(body))) as server:
        async with endpoint(server) as model:
            assert await model.complete(request()) == Completion(
                "pong", TokenUsage(123, 45, 1), "length"
            )


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, ""), ("", ""), ([{"type": "text", "text": "po"}, {"text": "ng"}], "pong")],
)
async def test_a_message_s_content_in_every_shape(content, text):
    body = {"choices": [{"message": {"content": content}, "finish_reason": None}]}
    with FakeEndpoint(raw(json.dumps(body))) as server:
        async with endpoint(server) as model:
            assert (await model.complete(request())).text == text


async def test_thoughts_that_are_told_apart_are_no_text():
    with FakeEndpoint(chat("pong", reasoning="hm, ping?")) as server:
        async with endpoint(server) as model:
            assert (await model.complete(request())).text == "pong"
            parts = [part async for part in model.stream(request())]
    assert parts[0] == "pong"
    assert parts[-1].text == "pong"


async def test_json_that_is_not_declared_as_such_is_read():
    body = {"choices": [{"message": {"content": "pong"}, "finish_reason": "stop"}]}
    with FakeEndpoint(raw(json.dumps(body), content_type="text/plain")) as server:
        async with endpoint(server) as model:
            assert (await model.complete(request())).text == "pong"


# --- batches and streams --------------------------------------------------------------------------


async def test_each_of_a_batch_fails_alone():
    async def behave(x: Exchange) -> None:
        text = x.call.body["messages"][1]["content"]
        await (status(500) if text == "bad" else ok(text))(x)

    texts = ["a", "bad", "b", "bad", "c"]
    with FakeEndpoint(behave) as server:
        async with endpoint(server) as model:
            outcomes = await model.complete_batch([request(text) for text in texts])
            assert await model.complete_batch([]) == []
    for text, outcome in zip(texts, outcomes, strict=True):
        if text == "bad":
            assert isinstance(outcome, ModelUnavailableError)
        else:
            assert isinstance(outcome, Completion)
            assert outcome.text == text


async def test_a_batch_goes_out_at_once():
    with FakeEndpoint(together(8, ok())) as server:
        async with endpoint(server) as model:
            outcomes = await model.complete_batch([request()] * 8)
    assert all(isinstance(outcome, Completion) for outcome in outcomes)


async def test_connections_are_opened_once_and_shared_by_many_calls():
    with FakeEndpoint(together(32, ok())) as server:
        async with endpoint(server, concurrency=32) as model:
            for _ in range(4):
                await model.complete_batch([request()] * 32)
            server.behaviour = ok()
            for _ in range(4):
                await model.complete(request())
    assert server.connections == 32


async def test_a_stream_is_its_pieces_then_the_whole():
    text = "a reply of several pieces"
    with FakeEndpoint(chat(text)) as server:
        async with endpoint(server) as model:
            *pieces, whole = [part async for part in model.stream(request(schema=SCHEMA))]
    assert len(pieces) > 2
    assert "".join(pieces) == whole.text == text
    assert whole.finish == "stop"
    body = server.calls[0].body
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["response_format"]["type"] == "json_schema"
    # The server states what it counted; without that, pieces would be counted here.
    assert whole.usage == TokenUsage(whole.usage.prompt_tokens, len(text) // 4 + 1, 1)


async def test_a_server_that_streams_no_usage():
    with FakeEndpoint(refusing("stream_options", "unknown field stream_options")) as server:
        async with endpoint(server) as model:
            for _ in range(2):
                parts = [part async for part in model.stream(request())]
                assert parts[-1].usage.completion_tokens == 1
    assert [("stream_options" in call.body) for call in server.calls] == [True, False, False]


async def test_a_stream_that_was_cut_off_says_so():
    body = "".join(
        f"data: {json.dumps(event)}\n\n"
        for event in (delta(content="po"), delta(content=""), delta(finish="length"))
    )
    with FakeEndpoint(raw(body, content_type="text/event-stream; charset=utf-8")) as server:
        async with endpoint(server) as model:
            parts = [part async for part in model.stream(request())]
    assert parts[0] == "po"
    assert parts[1].finish == "length"
    assert len(parts) == 2
