"""Settings: the nearest source wins, and what is wrong is named with where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from bookrag_fast.config import Settings, load_settings
from bookrag_fast.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bookrag.toml"
    path.write_text('embedder = "onnx:from-file"\nopen_books = 7\n[retrieval]\ndamping = 0.7\n')
    return path


def test_flag_beats_environment_beats_file_beats_default(file: Path) -> None:
    env = {"BOOKRAG_EMBEDDER": "onnx:from-env", "BOOKRAG_RETRIEVAL__DAMPING": "0.8"}
    assert load_settings(environ={}) == Settings()
    assert load_settings(file, environ={}).retrieval.damping == 0.7
    settings = load_settings(file, environ=env, open_books=9, embedder=None)
    assert settings.retrieval.damping == 0.8
    assert settings.embedder == "onnx:from-env"
    assert settings.open_books == 9
    assert load_settings(file, environ=env, embedder="x").embedder == "x"
    assert load_settings(environ={"BOOKRAG_CONFIG": str(file)}).open_books == 7


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"BOOKRAG_RETRIEVAL__DAMPNG": "0.5"}, r"unknown.*environment.*retrieval\.damping"),
        ({"BOOKRAG_RETRIEVAL__DAMPING": "1.5"}, r"damping.*in the environment is '1.5': .*less"),
        ({"BOOKRAG_XYZZY": "1"}, "unknown.*known keys: embedder"),
        ({"BOOKRAG_RETRIEVAL": "1", "BOOKRAG_RETRIEVAL__DAMPING": "0.5"}, "RETRIEVAL__"),
        ({"BOOKRAG_CONFIG": "/nowhere/x.toml"}, "cannot read.*nowhere"),
    ],
)
def test_mistakes_are_named(env: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(environ=env)


def test_mistakes_in_a_file_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("open_books = 0\n")
    with pytest.raises(ConfigError, match=r"mine\.toml is '0'"):
        load_settings(path, environ={})
    path.write_text("= nonsense")
    with pytest.raises(ConfigError, match=r"mine\.toml is not valid TOML"):
        load_settings(path, environ={})
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_settings(path, environ={})
