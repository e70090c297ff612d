"""The README and the public namespace say what is true."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bookrag_fast
from bookrag_fast.cli.main import app
from bookrag_fast.config import RoleSettings, Settings, load_settings
from bookrag_fast.config.prices import unbounded

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.S)


def test_the_python_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = next(code for kind, code in BLOCKS if kind == "python")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block, "README.md", "exec"), {})
    assert "tables" in out.getvalue()


def test_the_settings_file_of_the_readme_loads(tmp_path: Path) -> None:
    text = next(code for kind, code in BLOCKS if kind == "toml")
    (tmp_path / "bookrag.toml").write_text(text, "utf-8")
    settings = load_settings(tmp_path / "bookrag.toml", environ={})
    assert settings.roles.answer == RoleSettings(model="seeing", concurrency=4)
    assert not list(unbounded(settings))


def test_the_commands_of_the_table_exist() -> None:
    named = set(re.findall(r"`bookrag (\w+)", README))
    assert {"index", "ask", "search", "show", "list", "rm", "serve", "doctor"} <= named
    for name in named:
        result = CliRunner().invoke(app, [name, "--help"])
        assert result.exit_code == 0, name


def test_the_scripts_of_the_readme_exist() -> None:
    for script in re.findall(r"^\./(scripts/\w+)", README, flags=re.M):
        assert (ROOT / script).stat().st_mode & 0o111, script


def test_the_public_namespace_is_what_it_says() -> None:
    for name in bookrag_fast.__all__:
        assert getattr(bookrag_fast, name) is not None
    assert set(bookrag_fast.__all__) == set(dir(bookrag_fast))
    with pytest.raises(AttributeError):
        bookrag_fast.nothing  # noqa: B018


@pytest.mark.parametrize("module", ["grpc", "pyarrow", "pypdfium2", "onnxruntime", "pydantic"])
def test_the_core_can_be_had_alone(module: str) -> None:
    code = f"import sys; from bookrag_fast import core; assert {module!r} not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_setting_has_a_description() -> None:
    for section in (Settings, *(f.annotation for f in Settings.model_fields.values())):
        for name, info in getattr(section, "model_fields", {}).items():
            nested = hasattr(info.annotation, "model_fields")
            assert nested or info.description, name


def test_the_readme_lists_every_setting_and_leaves_no_gap() -> None:
    assert "@@" not in README
    for name, info in Settings.model_fields.items():
        nested = getattr(info.annotation, "model_fields", None)
        for key in [f"{name}.{k}" for k in nested] if nested else [name]:
            assert f"| `{key}` |" in README, key
