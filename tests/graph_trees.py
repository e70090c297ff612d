"""Small section trees for the tests of extraction, written by hand."""

from __future__ import annotations

from bookrag_fast.document.model import Cell
from bookrag_fast.index.model import (
    Entity,
    ExtractedGraph,
    Node,
    NodeKind,
    Relation,
    SectionTree,
    normalise_name,
)


class TreeBuilder:
    """Grows a tree in document order; a node's page is its number in tens."""

    def __init__(self, title: str = "Handbook") -> None:
        self.nodes = [Node(0, -1, NodeKind.ROOT, 0, "", "", (), 1, 99)]
        self.section(title, parent=0)

    def section(self, title: str, *, parent: int = 1, numbering: str = "", text: str = "") -> int:
        return self._add(parent, NodeKind.SECTION, title, text, numbering)

    def text(self, text: str, *, parent: int = 1, kind: NodeKind = NodeKind.TEXT) -> int:
        return self._add(parent, kind, "", text)

    def image(self, caption: str, *, parent: int = 1) -> int:
        return self._add(parent, NodeKind.IMAGE, caption, "")

    def equation(self, text: str, *, parent: int = 1) -> int:
        return self._add(parent, NodeKind.EQUATION, "", text)

    def table(
        self, caption: str, rows: list[list[str]], *, parent: int = 1, headers: bool = False
    ) -> int:
        cells = tuple(
            Cell(r, c, text, header=headers and r == 0)
            for r, row in enumerate(rows)
            for c, text in enumerate(row)
        )
        text = "\n".join(" | ".join(row) for row in rows)
        return self._add(parent, NodeKind.TABLE, caption, text, cells=cells)

    def _add(
        self,
        parent: int,
        kind: NodeKind,
        title: str,
        text: str,
        numbering: str = "",
        cells: tuple[Cell, ...] = (),
    ) -> int:
        number = len(self.nodes)
        page = number // 10 + 1
        level = self.nodes[parent].level + 1
        self.nodes.append(
            Node(number, parent, kind, level, title, text, (), page, page, numbering, (), cells)
        )
        return number

    def tree(self) -> SectionTree:
        return SectionTree(tuple(self.nodes), "numbering")


def find(graph: ExtractedGraph, name: str, kind: str | None = None) -> Entity | None:
    """The entity of that name or alias, of that type if one is given."""
    wanted = normalise_name(name)
    for entity in graph.entities:
        names = {normalise_name(n) for n in (entity.name, *entity.aliases)}
        if wanted in names and kind in (None, entity.type):
            return entity
    return None


def relations(graph: ExtractedGraph, name: str) -> set[tuple[str, str]]:
    """Names of the ends of the relations of one name."""
    ends = graph.entities
    return {(ends[r.source].name, ends[r.target].name) for r in graph.relations if r.name == name}


def relation(graph: ExtractedGraph, name: str, source: str, target: str) -> Relation:
    """The one relation of that name between these ends."""
    ends = graph.entities
    (found,) = [
        r
        for r in graph.relations
        if (r.name, ends[r.source].name, ends[r.target].name) == (name, source, target)
    ]
    return found
