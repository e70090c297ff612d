"""Inputs that broke other systems, rebuilt small: from the file to the tree, and where it matters
to the answer and its citation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from bookrag_fast import Library
from bookrag_fast.config import OcrSettings
from bookrag_fast.document import BlockKind, Document, IsolatedReader, PageStatus, read_document
from bookrag_fast.errors import InvalidArgumentError
from bookrag_fast.index.model import NodeKind, SectionTree
from bookrag_fast.index.tree import build_tree
from pdf_factory import HEIGHT, LOREM, WIDTH, heading, image, make_pdf, paragraph, text_lines

Draw = Callable[[Canvas], None]


def _sections(tree: SectionTree) -> list[tuple[int, str, int]]:
    """(level, title, physical page) of the sections below the document's title."""
    return [
        (n.level - 1, n.title, n.page_first)
        for n in tree.nodes
        if n.kind is NodeKind.SECTION and n.node_id > 1
    ]


def _chapter(title: str, *, printed: int | None = None) -> Draw:
    def draw(c: Canvas) -> None:
        top = heading(c, title, top=90)
        for _ in range(3):
            top = paragraph(c, LOREM * 2, top=top)
        if printed is not None:
            text_lines(c, [str(printed)], x=290, top=815, size=8)

    return draw


def _contents(entries: list[tuple[str, str]]) -> Draw:
    def draw(c: Canvas) -> None:
        heading(c, "Contents", top=80)
        text_lines(c, [f"{t}{' .' * 30} {n}".rstrip() for t, n in entries], top=120, leading=16)

    return draw


# --- contents pages ---------------------------------------------------------------------------


def test_contents_pages_of_two_parts_that_both_count_from_one(tmp_path: Path) -> None:
    parts = {"Crops": ["Oats", "Barley", "Wheat", "Rye"], "Tools": ["Plough", "Harrow", "Flail"]}
    pages: list[Draw] = []
    for part, names in parts.items():
        pages.append(lambda c, part=part: heading(c, f"Handbook of {part}", top=300, size=26))
        pages.append(_contents([(f"{k} {n}", str(k + 2)) for k, n in enumerate(names, 1)]))
        pages += [_chapter(f"{k} {n}", printed=k + 2) for k, n in enumerate(names, 1)]
    document = read_document(make_pdf(tmp_path / "parts.pdf", pages, title="A Farm"))
    found = _sections(build_tree(document))
    chapters = [(title, page) for _, title, page in found if title[0].isdigit()]
    assert chapters == [
        ("1 Oats", 3), ("2 Barley", 4), ("3 Wheat", 5), ("4 Rye", 6),
        ("1 Plough", 9), ("2 Harrow", 10), ("3 Flail", 11),
    ]  # fmt: skip
    assert (1, "Handbook of Tools", 7) in found
    assert [document.pages[k].label for k in (2, 8)] == ["3", "3"]


def test_contents_that_go_beyond_the_last_page(tmp_path: Path) -> None:
    names = ["Oats", "Barley", "Wheat", "Rye", "Maize", "Millet", "Spelt"]
    pages = [_contents([(f"{k} {n}", str(k + 1)) for k, n in enumerate(names, 1)])]
    pages += [_chapter(f"{k} {n}", printed=k + 1) for k, n in enumerate(names[:4], 1)]
    document = read_document(make_pdf(tmp_path / "cut.pdf", pages, title="A Farm"))
    tree = build_tree(document)
    assert [(t, p) for _, t, p in _sections(tree) if t[0].isdigit()] == [
        (f"{k} {n}", k + 1) for k, n in enumerate(names[:4], 1)
    ]
    assert all(n.page_last <= 5 for n in tree.nodes)
    assert any(w.startswith("3 ") and "beyond the last page (5)" in w for w in tree.warnings)


def test_contents_whose_numbers_match_no_page(tmp_path: Path) -> None:
    names = ["Oats", "Barley", "Wheat", "Rye", "Maize"]
    numbers = ["311", "47", "902", "15", ""]
    entries = [(f"{k} {n}", p) for k, (n, p) in enumerate(zip(names, numbers, strict=True), 1)]
    pages = [_contents(entries), *(_chapter(f"{k} {n}") for k, n in enumerate(names, 1))]
    tree = build_tree(read_document(make_pdf(tmp_path / "odd.pdf", pages, title="A Farm")))
    assert [s for s in _sections(tree) if s[1][0].isdigit()] == [
        (1, f"{k} {n}", k + 1) for k, n in enumerate(names, 1)
    ]


