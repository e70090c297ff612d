"""Saving and opening a BookIndex: equal, mapped, atomic, and distrustful."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bookrag_fast.document import Annotation, BBox
from bookrag_fast.errors import CorruptIndexError, IndexStoreError, NewerIndexError
from bookrag_fast.index import store
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.index.store import load_book, read_meta, remove_leftovers, save_book
from bookrag_fast.models.protocols import TokenUsage
from factories import small_index

FORMAT_1 = Path(__file__).parent / "data" / "index-format-1"
FORMAT_2 = FORMAT_1.with_name("index-format-2")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "books" / "one"
    save_book(small_index(), folder)
    return folder


def test_round_trip_keeps_everything(saved: Path) -> None:
    made, read = small_index(), load_book(saved)
    assert read.meta == made.meta
    assert read.pages == made.pages
    assert read.entities == made.entities
    assert read.relations == made.relations
    assert read.merges[0].rule == "plural"
    assert [n.text for n in read.nodes] == [n.text for n in made.nodes]
    assert read.nodes[8].cells == made.nodes[8].cells
    assert read.nodes[5].regions == made.nodes[5].regions
    assert [n.confidence for n in read.nodes] == [n.confidence for n in made.nodes]
    np.testing.assert_array_equal(read.node_vectors, made.node_vectors)
    np.testing.assert_array_equal(read.neighbours.ids, made.neighbours.ids)
    terms = ["pump", "pressure"]
    np.testing.assert_array_equal(read.lexicon.scores(terms), made.lexicon.scores(terms))
    assert read.graph.num_relations == 4
    assert read.links.nodes_of(0).tolist() == [2, 4, 10]


def test_a_book_of_format_1_is_read_and_has_no_confidence() -> None:
    old, made = load_book(FORMAT_1), small_index()
    assert old.meta == replace(made.meta, confidence=None, source=None)
    assert old.pages == made.pages
    assert [n.confidence for n in old.nodes] == [None] * len(made.nodes)
    assert [(n.title, n.text, n.evidence) for n in old.nodes] == [
        (n.title, n.text, n.evidence) for n in made.nodes
    ]


def test_a_book_of_format_2_is_read_and_has_no_summaries_and_no_models() -> None:
    old, made = load_book(FORMAT_2), small_index()
    assert old.meta == made.meta
    assert old.meta.models == ()
    assert [(n.title, n.text, n.confidence, n.summary) for n in old.nodes] == [
        (n.title, n.text, n.confidence, "") for n in made.nodes
    ]


def test_summaries_and_what_models_did_are_kept(tmp_path: Path) -> None:
    plain = small_index()
    nodes = (*plain.nodes[:3], replace(plain.nodes[3], summary="How pumps are mounted. 水"))
    use = ModelUse("sections", "small", "gemma", TokenUsage(900, 80, 3, 1), 0.25, 1)
    made = replace(
        plain,
        nodes=(*nodes, *plain.nodes[4:]),
        meta=replace(plain.meta, models=(use,)),
    )
    save_book(made, tmp_path / "one")
    read = load_book(tmp_path / "one")
    assert read.meta == made.meta
    assert [n.summary for n in read.nodes] == [n.summary for n in made.nodes]


def test_a_book_without_the_table_of_annotations_has_none(saved: Path) -> None:
    made = replace(small_index(), annotations=(Annotation(1, "note", BBox(1, 2, 3, 4), "So?"),))
    save_book(made, saved.with_name("two"))
    assert load_book(saved.with_name("two")).annotations == made.annotations
    (saved / "annotations.arrow").unlink()
    _reseal(saved, lambda m: m["files"].pop("annotations.arrow"))
    assert load_book(saved).annotations == ()


def test_a_column_that_the_format_should_have_is_missed(saved: Path) -> None:
    for name in ("nodes.arrow", "manifest.json"):
        shutil.copy(FORMAT_1 / name, saved / name)
    manifest = json.loads((saved / "manifest.json").read_text())
    manifest["format"] = store.FORMAT
    manifest["checksum"] = store._checksum(manifest)
    (saved / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CorruptIndexError, match="columns"):
        load_book(saved)


def test_numeric_tables_are_mapped_not_copied(saved: Path) -> None:
    index = load_book(saved)
    for array in (index.node_vectors, index.lexicon.weights, index.neighbours.ids):
        assert not array.flags.writeable
        assert not array.flags.owndata


def test_saving_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    save_book(small_index(), tmp_path / "a")
    save_book(small_index(), tmp_path / "b")
    for file in sorted((tmp_path / "a").iterdir()):
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name


def test_an_existing_folder_is_never_overwritten(saved: Path) -> None:
    with pytest.raises(IndexStoreError, match="exists already"):
        save_book(small_index(), saved)


def test_anyone_can_open_the_tables(saved: Path) -> None:
    with pa.memory_map(str(saved / "nodes.arrow")) as source:
        table = pa.ipc.open_file(source).read_all()
    assert table.column("title")[3].as_py() == "1 Installation"


@pytest.mark.parametrize("name", [*(f"{n}.arrow" for n in store.SCHEMAS), "manifest.json"])
@pytest.mark.parametrize("harm", ["missing", "truncated", "flipped", "empty"])
def test_any_damage_is_found(saved: Path, name: str, harm: str) -> None:
    path = saved / name
    data = bytearray(path.read_bytes())
    if harm == "missing":
        path.unlink()
    elif harm == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif harm == "empty":
        path.write_bytes(b"")
    else:
        data[len(data) // 2] ^= 0x5A
        path.write_bytes(data)
    with pytest.raises(CorruptIndexError) as caught:
        load_book(saved)
    assert "bookrag index" in caught.value.hint


def _reseal(folder: Path, change) -> None:  # type: ignore[no-untyped-def]
    """Change the manifest and make it look genuine again."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    change(manifest)
    manifest["checksum"] = store._checksum(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


def test_a_newer_format_is_named_as_such(saved: Path) -> None:
    _reseal(saved, lambda m: m.update(format=99))
    with pytest.raises(NewerIndexError, match="format 99") as caught:
        load_book(saved)
    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("links", "entity", 10_000),
        ("links", "entity", -1),
        ("links", "node", 10_000),
        ("nodes", "parent", 10),
        ("nodes", "kind", 99),
        ("relations", "target", 4_000_000),
        ("relations", "weight", float("nan")),
        ("postings", "node", 500),
        ("terms", "postings", -5),
    ],
)
def test_lies_with_a_genuine_checksum_are_found(
    saved: Path, table: str, column: str, value: float
) -> None:
    path = saved / f"{table}.arrow"
    with pa.memory_map(str(path)) as source:
        data = pa.ipc.open_file(source).read_all()
    field = data.schema.get_field_index(column)
    values = data.column(column).to_pylist()
    values[-1] = value
    data = data.set_column(
        field, data.schema.field(field), pa.array(values, data.schema.types[field])
    )
    path.unlink()
    entry = store._write_table(path, data)
    _reseal(saved, lambda m: m["files"].update({path.name: entry}))
    with pytest.raises(CorruptIndexError):
        load_book(saved)


