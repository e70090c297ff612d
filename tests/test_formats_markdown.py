"""Markdown: structure, and files that mean harm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast.document import Block, BlockKind, Document, read_document
from bookrag_fast.document.formats.markdown import read_markdown


def blocks(source: str) -> list[tuple[str, int | None, str]]:
    return [(b.kind.value, b.level, b.text) for b in read_markdown(source.encode()).blocks]


def read(tmp_path: Path, source: str | bytes) -> Document:
    path = tmp_path / "book.md"
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return read_document(path)


def test_headings_of_both_forms_and_what_only_looks_like_one() -> None:
    source = "# One *two*\n\nSetext `x`\n===\n\nLower\n---\n\n####### seven\n\n"
    source += "> # quoted\n\n    # code\n"
    assert blocks(source) == [
        ("title", 1, "One two"), ("title", 1, "Setext x"), ("title", 2, "Lower"),
        ("text", None, "####### seven"), ("text", None, "quoted"), ("code", None, "# code"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("## Cooling {#cool}", "Cooling"),
        ("## Cooling *fast* {#cool .wide key=a title='b c'} ##", "Cooling fast"),
        ("Cooling {: .wide }\n---", "Cooling"),
        ("## Cooling{#cool}", "Cooling{#cool}"),
        ("## Sets {a, b}", "Sets {a, b}"),
        ("## Sets {}", "Sets {}"),
        ("## A {#a} and B", "A {#a} and B"),
        ("## Loop {x}", "Loop {x}"),
    ],
)
def test_attributes_of_a_heading_are_none_of_its_title(heading: str, title: str) -> None:
    assert blocks(f"{heading}\n\ntext {{#cool}}\n") == [
        ("title", 2, title), ("text", None, "text {#cool}"),
    ]  # fmt: skip


def test_braces_without_end_in_a_heading_cost_no_time_without_end() -> None:
    ((_, _, text),) = blocks("# a {" + "#b " * 30_000)
    assert text.startswith("a {#b #b")


def test_inline_markup_leaves_its_text() -> None:
    source = (
        'A **bold** _word_, a [link](http://x.y "t"), <http://z.y>, `co<de`, ~~gone~~, a\\*b,\n'
        "&amp; H<sub>2</sub>O, $5 and $6,<br>next  \nhard [ref][no]\n\n日本語の\n続き\n"
    )
    words = "A bold word, a link, http://z.y, co<de, gone, a*b, & H2O, $5 and $6,\n"
    words += "next\nhard [ref][no]"
    assert blocks(source) == [
        ("text", None, words),
        ("text", None, "日本語の続き"),
    ]  # fmt: skip


def test_lists_code_math_rules_and_notes_in_place() -> None:
    source = (
        "3. x[^a]\n   - y\n\n     z\n4. w\n\n[^a]: the *note*\n\n    goes on\n\n---\n\n"
        "```py\nif x:\n    y()\n```\n\n$$\na = 1\n$$\n\n- [ ] task\n"
    )
    assert blocks(source) == [
        ("list", None, "3. x[a]\n  - y\n    z\n4. w"),
        ("footnote", None, "[a] the note"), ("footnote", None, "goes on"),
        ("code", None, "if x:\n    y()"), ("equation", None, "a = 1"),
        ("list", None, "- [ ] task"),
    ]  # fmt: skip


def test_tables() -> None:
    found = read_markdown(b"| A | *B* |\n|---|:-:|\n| 1 | `x|y` |\n| only |\n").blocks
    assert [(c.row, c.column, c.header, c.text) for c in found[0].cells] == [
        (0, 0, True, "A"), (0, 1, True, "B"), (1, 0, False, "1"), (1, 1, False, "`x"),
        (2, 0, False, "only"), (2, 1, False, ""),
    ]  # fmt: skip


def test_html_inside_is_read_as_html() -> None:
    source = (
        "<h1 align=center>Top</h1>\n\n<table><tr><td>1</td>\n\n<td>2</td></tr></table>\n\n"
        "text ![alt *x*](u.png) <img src=u alt='other'>\n\n<!-- not\n\nshown -->\n\n"
        "<script>\nx\n\ny\n</script>\n\nend\n"
    )
    assert blocks(source) == [
        ("title", 1, "Top"), ("table", None, "1 | 2"), ("text", None, "text"),
        ("image", None, "alt x"), ("image", None, "other"), ("text", None, "end"),
    ]  # fmt: skip


@pytest.mark.parametrize(("source", "title"), [
    ("---\ntitle: \"A Farm\"\nauthor: X\n---\n# One\n", "A Farm"),
    ("---\nauthor: X\nTitle: A: Farm\n---\n# One\n", "A: Farm"),
    ("---\ntitle: >\n  folded\n---\n# One\n", "One"),
    ("# One\n\n## Two\n", "One"),
    ("# One\n\n# Two\n", None),
    ("text\n\n---\ntitle: no\n---\n", None),
])  # fmt: skip
def test_titles(source: str, title: str | None) -> None:
    assert read_markdown(source.encode()).title == title


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp932", "euc_jp"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    source = "# 牛の本\r\n\r\nこれは牛についての文章です。ミルクをつくります。\r\n"
    found = read(tmp_path, source.encode(encoding)).blocks
    assert [b.text for b in found] == ["牛の本", "これは牛についての文章です。ミルクをつくります。"]


@pytest.mark.parametrize("source", ["> " * 300 + "deep", "- " * 200 + "deep", "1. " * 400 + "deep"])
def test_nesting_beyond_reason_is_read_as_text_and_says_so(tmp_path: Path, source: str) -> None:
    document = read(tmp_path, f"# Head\n\n{source}\n")
    assert document.blocks[-1].text.endswith("deep")
    assert "book.md: its Markdown is nested too deeply" in document.warnings[0]


@pytest.mark.parametrize("piece", [
    "[", "![", "*a ", "**a *b_c ", "`", "<a ", "[a](b", "[^a", "$", "\\", "&a;", "> ", "<!--",
    "|", "[a]: ", "~~x", "a_b_", "](", "- \n", "<b>\n", "# \n", "[x]\n",
])  # fmt: skip
@pytest.mark.timeout(60)
def test_hostile_repetition_ends_soon_and_loses_no_word(piece: str) -> None:
    found = read_markdown((piece * 20_000 + "\n\n# Head\n\nword\n").encode()).blocks
    if piece != "<!--":  # what follows it is a comment
        assert found[-1].text.endswith("word")


WORDS = st.text(st.characters(categories=["Lu", "Ll", "Lo", "Nd"]), min_size=1, max_size=9)
SHELLS = ["{}", "# {}", "### {} ###", "> {}", "- {}", "1) {}", "**{}**", "*{}* `{}`", "[{}](/u)",
          "```\n{}\n```", "| {} | b |\n|---|---|\n| c | {} |", "<div>{}</div>", "{}\n===",
          "![{}](/u)", "[^n]: {}", "$$\n{}\n$$", "{}  \n{}", "- {}\n  - {}\n\n    {}"]  # fmt: skip
PARTS = st.tuples(st.sampled_from(SHELLS), st.lists(WORDS, min_size=3, max_size=3))


@given(st.lists(PARTS, min_size=1, max_size=12))
@settings(max_examples=200)
def test_no_text_is_lost(parts: list[tuple[str, list[str]]]) -> None:
    source = "\n\n".join(shell.format(*words) for shell, words in parts)
    wanted = [word for shell, words in parts for word in words[: shell.count("{}")]]
    found = squeezed(read_markdown(source.encode()).blocks)
    at = 0
    for word in wanted:
        at = found.find(word, at)
        assert at >= 0, (word, source, found)
        at += len(word)


def squeezed(found: list[Block]) -> str:
    return "".join(re.sub(r"\s", "", b.text) for b in found)


@pytest.mark.timeout(120)
def test_one_line_of_many_megabytes(tmp_path: Path) -> None:
    document = read(tmp_path, b"# Head\n\n" + b"lorem ipsum *dolor* " * 2_500_000)
    assert [b.kind for b in document.blocks] == [BlockKind.TITLE, BlockKind.TEXT]
    assert len(document.blocks[1].text) == 50_000_000 - 1