# --- headings ---------------------------------------------------------------------------------


def test_pages_of_near_identical_lines_are_kept_and_reported(tmp_path: Path) -> None:
    def page(k: int) -> Draw:
        lines = [f"Ord. No. {100 * k + j}, passed, amended §{j}.{k}." for j in range(50)]
        return lambda c: text_lines(c, lines, top=60, leading=14)  # type: ignore[return-value]

    document = read_document(make_pdf(tmp_path / "ord.pdf", [page(k) for k in range(1, 21)]))
    tree = build_tree(document)
    assert len(_sections(tree)) <= 20  # a thousand lines alike are no thousand sections
    assert any("no headings" in w for w in tree.warnings)
    text = "\n".join(n.text + n.title for n in tree.nodes)
    assert all(f"Ord. No. {100 * k + j}," in text for k in range(1, 21) for j in range(50))


def test_numbered_headings_in_the_very_face_of_the_body(tmp_path: Path) -> None:
    numbers = ["1", "1.1", "1.1.1", "1.1.2", "1.2", "2", "2.1"]
    names = dict(
        zip(numbers, ["Farm", "Field", "Soil", "Seed", "Barn", "Mill", "Wheel"], strict=True)
    )

    def draw(c: Canvas) -> None:
        top = 60.0
        for number, name in names.items():
            top = text_lines(c, [f"{number} {name}"], top=top) + 6
            top = paragraph(c, LOREM, top=top) + 8

    tree = build_tree(read_document(make_pdf(tmp_path / "plain.pdf", [draw])))
    assert _sections(tree) == [(n.count(".") + 1, f"{n} {names[n]}", 1) for n in numbers]


def test_a_numbered_form_types_items_of_one_depth_alike(tmp_path: Path) -> None:
    numbers = ["7", "7.1", "7.1.1", "7.1.2", "7.2", "7.2.1", "7.2.2", "7.3"]

    def draw(c: Canvas) -> None:
        top = 60.0
        for number in numbers:
            top = text_lines(c, [f"{number} State of the item"], top=top, font="Helvetica-Bold") + 4
            top = paragraph(c, "To be filled in by the person who applies for it.", top=top) + 6

    tree = build_tree(read_document(make_pdf(tmp_path / "form.pdf", [draw])))
    assert {t.split()[0]: level for level, t, _ in _sections(tree)} == {
        n: n.count(".") + 1 for n in numbers
    }


@pytest.mark.parametrize(
    "outline",
    [
        [(f"Page {k}", 0, k) for k in range(1, 6)],
        [(f"scan_000{k}.tif", 0, k) for k in range(1, 6)],
        [("Millet", 0, 5), ("Oats", 0, 1), ("Rye", 0, 4), ("Barley", 0, 2), ("Wheat", 0, 3)],
    ],
    ids=["page numbers", "file names", "out of order"],
)
def test_junk_bookmarks_give_way_to_the_headings(
    tmp_path: Path, outline: list[tuple[str, int, int]]
) -> None:
    names = ["Oats", "Barley", "Wheat", "Rye", "Maize"]
    pages = [_chapter(f"{k} {n}") for k, n in enumerate(names, 1)]
    path = tmp_path / "junk.pdf"
    tree = build_tree(read_document(_with_bookmarks(path, pages, outline)))
    assert _sections(tree) == [(1, f"{k} {n}", k) for k, n in enumerate(names, 1)]
    assert any("outline is ignored" in w for w in tree.warnings)


def _with_bookmarks(path: Path, pages: list[Draw], outline: list[tuple[str, int, int]]) -> Path:
    """Bookmarks in the order given, whatever their pages."""
    canvas = Canvas(str(path), pagesize=(WIDTH, HEIGHT))
    for number, draw in enumerate(pages, 1):
        canvas.bookmarkPage(f"p{number}")
        draw(canvas)
        canvas.showPage()
    for title, level, page in outline:
        canvas.addOutlineEntry(title, f"p{page}", level)
    canvas.save()
    return path


# --- text and tables over breaks ---------------------------------------------------------------