@pytest.mark.parametrize("content", ["[]", "{}", '{"format": "1"}', "[" * 100_000, "\x00", "null"])
def test_a_strange_manifest_is_corrupt(saved: Path, content: str) -> None:
    (saved / "manifest.json").write_text(content, "utf-8")
    with pytest.raises(CorruptIndexError):
        read_meta(saved)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = os.fsync, []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(IndexStoreError, match="No space left"):
        save_book(small_index(), tmp_path / "books" / "one")
    assert list((tmp_path / "books").iterdir()) == []


def test_a_writer_killed_half_way_is_cleaned_up_after(tmp_path: Path) -> None:
    books = tmp_path / "books"
    code = textwrap.dedent(
        """
        import os, sys, time
        from pathlib import Path
        from factories import small_index
        from bookrag_fast.index import store
        real = store._write_table
        def slow(path, table):
            if path.name == "relations.arrow":
                print("half", flush=True)
                time.sleep(60)
            return real(path, table)
        store._write_table = slow
        store.save_book(small_index(), Path(sys.argv[1]) / "one")
        """
    )
    env = dict(os.environ, PYTHONPATH=str(Path(__file__).parent))
    writer = subprocess.Popen(
        [sys.executable, "-c", code, str(books)], stdout=subprocess.PIPE, text=True, env=env
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "half\n"
    assert remove_leftovers(books) == []  # its writer lives: not ours to touch
    partial = next(books.iterdir())
    assert (partial / "nodes.arrow").exists()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    assert remove_leftovers(books) == [partial]
    assert list(books.iterdir()) == []


def test_an_open_book_outlives_its_folder(saved: Path) -> None:
    index = load_book(saved)
    before = hashlib.sha256(np.ascontiguousarray(index.node_vectors)).hexdigest()
    shutil.rmtree(saved)
    assert hashlib.sha256(np.ascontiguousarray(index.node_vectors)).hexdigest() == before
