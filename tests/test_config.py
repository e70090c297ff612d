"""Settings: the nearest source wins, and what is wrong is named with where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from bookrag_fast.config import ChatModelSettings, RoleSettings, Settings, load_settings
from bookrag_fast.config.loading import load_sourced
from bookrag_fast.errors import ConfigError

SECRET = "sk-0123456789"
MODELS = """
[models.small]
base_url = "http://localhost:8000/v1"
model = "some-model"
[models.seeing]
kind = "chat"
base_url = "http://localhost:8001/v1"
model = "some-vlm"
vision = true
[models.vectors]
kind = "embeddings"
base_url = "http://localhost:8002/v1"
model = "some-embedder"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bookrag.toml"
    path.write_text('embedder = "onnx:from-file"\nopen_books = 7\n[retrieval]\ndamping = 0.7\n')
    return path


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_flag_beats_environment_beats_file_beats_default(file: Path) -> None:
    env = {"BOOKRAG_EMBEDDER": "onnx:from-env", "BOOKRAG_RETRIEVAL__DAMPING": "0.8"}
    assert load_settings(environ={}) == Settings()
    assert load_settings(file, environ={}).retrieval.damping == 0.7
    settings = load_settings(file, environ=env, open_books=9, embedder=None)
    assert settings.retrieval.damping == 0.8
    assert settings.embedder == "onnx:from-env"
    assert settings.open_books == 9
    assert load_settings(file, environ=env, embedder="onnx:x").embedder == "onnx:x"
    assert load_settings(environ={"BOOKRAG_CONFIG": str(file)}).open_books == 7


def test_each_value_knows_its_source(file: Path) -> None:
    env = {"BOOKRAG_RETRIEVAL__DAMPING": "0.8", "BOOKRAG_MODELS__SMALL__HEADERS": '{"X-Y": "z"}'}
    env |= {"BOOKRAG_MODELS__SMALL__BASE_URL": "http://h/v1", "BOOKRAG_MODELS__SMALL__MODEL": "m"}
    found = load_sourced(file, environ=env, cache={"enabled": False})
    kinds = {
        "embedder": "file",
        "open_books": "file",
        "retrieval.damping": "environment",
        "retrieval.added_sections": "default",
        "models.small.headers": "environment",
        "models.small.retries": "default",
        "cache.enabled": "command line",
    }
    assert {key: found.origin(key).kind for key in kinds} == kinds
    assert found.origin("embedder").file == str(file)


def test_models_come_from_the_environment_as_well(tmp_path: Path) -> None:
    env = {
        "BOOKRAG_MODELS__SMALL__BASE_URL": "http://elsewhere:1/v1",
        "BOOKRAG_MODELS__SMALL__API_KEY": "123",  # stays text, though it reads like a number
        "BOOKRAG_MODELS__SMALL__PRICE__INPUT": "0.5",
        "BOOKRAG_MODELS__SMALL__EXTRA_BODY": '{"think": false}',
        "BOOKRAG_MODELS__LOCAL__KIND": "onnx-reranker",
        "BOOKRAG_MODELS__LOCAL__SOURCE": "folder",
        "BOOKRAG_MODELS__LOCAL__PROVIDERS": '["CPUExecutionProvider"]',
        "BOOKRAG_ROLES__PLAN": "small",
        "BOOKRAG_ROLES__ANSWER__CONCURRENCY": "2",
    }
    path = written(tmp_path, MODELS + '[roles]\nanswer = "seeing"\n')
    settings = load_settings(path, environ=env)
    small = settings.models["small"]
    assert isinstance(small, ChatModelSettings)
    assert (small.base_url, small.model) == ("http://elsewhere:1/v1", "some-model")
    assert small.api_key is not None
    assert small.api_key.get_secret_value() == "123"
    assert small.price.input == 0.5
    assert small.extra_body == {"think": False}
    assert settings.models["local"].kind == "onnx-reranker"
    assert settings.roles.plan == RoleSettings(model="small")
    assert settings.roles.answer == RoleSettings(model="seeing", concurrency=2)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"BOOKRAG_RETRIEVAL__DAMPNG": "0.5"}, r"unknown.*environment.*retrieval\.damping"),
        ({"BOOKRAG_RETRIEVAL__DAMPING": "1.5"}, r"damping.*in the environment is '1.5': .*less"),
        ({"BOOKRAG_XYZZY": "1"}, "unknown.*known keys: embedder"),
        ({"BOOKRAG_EMBEDER": "wordllama"}, r"unknown.*'embeder'.*did you mean embedder\?"),
        ({"BOOKRAG_RETRIEVAL": "1", "BOOKRAG_RETRIEVAL__DAMPING": "0.5"}, "RETRIEVAL__"),
        ({"BOOKRAG_CONFIG": "/nowhere/x.toml"}, "cannot read.*nowhere"),
        ({"BOOKRAG_MODELS__SMALL__BAS_URL": "x"}, r"'models.small.bas_url'.*models.small.base_url"),
        ({"BOOKRAG_MODELS": "nonsense"}, "'models' in the environment.*dictionary.*JSON"),
    ],
)
def test_mistakes_are_named(env: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(environ=env)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("open_books = 0", "mine.toml is '0'"),
        ("= nonsense", "mine.toml is not valid TOML"),
        ("[budget]\nusd_per_day = nan", "'budget.usd_per_day' in .*finite"),
        ("[budget]\nusd_per_day = inf", "'budget.usd_per_day' in .*finite"),
        ("[models.small]\nbas_url = 1", "'models.small.bas_url' in .*mean models.small.base_url?"),
        ("[models.small.price]\ninputs = 1", "mean models.small.price.input?"),
        ('[models.small]\nmodel = "m"', "'models.small.base_url' is missing in .*mine.toml"),
        ('[models.small]\nmodel = "m"\nbase_url = "localhost:80"', "address of a server"),
        ('[models.small]\nkind = "chatt"', "'models.small.kind' in .*'chatt'.*did you mean chat?"),
        ('[models.small]\nkind = "xyz"', "kinds: chat, embeddings, rerank"),
        ('[models.e]\nkind = "embeddings"\nvision = true', "unknown setting 'models.e.vision'"),
        ('[models."Big One"]\nmodel = "m"', "'models.Big One'.*lower-case"),
        (
            '[models.small]\nmodel = "m"\nbase_url = "http://h/v1"\nprice = 0.15',
            r"small.price' in .*section \(write { input = …, output = … }",
        ),
        ('[roles]\nplam = "small"', "'roles.plam'.*did you mean roles.plan"),
        ('[roles.plan]\nmodel = "small"\nspeed = 1', "'roles.plan.speed'.*roles.plan.model"),
    ],
)
def test_mistakes_in_a_file_name_the_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(written(tmp_path, text), environ={})


