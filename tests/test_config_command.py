"""`bookrag config`: the file that it writes, and what it shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bookrag_fast.cli.main import app
from bookrag_fast.config import Settings, load_settings
from bookrag_fast.config.keys import known_keys
from bookrag_fast.config.models import MODEL_KINDS
from bookrag_fast.config.template import settings_file

SECRET = "sk-0123456789"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bookrag(*args: str, **env: str) -> Result:
    return CliRunner().invoke(app, ["config", *args], env=env)


def test_the_written_file_changes_nothing() -> None:
    assert bookrag("init").exit_code == 0
    assert load_settings("bookrag.toml", environ={}) == Settings()
    assert bookrag("init", "other.toml").exit_code == 0
    assert Path("other.toml").read_text("utf-8") == settings_file()


def test_an_existing_file_is_kept() -> None:
    Path("bookrag.toml").write_text("open_books = 3\n")
    result = bookrag("init", "--json")
    assert result.exit_code == 3
    assert "is there already" in json.loads(result.stdout)["error"]["message"]
    assert Path("bookrag.toml").read_text() == "open_books = 3\n"
    assert bookrag("init", "no/such/folder.toml").exit_code == 3


def uncommented(text: str) -> str:
    """As the file's head says: the "# " of every key and section removed."""
    return re.sub(r"^# +(\[[\w.]+\]$|\w+ = )", r"\1", text, flags=re.MULTILINE)


def test_what_stands_commented_out_is_the_defaults() -> None:
    """All lines put into force, with the models that roles name as examples."""
    Path("all.toml").write_text(uncommented(settings_file().partition("# All keys")[0]), "utf-8")
    settings = load_settings("all.toml", environ={})
    assert settings.model_fields_set == set(Settings.model_fields)
    for name, default in Settings().model_dump(exclude={"models"}).items():
        found = settings.model_dump()[name]
        pairs = [(found[k], v) for k, v in default.items()] if isinstance(default, dict) else []
        for value, usual in pairs or [(found, default)]:
            assert value is not None if usual is None else value == usual, name


def test_every_line_can_be_put_into_force() -> None:
    """The settings with all examples of models, then the keys of each kind in a model of it."""
    text, *kinds = settings_file().split("# All keys of ")
    endpoint, kinds = kinds[0], kinds[1:]
    assert len(kinds) == len(MODEL_KINDS)
    for keys in kinds:
        shared = "" if "onnx" in keys.partition(":")[0] else endpoint
        added = uncommented(f"\n# [models.whole]\n# {shared}# {keys}")
        Path("all.toml").write_text(uncommented(text) + added, "utf-8")
        settings = load_settings("all.toml", environ={})
        kind = settings.models["whole"].kind
        assert f"kind {kind}" in keys
        assert settings.models["whole"].model_fields_set == set(MODEL_KINDS[kind].model_fields)
        for name in ("roles", "budget", "ocr"):
            section = getattr(settings, name)
            assert None not in section.model_dump().values()
            assert section.model_fields_set == set(type(section).model_fields)


def test_allowed_values_are_told() -> None:
    text = settings_file()
    for values in (
        "auto | off | always",
        "auto | schema | json | prompt",
        "mean | cls | last",
        "cross-encoder | late-interaction",
    ):
        assert f"{values}; " in text


def test_every_key_is_in_it() -> None:
    text = settings_file()
    models = {kind: {"kind": kind} for kind in MODEL_KINDS}
    for key in known_keys(models):
        if not key.startswith(("roles.", "models.")):
            assert re.search(rf"^# {key.rpartition('.')[2]} = ", text, flags=re.MULTILINE), key
        elif key.startswith("models.") and ".price." not in key:
            assert re.search(rf"^#   {key.rpartition('.')[2]} = ", text, flags=re.MULTILINE), key


def test_the_examples_of_models_load() -> None:
    _, _, examples = settings_file().partition("Examples:")
    examples = examples.partition("# All keys")[0]
    active = uncommented(examples)
    Path("all.toml").write_text('embedder = "vectors"\nreranker = "ranks"\n' + active, "utf-8")
    models = load_settings("all.toml", environ={}).models
    assert set(models) == {
        "qwen", "small", "gemma", "openai", "vectors", "ranks", "minilm", "packed", "cross",
    }  # fmt: skip


def test_show_names_the_source_of_everything() -> None:
    Path("bookrag.toml").write_text("open_books = 7\n")
    result = bookrag("show", "--json", BOOKRAG_RETRIEVAL__DAMPING="0.25")
    shown = {s["key"]: s for s in json.loads(result.stdout)["settings"]}
    assert {key.partition(".")[0] for key in shown} == set(Settings.model_fields) - {"models"}
    assert shown["open_books"] == {
        "key": "open_books", "value": 7, "source": "file", "file": "bookrag.toml",
    }  # fmt: skip
    assert (shown["retrieval.damping"]["value"], shown["retrieval.damping"]["source"]) == (
        0.25,
        "environment",
    )
    assert shown["cache.enabled"]["source"] == "default"
    lines = bookrag("show").stdout.splitlines()
    assert re.fullmatch(r"open_books = 7 +# bookrag\.toml", lines[2])


def test_show_tells_no_secret() -> None:
    Path("bookrag.toml").write_text(
        f'[models.small]\nbase_url = "http://h/v1"\nmodel = "m"\napi_key = "{SECRET}"\n'
        f'headers = {{ X-Api-Key = "{SECRET}" }}\n'
    )
    for options in ((), ("--json",)):
        result = bookrag("show", *options)
        assert result.exit_code == 0
        assert SECRET not in result.output
        assert "***" in result.output
        assert "X-Api-Key" in result.output


def test_show_tells_no_secret_that_is_sent_along() -> None:
    Path("bookrag.toml").write_text(
        '[models.m]\nbase_url = "http://h/v1"\nmodel = "x"\n'
        f'[models.m.extra_body]\ntop_k = 3\napi_key = "{SECRET}"\nuser.auth_token = "{SECRET}"\n'
    )
    for how in ([], ["--json"]):
        shown = bookrag("show", *how).output
        assert SECRET not in shown
        assert "top_k" in shown
        assert "***" in shown
