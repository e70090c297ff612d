"""HTML: structure, what is no content, and pages that mean harm."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast.document import Block, BlockKind, Document, read_document
from bookrag_fast.document.formats.html import html_target, read_html


def blocks(source: str) -> list[tuple[str, str]]:
    return [(b.kind.value, b.text) for b in html_target(source).blocks]


def read(tmp_path: Path, data: bytes) -> Document:
    path = tmp_path / "page.html"
    path.write_bytes(data)
    return read_document(path)


def test_structure_in_reading_order() -> None:
    found = html_target(
        "<h1>Cows</h1>loose <b>bold</b> text<p>one<br>two&nbsp;&amp; more</p><h3>Milk</h3>"
        "<pre>\n a  b\n  c</pre><div>a<div>b</div>c</div><blockquote>said</blockquote>"
    ).blocks
    assert [(b.kind, b.level, b.text) for b in found] == [
        (BlockKind.TITLE, 1, "Cows"), (BlockKind.TEXT, None, "loose bold text"),
        (BlockKind.TEXT, None, "one\ntwo & more"), (BlockKind.TITLE, 3, "Milk"),
        (BlockKind.CODE, None, " a  b\n  c"), (BlockKind.TEXT, None, "a"),
        (BlockKind.TEXT, None, "b"), (BlockKind.TEXT, None, "c"), (BlockKind.TEXT, None, "said"),
    ]  # fmt: skip
    assert all(b.regions == () and b.page == 0 for b in found)


def test_lists_keep_their_marks_and_depth() -> None:
    source = (
        "<ul><li>one<ol start=3><li>a<li>b</ol><li><p>two</p><p>more</p></ul>"
        "<ol><li>x<pre>code</pre>y</ol>"
    )
    assert blocks(source) == [
        ("list", "- one\n  3. a\n  4. b\n- two\n  more"),
        ("list", "1. x"), ("code", "code"), ("list", "  y"),
    ]  # fmt: skip


def test_tables_with_spans_headers_and_captions() -> None:
    source = (
        "<table><caption>Prices</caption><thead><tr><td>A<th colspan=2>B</thead>"
        "<tr><td rowspan=0>1<td>2<td>3<tr><td>4<td>5<p>six</table>"
    )
    table, caption = html_target(source).blocks
    cells = [(c.row, c.column, c.row_span, c.column_span, c.header, c.text) for c in table.cells]
    assert cells == [
        (0, 0, 1, 1, True, "A"), (0, 1, 1, 2, True, "B"), (1, 0, 2, 1, False, "1"),
        (1, 1, 1, 1, False, "2"), (1, 2, 1, 1, False, "3"), (2, 1, 1, 1, False, "4"),
        (2, 2, 1, 1, False, "5\nsix"),
    ]  # fmt: skip
    assert table.text == "A | B\n1 | 2 | 3\n4 | 5 six"
    assert (caption.kind, caption.text) == (BlockKind.CAPTION, "Prices")


def test_a_table_that_arranges_a_page_is_no_table() -> None:
    source = (
        "<table><tr><td>left</td><td><h2>Head</h2>body<table><tr><td>i<td>j</table></td>"
        "<td>right</td></tr></table><table><tr><td>alone</table>"
    )
    assert blocks(source) == [
        ("text", "left"), ("title", "Head"), ("text", "body"), ("table", "i | j"),
        ("text", "right"), ("text", "alone"),
    ]  # fmt: skip


def test_figures_and_pictures() -> None:
    source = (
        "<figure><figcaption>A <i>cow</i></figcaption><img src=x alt='brown cow'></figure>"
        "<p>see <img alt='inline'> here</p><p><img src=spacer.gif></p>"
        "<figure><pre>x = 1</pre><figcaption>Listing</figcaption></figure>"
        "<h2><img alt='Logo'></h2>"
    )
    assert blocks(source) == [
        ("image", "brown cow"), ("caption", "A cow"), ("text", "see here"), ("image", "inline"),
        ("code", "x = 1"), ("text", "Listing"), ("title", "Logo"),
    ]  # fmt: skip


@pytest.mark.parametrize("hidden", [
    "<script>if (a < b) { '</p>' }</script>", "<style>p {}</style>", "<nav><p>Home</p></nav>",
    "<div hidden>x</div>", "<p style='color: red; DISPLAY : none'>x</p>", "<!-- x -->",
    "<div aria-hidden=true><p>x</div>", "<div role=navigation>x</div>", "<svg><text>x</text></svg>",
    "<template><p>x</p></template>", "<select><option>x</select>", "<noscript>x</noscript>",
])  # fmt: skip
def test_what_is_not_shown_is_not_read(hidden: str) -> None:
    assert blocks(f"<p>before</p>{hidden}<p>after</p>") == [("text", "before"), ("text", "after")]


def test_what_stands_around_main_is_no_content() -> None:
    around = "<h1>Site</h1><p>Menu{}</p><main><ul><li>Long enough</ul><p>Text</main><p>Imprint"
    assert [b.text for b in read_html(around.format(" of the day").encode()).blocks] == [
        "Site", "Menu of the day", "- Long enough", "Text", "Imprint",
    ]  # fmt: skip
    text = around.replace("Text", "Text " * 9)
    assert [b.text for b in read_html(text.format("").encode()).blocks] == [
        "- Long enough", ("Text " * 9).strip(),
    ]  # fmt: skip
    assert len(read_html(text.format(" of the day" * 20).encode()).blocks) == 5


def test_footnotes() -> None:
    source = "<p>a</p><aside role=doc-footnote><p>n1</p></aside><section epub:type='footnotes'>"
    source += "<ol><li>n2<li>n3</ol></section><p>b"
    assert blocks(source) == [
        ("text", "a"), ("footnote", "n1"), ("footnote", "1. n2\n2. n3"), ("text", "b"),
    ]  # fmt: skip


@pytest.mark.parametrize(("inside", "text"), [
    ("Cows<a href='#c'>¶</a>", "Cows"), ("<a href='#c'>§</a>Cows", "Cows"),
    ("Cows <a>#</a>", "Cows"), ("C#", "C#"), ("§ 4 Cows", "§ 4 Cows"), ("§4", "§4"), ("¶", "¶"),
])  # fmt: skip
def test_the_sign_of_an_anchor_is_no_part_of_a_heading(inside: str, text: str) -> None:
    assert blocks(f"<h2>{inside}</h2>") == [("title", text)]


@pytest.mark.parametrize(("head", "body", "title"), [
    ("<title>Cows – Farm Ltd</title>", "<h1>Cows</h1>x", "Cows"),
    ("<title>Farm</title>", "<h1>Cows</h1>x", "Farm"),
    ("<title>Farm</title>", "<h1>Farm</h1><h1>Barn</h1>", "Farm"),
    ("", "<h1>Cows</h1>x", "Cows"),
    ("", "x", None),
])  # fmt: skip
def test_titles(head: str, body: str, title: str | None) -> None:
    assert read_html(f"<html><head>{head}</head><body>{body}".encode()).title == title


JAPANESE = "これは日本語の文章です。"


@pytest.mark.parametrize(("data", "text"), [
    (f"<meta charset=Shift_JIS><p>{JAPANESE}".encode("cp932"), JAPANESE),
    (f'<meta http-equiv="Content-Type" content="text/html; charset=EUC-JP"><p>{JAPANESE}'
     .encode("euc_jp"), JAPANESE),
    (f'<?xml version="1.0" encoding="iso-2022-jp"?><html><p>{JAPANESE}'.encode("iso2022_jp"),
     JAPANESE),
    (f"<html><p>{JAPANESE}".encode("cp932"), JAPANESE),
    (f"<html><p>{JAPANESE}".encode("utf-16"), JAPANESE),
    (f"<meta charset=utf-16><p>{JAPANESE}".encode(), JAPANESE),  # ASCII cannot say so
    (f"<meta charset=no-such-thing><p>{JAPANESE}".encode(), JAPANESE),
    (f"<meta charset=shift_jis><p>{JAPANESE}".encode("utf-8-sig"), JAPANESE),
    ("<meta charset=iso-8859-1><p>“naïve”".encode("cp1252"), "“naïve”"),
    (b"<meta charset=unicode_escape><p>a\\ud800b", "a?b"),  # no UTF-8 form
])  # fmt: skip
def test_encodings(tmp_path: Path, data: bytes, text: str) -> None:
    assert [b.text for b in read(tmp_path, data).blocks] == [text]


@pytest.mark.parametrize("source", [
    "<div>" * 100_000 + "deep" + "</div>" * 100_000,
    "<ul><li>" * 50_000 + "deep", "<table><tr><td>" * 30_000 + "deep",
    "<b>" * 200_000 + "deep", "<p title='" + "x" * 5_000_000 + "'>deep",
    "<figure><figcaption>" * 20_000 + "deep", "deep" + "</p>" * 100_000,
    "<!doctype html [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;&a;'>]><p>deep",
], ids=lambda s: s[:12])  # fmt: skip
@pytest.mark.timeout(60)
def test_hostile_pages_are_read_soon(source: str) -> None:
    found = html_target(source).blocks
    assert "deep" in "".join(b.text for b in found)
    assert sum(len(b.text) for b in found) < 3_000_000  # indents of a list are bounded


def test_spans_beyond_reason_cost_no_memory() -> None:
    rows = "<tr><td rowspan=65534 colspan=1000>x" * 2000
    table = html_target(f"<table>{rows}<tr><td colspan=99999999>y</table>").blocks[0]
    assert len(table.cells) == 2001
    assert max(c.column + c.column_span for c in table.cells) <= 1000
    assert max(c.row + c.row_span for c in table.cells) <= 2001


TAGS = ("p div b i span table tr td th ul ol li h1 h2 pre caption figure figcaption br img nav "
        "script title section aside").split()  # fmt: skip
PIECES = st.one_of(
    st.sampled_from([f"<{t}>" for t in TAGS] + [f"</{t}>" for t in TAGS]),
    st.sampled_from(["<td colspan=3 rowspan=2>", "<!--", "-->", "<", "&", "&#0;", "<ol start=x>"]),
    st.text(max_size=5),
)


@given(st.lists(PIECES, max_size=60))
@settings(max_examples=300)
def test_any_soup_is_read(pieces: list[str]) -> None:
    target = html_target("".join(pieces))
    assert target._depth == 0  # the parser ends what it starts: hiding depends on it
    for b in target.blocks:
        assert b.text.strip() or b.kind is BlockKind.IMAGE


# Without the signs of anchors, which a heading loses at its end.
SIGNS = st.characters(exclude_categories=["C", "Z"], exclude_characters="¶#§")
WORDS = st.text(SIGNS, min_size=1, max_size=12)
PARAGRAPHS = st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=12)


@given(PARAGRAPHS, st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_no_text_is_lost(paragraphs: list[list[str]], random) -> None:  # type: ignore[no-untyped-def]
    shells = ["<p>{}</p>", "<div><p>{}</div>", "<ul><li>{}</li></ul>", "<h2>{}</h2>",
              "<blockquote>{}</blockquote>", "<table><tr><td>{}</table>", "<pre>{}</pre>",
              "<section>{}</section>", "<b>{}</b><br>"]  # fmt: skip
    source = "".join(
        random.choice(shells).format(html.escape(" ".join(words))) for words in paragraphs
    )
    assert squeezed(html_target(source).blocks) == "".join("".join(p) for p in paragraphs)


def squeezed(found: list[Block]) -> str:
    """All text without white space and the marks that lists are given."""
    lines = [
        line.strip().removeprefix("- ") if b.kind is BlockKind.LIST else line
        for b in found
        for line in b.text.split("\n")
    ]
    return "".join("".join(lines).split())
