"""Every command on a real shelf with a real PDF, in this process."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from bookrag_fast import errors as e
from bookrag_fast.cli import checks
from bookrag_fast.cli.main import app
from server_helpers import make_pdf


def run(*args, **options):
    result = CliRunner().invoke(app, [str(a) for a in args], **options)
    assert "Traceback" not in result.output
    return result


def run_json(*args, code=0, **options):
    """The one JSON document on standard output; nothing else may be there."""
    result = run(*args, "--json", **options)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def pdf(tmp_path_factory):
    return make_pdf(tmp_path_factory.mktemp("pdf") / "small.pdf")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory, pdf):
    """A shelf with one book, and the book."""
    shelf = tmp_path_factory.mktemp("shelves") / "shelf"
    (book,) = run_json("index", pdf, "--library", shelf)["books"]
    return shelf, book


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """No command may depend on, or write to, the folder the tests run in."""
    monkeypatch.chdir(tmp_path)
    for name in ("BOOKRAG_LIBRARY", "BOOKRAG_CONFIG", "BOOKRAG_EMBEDDER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def on(indexed, monkeypatch):
    """The shelf with one book as the default library; its book is returned."""
    shelf, book = indexed
    monkeypatch.setenv("BOOKRAG_LIBRARY", str(shelf))
    return book


@pytest.fixture
def copy(indexed, tmp_path, monkeypatch):
    """A shelf of one's own to change."""
    shelf = tmp_path / "copy"
    shutil.copytree(indexed[0], shelf)
    monkeypatch.setenv("BOOKRAG_LIBRARY", str(shelf))
    return shelf


# --- index ---


def test_index_tells_what_it_made(on):
    assert on["pages"] == 3
    assert on["name"] == "small.pdf"
    assert on["known"] is False


def test_indexing_the_same_content_again_is_the_same_book(on, pdf):
    result = run("index", pdf)
    assert result.exit_code == 0
    assert f"small.pdf is already on the shelf: {on['id']}" in result.stdout
    assert run_json("index", pdf)["books"][0]["known"] is True
    assert len(run_json("list")["books"]) == 1


@pytest.mark.parametrize(
    ("span", "count"), [("2-3", "2 pages"), ("2", "1 page"), ("2-", "2 pages"), ("1-3", "3 pages")]
)
def test_the_pages_told_are_those_indexed(copy, pdf, span, count):
    assert f": {count}, " in run("index", pdf, "--pages", span, "--dry-run").stdout
    assert f"({count}, " in run("index", pdf, "--pages", span).stdout
    made = [book["pages"] for book in run_json("list")["books"]]  # of one second: in any order
    assert int(count.split()[0]) in made


def test_one_bad_file_does_not_stop_the_rest(copy, tmp_path):
    bad = tmp_path / "bad.pdf"
    bad.write_bytes(b"not a pdf at all")
    empty = tmp_path / "empty.pdf"
    empty.write_bytes(b"")
    good = make_pdf(tmp_path / "good.pdf", title="Another Handbook")
    found = run_json("index", bad, good, empty, code=e.NotAPdfError.exit_code)
    assert [b["file"] for b in found["books"]] == [str(good)]
    assert [(x["file"], x["error"]["code"]) for x in found["errors"]] == [
        (str(bad), "not_a_pdf"), (str(empty), "empty_document"),
    ]  # fmt: skip
    assert found["error"] == found["errors"][0]["error"]
    result = run("index", bad, good)
    assert result.exit_code == e.NotAPdfError.exit_code
    assert "bad.pdf" in result.stderr
    assert "good.pdf is already" in result.stdout


