"""What headings rest on, and how far that is trusted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bookrag_fast.document import read_document
from bookrag_fast.index.contents import ContentsEntry, PrintedContents
from bookrag_fast.index.evidence import WEIGHTS, heading_confidence, tree_confidence
from bookrag_fast.index.model import NodeKind, SectionTree
from bookrag_fast.index.section import Heading
from bookrag_fast.index.tree import build_tree
from pdf_factory import LOREM, heading, make_pdf, paragraph

CHAPTERS = ("1 Pumps", "2 Valves", "3 Pipes")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def page(title: str):  # type: ignore[no-untyped-def]
        def draw(canvas) -> None:  # type: ignore[no-untyped-def]
            top = heading(canvas, title, top=90)
            for _ in range(3):
                top = paragraph(canvas, LOREM * 2, top=top)

        return draw

    marks = [(title, 0, k) for k, title in enumerate(CHAPTERS, 1)]
    return make_pdf(
        tmp_path_factory.mktemp("evidence") / "book.pdf",
        [page(title) for title in CHAPTERS],
        outline=[*marks, ("Unprinted matter", 0, 3)],
    )


def sections(tree: SectionTree) -> dict[str, tuple[str, ...]]:
    return {n.title: n.evidence for n in tree.nodes if n.kind is NodeKind.SECTION and n.level > 1}


def test_an_outline_is_backed_by_what_the_pages_say(book: Path) -> None:
    tree = build_tree(read_document(book))
    found = sections(tree)
    assert found["2 Valves"] == ("outline", "printed", "typography", "numbering")
    assert found["Unprinted matter"] == ("outline",)
    by_title = {n.title: n.confidence for n in tree.nodes}
    assert by_title["2 Valves"] > by_title["Unprinted matter"] == pytest.approx(0.9)
    judged = [n.confidence for n in tree.nodes if n.confidence is not None]
    assert tree.confidence == pytest.approx(sum(judged) / len(judged))


def test_content_and_titles_are_not_judged(book: Path) -> None:
    tree = build_tree(read_document(book))
    assert all((n.confidence is None) == (n.kind is not NodeKind.SECTION or n.level < 2)
               for n in tree.nodes)  # fmt: skip


def test_without_an_outline_the_confidence_is_lower(book: Path) -> None:
    document = read_document(book)
    told, alone = build_tree(document), build_tree(replace(document, outline=()))
    assert alone.toc_source == "numbering"
    assert sections(alone)["2 Valves"] == ("typography", "numbering")
    assert 0.9 < alone.confidence < told.confidence


def test_mere_pages_deserve_no_confidence(tmp_path: Path) -> None:
    def plain(canvas) -> None:  # type: ignore[no-untyped-def]
        paragraph(canvas, LOREM * 3, top=100)

    tree = build_tree(read_document(make_pdf(tmp_path / "plain.pdf", [plain, plain])))
    assert tree.toc_source == "pages"
    assert tree.confidence == 0.0
    assert set(sections(tree).values()) == {("page",)}


def test_kinds_of_evidence_are_independent_witnesses() -> None:
    assert heading_confidence(()) is None
    assert heading_confidence(("title",)) is None
    assert heading_confidence(("typography",)) == pytest.approx(0.5)
    assert heading_confidence(("typography", "numbering")) == pytest.approx(1 - 0.5 * 0.1)
    assert heading_confidence(("typography", "typography")) == pytest.approx(0.5)
    assert all(0.0 <= w < 1.0 for w in WEIGHTS.values())


def test_listed_headings_that_were_not_found_count_as_missing() -> None:
    entries = [ContentsEntry(f"Chapter {k}", str(k), k, False, 1) for k in range(4)]
    found = [Heading(f"Chapter {k}", 1, k, k, evidence=("contents-page",)) for k in range(3)]
    assert tree_confidence(found, PrintedContents()) == pytest.approx(0.95)
    assert tree_confidence(found, PrintedContents(entries=entries)) == pytest.approx(0.95 * 3 / 4)
    assert tree_confidence([], PrintedContents(entries=entries)) == 0.0
