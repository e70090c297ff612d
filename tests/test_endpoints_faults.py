"""What fails at an endpoint comes as an error of ours that says what to do and betrays nothing."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from contextlib import aclosing
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from bookrag_fast.errors import (
    ConfigError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelReplyError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from bookrag_fast.models.endpoints import ChatEndpoint
from endpoint_settings import PROMPT, chat_settings, endpoint, failure, request, streamed
from fake_endpoint import CERTIFICATE, FakeEndpoint, delta, events, ok
from fake_faults import (
    disconnect,
    drip,
    empty_choices,
    garbage,
    hang,
    huge,
    invalid_json,
    raw,
    redirect,
    refuse,
    status,
)

KEY = "sk-very-secret-0123456789"


FAULTS = [
    (status(429, "slow down"), ModelRateLimitError, "answered 429: slow down"),
    (status(429, "insufficient_quota: pay"), ModelRefusedError, "no credit"),
    (status(500), ModelUnavailableError, "answered 500: it failed"),
    (status(503, retry_after="7"), ModelUnavailableError, "answered 503"),
    (status(408), ModelUnavailableError, "answered 408"),
    (status(400, "no such field"), ModelRefusedError, "400: no such field"),
    (status(401, "who are you"), ModelRefusedError, "models.small.api_key_env"),
    (status(403), ModelRefusedError, "models.small.api_key_env"),
    (status(404), ModelRefusedError, "models.small.base_url"),
    (status(404), ModelRefusedError, "'fake-1'"),
    (status(422), ModelRefusedError, "models.small.model"),
    (status(501), ModelRefusedError, "answered 501"),
    (redirect("https://elsewhere.example/v1"), ModelRefusedError, "https://elsewhere.example/v1"),
    (refuse(), ModelUnavailableError, "hung up"),
    (disconnect(), ModelUnavailableError, "hung up"),
    (garbage(), ModelUnavailableError, "not in HTTP"),
    (garbage(b"HTTP/1.1 200 -\r\nx: " + b"y" * 300_000), ModelUnavailableError, "not in HTTP"),
    (invalid_json(), ModelReplyError, "no JSON"),
    (raw("<html>Welcome!</html>"), ModelReplyError, "no JSON"),
    (raw("[" * 100_000), ModelReplyError, "no JSON"),
    (raw("[1]"), ModelReplyError, "something else than a chat completion"),
    (raw('{"choices": "many"}'), ModelReplyError, "something else than a chat completion"),
    (raw('{"choices": [7]}'), ModelReplyError, "without a choice"),
    (raw('{"choices": [{"message": {"content": 7}}]}'), ModelReplyError, "no text"),
    (empty_choices(), ModelReplyError, "without a choice"),
    (huge(), ModelReplyError, "more than 4,194,304 bytes"),
    (huge(declared=False), ModelReplyError, "more than 4,194,304 bytes"),
    (raw(b"nonsense", content_encoding="gzip"), ModelReplyError, "packed wrongly"),
    (raw(b"nonsense", content_encoding="br"), ModelReplyError, "not asked for"),
]


@pytest.mark.parametrize(("behaviour", "kind", "said"), FAULTS)
async def test_a_fault_of_a_whole_reply(behaviour, kind, said):
    with FakeEndpoint(behaviour) as server:
        error = await failure(server.base_url, api_key=KEY)
    assert isinstance(error, kind)
    assert said in str(error)
    assert "model 'small' at 127.0.0.1:" in str(error)
    assert PROMPT not in str(error)
    assert len(server.calls) == 1  # trying again is the middleware's


STREAM_FAULTS = [
    (status(500), ModelUnavailableError, "answered 500"),
    (redirect(), ModelRefusedError, "points elsewhere"),
    (refuse(), ModelUnavailableError, "hung up"),
    (disconnect(), ModelUnavailableError, "hung up"),
    (disconnect(events=0), ModelUnavailableError, "hung up"),
    (invalid_json(), ModelReplyError, "no JSON"),
    (empty_choices(), ModelReplyError, "without a completion"),
    (huge(), ModelReplyError, "more than"),
    (raw("{}"), ModelReplyError, "without a completion"),
]


@pytest.mark.parametrize(("behaviour", "kind", "said"), STREAM_FAULTS)
async def test_a_fault_of_a_stream(behaviour, kind, said):
    with FakeEndpoint(behaviour) as server:
        error = await failure(server.base_url, stream=True)
    assert isinstance(error, kind)
    assert said in str(error)


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        # The connection's end alone is no end: nobody said why the text was over.
        (events(delta(content="half ")), ModelUnavailableError, "in the middle"),
        (events(delta(content="a"), {"error": {"message": "CUDA ran out"}}),
         ModelUnavailableError, "CUDA ran out"),
        (events(delta(content="a"), "[7]"), ModelReplyError, "no completion's"),
        (b"data: \xff\xfe\n\n", ModelReplyError, "no JSON"),
    ],
)  # fmt: skip
async def test_a_stream_that_goes_wrong_inside(body, kind, said):
    with FakeEndpoint(raw(body, content_type="text/event-stream")) as server:
        error = await failure(server.base_url, stream=True)
    assert isinstance(error, kind)
    assert said in str(error)


async def test_pieces_come_before_the_stream_breaks():
    with FakeEndpoint(disconnect(events=3)) as server:
        async with endpoint(server.base_url) as model:
            pieces: list[object] = []
            with pytest.raises(ModelUnavailableError):
                await streamed(model, pieces)
    assert pieces == ["half "] * 3


async def test_a_useless_reply_says_what_it_took_all_the_same():
    with FakeEndpoint(empty_choices()) as server:
        error = await failure(server.base_url)
    assert isinstance(error, ModelReplyError)
    assert (error.prompt_tokens, error.completion_tokens) == (7, 3)
    with FakeEndpoint(invalid_json()) as server:
        error = await failure(server.base_url)
    assert isinstance(error, ModelReplyError)
    assert (error.prompt_tokens, error.completion_tokens) == (0, 0)


# --- bounds ---------------------------------------------------------------------------------------


async def test_a_packed_reply_is_unpacked_whether_asked_for_or_not():
    body = {"choices": [{"message": {"content": "pong"}, "finish_reason": "stop"}]}
    for encoding, data in {
        "gzip": gzip.compress(json.dumps(body).encode()),
        "deflate": zlib.compress(json.dumps(body).encode()),
    }.items():
        with FakeEndpoint(raw(data, content_encoding=encoding)) as server:
            async with endpoint(server.base_url) as model:
                assert (await model.complete(request())).text == "pong"
        assert server.calls[0].headers["accept-encoding"] == "identity"


async def test_a_small_reply_that_unpacks_to_very_much_is_refused():
    bomb = gzip.compress(bytes(400 << 20), compresslevel=1)
    assert len(bomb) < 4 << 20
    with FakeEndpoint(raw(bomb, content_encoding="gzip")) as server:
        error = await failure(server.base_url)
    assert isinstance(error, ModelReplyError)
    assert "more than 4,194,304 bytes" in str(error)


async def test_the_rest_of_a_reply_that_is_too_long_is_not_taken():
    with FakeEndpoint(huge(200_000_000, declared=False)) as server:
        assert isinstance(await failure(server.base_url), ModelReplyError)
        assert server.wait_until(lambda s: s.disconnects == 1)


# --- time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", [hang(), drip()])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_cancelled_call_ends_at_the_server(behaviour, stream):
    with FakeEndpoint(behaviour) as server:
        async with endpoint(server.base_url) as model:
            call = asyncio.ensure_future(streamed(model) if stream else model.complete(request()))
            while not server.calls:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.03)  # some of what drips has come
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert server.wait_until(lambda s: s.disconnects == 1)
            server.behaviour = ok()
            assert (await model.complete(request())).text == "pong"


async def test_a_stream_that_is_left_ends_at_the_server():
    with FakeEndpoint(drip()) as server:
        async with endpoint(server.base_url) as model:
            async with aclosing(model.stream(request())) as parts:
                assert await anext(parts) == "."
            assert server.wait_until(lambda s: s.disconnects == 1)


async def test_a_silent_server_is_left_at_the_settings_timeout():
    settings = chat_settings("http://x").model_copy(update={"timeout_s": 0.4})
    with FakeEndpoint(hang()) as server:
        model = ChatEndpoint("small", settings.model_copy(update={"base_url": server.base_url}))
        with pytest.raises(ModelTimeoutError, match=r"models\.small\.timeout_s"):
            await model.complete(request())
        await model.aclose()


async def test_a_server_that_is_not_there():
    with FakeEndpoint() as server:
        gone = server.base_url
    error = await failure(gone)
    assert isinstance(error, ModelUnavailableError)
    assert "cannot be reached" in str(error)


# --- retry-after ----------------------------------------------------------------------------------


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(timezone.utc) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry_after": "7"}, 7, 7),
        ({"retry_after": "0.5"}, 0.5, 0.5),
        ({"retry_after_ms": "1500"}, 1.5, 1.5),
        (90, 60, 91),
        (-90, 0, 0),
    ],
)
@pytest.mark.parametrize("code", [429, 503])
async def test_how_long_a_server_wants_to_be_left_alone(headers, low, high, code):
    if isinstance(headers, int):  # a date, so many seconds from now
        headers = {"retry_after": in_seconds(headers)}
    with FakeEndpoint(status(code, **headers)) as server:
        error = await failure(server.base_url)
    assert isinstance(error, ModelUnavailableError)
    assert error.retry_after is not None
    assert low <= error.retry_after <= high


@pytest.mark.parametrize("value", ["soon", "-3", "nan", "inf", "1e999", "", "Mon, 99 Foo 0000"])
async def test_a_wish_that_makes_no_sense_is_none(value):
    with FakeEndpoint(status(429, retry_after=value)) as server:
        error = await failure(server.base_url)
    assert isinstance(error, ModelRateLimitError)
    assert error.retry_after is None


# --- TLS ------------------------------------------------------------------------------------------


async def test_a_certificate_that_nobody_vouches_for_is_refused_until_it_is_named():
    with FakeEndpoint(tls=True) as server:
        error = await failure(server.base_url)
        assert isinstance(error, ModelRefusedError)
        assert "models.small.ca_file" in str(error)
        assert not server.calls
        async with endpoint(server.base_url, ca_file=str(CERTIFICATE)) as model:
            assert (await model.complete(request())).text == "pong"


async def test_a_certificate_of_another_name_is_refused():
    with FakeEndpoint(tls=True) as server:
        other = server.base_url.replace("127.0.0.1", "127.0.0.2")
        server_error = await failure(other, ca_file=str(CERTIFICATE))
    assert isinstance(server_error, (ModelRefusedError, ModelUnavailableError))
    assert not server.calls


async def test_a_server_without_tls_is_told_apart_from_one_that_is_down():
    with FakeEndpoint() as server:
        error = await failure(server.base_url.replace("http:", "https:"))
    assert isinstance(error, ModelRefusedError)
    assert "http://" in error.hint


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_used_are_a_matter_of_configuration(tmp_path, content):
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=r"models\.small\.ca_file"):
        ChatEndpoint("small", chat_settings("https://127.0.0.1/v1", ca_file=str(file)))