BAD = {
    "missing": (None, e.BookragError),
    "folder": ("folder", e.BookragError),
    "text": (b"just text", e.NotAPdfError),
    "empty": (b"", e.EmptyDocumentError),
    "truncated": ("truncated", e.DocumentError),
    "encrypted": ("encrypted", e.EncryptedPdfError),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_has_its_error_and_leaves_the_shelf_alone(copy, tmp_path, pdf, kind):
    content, error = BAD[kind]
    file = tmp_path / f"{kind}.pdf"
    if content == "folder":
        file.mkdir()
    elif content == "truncated":
        file.write_bytes(pdf.read_bytes()[:60])
    elif content == "encrypted":
        make_pdf(file, password="secret")
    elif content is not None:
        file.write_bytes(content)
    before = sorted(str(p) for p in copy.rglob("*") if "sqlite" not in p.name)
    result = run("index", file, "--json")
    problem = json.loads(result.stdout)["error"]
    codes = {c.code: c for c in _classes(error)}
    assert problem["code"] in codes
    assert result.exit_code == codes[problem["code"]].exit_code
    assert result.exit_code > 2
    assert problem["message"]
    assert sorted(str(p) for p in copy.rglob("*") if "sqlite" not in p.name) == before
    assert len(run_json("list")["books"]) == 1


def _classes(base):
    yield base
    for derived in base.__subclasses__():
        yield from _classes(derived)


def test_a_password_opens_an_encrypted_book(copy, tmp_path):
    file = make_pdf(tmp_path / "locked.pdf", title="Locked", password="secret")
    wrong = run_json("index", file, "--password", "no", code=e.WrongPasswordError.exit_code)
    assert wrong["error"]["code"] == "wrong_password"
    assert run_json("index", file, "--password", "secret")["books"][0]["pages"] == 3


def test_a_password_can_be_asked_for(copy, tmp_path):
    file = make_pdf(tmp_path / "locked.pdf", title="Locked", password="secret")
    result = run("index", file, "--password", "-", input="secret\n")
    assert result.exit_code == 0, result.output
    assert "secret" not in result.output


# --- ask and search ---


def test_ask_answers_with_the_page(on):
    result = run("ask", "When should the impeller of the primary pump be replaced?")
    assert result.exit_code == 0
    assert "900 hours" in result.stdout
    assert "p. 2" in result.stdout
    assert "1 Pumps" in result.stdout


def test_ask_as_json(on):
    answer = run_json("ask", "When should the impeller of the primary pump be replaced?")
    assert set(answer) >= {"answer", "citations", "plan", "trace", "usage", "enough"}
    assert answer["notes"] == []
    (first, *_) = answer["citations"]
    assert first["book"] == on["id"]
    assert first["pages"] == [2]
    assert first["boxes"][0]["page"] == 2
    assert "900 hours" in first["quote"]


def test_search_as_json_has_the_agreed_shape(on):
    found = run_json("search", "relief valve pressure", "--book", on["id"], "--budget", "500")
    assert set(found) == {"evidence", "plan", "timings_ms", "notes"}
    assert found["notes"] == []
    best = found["evidence"][0]
    assert set(best) >= {
        "book", "node_id", "kind", "pages", "boxes", "section", "text", "scores",
    }  # fmt: skip
    assert best["pages"] == [3]
    assert "12 bar" in best["text"]
    assert all(isinstance(ms, (int, float)) for ms in found["timings_ms"].values())


def test_search_for_people(on):
    result = run("search", "relief valve pressure", "--explain")
    assert result.exit_code == 0
    assert result.stdout.startswith("1. p. 3")
    assert "Operators" in result.stdout


def test_asking_a_file_that_is_not_on_the_shelf_indexes_it_first(tmp_path, pdf):
    shelf = tmp_path / "new"
    answer = run_json("ask", "What opens at 12 bar?", "--book", pdf, "--library", shelf)
    assert answer["citations"][0]["pages"] == [3]
    (book,) = run_json("list", "--library", shelf)["books"]
    again = run_json("search", "pump", "--book", pdf, "--book", book["id"], "-L", shelf)
    assert {hit["book"] for hit in again["evidence"]} == {book["id"]}
    assert len(run_json("list", "--library", shelf)["books"]) == 1


@pytest.mark.parametrize(("args", "error"), [
    (["ask", ""], e.QueryError),
    (["search", "x", "--budget", "0"], e.BudgetError),
    (["search", "x", "--budget", "-5"], e.BudgetError),
    (["ask", "x", "--book", "nowhere"], e.UnknownBookError),
    (["ask", "x", "--book", "y" * 5000], e.UnknownBookError),
    (["show", "nowhere"], e.UnknownBookError),
    (["rm", "nowhere"], e.UnknownBookError),
    (["show", "small.pdf", "node", "999"], e.UnknownNodeError),
    (["show", "small.pdf", "node"], e.InvalidArgumentError),
    (["show", "small.pdf", "tree", "7"], e.InvalidArgumentError),
    (["search", "x", "--embedder", "nothing"], e.ConfigError),
    (["search", "x", "--embedder", "onnx:/no/such"], e.ModelNotFoundError),
])  # fmt: skip
def test_foreseeable_errors_have_code_hint_and_exit_code(on, args, error):
    result = run(*args, "--json")
    problem = json.loads(result.stdout)["error"]
    assert (problem["code"], result.exit_code) == (error.code, error.exit_code)
    assert set(problem) == {"code", "message", "hint"}
    plain = run(*args)
    assert plain.exit_code == error.exit_code
    assert plain.stderr.startswith("error: ")
    assert plain.stdout == ""


def test_asking_an_empty_shelf_says_what_to_do(tmp_path):
    result = run("ask", "x", "--library", tmp_path / "none")
    assert result.exit_code == e.UnknownBookError.exit_code
    assert "bookrag index FILE" in result.stderr


# --- show, list, rm ---


def test_show_tree(on):
    result = run("show", on["id"])
    assert "1 Pumps  p. 2" in result.stdout
    assert "2 Valves  p. 3" in result.stdout
    assert "acetone" not in result.stdout
    assert "acetone" in run("show", on["id"], "tree", "--all").stdout
    assert "Pumps" not in run("show", on["id"], "--depth", "1").stdout


def test_show_tree_as_json_is_nested(on):
    root = run_json("show", "small.pdf", "tree")
    assert set(root) >= {"node_id", "kind", "level", "title", "page", "children"}
    titles = []

    def walk(node):
        titles.append(node["title"])
        for child in node["children"]:
            walk(child)

    walk(root)
    assert {"1 Pumps", "2 Valves"} <= set(titles)


def test_show_graph_node_and_stats(on):
    assert set(run_json("show", on["id"], "graph")) >= {"entities", "relations", "counts"}
    assert "entities" in run("show", on["id"], "graph").stdout
    assert run_json("show", on["id"], "stats")["pages"] == 3
    assert "toc_source" in run("show", on["id"], "stats").stdout
    hit = run_json("search", "acetone")["evidence"][0]
    node = run_json("show", on["id"], "node", hit["node_id"])
    assert "acetone" in node["text"]
    assert "p. 3" in run("show", on["id"], "node", hit["node_id"]).stdout


def test_list(on, tmp_path):
    assert run_json("list")["books"][0]["id"] == on["id"]
    assert on["id"] in run("list").stdout
    empty = run("list", "--library", tmp_path / "empty")
    assert empty.exit_code == 0
    assert empty.stdout == ""
    assert "has no books" in empty.stderr


def test_rm_takes_books_off_and_names_the_ones_it_could_not(copy, on_id):
    found = run_json("rm", "nowhere", on_id, code=e.UnknownBookError.exit_code)
    assert [b["id"] for b in found["removed"]] == [on_id]
    assert found["errors"][0]["book"] == "nowhere"
    assert found["error"]["code"] == "unknown_book"
    assert run_json("list") == {"books": []}


@pytest.fixture
def on_id(indexed):
    return indexed[1]["id"]


# --- usage and the unexpected ---


def test_wrong_usage_is_exit_code_2(on):
    for args in (["nonsense"], ["ask"], ["search", "x", "--budget", "many"], ["--what"]):
        result = run(*args)
        assert result.exit_code == 2, args
        assert result.stderr.startswith("error: ")
        assert run_json(*args, code=2)["error"]["code"] == "usage"


def test_a_question_that_looks_like_an_option_is_a_question(on):
    result = run("search", "--", "--json")
    assert result.exit_code == 0
    assert not result.stdout.startswith("{")


def test_version_and_help():
    from bookrag_fast._version import __version__

    assert run("--version").stdout == f"bookrag {__version__}\n"
    for command in ("index", "ask", "search", "show", "list", "rm", "serve", "doctor"):
        assert command in run("--help").stdout
        text = run(command, "--help").stdout
        assert "--json" in text
        assert "--library" in text


def test_the_unexpected_is_one_line_unless_debugging(on, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("boom\nand more")

    monkeypatch.setattr("bookrag_fast.library.library.Library.search_result", fail)
    result = run("search", "x")
    assert result.exit_code == 1
    assert "error: unexpected RuntimeError: boom and more\n" in result.stderr
    problem = run_json("search", "x", code=1)["error"]
    assert problem["code"] == "internal"
    shown = CliRunner().invoke(app, ["search", "x", "--debug", "--json"])
    assert "Traceback" in shown.stderr
    assert json.loads(shown.stdout)["error"]["code"] == "internal"


def test_an_interrupt_is_exit_code_130(on, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bookrag_fast.library.library.Library.search_result", interrupt)
    assert run("search", "x").exit_code == 130


def test_a_shelf_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("list", "--library", tmp_path / "file")
    assert result.exit_code == e.LibraryError.exit_code
    assert "file" in result.stderr


# --- doctor ---


def test_doctor_finds_this_installation_and_shelf_sound(on):
    found = run_json("doctor")
    assert found["ok"] is True
    checked = {finding["check"] for finding in found["findings"]}
    assert {"python", "packages", "core", "configuration", "disk", "shelf"} <= checked
    assert any("onnxruntime" in name for name in checked)
    assert "ok" in run("doctor").stdout
    assert "embedder wordllama; reranker none; by rules: " in run("doctor").stdout


def test_doctor_does_not_make_a_shelf(tmp_path):
    assert run_json("doctor", "--library", tmp_path / "none")["ok"] is True
    assert not (tmp_path / "none").exists()


def test_doctor_finds_a_damaged_book_and_names_the_repair(copy):
    for file in (copy / "books").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-7])
    result = run("doctor")
    assert result.exit_code == 1
    assert "→ " in result.stdout
    found = run_json("doctor", code=1)
    errors = [f for f in found["findings"] if f["level"] == "error"]
    assert [f["check"] for f in errors] == ["shelf"]
    assert errors[0]["remedy"]


def test_doctor_finds_a_core_that_computes_wrongly(on, monkeypatch):
    import numpy as np

    from bookrag_fast import core

    monkeypatch.setattr(core, "skyline", lambda scores: np.array([2]))
    found = run_json("doctor", code=1)
    wrong = next(f for f in found["findings"] if f["check"] == "core")
    assert "wrong values" in wrong["detail"]
    assert "pip install" in wrong["remedy"]


def test_doctor_survives_what_it_examines(on, monkeypatch):
    monkeypatch.setattr(checks, "_disk", lambda folder: 1 / 0)
    found = run_json("doctor", code=1)
    assert next(f for f in found["findings"] if f["check"] == "disk")["level"] == "error"
    assert found["findings"][-1]["check"] == "shelf"


def test_doctor_reports_wrong_settings_and_goes_on(on, monkeypatch):
    monkeypatch.setenv("BOOKRAG_EMBEDER", "x")
    found = run_json("doctor", code=1)
    wrong = next(f for f in found["findings"] if f["check"] == "configuration")
    assert "embedder" in wrong["remedy"]


def test_doctor_finds_missing_and_old_packages(monkeypatch):
    import importlib.metadata as metadata

    wanted = ["grpcio>=999", "no-such-thing>=1", "numpy>=2.0,<3", 'x>=1; extra == "test"']
    monkeypatch.setattr(metadata, "requires", lambda name: wanted)
    (finding,) = checks._packages()
    assert finding.level == checks.ERROR
    assert "no-such-thing is missing" in finding.detail
    assert "needs 999" in finding.detail
    assert "numpy" not in finding.detail


def test_serve_refuses_a_path_that_is_no_folder(on, tmp_path):
    found = run_json("serve", "--allow-path", tmp_path / "none", code=3)
    assert found["error"]["code"] == "invalid_argument"
