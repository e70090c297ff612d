"""Headings of tagged PDFs: followed where they are headings, left alone where they are rubbish."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bookrag_fast.document import Document, read_document
from bookrag_fast.evaluation.runner import without
from bookrag_fast.index.model import NodeKind, SectionTree
from bookrag_fast.index.tree import build_tree
from pdf_factory import LOREM, wrapped
from tagged_factory import Part, make_tagged

BODY = Part("P", wrapped(LOREM * 2, 90))


def _sections(tree: SectionTree) -> list[tuple[int, str, int]]:
    return [
        (n.level - 1, n.title, n.page_first)
        for n in tree.nodes
        if n.kind is NodeKind.SECTION and n.node_id > 1
    ]


def _farm(tmp_path: Path, tags: list[str]) -> Document:
    """Chapters and parts of them in one and the same style, which tells no levels."""
    names = ["Grain", "Oats", "Summer Oats", "Tools", "Plough"]
    pages = [
        [Part(tag, [name], 13, True, inner=k == 2), BODY, BODY]
        for k, (name, tag) in enumerate(zip(names, tags, strict=True))
    ]
    return read_document(make_tagged(tmp_path / "farm.pdf", pages))


def test_tags_give_titles_levels_and_places(tmp_path: Path) -> None:
    document = _farm(tmp_path, ["H1", "Ueberschrift", "H3", "H1", "H2"])
    assert [(e.title, e.level, e.page) for e in document.tags] == [
        ("Grain", 1, 1), ("Oats", 2, 2), ("Summer Oats", 3, 3), ("Tools", 1, 4), ("Plough", 2, 5),
    ]  # fmt: skip
    first = document.blocks[0].regions[0].bbox
    assert document.tags[0].top == pytest.approx(first.y0, abs=6)
    tree = build_tree(replace(document, title="A Farm"))
    assert tree.toc_source == "tags"
    assert _sections(tree) == [
        (1, "Grain", 1), (2, "Oats", 2), (3, "Summer Oats", 3), (1, "Tools", 4), (2, "Plough", 5),
    ]  # fmt: skip
    headings = [n for n in tree.nodes if n.kind is NodeKind.SECTION and n.node_id > 1]
    assert all(n.evidence == ("tags", "typography") for n in headings)
    assert all(n.regions for n in headings)


def test_withheld_tags_leave_what_the_pages_show(tmp_path: Path) -> None:
    document = replace(_farm(tmp_path, ["H1", "H2", "H3", "H1", "H2"]), title="A Farm")
    tree = build_tree(without(document, ["tags"]))
    assert tree.toc_source == "typography"
    assert {level for level, _, _ in _sections(tree)} == {1}


def test_a_first_heading_that_is_the_title_is_no_chapter(tmp_path: Path) -> None:
    pages = [[Part("H1", ["All about Farms"], 20, True), BODY]]
    pages += [[Part("H2", [name], 13, True), BODY] for name in ("Grain", "Tools", "Mills")]
    tree = build_tree(read_document(make_tagged(tmp_path / "t.pdf", pages)))
    assert _sections(tree) == [(1, "Grain", 2), (1, "Tools", 3), (1, "Mills", 4)]


@pytest.mark.parametrize("rubbish", ["all", "words", "few"])
def test_rubbish_is_not_followed_and_reported(tmp_path: Path, rubbish: str) -> None:
    names = ["Grain", "Oats", "Barley", "Tools", "Plough", "Harrow"]
    heading = "P" if rubbish == "few" else "H1"
    body = "H1" if rubbish == "all" else "P"
    pages = []
    for k, name in enumerate(names, 1):
        page = [Part(heading, [f"{k} {name}"], 13, True)]
        page += [Part(body, BODY.lines), Part(body, BODY.lines)]
        if rubbish == "words":
            page += [Part("H2", ["flour, sacks and the"]), Part("H2", ["river that flows by."])]
        pages.append(page)
    if rubbish == "few":
        pages[0][0:0] = [Part("H1", ["A Farm"], 20, True), Part("H1", ["by a farmer"], 12, True)]
    document = replace(read_document(make_tagged(tmp_path / "rubbish.pdf", pages)), title="A Farm")
    tree = build_tree(document)
    assert tree.toc_source != "tags"
    assert any("tagged in the PDF are not followed" in w for w in tree.warnings)
    assert [s for s in _sections(tree) if s[1][0].isdigit()] == [
        (1, f"{k} {name}", k) for k, name in enumerate(names, 1)
    ]


def test_a_file_that_does_not_call_itself_tagged_is_not_looked_at(tmp_path: Path) -> None:
    pages = [[Part("H1", [name], 13, True), BODY] for name in ("Grain", "Tools")]
    assert read_document(make_tagged(tmp_path / "u.pdf", pages, marked=False)).tags == ()