def test_a_table_that_goes_on_without_its_header_is_cited_on_both_pages(tmp_path: Path) -> None:
    rows = [[f"Grain {k}", f"{k}.5", f"{100 + k}"] for k in range(1, 41)]

    def table(c: Canvas, some: list[list[str]], top: float) -> float:
        for row in some:
            for x, cell in zip((72, 240, 400), row, strict=True):
                text_lines(c, [cell], x=x, top=top)
            top += 14
        return top

    def first(c: Canvas) -> None:
        top = heading(c, "1 Yields", top=60)
        top = paragraph(c, LOREM * 6, top=top)
        table(c, [["Crop", "Tons per acre", "Price"], *rows[:20]], top=820 - 21 * 14)

    def second(c: Canvas) -> None:
        top = table(c, rows[20:], top=60)
        paragraph(c, LOREM * 4, top=top + 30)

    path = make_pdf(tmp_path / "yields.pdf", [first, second])
    tables = [b for b in read_document(path).blocks if b.kind is BlockKind.TABLE]
    assert len(tables) == 1
    assert [r.page for r in tables[0].regions] == [1, 2]
    assert {c.row for c in tables[0].cells} == set(range(41))
    assert {c.row for c in tables[0].cells if c.header} == {0}
    with Library.open(tmp_path / "shelf") as library:
        library.add(path)
        answer = library.ask("What is the price of Grain 33?")
        cited = [c for c in answer.citations if {r.page for r in c.boxes} == {1, 2}]
        assert cited
        assert "133" in answer.text or any("133" in e.text for e in answer.evidence)


def test_a_sentence_over_a_column_break_with_broken_ligatures(tmp_path: Path) -> None:
    left = [f"Line {k} of the left column speaks of the mill." for k in range(1, 30)]
    right = [f"Line {k} of the right column speaks of it." for k in range(1, 30)]

    def draw(c: Canvas) -> None:
        text_lines(c, [*left, "At the end the miller asks for the"], x=60, top=80)
        text_lines(c, ["veri fi cation of the weights.", *right], x=320, top=80)

    blocks = read_document(make_pdf(tmp_path / "columns.pdf", [draw])).blocks
    broken = [b for b in blocks if "asks for the verification of the weights" in b.text]
    assert len(broken) == 1
    assert len(broken[0].regions) == 2
    assert broken[0].regions[0].bbox.x1 < 320 < broken[0].regions[1].bbox.x1


# --- odd contents ------------------------------------------------------------------------------


def test_marks_of_a_models_thinking_in_a_text_are_text(tmp_path: Path) -> None:
    said = "The reply x<think>y</think>z is kept whole by the parser."

    def draw(c: Canvas) -> None:
        top = heading(c, "1 Replies", top=60)
        top = text_lines(c, [said], top=top) + 8
        paragraph(c, LOREM, top=top)

    path = make_pdf(tmp_path / "think.pdf", [draw])
    assert any(said in n.text for n in build_tree(read_document(path)).nodes)
    with Library.open(tmp_path / "shelf") as library:
        library.add(path)
        evidence = library.search("Which reply is kept whole by the parser?")
        assert any("x<think>y</think>z" in e.text for e in evidence)


def _many_names(c: Canvas) -> None:
    """Names that never stand together in a sentence."""
    starts = "Bar Cor Dal Fen Gar Hol Jun Kel Lor Mar Nor Pel Ros Sul Tor".split()
    ends = "bury dale field ford gate ham hurst land ley mere mont stead ton vale wick wood worth"
    names = [a + b for a in starts for b in ends.split()][:255]
    for k, name in enumerate(names):
        column, row = divmod(k, 51)
        text_lines(c, [f"See {name}."], x=40 + 105 * column, top=60 + 15 * row, size=8)


@pytest.mark.parametrize(
    ("draw", "question", "wanted"),
    [
        (lambda c: paragraph(c, LOREM * 2, top=100), "What does the miller count?", "sacks"),
        (lambda c: text_lines(c, ["Closed on Mondays."], top=100), "When is it closed?", "Mondays"),
        (_many_names, "Where is Torwick?", ""),
    ],
    ids=["one page", "one block", "names without relations"],
)
def test_hardly_anything_to_go_by_still_gives_an_answer(
    tmp_path: Path, draw: Draw, question: str, wanted: str
) -> None:
    path = make_pdf(tmp_path / "small.pdf", [draw])
    with Library.open(tmp_path / "shelf") as library:
        library.add(path)
        answer = library.ask(question)
    assert wanted in answer.text
    assert all(r.page == 1 for c in answer.citations for r in c.boxes)


