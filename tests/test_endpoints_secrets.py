"""Keys, headers and addresses of endpoints: what is sent to whom, and what is told of it."""

from __future__ import annotations

import json
import logging

import pytest

from bookrag_fast.errors import (
    ConfigError,
    ModelRateLimitError,
    ModelRefusedError,
)
from bookrag_fast.models.endpoints import ChatEndpoint
from endpoint_settings import chat_settings, endpoint, failure, request
from fake_endpoint import Behaviour, Exchange, FakeEndpoint, chat, events, ok, sequence
from fake_faults import (
    raw,
    status,
)

KEY = "sk-very-secret-0123456789"


# --- secrets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        f"Incorrect API key provided: {KEY}.",
        f"bad header Authorization: Bearer {KEY}",
        "your key sk-other-key-987654 is old",
        f"x-team is wrong: team-password {KEY}",
    ],
)
@pytest.mark.parametrize("code", [400, 401, 429, 500])
async def test_what_a_server_says_is_quoted_without_secrets(said, code, caplog):
    caplog.set_level(logging.INFO)
    with FakeEndpoint(status(code, said)) as server:
        error = await failure(server.base_url, api_key=KEY, headers={"X-Team": "team-password"})
    shown = caplog.text
    current: BaseException | None = error
    while current is not None:
        sent = getattr(current, "request", None)
        if current is error or not error.__suppress_context__:
            shown += f"{current!s} {current!r}"
        shown += str(sent.headers.raw) if sent is not None else ""
        current = current.__cause__ or current.__context__
    for secret in (KEY, "team-password", "sk-other-key-987654"):
        assert secret not in shown
    assert "***" in str(error)


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_server_repeats_of_the_question_is_not_quoted(stream):
    async def behave(x: Exchange) -> None:
        said = f"cannot parse {json.dumps(x.call.body['messages'])} at 7"
        await (status(400, said) if not stream else failing(said))(x)

    def failing(said: str) -> Behaviour:
        return raw(events({"error": {"message": said}}), content_type="text/event-stream")

    with FakeEndpoint(behave) as server:
        error = await failure(server.base_url, stream=stream)
    assert "cannot parse" in error.message
    assert "at 7" in error.message
    assert "secret recipe" not in error.message
    assert "Zanzibar" not in error.message


async def test_a_rate_limit_that_speaks_of_billing_is_one_all_the_same():
    message = "Rate limit reached. Add a payment method at https://example.com/account/billing"
    with FakeEndpoint(status(429, message)) as server:
        assert isinstance(await failure(server.base_url), ModelRateLimitError)


async def test_what_a_server_says_is_cut_and_in_one_line():
    with FakeEndpoint(status(400, "first\nsecond \x1b[31m " + "long " * 10_000)) as server:
        error = await failure(server.base_url)
    assert "first second ?[31m long" in error.message
    assert len(error.message) < 450


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"detail": [{"loc": ["b", "n"], "msg": "too big", "input": "PROMPT"}]}', "b.n: too big"),
        ('{"detail": "not so"}', "not so"),
        ('{"object": "error", "message": "not so"}', "not so"),
        ('{"error": "not so"}', "not so"),
        ("<html><body><h1>Not so</h1></body></html>", "Not so"),
        ('{"input": "PROMPT"}', "answered 400"),
        ("", "answered 400"),
    ],
)  # fmt: skip
async def test_each_shape_in_which_servers_say_what_is_wrong(body, said):
    with FakeEndpoint(raw(body, 400)) as server:
        error = await failure(server.base_url)
    assert said in error.message
    assert "PROMPT" not in error.message


async def test_settings_and_models_show_no_key_in_their_repr():
    model = ChatEndpoint("small", chat_settings("http://127.0.0.1/v1", api_key=KEY))
    shown = repr(vars(model)) + repr(vars(model._client)) + repr(model._client._client)
    assert KEY not in shown
    await model.aclose()


# --- addresses and keys ---------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "", "  ", "se\ncret"])
async def test_a_key_that_is_not_there_is_named_by_the_first_call(monkeypatch, value):
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with FakeEndpoint() as server:
        async with endpoint(server.base_url, api_key_env="MY_KEY") as model:
            with pytest.raises(ModelRefusedError, match="MY_KEY") as caught:
                await model.complete(request())
            with pytest.raises(ModelRefusedError, match="MY_KEY"):
                _ = [part async for part in model.stream(request())]
            assert "cret" not in str(caught.value)
            assert server.calls == []
            monkeypatch.setenv("MY_KEY", KEY)  # no longer missing
            await model.complete(request())
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in f"{model!r} {vars(model._client)}"


async def test_a_key_from_the_environment_is_told_to_nobody(monkeypatch):
    monkeypatch.setenv("MY_KEY", "plain-and-secret")
    with FakeEndpoint(status(400, "your key plain-and-secret is wrong")) as server:
        async with endpoint(server.base_url, api_key_env="MY_KEY") as model:
            with pytest.raises(ModelRefusedError, match=r"key \*\*\* is wrong"):
                await model.complete(request())


@pytest.mark.parametrize("values", [{"api_key": "se\ncret"}, {"headers": {"X-A": "sécret"}}])
def test_a_key_that_no_header_can_hold_is_not_quoted(values):
    with pytest.raises(ConfigError, match=r"models\.small\.") as caught:
        ChatEndpoint("small", chat_settings("http://host/v1", **values))
    assert "cret" not in str(caught.value)


async def test_what_the_environment_holds_for_others_stays_here(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"Authorization: Bearer {KEY}\nX-Other: 1")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FakeEndpoint() as server:
        async with endpoint(server.base_url) as model:
            await model.complete(request())
    headers = server.calls[0].headers
    assert set(headers) == {
        "host", "connection", "accept", "content-type", "content-length", "accept-encoding",
        "user-agent",
    }  # fmt: skip
    assert headers["user-agent"].startswith("bookrag-fast/")
    assert KEY not in repr(server.calls)


async def test_keys_and_headers_of_the_settings_are_sent(monkeypatch):
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    with FakeEndpoint() as server:
        async with endpoint(
            server.base_url, api_key_env="MY_KEY", headers={"X-Team": "blue", "User-Agent": "me"}
        ) as model:
            await model.complete(request())
    headers = server.calls[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert (headers["x-team"], headers["user-agent"]) == ("blue", "me")


async def test_azure_is_asked_by_deployment_version_and_its_own_header(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "token-of-another")
    for path in ("", "/openai", "/openai/deployments/fake-1"):
        with FakeEndpoint() as server:
            base_url = server.base_url.removesuffix("/v1") + path
            async with endpoint(base_url, api_version="2024-10-21", api_key=KEY) as model:
                assert (await model.complete(request())).text == "pong"
        call = server.calls[0]
        assert call.path == "/openai/deployments/fake-1/chat/completions?api-version=2024-10-21"
        assert call.headers["api-key"] == KEY
        assert "authorization" not in call.headers


async def test_connections_are_used_again():
    with FakeEndpoint(sequence(ok(), status(429), chat("<think>"), ok())) as server:
        async with endpoint(server.base_url) as model:
            for _ in range(4):
                try:
                    await model.complete(request())
                except ModelRateLimitError:
                    continue
    assert server.connections == 1
