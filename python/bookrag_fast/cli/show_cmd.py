"""`bookrag show`"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from bookrag_fast.cli.crops_view import show_crops
from bookrag_fast.cli.options import (
    DebugOption,
    JsonOption,
    LibraryOption,
    PasswordOption,
    opened,
    secret,
    spoken,
)
from bookrag_fast.cli.output import emit, emit_json, pages_text, shorten
from bookrag_fast.cli.pages_view import show_pages
from bookrag_fast.cli.tree_view import print_tree
from bookrag_fast.errors import InvalidArgumentError

__all__ = ["show"]


class What(str, Enum):
    TREE = "tree"
    GRAPH = "graph"
    NODE = "node"
    STATS = "stats"
    PAGES = "pages"
    ANNOTATIONS = "annotations"


def show(
    book: Annotated[str, typer.Argument(metavar="BOOK", show_default=False)],
    what: Annotated[
        What, typer.Argument(metavar="tree|graph|node|stats|pages|annotations", help="What of it.")
    ] = What.TREE,
    node_id: Annotated[
        Optional[int],  # noqa: UP045
        typer.Argument(metavar="ID", show_default=False, help="node: its number."),
    ] = None,
    depth: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--depth", metavar="N", help="tree: show N levels only.", min=1),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="tree: show text blocks too.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="graph: entities to show.", min=0)
    ] = 50,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out",
            metavar="DIR|FILE",
            help="pages: the folder to draw into; node: the PNG to draw the node into.",
        ),
    ] = None,
    pages: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--pages", metavar="A-B", help="pages: which ones; 3, 3-7, 5- or 1,4-6."),
    ] = None,
    dpi: Annotated[
        int, typer.Option("--dpi", metavar="N", help="pages, node --out: dots an inch.")
    ] = 100,
    pdf: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--pdf", metavar="FILE", help="pages, node --out: the book's PDF, if it was moved."
        ),
    ] = None,
    password: PasswordOption = None,
    library: LibraryOption = Path("shelf"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Look into a book: section tree, entity graph, one node, counts, annotations, pages.

    annotations: notes, marked passages, web links and form fields, with their pages.

    tree: each heading with its page (the printed one in brackets), what it rests on, how far that
    is to be trusted (0 to 1), and its number.

    pages: PNGs of the pages with what was read from them: boxes coloured by kind and numbered in
    reading order, headings coloured by level, cells of tables as a grid. Of a book on the shelf
    the numbers are those of its nodes. BOOK may be a PDF file: it is read as it is, without the
    shelf.

    node ID --out FILE: the node as it is printed, cut out of its page. Where it stands in several
    places these are FILE-1, FILE-2 and so on. With --json: {"pictures": [{"page", "label", "bbox",
    "file", "width", "height"}]}.
    """
    if (what is What.NODE) != (node_id is not None):
        raise InvalidArgumentError(
            "`show BOOK node` needs the number of a node, and nothing else does",
            "`bookrag show BOOK tree` shows the numbers",
        )
    if what is What.PAGES:
        show_pages(
            book, library, out=out, pages=pages, dpi=dpi, pdf=pdf, password=secret(password),
            as_json=as_json,
        )  # fmt: skip
        return
    if node_id is not None and out is not None:
        show_crops(
            book, node_id, library, out=out, dpi=dpi, pdf=pdf, password=secret(password),
            as_json=as_json,
        )  # fmt: skip
        return
    book = spoken(book)
    with opened(library) as shelf:
        lines: Iterator[str]
        document: Any
        if what is What.TREE:
            root = shelf.tree(book)
            if as_json:
                emit_json(root.to_json())
            else:
                print_tree(root, depth=depth, everything=everything)
            return
        if what is What.GRAPH:
            document = shelf.graph(book, limit=limit)
            lines = _graph_lines(document)
        elif what is What.NODE:
            assert node_id is not None
            document = shelf.node(book, node_id)
            lines = _node_lines(document)
        elif what is What.ANNOTATIONS:
            document = shelf.annotations(book)
            lines = _annotation_lines(document)
        else:
            document = shelf.stats(book)
            lines = _table_lines(document)
        if as_json:
            emit_json(document)
        else:
            emit(lines)


def _graph_lines(graph: dict[str, Any]) -> Iterator[str]:
    counts = graph["counts"]
    yield " · ".join(f"{n} {name}" for name, n in counts.items())
    yield ""
    yield "Entities, best connected first"
    names = {}
    for entity in graph["entities"]:
        names[entity["id"]] = entity["name"]
        yield f"  {entity['degree']:>5}  {entity['name']}  [{entity['type']}]"
    if graph["relations"]:
        yield ""
        yield "Relations among them"
    for relation in graph["relations"]:
        source, target = (names.get(relation[end], relation[end]) for end in ("source", "target"))
        yield f"  {source} — {relation['name']} — {target}  ({relation['weight']:g})"
    if graph["merges"]:
        yield ""
        yield "Merged names"
    for merge in graph["merges"]:
        yield f"  {merge['merged']} → {merge['kept']}  ({merge['rule']})"


def _node_lines(node: dict[str, Any]) -> Iterator[str]:
    yield f"node {node['node_id']} · {node['kind']} · level {node['level']}"
    if node["pages"]:
        yield pages_text(node["pages"], node["labels"])
    if node["section"]:
        yield " › ".join(node["section"])
    if node["title"]:
        yield node["title"]
    if "summary" in node:
        yield ""
        yield f"Summary: {node['summary']}"
    if node["text"]:
        yield ""
        yield from node["text"].splitlines()
    if node["entities"]:
        yield ""
        named = (f"{entity['name']} [{entity['type']}]" for entity in node["entities"])
        yield "Entities: " + ", ".join(named)


def _annotation_lines(found: dict[str, Any]) -> Iterator[str]:
    if not found["annotations"]:
        yield "no annotations"
    for a in found["annotations"]:
        label = f" ({a['label']})" if a["label"] and a["label"] != str(a["page"]) else ""
        name = f"{a['name']}: " if a["name"] else ""
        said = " ".join((a["target"] or a["text"]).split()) or "–"
        yield f"p. {a['page']}{label}  {a['kind']}  {name}{shorten(said, 200)}"


def _table_lines(table: dict[str, Any], indent: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield f"{indent}{name}"
            yield from _table_lines(value, indent + "  ")
        elif isinstance(value, (list, tuple)):
            yield f"{indent}{name:<16}{len(value)}"
            for item in value:
                if isinstance(item, dict):
                    item = ", ".join(f"{key} {said}" for key, said in item.items())
                yield f"{indent}  {shorten(str(item), 200)}"
        else:
            yield f"{indent}{name:<16}{value}"
