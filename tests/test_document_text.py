"""Rules over single texts: numbering, captions, joining, contents lines."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookrag_fast.document.analysis.captions import caption_kind, caption_label
from bookrag_fast.document.analysis.columns import columns_of
from bookrag_fast.document.analysis.frames import frame_to_page
from bookrag_fast.document.analysis.joining import join_lines, join_two, runs_on
from bookrag_fast.document.analysis.lettering import clean
from bookrag_fast.document.analysis.lines import Line
from bookrag_fast.document.analysis.rows import is_contents_entry, split_entry
from bookrag_fast.document.analysis.titles import is_title_like
from bookrag_fast.document.numbering import Scheme, is_bullet, parse_numbering, roman_value


@pytest.mark.parametrize(
    ("text", "label", "scheme", "values", "rest"),
    [
        ("3.2.1 Scope", "3.2.1", Scheme.DECIMAL, (3, 2, 1), "Scope"),
        ("3. Scope", "3", Scheme.DECIMAL, (3,), "Scope"),
        ("A.1 Symbols", "A.1", Scheme.DECIMAL, (1, 1), "Symbols"),
        ("IV. Findings", "IV", Scheme.ROMAN, (4,), "Findings"),
        ("Appendix B Tables", "Appendix B", Scheme.APPENDIX, (2,), "Tables"),
        ("Chapter 3: Methods", "Chapter 3", Scheme.CHAPTER, (3,), "Methods"),
        ("Part II", "Part II", Scheme.PART, (2,), ""),
        ("Item 7A. Market risk", "Item 7A", Scheme.ITEM, (7,), "Market risk"),
        ("Глава 5. Итоги", "Глава 5", Scheme.CHAPTER, (5,), "Итоги"),
        ("第3章 概要", "第3章", Scheme.CHAPTER, (3,), "概要"),
        ("第十二節 手順", "第十二節", Scheme.SECTION, (12,), "手順"),
        ("（１）目的", "(1)", Scheme.PAREN, (1,), "目的"),
        ("ア．対象", "ア", Scheme.KANA, (1,), "対象"),
        ("Ⅱ．１　前提", "II.1", Scheme.DECIMAL, (2, 1), "前提"),
        ("Strategy 1.1.2 Roads", "Strategy 1.1.2", Scheme.DECIMAL, (1, 1, 2), "Roads"),
    ],
)
def test_numbering_is_read(
    text: str, label: str, scheme: Scheme, values: tuple[int, ...], rest: str
) -> None:
    found = parse_numbering(text)
    assert found is not None
    assert (found.label, found.scheme, found.values, found.rest) == (label, scheme, values, rest)


@pytest.mark.parametrize("text", ["Particular cases", "I am here", "2022 was good", "", "Items of"])
def test_words_are_no_numbering(text: str) -> None:
    assert parse_numbering(text) is None


@given(st.integers(1, 3999))
def test_roman_numerals_come_back(value: int) -> None:
    pairs = [
        (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
        (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
    ]  # fmt: skip
    text, rest = "", value
    for size, letters in pairs:
        text += letters * (rest // size)
        rest %= size
    assert roman_value(text) == value


@given(st.text(max_size=60))
def test_numbering_never_fails(text: str) -> None:
    found = parse_numbering(text)
    assert found is None or found.label
    is_bullet(text)
    caption_kind(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Figure 3: The core", "figure"),
        ("Fig. 4. Flow", "figure"),
        ("Table 2.1: Settings", "table"),
        ("図1 全体の構成", "figure"),
        ("表2　一覧", "table"),
        ("Рис. 5. Схема", "figure"),
        ("Table 2 shows that", None),
        ("表2に示す", None),
        ("Tables are useful", None),
    ],
)
def test_captions_are_told_from_sentences(text: str, kind: str | None) -> None:
    assert caption_kind(text) == kind


def test_caption_label_is_the_name() -> None:
    assert caption_label("Table 2.1: Settings of the core") == "Table 2.1"
    assert caption_label("no caption") == ""


def test_hyphens_and_scripts_at_line_ends() -> None:
    assert join_lines(["a won-", "derful day"]) == "a wonderful day"
    assert join_lines(["the Anglo-", "Saxon word"]) == "the Anglo-Saxon word"
    assert join_lines(["東京都の", "人口は"]) == "東京都の人口は"
    assert join_lines(["soft\u00ad", "ware"]) == "software"
    assert runs_on("the sentence goes", "on here")
    assert not runs_on("It ends here.", "And a new one")


@given(st.lists(st.text(alphabet="abcdefg .", min_size=1, max_size=12), max_size=8))
def test_joining_keeps_every_letter(lines: list[str]) -> None:
    def letters(text: str) -> str:
        return "".join(text.split())

    assert letters(join_lines(lines)) == "".join(letters(x) for x in lines)
    if len(lines) == 2:
        assert join_lines(lines) == join_two(lines[0], lines[1])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("veri fi cation of the e ff ect", "verification of the effect"),
        ("\ufb01nal \ufb02ow", "final flow"),
        ("A N N U A L  report", "ANNUAL report"),
        ("a b c d", "a b c d"),
    ],
)
def test_text_is_mended(text: str, wanted: str) -> None:
    assert clean(text) == wanted


def test_contents_lines_are_split() -> None:
    assert split_entry("1.2 Scope ......... 17") == ("1.2 Scope", " ......... ", "17")
    assert is_contents_entry("Scope . . . . . . iv")
    assert not is_contents_entry("It costs 17")
    assert split_entry("no page number") is None


def test_a_line_of_dots_takes_linear_time() -> None:
    start = time.perf_counter()
    for _ in range(100):
        assert is_contents_entry("." * 4000)
        split_entry(". " * 4000 + "x y")
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize(
    "text", ["Microsoft Word - draft.doc", "untitled", "report_v3.pdf", "0001193125-15", "", "ab"]
)
def test_junk_is_no_title(text: str) -> None:
    assert not is_title_like(text)


def _line(x0: float, y: float, x1: float, text: str = "some running text of a column") -> Line:
    return Line(text, x0, y - 8, x1, y + 2, y, 10.0, False, False, False, "F", 0, 0)


@given(st.lists(st.tuples(st.floats(0, 500), st.floats(0, 800), st.floats(5, 300)), max_size=60))
def test_columns_lose_no_line(boxes: list[tuple[float, float, float]]) -> None:
    lines = [_line(x, y, x + w, f"text {k} of a line") for k, (x, y, w) in enumerate(boxes)]
    out = [line for column in columns_of(lines) for line in column]
    assert sorted(map(id, out)) == sorted(map(id, lines))


def test_two_columns_are_read_one_after_the_other() -> None:
    left = [_line(50, 100 + 12 * k, 280, f"left column line number {k}") for k in range(10)]
    right = [_line(310, 100 + 12 * k, 540, f"right column line number {k}") for k in range(10)]
    title = _line(100, 60, 500, "A title over both columns of the page")
    mixed = [line for pair in zip(right, left, strict=True) for line in pair]
    columns = columns_of([*mixed, title])
    assert [x.text for c in columns for x in c] == [x.text for x in [title, *left, *right]]


@given(st.integers(0, 3), st.tuples(*[st.floats(-1000, 1000, width=32)] * 4))
def test_frames_keep_boxes(frame: int, corners: tuple[float, float, float, float]) -> None:
    import numpy as np

    from bookrag_fast.document.analysis.frames import page_to_frame

    xs, ys = sorted(corners[:2]), sorted(corners[2:])
    arrays = [np.array([v], np.float32) for v in (xs[0], ys[0], xs[1], ys[1])]
    there = [float(a[0]) for a in page_to_frame(frame, *arrays)]
    assert there[0] <= there[2]
    assert there[1] <= there[3]
    back = frame_to_page(frame, *there)
    assert tuple(back) == pytest.approx((xs[0], ys[0], xs[1], ys[1]))