def test_a_file_in_no_encoding_of_text_is_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_settings(path, environ={})


def test_a_misspelt_flag_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'cache\.enable' in the command line.*cache\.enabled"):
        load_settings(environ={}, cache={"enable": False})


@pytest.mark.parametrize(
    ("top", "roles", "message"),
    [
        ("", 'plan = "smal"', "'roles.plan' in .*'smal', which is not configured .*mean small?"),
        ("", 'plan = "other"', "not configured .*models that do: small, seeing"),
        ("", 'plan = "vectors"', "'vectors', which is no chat model"),
        ("", 'vision = "small"', "'small', which is no chat model with vision.*do: seeing"),
        ('embedder = "small"', "", "'embedder'.*'small', which is no embedder.*do: vectors"),
        ('embedder = "vektors"', "", "did you mean vectors.*wordllama"),
        ('reranker = "any"', "", "configure 'any' as a reranker .*, or use \"onnx:SOURCE\""),
    ],
)
def test_names_of_models_are_checked(tmp_path: Path, top: str, roles: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(written(tmp_path, f"{top}\n{MODELS}\n[roles]\n{roles}"), environ={})


def test_models_that_are_named_well_are_taken(tmp_path: Path) -> None:
    text = 'embedder = "vectors"\n' + MODELS + '[roles]\nplan = "small"\nvision = "seeing"\n'
    settings = load_settings(written(tmp_path, text), environ={})
    assert settings.roles.vision == RoleSettings(model="seeing")


@pytest.mark.parametrize(
    "line",
    [
        f'api_key = ["{SECRET}"]',
        f'api_kee = "{SECRET}"',
        f'headers = "{SECRET}"',
        f'headers = {{ Authorization = ["{SECRET}"] }}',
        f'base_url = "http://me:{SECRET}@localhost/v1"',
        f'api_key = "{SECRET}"\nretries = "many"',
        f'api_key = "{SECRET}"',  # model and base_url are missing
    ],
)
def test_no_error_tells_a_secret(tmp_path: Path, line: str) -> None:
    text = f"[models.small]\n{line}\n"
    with pytest.raises(ConfigError) as caught:
        load_settings(written(tmp_path, text), environ={})
    told = f"{caught.value} {caught.value.__cause__} {caught.value!r}"
    assert SECRET not in told


def test_neither_settings_nor_their_errors_tell_secrets() -> None:
    model = {"base_url": "http://h/v1", "model": "m", "api_key": SECRET, "headers": {"K": SECRET}}
    settings = Settings.model_validate({"models": {"small": model}})
    assert SECRET not in f"{settings!r} {settings} {settings.model_dump_json()}"
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"models": {"small": {**model, "retries": SECRET}}})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("", "address of a server"),
        ("localhost:8000", "address of a server"),
        ("ftp://host/v1", "address of a server"),
        ("http:///v1", "address of a server"),
        ("http://[::1/v1", "IPv6"),
        ("http://host:99999/v1", "[Pp]ort"),
        ("http://me:pass@host/v1", "no user, password or query"),
        ("http://host/v1?key=1", "no user, password or query"),
        ("http://host/v1#x", "no user, password or query"),
    ],
)
def test_an_address_that_is_none(address: str, said: str) -> None:
    models = {"small": {"base_url": address, "model": "m"}}
    with pytest.raises(ConfigError, match=said) as caught:
        load_settings(environ={}, models=models)
    assert "models.small.base_url" in str(caught.value)
    assert "pass@" not in str(caught.value)