def test_a_graph_without_relations_answers(tmp_path: Path) -> None:
    path = make_pdf(tmp_path / "names.pdf", [_many_names])
    with Library.open(tmp_path / "shelf") as library:
        book = library.add(path)
        assert library.search("Torwood", books=[book.id])


def test_pages_indexed_in_two_runs_keep_the_files_numbers(tmp_path: Path) -> None:
    names = "Oats Barley Wheat Rye Maize Millet Spelt Sorghum Teff Fonio".split()
    pages = [_chapter(f"{k} {n}", printed=100 + k) for k, n in enumerate(names, 1)]
    outline = [(f"{k} {n}", 0, k) for k, n in enumerate(names, 1)]
    path = make_pdf(tmp_path / "grains.pdf", pages, outline=outline, title="All Grains")
    document = read_document(path, pages=(5, None))
    assert [p.number for p in document.pages] == list(range(1, 11))
    assert [p.label for p in document.pages] == [None] * 4 + [str(k) for k in range(105, 111)]
    assert {b.page for b in document.blocks} == set(range(5, 11))
    assert document.warnings == ()
    with Library.open(tmp_path / "shelf") as library:
        whole = library.add(path)
        first, second = library.add(path, pages=(2, 5)), library.add(path, pages=(6, 9))
        again = library.add(path, pages=(6, 9))
        assert len({whole.id, first.id, second.id}) == 3
        assert again == second
        assert library.book(path) == whole
        assert second.title == "All Grains (pages 6–9)"
        assert [b.pages for b in (whole, first, second)] == [10, 4, 4]
        found = [(n.title, n.page) for n in library.tree(second.id).children[0].children]
        assert found == [(f"{k} {names[k - 1]}", k) for k in range(6, 10)]
        (best, *_) = library.search("Sorghum", books=[second.id])
        assert (best.pages, best.labels) == ((8,), ("108",))
        assert {b.page for b in best.boxes} == {8}


@pytest.mark.parametrize("pages", [(0, 2), (3, None), (3, 4)])
def test_pages_that_the_file_does_not_have(tmp_path: Path, pages: tuple[int, int | None]) -> None:
    path = make_pdf(tmp_path / "two.pdf", [_chapter("1 Oats"), _chapter("2 Rye")])
    with pytest.raises(InvalidArgumentError, match="not among the 2"):
        read_document(path, pages=pages)


def test_a_reversed_range_of_pages_is_called_so(tmp_path: Path) -> None:
    path = make_pdf(tmp_path / "two.pdf", [_chapter("1 Oats"), _chapter("2 Rye")])
    with pytest.raises(InvalidArgumentError, match=r"2-1 is reversed.*write 1-2"):
        read_document(path, pages=(2, 1))


# --- size --------------------------------------------------------------------------------------


@pytest.fixture
def capped() -> IsolatedReader:
    return IsolatedReader(memory_mb=700, ocr=OcrSettings(mode="off"))


def _read_capped(reader: IsolatedReader, path: Path) -> Document:
    try:
        return reader.read(path)
    finally:
        reader.close()


def test_four_hundred_pages_under_a_memory_cap(tmp_path: Path, capped: IsolatedReader) -> None:
    pages = [_chapter(f"{k} Chapter of the book") for k in range(1, 401)]
    document = _read_capped(capped, make_pdf(tmp_path / "long.pdf", pages))
    assert len(document.pages) == 400
    found = _sections(build_tree(document))
    assert found == [(1, f"{k} Chapter of the book", k) for k in range(1, 401)]


def test_grey_scans_under_a_memory_cap_say_that_they_have_no_text(
    tmp_path: Path, capped: IsolatedReader
) -> None:
    def scan(c: Canvas) -> None:
        c.drawImage(image(900, 1270, noise=True), 0, 0, WIDTH, HEIGHT)

    pages: list[Draw] = [_chapter("1 The only page with text"), *[scan] * 60]
    path = make_pdf(tmp_path / "scans.pdf", pages)
    document = _read_capped(capped, path)
    assert [p.status for p in document.pages] == [PageStatus.OK, *[PageStatus.NO_TEXT] * 60]
    assert any("60 of 61 pages" in w for w in document.warnings)
