"""The reader and the tree on real and on difficult PDFs, where a folder of them is at hand.

The folder is named by BOOKRAG_TEST_DATA or lies beside the repository as ``shared/data``.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bookrag_fast import errors
from bookrag_fast.document import read_document
from bookrag_fast.document.ocr.stage import is_installed
from bookrag_fast.index.model import NodeKind
from bookrag_fast.index.section import match_key
from bookrag_fast.index.tree import build_tree

_ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("BOOKRAG_TEST_DATA", _ROOT.parent / "shared" / "data"))

pytestmark = pytest.mark.skipif(
    not (DATA / "odd" / "INDEX.json").exists(), reason=f"no test data in {DATA}"
)

_FAILS: dict[str, type[errors.DocumentError]] = {
    "poppler-742-0-fuzzed.pdf": errors.DamagedPdfError,
    "poppler-937-0-fuzzed.pdf": errors.UnreadablePagesError,
    "bug1020226.pdf": errors.DamagedPdfError,
    "empty.pdf": errors.NoTextLayerError,
}
if not is_installed():
    _FAILS["ocr_test.pdf"] = _FAILS["ocr_test_rotated_90.pdf"] = errors.NoTextLayerError


def _odd() -> list[dict[str, str]]:
    index = DATA / "odd" / "INDEX.json"
    return json.loads(index.read_text("utf-8")) if index.exists() else []


@pytest.mark.parametrize("entry", _odd(), ids=lambda e: Path(e["file"]).name)
def test_difficult_files_give_a_result_or_the_right_error(entry: dict[str, str]) -> None:
    path = DATA / entry["file"]
    password = entry["password"] or None
    if path.name in _FAILS:
        with pytest.raises(_FAILS[path.name]):
            read_document(path)
        return
    if "user-pw" in entry["category"]:
        with pytest.raises(errors.EncryptedPdfError):
            read_document(path)
        with pytest.raises(errors.WrongPasswordError):
            read_document(path, password="not the password")
    document = read_document(path, password=password)
    tree = build_tree(document)
    assert document.blocks
    assert any(n.text for n in tree.nodes)
    if path.name == "vertical.pdf":
        assert document.blocks[0].text.startswith("あいうえお")
    if path.name == "outlines-with-invalid-destinations.pdf":
        assert tree.toc_source != "outline"


@pytest.mark.parametrize(
    ("stem", "folder", "least"),
    [
        ("freefem", "trees", 0.95),
        ("glpk-gmpl", "trees", 0.9),
        ("000843318", "trees", 0.9),
        ("1705.07830", "qasper", 0.8),
        ("obs-productdesc-en", "mmlb", 0.9),
    ],
)
def test_headings_are_found_without_the_outline(stem: str, folder: str, least: float) -> None:
    truth = json.loads((DATA / "outlines" / f"{stem}.json").read_text("utf-8"))["entries"]
    document = read_document(DATA / "docs" / folder / f"{stem}.pdf")
    wanted = {(match_key(e["title"]), e["page"]) for e in truth}
    for given, bound in ((document, 0.97), (replace(document, outline=()), least)):
        found = {
            (match_key(n.title), n.regions[0].page if n.regions else n.page_first)
            for n in build_tree(given).nodes
            if n.kind is NodeKind.SECTION and n.node_id > 1
        }
        f1 = 2 * len(wanted & found) / (len(wanted) + len(found))
        assert f1 >= bound
