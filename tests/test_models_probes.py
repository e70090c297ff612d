"""Doctor calls each configured model once, and says what failed and how to mend it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bookrag_fast.cli.main import app
from bookrag_fast.config import Settings
from bookrag_fast.models import probes
from bookrag_fast.models.doctor import Finding
from bookrag_fast.models.ledger import UsageLedger
from bookrag_fast.models.probes import probe_models
from fake_endpoint import (
    CERTIFICATE,
    Behaviour,
    Exchange,
    FakeEndpoint,
    by_path,
    chat,
    embeddings,
    rerank,
)
from fake_faults import hang, raw, status

SECRET = "sk-0123456789abcdef"
CITY = json.dumps({"city": "Paris"})


def probed(
    behaviour: Behaviour, *, deadline_s: float = 5.0, tls: bool = False, **model: Any
) -> tuple[Finding, FakeEndpoint]:
    """The finding of one model "m" at a server that behaves like this."""
    with FakeEndpoint(behaviour, tls=tls) as server:
        values = {"base_url": server.base_url, "model": "fake-1", "api_key": SECRET, **model}
        (found,) = probe_models(_settings(m=values), deadline_s=deadline_s)
    assert found.name == "model m"
    assert SECRET not in f"{found}"
    return found, server


def _settings(roles: dict[str, Any] | None = None, **models: Any) -> Settings:
    return Settings.model_validate({"models": models, "roles": roles or {}})


def refusing(*words: str) -> Behaviour:
    """A server that knows no request with one of these words in it."""

    async def behave(x: Exchange) -> None:
        asked = json.dumps(x.call.body)
        refused = next((word for word in words if word in asked), "")
        await (status(400, f"unsupported {refused}") if refused else chat(CITY))(x)

    return behave


def test_a_chat_model_that_works() -> None:
    found, server = probed(chat(CITY))
    assert found.ok
    assert "takes JSON schema; streams (5 pieces)" in found.detail
    assert "unused: no setting names it" in found.detail
    assert [bool(call.body.get("stream")) for call in server.calls] == [False, True]


@pytest.mark.parametrize(
    ("refused", "structured", "detail"),
    [
        (["json_schema"], "auto", "takes JSON mode; JSON schema is refused"),
        (["response_format"], "auto", "takes JSON by prompt; JSON schema is refused; JSON mode is"),
        ([], "prompt", "takes JSON by prompt; streams"),
    ],
)
def test_the_best_way_to_json_is_named(refused: list[str], structured: str, detail: str) -> None:
    found, _ = probed(refusing(*refused), structured=structured)
    assert found.ok
    assert detail in found.detail


def test_a_model_without_json_is_none_for_roles() -> None:
    found, _ = probed(chat("I would rather talk."))
    assert not found.ok
    assert "not in JSON: JSON schema brings none; JSON mode brings none" in found.detail
    assert "keeps to a JSON schema" in found.remedy


def test_a_key_that_is_not_taken() -> None:
    found, server = probed(status(401, f"no such key {SECRET}"))
    assert not found.ok
    assert "401" in found.detail
    assert "api_key" in found.remedy
    assert len(server.calls) == 1


def test_an_unknown_model_is_told_the_known_ones() -> None:
    models = raw(json.dumps({"data": [{"id": "qwen"}, {"id": "gemma"}, {"no": 1}]}))
    behaviour = by_path({"/models": models, "/completions": status(404, "no model fake-1")})
    found, _ = probed(behaviour)
    assert "404" in found.detail
    assert found.remedy == "set models.m.model to one that the server has: qwen, gemma"


def test_an_unknown_model_where_no_list_is_to_be_had() -> None:
    for listing in (status(404), raw("[]"), raw('{"data": 7}'), hang()):
        behaviour = by_path({"/models": listing, "/completions": status(404)})
        found, _ = probed(behaviour, deadline_s=0.5)
        assert "base_url" in found.remedy


def test_a_server_that_is_not_there() -> None:
    settings = _settings(m={"base_url": "http://127.0.0.1:9/v1", "model": "any"})
    (found,) = probe_models(settings)
    assert not found.ok
    assert "is the server running at http://127.0.0.1:9/v1?" in found.remedy


def test_a_certificate_that_is_not_trusted() -> None:
    found, _ = probed(chat(CITY), tls=True)
    assert not found.ok
    assert "models.m.ca_file" in found.remedy
    assert probed(chat(CITY), tls=True, ca_file=str(CERTIFICATE))[0].ok


def test_all_are_called_at_once_and_none_waits_for_long() -> None:
    with FakeEndpoint(hang()) as server:
        model = {"base_url": server.base_url, "model": "fake-1"}
        settings = _settings({"plan": "a", "answer": {"model": "a"}}, a=model, b=model, c=model)
        started = time.monotonic()
        found = probe_models(settings, deadline_s=0.5)
        assert time.monotonic() - started < 5.0
        assert server.wait_until(lambda s: s.disconnects == 3)
    assert [f.name for f in found] == ["model a", "model b", "model c"]
    assert all("did not answer within 0.5 s" in f.detail for f in found)
    assert found[0].detail.endswith("for plan, answer")


def test_pictures_are_shown_to_models_that_see() -> None:
    found, server = probed(chat(CITY), vision=True)
    assert found.ok
    assert "takes images" in found.detail
    assert "data:image/png;base64," in json.dumps(server.calls[-1].body)
    found, _ = probed(refusing("image_url"), vision=True)
    assert not found.ok
    assert "takes texts, but no image" in found.detail
    assert "models.m.vision" in found.remedy


def test_the_picture_is_one() -> None:
    import io

    from PIL import Image

    from bookrag_fast.models.probes import _picture

    with Image.open(io.BytesIO(_picture().data)) as picture:
        assert (picture.size, picture.getpixel((31, 31))) == ((32, 32), (255, 0, 0))


def test_embeddings_and_rerankers() -> None:
    found, _ = probed(embeddings(12), kind="embeddings")
    assert (found.ok, "12 dimensions" in found.detail) == (True, True)
    found, _ = probed(embeddings(12, value=float("nan")), kind="embeddings")
    assert not found.ok
    found, _ = probed(rerank(), kind="rerank")
    assert (found.ok, "ranks an answer first" in found.detail) == (True, True)
    found, _ = probed(rerank(lambda question, text: float(len(text))), kind="rerank")
    assert (found.ok, "no higher than" in found.detail) == (False, True)


def test_what_is_asked_is_booked(tmp_path: Path) -> None:
    price = {"input": 1e6, "output": 0.0}  # 1 USD a token
    ledger = UsageLedger(tmp_path / "usage.sqlite")
    kinds: dict[str, tuple[Behaviour, dict[str, Any]]] = {
        "chat": (chat(CITY), {"vision": True}),
        "picky": (refusing("json_schema"), {}),
        "embeds": (embeddings(12), {"kind": "embeddings"}),
        "ranks": (rerank(), {"kind": "rerank"}),
        "closed": (status(401), {}),
        "hangs": (hang(), {"structured": "prompt"}),
    }
    requests = {}
    for name, (behaviour, more) in kinds.items():
        with FakeEndpoint(behaviour) as server:
            values = {"base_url": server.base_url, "model": "fake-1", "price": price, **more}
            patience = 1.0 if name == "hangs" else 20.0
            probe_models(_settings(**{name: values}), deadline_s=patience, ledger=ledger)
            requests[name] = len(server.calls)
    spent = ledger.totals("model")
    for name, took in spent.items():
        assert took.calls + took.failures == requests[name]
        assert took.usd == took.prompt_tokens
        assert bool(took.calls) == bool(took.tokens)
    assert {name: (took.calls, took.failures) for name, took in spent.items()} == {
        "chat": (3, 0),  # JSON, a stream, a picture
        "picky": (2, 1),
        "embeds": (2, 0),  # how long vectors are, then a text
        "ranks": (1, 0),
        "closed": (0, 1),
        "hangs": (0, 1),
    }
    assert set(ledger.totals("role")) == {"doctor"}
    assert set(ledger.totals("book")) == {""}
    ledger.close()


def test_a_local_model_that_is_not_there(tmp_path: Path) -> None:
    for kind in ("onnx-embedder", "onnx-reranker"):
        (found,) = probe_models(_settings(m={"kind": kind, "source": str(tmp_path / "none")}))
        assert not found.ok
        assert found.remedy


def test_doctor_lists_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeEndpoint(status(401)) as bad, FakeEndpoint(chat(CITY)) as good:
        Path("bookrag.toml").write_text(
            f'[models.bad]\nbase_url = "{bad.base_url}"\nmodel = "b"\napi_key = "{SECRET}"\n'
            f'[models.good]\nbase_url = "{good.base_url}"\nmodel = "g"\n'
            '[roles]\nplan = "good"\n'
        )
        result = CliRunner().invoke(app, ["doctor", "--json"])
        used = CliRunner().invoke(app, ["doctor"], env={"BOOKRAG_ROLES__ANSWER": "bad"})
        assert not (tmp_path / "shelf").exists()
        (tmp_path / "shelf").mkdir()
        CliRunner().invoke(app, ["doctor"])
    told = CliRunner().invoke(app, ["usage", "--by", "model"]).stdout.splitlines()
    assert [line.split()[:4] for line in told[1:3]] == [
        ["bad", "0", "0", "1"],
        ["good", "2", "0", "0"],
    ]
    findings = {f["check"]: f for f in json.loads(result.stdout)["findings"]}
    assert (result.exit_code, used.exit_code) == (0, 1)  # what nothing uses breaks nothing
    assert SECRET not in result.output + used.output
    assert findings["model bad"]["level"] == "warning"
    assert findings["model good"]["level"] == "ok"
    assert findings["model good"]["detail"].startswith("takes JSON schema")
    assert "plan by good; by rules: sections" in findings["configuration"]["detail"]


def test_doctor_waits_for_no_model_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(probes, "DEADLINE_S", 0.5)
    (tmp_path / "book.md").write_text("# Fruit\n\nThe apple is a red fruit of autumn.\n")
    env = {"BOOKRAG_EMBEDDER": "vectors", "BOOKRAG_MODELS__VECTORS__KIND": "embeddings"}
    env["BOOKRAG_MODELS__VECTORS__MODEL"] = "fake"
    with FakeEndpoint(embeddings(8)) as server:
        env["BOOKRAG_MODELS__VECTORS__BASE_URL"] = server.base_url
        assert CliRunner().invoke(app, ["index", "book.md"], env=env).exit_code == 0
        server.behaviour = hang()
        started = time.monotonic()
        result = CliRunner().invoke(app, ["doctor", "--json"], env=env)
        assert time.monotonic() - started < 20
    findings = {f["check"]: f for f in json.loads(result.stdout)["findings"]}
    assert "within 0.5 s" in findings["model vectors"]["detail"]
    assert "did not answer in time" in findings["shelf"]["detail"]


def test_a_key_that_is_missing_is_a_finding_of_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOOKRAG_TEST_NO_KEY", raising=False)
    found, server = probed(chat(CITY), api_key=None, api_key_env="BOOKRAG_TEST_NO_KEY")
    assert not found.ok
    assert "BOOKRAG_TEST_NO_KEY, which is not set" in found.detail
    assert found.remedy.startswith("set BOOKRAG_TEST_NO_KEY, or leave out api_key_env")
    assert server.calls == []
