"""Section trees measured against true ones: the scorer, the truth files, the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from bookrag_fast import errors as e
from bookrag_fast.cli.main import app
from bookrag_fast.evaluation import (
    Heading,
    Result,
    TreeScore,
    Truth,
    evaluate_trees,
    find_truths,
    markdown,
    score_tree,
    to_json,
)
from bookrag_fast.evaluation.report import correlation, macro
from bookrag_fast.evaluation.titles import title_key
from pdf_factory import LOREM, heading, make_pdf, paragraph

# --- titles ---


@pytest.mark.parametrize(("title", "key"), [
    ("3.2.1 The Tree", "thetree"),
    ("Chapter 3: 3.1 The Tree", "thetree"),
    ("Appendix A — Limits", "limits"),
    ("IV. Results", "results"),
    ("(a) First", "first"),
    ("第3章　概要", "概要"),
    ("Ⅰ．１　はじめに", "はじめに"),
    ("Глава 2. Начало", "начало"),
    ("1984", "1984"),
    ("A B-tree", "abtree"),
    ("2nd edition", "2ndedition"),
    ("Soft\u00adware!", "software"),
    ("  ", ""),
])  # fmt: skip
def test_titles_are_compared_by_what_is_left_without_number_and_marks(title: str, key: str) -> None:
    assert title_key(title) == key


# --- the scorer ---

TRUE = [
    Heading("1 Start", 1, 1),
    Heading("1.1 Tools", 2, 2),
    Heading("1.2 Parts", 2, 3),
    Heading("2 End", 1, 4),
]


def test_the_tree_itself_is_right_in_everything() -> None:
    assert score_tree(TRUE, TRUE) == TreeScore(4, 4, 4, 4, 4, 4)


def test_a_missed_heading_costs_recall_and_its_children_end_to_end() -> None:
    score = score_tree(TRUE, TRUE[1:])
    assert (score.precision, score.recall) == (1.0, 0.75)
    assert score.f1 == pytest.approx(6 / 7)
    # The topmost matched true heading is level 1, as is the topmost predicted one.
    assert score.level_accuracy == 1.0
    # Both have no matched ancestor, as in the truth; but their true parent was missed.
    assert score.parent_accuracy == 1.0
    assert score.parent_end_to_end == 0.25


def test_a_spurious_heading_costs_precision_only() -> None:
    score = score_tree(TRUE, [*TRUE, Heading("Note", 3, 4)])
    assert (score.precision, score.recall, score.parent_end_to_end) == (0.8, 1.0, 1.0)


def test_a_flat_tree_has_some_levels_and_the_parents_of_the_top_right() -> None:
    score = score_tree(TRUE, [Heading(h.title, 1, h.page) for h in TRUE])
    assert (score.level_accuracy, score.parent_accuracy, score.parent_end_to_end) == (0.5, 0.5, 0.5)


def test_levels_are_compared_from_the_top_of_each_tree() -> None:
    deeper = [Heading(h.title, h.level + 2, h.page) for h in TRUE]
    assert score_tree(TRUE, deeper).level_accuracy == 1.0


def test_a_heading_counts_once_and_on_its_page_only() -> None:
    assert score_tree(TRUE, [TRUE[0], TRUE[0]]).matched == 1
    assert score_tree(TRUE, [Heading("1 Start", 1, 2)]).matched == 0
    assert score_tree(TRUE, [Heading("Begin", 1, 1)]).matched == 0
    assert score_tree(TRUE, [Heading("1. Start", 1, 1)]).matched == 1


def test_of_equal_titles_on_a_page_the_first_goes_to_the_first() -> None:
    truth = [Heading("A", 1, 1), Heading("Note", 2, 1), Heading("B", 1, 1), Heading("Note", 2, 1)]
    assert score_tree(truth, truth).parents_right == 4


def test_nothing_found_is_zero_and_not_an_error() -> None:
    score = score_tree(TRUE, [])
    assert (score.precision, score.recall, score.f1) == (0.0, 0.0, 0.0)
    assert score.level_accuracy is None
    assert score.parent_end_to_end == 0.0


HEADINGS = st.lists(
    st.builds(
        Heading, st.sampled_from(["One", "Two", "Three", "One!"]), st.integers(1, 4),
        st.integers(1, 3),
    ),
    max_size=12,
)  # fmt: skip


@given(HEADINGS, HEADINGS)
def test_scores_keep_their_bounds(truth: list[Heading], predicted: list[Heading]) -> None:
    score = score_tree(truth, predicted)
    assert score.matched <= min(score.truth, score.predicted)
    assert max(score.levels_right, score.parents_right, score.parents_end_to_end) <= score.matched
    assert score_tree(predicted, truth).matched == score.matched
    whole = score_tree(truth, truth)
    assert whole.matched == whole.levels_right == whole.parents_end_to_end == len(truth)


# --- truth files and the run ---


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two books: a good one with its truth, and one that is no PDF."""
    folder = tmp_path_factory.mktemp("books")

    def page(title: str):  # type: ignore[no-untyped-def]
        def draw(canvas) -> None:  # type: ignore[no-untyped-def]
            top = heading(canvas, title, top=90)
            for _ in range(3):
                top = paragraph(canvas, LOREM * 2, top=top)

        return draw

    titles = ("1 Pumps", "2 Valves", "3 Pipes")
    marks = [(title, 0, k) for k, title in enumerate(titles, 1)]
    make_pdf(folder / "good.pdf", [page(t) for t in titles], outline=marks)
    (folder / "bad.pdf").write_bytes(b"no pdf")
    entries = [{"title": t, "level": 1, "page": k} for k, t in enumerate((*titles, "4 Lost"), 1)]
    truth = folder / "truth"
    truth.mkdir()
    (truth / "good.json").write_text(json.dumps({"doc": "good.pdf", "entries": entries}))
    (truth / "bad.json").write_text(json.dumps({"doc": "bad.pdf", "entries": entries}))
    return folder


