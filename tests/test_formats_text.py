"""Plain text: paragraphs, the headings that people write without markup, encodings."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast.document import BlockKind, read_document
from bookrag_fast.document.formats.encoding import decode_text, looks_like_text
from bookrag_fast.document.formats.text import read_plain
from bookrag_fast.index.model import NodeKind
from bookrag_fast.index.tree import build_tree

BOOK = """\
==========
The Report
==========

This is a wrapped paragraph of text that goes on over
more than one line and joins to one para-
graph here.

* item one
* item two

Methods
-------
text right below the heading

Name    Litres
Daisy   30

Roses are red
violets are blue
"""


def blocks(source: str) -> list[tuple[str, int | None, str]]:
    return [(b.kind.value, b.level, b.text) for b in read_plain(source).blocks]


def sections(path: Path) -> tuple[str, list[tuple[int, str]]]:
    tree = build_tree(read_document(path))
    found = [(n.level - 1, n.title) for n in tree.nodes[2:] if n.kind is NodeKind.SECTION]
    return tree.toc_source, found


def test_structure() -> None:
    joined = "This is a wrapped paragraph of text that goes on over more than one line "
    joined += "and joins to one paragraph here."
    assert blocks(BOOK) == [
        ("title", 1, "The Report"),
        ("text", None, joined),
        ("list", None, "* item one\n* item two"), ("title", 2, "Methods"),
        ("text", None, "text right below the heading"),
        ("text", None, "Name    Litres\nDaisy   30"),
        ("text", None, "Roses are red\nviolets are blue"),
    ]  # fmt: skip


def test_underlines_make_the_tree(tmp_path: Path) -> None:
    path = tmp_path / "b.txt"
    path.write_text(BOOK + "\nResults\n-------\n\nGood.\n\nNext Part\n=========\n\nEnd.\n")
    assert sections(path) == (
        "markup", [(1, "The Report"), (2, "Methods"), (2, "Results"), (1, "Next Part")],
    )  # fmt: skip


def test_numbers_make_the_tree(tmp_path: Path) -> None:
    body = "Here stands a sentence that is long enough to be taken for running text, and goes on.\n"
    contents = "Contents\n\n1. Scope ........ 1\n2. Cows ......... 2\n2.1 Feed ........ 3\n\n"
    heads = ["1. Scope", "2. Cows", "2.1 Feed", "2.2 Milk", "3. Hens"]
    path = tmp_path / "rfc.txt"
    path.write_text(contents + "\n\n".join(f"{h}\n\n   {body}" for h in heads))
    assert sections(path) == (
        "numbering",
        [
            (1, "Contents"),
            (1, "1. Scope"),
            (1, "2. Cows"),
            (2, "2.1 Feed"),
            (2, "2.2 Milk"),
            (1, "3. Hens"),
        ],
    )


def test_capitals_make_the_tree_and_steps_of_a_list_do_not(tmp_path: Path) -> None:
    body = "here stands a sentence that is long enough to be taken for running text, and goes on."
    path = tmp_path / "caps"
    path.write_text("\n\n".join(
        ["THE COWS", body, "THE HENS", body, "Do this:", "1. Open the gate.", "2. Close it.", body]
    ))  # fmt: skip
    assert sections(path) == ("typography", [(1, "THE COWS"), (1, "THE HENS")])


def test_long_lines_are_paragraphs_of_their_own() -> None:
    lines = [f"{word} " + "and so on " * 40 for word in ("First", "Second")]
    assert [text.split()[0] for _, _, text in blocks("\n".join(lines))] == ["First", "Second"]


@pytest.mark.timeout(60)
def test_one_line_of_many_megabytes() -> None:
    found = read_plain("lorem ipsum " * 4_200_000).blocks
    assert [len(b.text) for b in found] == [12 * 4_200_000 - 1]
    assert found[0].kind is BlockKind.TEXT


TEXTS = {
    "ja": "これは日本語の文章です。図書館で本を読みました。データベース",
    "zh": "这是一个中文的文章，我们在图书馆读书。他说你的国家很大",
    "tw": "這是一個中文的文章，我們在圖書館讀書。他說你的國家很大",
    "ko": "이것은 한국어 문장입니다. 도서관에서 책을 읽었다",
    "ru": "Это русский текст. Мы читали книги в библиотеке.",
    "fr": "Voilà l’été à la campagne, où nous étions très heureux",
    "de": "Größe über alles; schöne Grüße aus München",
    "en": "It’s a “quoted” text – indeed",
}


@pytest.mark.parametrize(("language", "encoding"), [
    *(("ja", e) for e in ("utf-8", "utf-8-sig", "utf-16", "utf-32", "cp932", "euc_jp",
                          "iso2022_jp")),
    ("zh", "gb18030"), ("tw", "big5"), ("ko", "cp949"), ("ru", "cp1251"), ("ru", "koi8_r"),
    ("ru", "utf-16-le"), ("fr", "cp1252"), ("fr", "utf-16-be"), ("de", "latin-1"),
    ("en", "cp1252"), ("en", "utf-16-le"),
])  # fmt: skip
@pytest.mark.parametrize("times", [1, 60])
def test_encodings(language: str, encoding: str, times: int) -> None:
    text = f"{TEXTS[language]}\n" * times
    data = text.encode(encoding)
    assert decode_text(data) == text
    assert looks_like_text(data[:4096])


def test_a_damaged_byte_does_not_change_the_encoding() -> None:
    data = bytearray("größer und schöner als früher. ".encode() * 20)
    data[4] = 0xFF  # of the first ß
    text = decode_text(bytes(data))
    assert (text.count("ö"), text.count("ß"), text.count("ü")) == (40, 19, 20)


@given(st.binary(max_size=400), st.one_of(st.none(), st.text(max_size=12)))
def test_any_bytes_are_text_of_some_sort(data: bytes, declared: str | None) -> None:
    assert isinstance(decode_text(data, declared), str)


LINES = st.text(
    st.characters(exclude_categories=["C", "Z"]) | st.sampled_from("  .=-*1"), max_size=60
)


@given(st.lists(LINES, max_size=30))
@settings(max_examples=300)
def test_no_text_is_lost(lines: list[str]) -> None:
    """But for rules and underlines, and hyphens at the ends of lines."""

    def bare(text: str) -> str:
        return "".join(c for c in text if c.isalnum())

    found = read_plain("\n".join(lines)).blocks
    assert bare("".join(b.text for b in found)) == bare("".join(lines))
