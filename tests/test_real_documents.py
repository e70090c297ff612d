"""The whole chain on real documents of different kinds, where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bookrag_fast import Library

KINDS = {
    "manual": "docs/mmlb/watch_d.pdf",
    "paper": "docs/mmlb/2310.05634v2.pdf",
    "annual report": "docs/mmlb/BESTBUY_2023_10K.pdf",
    "handbook": "docs/mmlb/ISEP_student_handbook_2020.pdf",
    "Japanese report": "docs/ja/110329-1a.pdf",
}


@pytest.mark.parametrize("kind", KINDS)
def test_answers_cite_the_evidence_page(
    kind: str, evaluation_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = (evaluation_data / "qa.jsonl").read_text("utf-8").splitlines()
    questions = [
        q for q in map(json.loads, lines) if q["doc"] == KINDS[kind] and q.get("evidence_pages")
    ]
    assert len(questions) >= 2
    with Library.open(tmp_path_factory.mktemp("real")) as lib:
        book = lib.add(evaluation_data / KINDS[kind])
        cited = 0
        for question in questions:
            answer = lib.ask(question["question"], books=[book.id])
            pages = {p for c in answer.citations for p in c.pages}
            assert all(1 <= p <= book.pages for p in pages)
            cited += bool(pages & set(question["evidence_pages"]))
        assert cited >= 2
        assert lib.check() == []