def test_each_document_is_measured_and_fails_alone(books: Path) -> None:
    bad, good = evaluate_trees(find_truths([books / "truth"]), withhold=["outline"])
    assert bad.name == "bad.pdf"
    assert isinstance(bad.error, e.NotAPdfError)
    assert bad.score is None
    assert good.score == TreeScore(4, 3, 3, 3, 3, 3)
    assert (good.pages, good.toc_source) == (3, "numbering")
    assert good.seconds > 0


def test_the_outline_is_seen_unless_it_is_withheld(books: Path) -> None:
    (good,) = evaluate_trees(find_truths([books / "truth" / "good.json"]))
    assert good.toc_source == "outline"


def test_the_outline_as_truth_is_withheld(books: Path) -> None:
    bad, good = evaluate_trees(find_truths([books], from_outline=True))
    assert isinstance(bad.error, e.NotAPdfError)
    assert good.toc_source == "numbering"
    assert good.score == TreeScore(3, 3, 3, 3, 3, 3)


def test_a_document_without_an_outline_has_no_outline_truth(tmp_path: Path) -> None:
    plain = make_pdf(tmp_path / "plain.pdf", [lambda c: paragraph(c, LOREM, top=100)])
    (result,) = evaluate_trees(find_truths([plain], from_outline=True))
    assert isinstance(result.error, e.InvalidArgumentError)
    assert "it has none" in result.error.message


@pytest.mark.parametrize("content", [
    "[]", "{}", "no json", '{"entries": []}', '{"entries": [1]}', '{"entries": {"a": 1}}',
    '{"entries": [{"title": "A", "level": 0, "page": 1}]}',
    '{"entries": [{"title": "A", "level": 1, "page": true}]}',
    '{"entries": [{"title": "A", "level": 1, "page": "x"}]}',
    '{"entries": [{"title": " ", "level": 1, "page": 1}]}',
    '{"doc": "gone.pdf", "entries": [{"title": "A", "level": 1, "page": 1}]}',
    "[" * 100_000, "\udcff",
])  # fmt: skip
def test_a_wrong_truth_file_says_so_and_fails_alone(
    tmp_path: Path, books: Path, content: str
) -> None:
    file = tmp_path / "wrong.json"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    wrong, good = evaluate_trees(find_truths([file, books / "truth" / "good.json"]))
    assert isinstance(wrong.error, e.InvalidArgumentError)
    assert "wrong.json" in wrong.error.message
    assert good.score is not None


def test_an_index_beside_the_truth_files_says_which_levels_are_reliable(books: Path) -> None:
    index = books / "truth" / "INDEX.json"
    try:
        for content, reliable in [
            ([{"doc": "x/good.pdf", "levels_reliable": False}], False),
            ([{"doc": "x/other.pdf", "levels_reliable": False}], True),
            ("nonsense", True),
        ]:
            index.write_text(json.dumps(content))
            _, good = find_truths([books / "truth"])
            assert good.levels_reliable is reliable
    finally:
        index.unlink()


