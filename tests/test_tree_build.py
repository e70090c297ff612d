"""`build_tree`: sections from outlines, contents pages, numbering and typography; content nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from bookrag_fast.document import (
    BBox,
    Block,
    BlockKind,
    Document,
    OutlineEntry,
    Page,
    Region,
    Style,
    read_document,
)
from bookrag_fast.index.model import Node, NodeKind, SectionTree
from bookrag_fast.index.tree import build_tree
from pdf_factory import LOREM, heading, image, make_pdf, paragraph, text_lines


def _sections(tree: SectionTree) -> list[tuple[int, str, int]]:
    return [
        (n.level, n.title, n.regions[0].page if n.regions else n.page_first)
        for n in tree.nodes
        if n.kind is NodeKind.SECTION and n.node_id > 1
    ]


def _document(blocks: list[Block], pages: int = 1, **options: object) -> Document:
    return Document(
        name="made.pdf",
        sha256="0" * 64,
        title="A Book",
        pages=tuple(Page(k + 1, None, 600, 800) for k in range(pages)),
        blocks=tuple(blocks),
        **options,  # type: ignore[arg-type]
    )


def _block(
    text: str, page: int = 1, y: float = 100, kind: BlockKind = BlockKind.TEXT, size: float = 10
) -> Block:
    box = BBox(72, y, 500, y + 12)
    style = Style(size=size, bold=kind is BlockKind.TITLE, family="F", gap_before=12.0)
    return Block(kind, text, (Region(page, box),), style)


def _check(document: Document, tree: SectionTree) -> None:
    """What every tree must be, whatever the document."""
    nodes = tree.nodes
    assert (nodes[0].kind, nodes[0].level, nodes[0].parent) == (NodeKind.ROOT, 0, -1)
    assert (nodes[1].kind, nodes[1].level, nodes[1].parent) == (NodeKind.SECTION, 1, 0)
    assert nodes[1].evidence == ("title",)
    path: list[Node] = [nodes[0]]
    for k, node in enumerate(nodes):
        assert node.node_id == k
        if k == 0:
            continue
        while path[-1].node_id != node.parent:
            path.pop()  # pre-order: the parent is an open section
        assert node.level == path[-1].level + 1
        assert path[-1].kind in (NodeKind.ROOT, NodeKind.SECTION)
        assert 1 <= node.page_first <= node.page_last <= len(document.pages)
        assert path[-1].page_first <= node.page_first
        assert node.page_last <= path[-1].page_last
        path.append(node)

    def letters(text: str) -> int:
        return sum(not c.isspace() for c in text)

    whole = sum(letters(b.text) for b in document.blocks)
    kept = sum(letters(n.text) + letters(n.title) + letters(n.numbering) for n in nodes[2:])
    assert kept >= whole


# --- outlines ---------------------------------------------------------------------------------


def _chapters(tmp_path: Path, outline: list[tuple[str, int, int]]) -> Document:
    def page(number: int):  # type: ignore[no-untyped-def]
        def draw(c: Canvas) -> None:
            top = heading(c, f"{number} Chapter title {number}", top=100)
            top = paragraph(c, LOREM * 3, top=top)
            top = heading(c, f"{number}.1 First part of {number}", top=top + 10, size=12)
            paragraph(c, LOREM * 3, top=top)

        return draw

    return read_document(
        make_pdf(tmp_path / "c.pdf", [page(k) for k in range(1, 6)], outline=outline)
    )


def test_sound_outline_is_followed_and_tied_to_headings(tmp_path: Path) -> None:
    outline = [
        entry
        for k in range(1, 6)
        for entry in ((f"Chapter title {k}", 0, k), (f"First part of {k}", 1, k))
    ]
    document = _chapters(tmp_path, outline)
    tree = build_tree(document)
    _check(document, tree)
    assert tree.toc_source == "outline"
    assert _sections(tree) == [(lv + 2, title, page) for title, lv, page in outline]
    first = tree.nodes[2]
    assert first.numbering == "1"
    assert first.regions  # the printed heading became the section
    assert not any("Chapter title" in n.text for n in tree.nodes)


@pytest.mark.parametrize(
    "titles",
    [
        [f"Page {k}" for k in range(1, 6)],
        [f"scan_{k:04}.tif" for k in range(1, 6)],
        ["untitled"] * 5,
    ],
)
def test_junk_outline_is_ignored(tmp_path: Path, titles: list[str]) -> None:
    document = _chapters(tmp_path, [(t, 0, k) for k, t in enumerate(titles, start=1)])
    tree = build_tree(document)
    _check(document, tree)
    assert tree.toc_source == "numbering"
    assert any("ignored" in w for w in tree.warnings)
    assert len(_sections(tree)) == 10


def test_outline_out_of_order_or_to_one_page_is_ignored() -> None:
    blocks = [_block(f"Text of page {k}. " + LOREM, page=k) for k in range(1, 11)]
    mixed = tuple(OutlineEntry(f"Topic {'abcdefgh'[k]}", 1, (7 * k) % 10 + 1) for k in range(8))
    single = tuple(OutlineEntry(f"Topic {'abcdefgh'[k]}", 1, 1) for k in range(8))
    for outline in (mixed, single):
        document = _document(blocks, pages=10, outline=outline)
        tree = build_tree(document)
        _check(document, tree)
        assert tree.toc_source == "pages"
        assert tree.warnings


def test_outline_beyond_the_last_page_is_clamped(tmp_path: Path) -> None:
    blocks = [
        b
        for k in range(1, 4)
        for b in (_block(f"Topic {k}", k, 80, BlockKind.TITLE, 14), _block(LOREM, k, 120))
    ]
    outline = tuple(OutlineEntry(f"Topic {k}", 1, k) for k in range(1, 4))
    outline += (OutlineEntry("Topic nine", 1, 99),)
    document = _document(blocks, pages=3, outline=outline)
    tree = build_tree(document)
    _check(document, tree)
    assert [s[1] for s in _sections(tree)] == ["Topic 1", "Topic 2", "Topic 3", "Topic nine"]
    assert tree.nodes[-1].page_last == 3
    assert "beyond the last page" in tree.warnings[0]


def test_level_jumps_are_closed_up() -> None:
    blocks = [_block(f"Topic {c}", 1, 50 * k, BlockKind.TITLE, 14) for k, c in enumerate("abcd", 1)]
    outline = (
        OutlineEntry("Topic a", 1, 1),
        OutlineEntry("Topic b", 4, 1),
        OutlineEntry("Topic c", 4, 1),
        OutlineEntry("Topic d", 2, 1),
    )
    tree = build_tree(_document(blocks, outline=outline))
    assert [s[0] for s in _sections(tree)] == [2, 3, 3, 3]


# --- without an outline -----------------------------------------------------------------------


def test_numbers_and_type_make_sections(tmp_path: Path) -> None:
    document = _chapters(tmp_path, [])
    tree = build_tree(document)
    _check(document, tree)
    assert tree.toc_source == "numbering"
    assert [(lv, t.split(" ")[0], p) for lv, t, p in _sections(tree)] == [
        x for k in range(1, 6) for x in ((2, f"{k}", k), (3, f"{k}.1", k))
    ]
    assert tree.nodes[2].evidence == ("typography", "numbering")


def test_numbered_headings_in_the_face_of_the_body(tmp_path: Path) -> None:
    numbers = ["1", "1.1", "1.1.1", "1.1.2", "1.2", "2", "2.1", "2.2"]

    def draw(c: Canvas) -> None:
        top = 60.0
        for number in numbers:
            top = text_lines(c, [f"{number} Rules about a thing"], top=top) + 4
            top = paragraph(c, "The rule says what must be done by whom. " * 3, top=top) + 6

    document = read_document(make_pdf(tmp_path / "b.pdf", [draw]))
    tree = build_tree(document)
    _check(document, tree)
    assert tree.toc_source == "numbering"
    assert [(lv, t.split(" ")[0]) for lv, t, _ in _sections(tree)] == [
        (n.count(".") + 2, n) for n in numbers
    ]


def test_contents_page_decides(tmp_path: Path) -> None:
    """Bold remarks that the contents page does not list are no headings."""
    names = ["Oats", "Barley", "Wheat", "Rye", "Maize", "Millet", "Rice", "Spelt", "Teff"]

    def contents(c: Canvas) -> None:
        heading(c, "Contents", top=80)
        dots = " . " * 30
        entries = [f"{k} {n}{dots}{k}" for k, n in enumerate(names, 1)]
        text_lines(c, entries, top=120, leading=16)

    def page(number: int):  # type: ignore[no-untyped-def]
        def draw(c: Canvas) -> None:
            top = heading(c, f"{number} {names[number - 1]}", top=90)
            top = paragraph(c, LOREM * 3, top=top)
            top = heading(c, "Please remember to wash", top=top + 6, size=14)
            paragraph(c, LOREM * 2, top=top)
            text_lines(c, [str(number)], x=290, top=815, size=8)

        return draw

    pages = [contents, *[page(k) for k in range(1, len(names) + 1)]]
    document = read_document(make_pdf(tmp_path / "toc.pdf", pages))
    tree = build_tree(document)
    _check(document, tree)
    assert [s[1:] for s in _sections(tree)] == [(f"{k} {n}", k + 1) for k, n in enumerate(names, 1)]
    assert "contents-page" in tree.nodes[-2].evidence or any(
        "contents-page" in n.evidence for n in tree.nodes
    )


def test_no_heading_gives_a_section_a_page() -> None:
    blocks = [
        _block(f"the text of page {k}, all of one kind and size. " + LOREM, k) for k in (1, 3)
    ]
    document = _document(blocks, pages=3)
    tree = build_tree(document)
    _check(document, tree)
    assert tree.toc_source == "pages"
    assert _sections(tree) == [(2, "Page 1", 1), (2, "Page 3", 3)]


def test_front_matter_stays_under_the_title() -> None:
    blocks = [
        _block("by some author, at some place, for some purpose", y=50),
        _block("1 Beginning", y=100, kind=BlockKind.TITLE, size=14),
        _block(LOREM, y=130),
        _block("2 End", y=300, kind=BlockKind.TITLE, size=14),
        _block(LOREM, y=330),
    ]
    tree = build_tree(_document(blocks))
    assert tree.nodes[2].parent == 1
    assert tree.nodes[2].text.startswith("by some author")
    assert [s[1] for s in _sections(tree)] == ["1 Beginning", "2 End"]


@pytest.mark.parametrize("blocks", [[], [_block("only")], [_block("")]])
def test_hardly_anything(blocks: list[Block]) -> None:
    document = _document(blocks)
    tree = build_tree(document)
    _check(document, tree)
    assert tree.nodes[0].title == "A Book"


# --- content nodes ----------------------------------------------------------------------------


def test_short_paragraphs_are_packed_and_long_ones_split() -> None:
    short = [_block(f"Short paragraph number {k}.", y=60 + 14 * k) for k in range(6)]
    long = _block(LOREM * 30, y=300)
    nodes = [n for n in build_tree(_document([*short, long])).nodes if n.kind is NodeKind.TEXT]
    assert nodes[0].text.count("\n") == 5
    assert len(nodes[0].regions) == 6
    assert len(nodes) > 3
    assert all(len(n.text) <= 2000 for n in nodes)
    assert all(n.text.endswith(".") for n in nodes)


def test_captions_name_their_tables_and_figures() -> None:
    table = Block(
        BlockKind.TABLE, "a | b\n1 | 2", (Region(1, BBox(72, 130, 400, 160)),), Style(size=10)
    )
    picture = Block(BlockKind.IMAGE, "", (Region(1, BBox(72, 300, 300, 400)),))
    blocks = [
        _block("Table 1: Numbers", y=115, kind=BlockKind.CAPTION),
        table,
        picture,
        _block("Figure 1: A view", y=405, kind=BlockKind.CAPTION),
        _block("Figure 2: Drawn with lines only", y=600, kind=BlockKind.CAPTION),
    ]
    tree = build_tree(_document(blocks))
    found = [(n.kind, n.title) for n in tree.nodes if n.kind in (NodeKind.TABLE, NodeKind.IMAGE)]
    assert found == [
        (NodeKind.TABLE, "Table 1: Numbers"),
        (NodeKind.IMAGE, "Figure 1: A view"),
        (NodeKind.IMAGE, "Figure 2: Drawn with lines only"),
    ]
    assert tree.nodes[3].text == "a | b\n1 | 2"


def test_a_figure_in_a_pdf_is_counted_once(tmp_path: Path) -> None:
    def draw(c: Canvas) -> None:
        top = heading(c, "1 Pictures", top=80)
        paragraph(c, LOREM, top=top)
        c.drawImage(image(), 100, 842 - 400, 200, 150)
        text_lines(c, ["Figure 1: A red square"], x=100, top=420)
        paragraph(c, LOREM, top=460)

    tree = build_tree(read_document(make_pdf(tmp_path / "f.pdf", [draw])))
    pictures = [n for n in tree.nodes if n.kind is NodeKind.IMAGE]
    assert [n.title for n in pictures] == ["Figure 1: A red square"]


_KINDS = st.sampled_from(list(BlockKind))
_TEXTS = st.one_of(
    st.sampled_from(
        ["1 One", "1.1 Sub", "2 Two", "Chapter 3", "Table 1: T", "Figure 2. F", "body text here.",
         "第3章 概要", "ABSTRACT", "Appendix A", "• item", ""]
    ),
    st.text(max_size=40),
)  # fmt: skip


@settings(max_examples=150)
@example(  # an entry that is printed in a table, behind a heading
    [(BlockKind.TITLE, "1 One", 1, 8.0), (BlockKind.TABLE, "body text here.", 1, 8.0)],
    [("body text here.", 1, 1)],
)
@given(
    st.lists(st.tuples(_KINDS, _TEXTS, st.integers(1, 5), st.sampled_from([8.0, 10.0, 16.0]))),
    st.lists(st.tuples(_TEXTS, st.integers(1, 6), st.integers(0, 9))),
)
def test_any_document_gives_a_whole_tree(
    parts: list[tuple[BlockKind, str, int, float]], marks: list[tuple[str, int, int]]
) -> None:
    parts.sort(key=lambda part: part[2])
    blocks = [
        _block(text, page, 40 + 13 * k, kind, size)
        for k, (kind, text, page, size) in enumerate(parts)
    ]
    outline = tuple(OutlineEntry(title, level, page) for title, level, page in marks)
    document = _document(blocks, pages=5, outline=outline)
    _check(document, build_tree(document))


def test_two_parts_with_contents_and_page_numbers_of_their_own(tmp_path: Path) -> None:
    crops = ["Oats", "Barley", "Wheat", "Rye", "Maize"]
    tools = ["Plough", "Harrow", "Scythe", "Flail", "Sieve"]

    def cover(name: str):  # type: ignore[no-untyped-def]
        return lambda c: heading(c, f"Handbook of {name}", top=300, size=26)

    def contents(names: list[str]):  # type: ignore[no-untyped-def]
        def draw(c: Canvas) -> None:
            heading(c, "Contents", top=80)
            entries = [f"{k} {n}{' . ' * 30}{k + 2}" for k, n in enumerate(names, 1)]
            text_lines(c, entries, top=120, leading=16)

        return draw

    def chapter(k: int, name: str):  # type: ignore[no-untyped-def]
        def draw(c: Canvas) -> None:
            top = heading(c, f"{k} {name}", top=90)
            paragraph(c, LOREM * 4, top=top)
            text_lines(c, [str(k + 2)], x=290, top=815, size=8)

        return draw

    pages = []
    for part, names in (("Crops", crops), ("Tools", tools)):
        pages += [cover(part), contents(names)]
        pages += [chapter(k, name) for k, name in enumerate(names, 1)]
    document = read_document(make_pdf(tmp_path / "parts.pdf", pages, title="A Farm"))
    tree = build_tree(document)
    _check(document, tree)
    sections = _sections(tree)
    found = {title.split()[-1]: page for _, title, page in sections}
    assert [found[n] for n in crops] == [3, 4, 5, 6, 7]
    assert [found[n] for n in tools] == [10, 11, 12, 13, 14]
    assert found["Tools"] == 8
    levels = {title.split()[-1]: level for level, title, _ in sections}
    assert levels["Tools"] < levels["Plough"]
    assert document.pages[9].label == "3"


def test_numbered_form_has_items_of_one_depth_on_one_level(tmp_path: Path) -> None:
    numbers = ["7", "7.1", "7.1.1", "7.1.2", "7.2", "7.2.1", "7.3", "8", "8.1", "8.2"]

    def draw(c: Canvas) -> None:
        top = 60.0
        for number in numbers:
            top = text_lines(c, [f"{number} State of the item"], top=top, font="Helvetica-Bold") + 4
            top = paragraph(c, "To be filled in by the person who applies for it.", top=top) + 6

    tree = build_tree(read_document(make_pdf(tmp_path / "form.pdf", [draw])))
    levels = {title.split(" ")[0]: level for level, title, _ in _sections(tree)}
    assert levels == {n: n.count(".") + 2 for n in numbers}


def test_pages_of_near_identical_lines(tmp_path: Path) -> None:
    def page(k: int):  # type: ignore[no-untyped-def]
        def draw(c: Canvas) -> None:
            lines = [f"Ord. No. {100 * k + j}, passed, amended §{j}.{k}." for j in range(50)]
            text_lines(c, lines, top=60, leading=14)

        return draw

    document = read_document(make_pdf(tmp_path / "ord.pdf", [page(k) for k in range(1, 21)]))
    tree = build_tree(document)
    _check(document, tree)
    text = "\n".join(n.text + n.title for n in tree.nodes)
    assert all(f"Ord. No. {100 * k + j}," in text for k in range(1, 21) for j in range(50))


def test_equal_styles_keep_the_order_of_the_document() -> None:
    """Whatever the fonts are called: sets of styles have another order in every process."""

    def levels(first: str, second: str) -> list[int]:
        def block(k: int, text: str, family: str, *, size: float, bold: bool) -> Block:
            kind = BlockKind.TITLE if bold else BlockKind.TEXT
            box = BBox(72, 60 + 40 * (k % 15), 400, 75 + 40 * (k % 15))
            style = Style(size=size, bold=bold, family=family, gap_before=20.0)
            return Block(kind, text, (Region(1 + k // 15, box),), style)

        blocks: list[Block] = []
        for k in range(1, 13):
            numbered = k % 3 != 0
            title = (
                f"{(k + 2) // 3}.{k % 3} Water"
                if numbered
                else f"Of the Mill of {LOREM[k : k + 9]}"
            )
            family = first if numbered else second
            blocks.append(block(len(blocks), title, family, size=13, bold=True))
            for _ in range(3):
                blocks.append(block(len(blocks), LOREM, "Body", size=10, bold=False))
        return [n[0] for n in _sections(build_tree(_document(blocks, pages=4)))]

    found = {tuple(levels(f"Face{k}", f"Type{k}")) for k in range(24)}
    assert len(found) == 1
    assert len(found.pop()) == 12
