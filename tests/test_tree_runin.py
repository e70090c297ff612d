"""Run-in headings: the words in bold or italics that open a paragraph."""

from __future__ import annotations

from pathlib import Path

from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from bookrag_fast.document import Document, read_document
from bookrag_fast.index.model import NodeKind, SectionTree
from bookrag_fast.index.tree import build_tree
from pdf_factory import LOREM, heading, make_pdf, text_lines, wrapped


def _opened(c: Canvas, words: str, text: str, *, top: float, font: str = "Helvetica-Bold") -> float:
    """A paragraph that begins with words in another face; the y after it."""
    text_lines(c, [words], top=top, font=font)
    x = 72 + stringWidth(words + " ", font, 10)
    first, *rest = wrapped(text, 90 - len(words))
    text_lines(c, [first], x=x, top=top)
    return text_lines(c, wrapped(" ".join(rest), 95), top=top + 12) + 8


def _book(tmp_path: Path, parts: list[tuple[str, str]], *, headings: bool = False) -> Document:
    def draw(c: Canvas) -> None:
        top = 60.0
        for k, (words, text) in enumerate(parts):
            if headings and k % 2 == 0:
                top = heading(c, f"{k // 2 + 1} Chapter of the book", top=top + 8)
            top = _opened(c, words, text, top=top)

    return read_document(make_pdf(tmp_path / "runin.pdf", [draw], title="A Standard"))


def _sections(tree: SectionTree) -> list[tuple[int, str, tuple[str, ...]]]:
    return [
        (n.level - 1, n.title, n.evidence)
        for n in tree.nodes
        if n.kind is NodeKind.SECTION and n.node_id > 1
    ]


def test_they_head_sections_where_there_is_nothing_else(tmp_path: Path) -> None:
    names = ["Scope.", "Terms and words.", "Liability.", "Final provisions."]
    tree = build_tree(_book(tmp_path, [(name, LOREM * 2) for name in names]))
    assert tree.toc_source == "run-in"
    assert _sections(tree) == [(1, name[:-1], ("run-in",)) for name in names]
    under = {n.parent: n.text for n in tree.nodes if n.kind is NodeKind.TEXT}
    assert set(under) == {2, 4, 6, 8}
    assert all(text.startswith("The quick brown fox") for text in under.values())


def test_numbered_ones_take_the_level_of_their_number(tmp_path: Path) -> None:
    parts = [(f"{k}.{j} Rule {'abcd'[j]} of it.", LOREM * 2) for k in (1, 2, 3) for j in (1, 2)]
    tree = build_tree(_book(tmp_path, parts, headings=True))
    assert [(level, title) for level, title, _ in _sections(tree)] == [
        (1, "1 Chapter of the book"), (2, "1.1 Rule b of it"), (2, "1.2 Rule c of it"),
        (1, "2 Chapter of the book"), (2, "2.1 Rule b of it"), (2, "2.2 Rule c of it"),
        (1, "3 Chapter of the book"), (2, "3.1 Rule b of it"), (2, "3.2 Rule c of it"),
    ]  # fmt: skip
    assert _sections(tree)[1][2] == ("run-in", "numbering")


def test_beside_real_headings_they_stay_in_their_paragraphs(tmp_path: Path) -> None:
    names = ["Data.", "Training.", "Baselines.", "Metrics.", "Costs.", "Errors."]
    document = _book(tmp_path, [(name, LOREM * 2) for name in names], headings=True)
    assert [b.lead.text for b in document.blocks if b.lead] == names
    tree = build_tree(document)
    assert [title for _, title, _ in _sections(tree)] == [
        f"{k} Chapter of the book" for k in (1, 2, 3)
    ]
    assert sum("Baselines. The quick" in n.text for n in tree.nodes) == 1


def test_what_is_no_heading(tmp_path: Path) -> None:
    for name, parts in {
        "two": [("Scope.", LOREM * 2), ("Terms.", LOREM * 2), ("Plain words", LOREM)],
        "emphasis": [(f"Never {k}", LOREM * 2) for k in range(5)],  # no full stop behind it
        "notes": [("Note.", LOREM * 2) for _ in range(5)],
        "definitions": [(f"Term {k}:", "a thing that the miller has.") for k in range(8)],
    }.items():
        (tmp_path / name).mkdir()
        tree = build_tree(_book(tmp_path / name, parts))
        assert tree.toc_source != "run-in", name
        assert not any("run-in" in evidence for _, _, evidence in _sections(tree)), name


def test_a_full_stop_in_either_face_and_italics(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        top = 60.0
        for name in ("Scope", "Liability", "Provisions"):
            top = _opened(c, name, ". " + LOREM * 2, top=top, font="Helvetica-Oblique")

    tree = build_tree(read_document(make_pdf(tmp_path / "i.pdf", [draw], title="A Standard")))
    assert [title for _, title, _ in _sections(tree)] == ["Scope", "Liability", "Provisions"]


def test_a_short_bold_line_is_no_part_of_the_bold_word_below_it(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        top = 60.0
        for name in ("Charging", "Pairing", "Cleaning"):
            text_lines(c, [name], top=top, font="Helvetica-Bold")
            top = _opened(c, "1", LOREM * 2, top=top + 12) + 10

    document = read_document(make_pdf(tmp_path / "steps.pdf", [draw], title="A Watch"))
    assert [title for _, title, _ in _sections(build_tree(document))] == [
        "Charging", "Pairing", "Cleaning",
    ]  # fmt: skip