def test_a_pdf_stands_for_the_truth_file_beside_it(books: Path) -> None:
    (truth,) = find_truths([books / "good.pdf"])
    assert isinstance(truth.error, e.InvalidArgumentError)
    beside = books / "good.json"
    beside.write_text('{"entries": [{"title": "1 Pumps", "level": 1, "page": 1}]}')
    try:
        (truth,) = find_truths([books / "good.pdf"])
        assert truth == Truth(books / "good.pdf", (Heading("1 Pumps", 1, 1),))
    finally:
        beside.unlink()


# --- the report ---


def result(name: str, matched: int, confidence: float, *, reliable: bool = True) -> Result:
    score = TreeScore(10, 10, matched, matched, matched, matched)
    return Result(name, 10, 2.0, score, reliable, "outline", confidence)


def test_means_leave_out_failures_and_unreliable_levels() -> None:
    results = [
        result("a", 10, 0.9),
        result("b", 0, 0.1, reliable=False),
        Result("c", error=e.NotAPdfError("c is no PDF")),
    ]
    means = macro(results)
    assert means["f1"] == 0.5
    assert means["level"] == means["parent_end_to_end"] == 1.0
    found = to_json(results)
    assert found["macro"]["documents"] == 2
    assert found["macro"]["failed"] == 1
    assert found["macro"]["pages_per_second"] == 5.0
    assert found["documents"][1]["level"] is None
    assert found["documents"][2]["error"]["code"] == "not_a_pdf"
    table = markdown(results)
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert len({len(row) for row in rows}) == 1
    assert "mean of 2" in rows[-1]
    assert "c failed: c is no PDF" in table
    assert "not reliable" in table


def test_nothing_but_failures_is_a_report_too() -> None:
    results = [Result("c", error=e.NotAPdfError("c is no PDF"))]
    assert "mean of 0" in markdown(results)
    assert to_json(results)["macro"]["f1"] is None


def test_confidence_is_correlated_with_f1_where_there_are_books_enough() -> None:
    rising = [result(str(k), k, k / 10) for k in range(10)]
    assert correlation(rising) == pytest.approx(1.0)
    falling = [result(str(k), k, 1 - k / 10) for k in range(10)]
    assert correlation(falling) == pytest.approx(-1.0)
    assert correlation(rising[:9]) is None
    assert correlation([result("a", 5, 0.5)] * 10) is None
    assert "r) of confidence and F1: 1.00" in markdown(rising)


# --- the command ---


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: object) -> tuple[int, str]:
    outcome = CliRunner().invoke(app, ["eval", "trees", *map(str, args)])
    assert "Traceback" not in outcome.output
    return outcome.exit_code, outcome.stdout


def test_the_command_prints_and_writes_the_table(books: Path, elsewhere: Path) -> None:
    code, out = run(books / "truth", "--withhold", "outline", "--out", "table.md")
    assert code == e.NotAPdfError.exit_code
    assert out == (elsewhere / "table.md").read_text("utf-8")
    assert "good.pdf" in out
    assert "mean of 1" in out
    code, out = run(books / "good.pdf", "--truth", "outline", "--json")
    assert code == 0
    assert json.loads(out)["macro"]["f1"] == 1.0


def test_the_command_refuses_what_it_cannot_do(books: Path, elsewhere: Path) -> None:
    for args in [
        (books / "truth", "--withhold", "colour"),
        (books / "nowhere",),
        (elsewhere,),
        (books / "truth", "--out", elsewhere / "no" / "folder.md"),
    ]:
        code, out = run(*args, "--json")
        assert code == e.InvalidArgumentError.exit_code
        assert json.loads(out)["error"]["hint"]


@pytest.mark.slow
@pytest.mark.parametrize(("withhold", "least"), [((), 0.99), (("outline",), 0.9)])
def test_the_scores_of_real_books_stay_where_they_are(
    evaluation_data: Path, withhold: tuple[str, ...], least: float
) -> None:
    results = list(evaluate_trees(find_truths([evaluation_data / "outlines"]), withhold=withhold))
    assert all(r.error is None for r in results)
    assert (macro(results)["f1"] or 0) > least
    if withhold:
        assert (correlation(results) or 0) > 0.6  # the confidence says something
