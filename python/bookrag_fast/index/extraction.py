"""T to G, offline: entities and relations by rules, each with the nodes it comes from.

| from | entities | relations |
|---|---|---|
| sections | one each, and the concepts of its title | concept `InTitleOf` section |
| tables | one each, one a row and column header | header `ContainedIn` table |
| images, equations | one each captioned or numbered | concept `InCaptionOf` image or table |
| running text | names, identifiers, noun phrases, defined terms | `CoOccurs` by association |
| acronyms | an alias of the long form; of several, an entity | acronym `AliasOf` each of them |
| "see Section 3.2" | none | section `RefersTo` section, table, image or equation |

Entities of running text are bounded by the length of the text: at most 30 for each 1,000 words (and
never fewer than 40), the most salient; terms with a definition come on top. Together with what the
layout gives (sections, tables, headers) G stays linear in the book. Relations: at most 8 an entity
by association, the rest linear in the text. Nothing is quadratic.

Types: section, table, image, equation, header, concept, name, organization, person, identifier.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from bookrag_fast.index.acronyms import find_definitions
from bookrag_fast.index.cooccurrence import Windows, associate
from bookrag_fast.index.crossrefs import TargetIndex, announces_reference, find_references
from bookrag_fast.index.definitions import called_terms, defined_entities, shorten
from bookrag_fast.index.lexing import Lexer, Part, Sentence
from bookrag_fast.index.model import (
    Entity,
    ExtractedGraph,
    Node,
    NodeKind,
    Relation,
    SectionTree,
    normalise_name,
)
from bookrag_fast.index.occurrences import Matcher, Occurrence
from bookrag_fast.index.phrases import Key, Phrases
from bookrag_fast.index.ranking import Candidate, rank
from bookrag_fast.index.structure import bare_title, headers_of, is_page, structural_entities

__all__ = ["extract_graph"]

_PER_THOUSAND = 30  # entities of running text for each 1,000 words
_AT_LEAST = 40
_WINDOW_WORDS = 60  # a long node is cut into windows of whole sentences of about this length
_MOST_ALIASES = 8
_BARE = 12  # characters beside a definition that say nothing more

_BIBLIOGRAPHIES = frozenset(
    {"references", "bibliography", "works cited", "literature cited", "литература",
     "список литературы", "参考文献", "引用文献"}
)  # fmt: skip
# Pages that name everything and say nothing: linked to all entities, they would outrank the text.
_LISTS = frozenset(
    {"contents", "table of contents", "list of figures", "list of tables", "tables and figures",
     "figures and tables", "index", "subject index", "содержание", "оглавление", "目次", "索引",
     "図目次", "表目次"}
)  # fmt: skip
_LEADERS = re.compile(r"(?:\. ?){5}|…{2}|・{4}")  # a line of a contents page
# An entry of a bibliography whose section was not found.
_CITATION = re.compile(
    r"In Proceedings of|arXiv preprint|\bCoRR,? abs|\bpp?\. ?\d+[-–]\d+|, pages? \d+[-–]\d+"
    r"|\(\d{4}\)\. [A-Z].{10,120}\. [A-Z][^.]{5,60}, \d+"
)
_CITATION_REACH = 600

IN_TITLE, IN_CAPTION, CONTAINED_IN = "InTitleOf", "InCaptionOf", "ContainedIn"
REFERS_TO, ALIAS_OF = "RefersTo", "AliasOf"


@dataclass(slots=True)
class _Acronym:
    """A short form with its long forms: stems to the words, the defining sentence, the nodes."""

    longs: dict[Key, tuple[str, str, set[int]]] = field(default_factory=dict)


@dataclass(slots=True)
class _Found:
    """What the pass over all sentences finds of one entity of running text."""

    nodes: set[int] = field(default_factory=set)
    description: str = ""
    sureness: int = 0
    free: int = 0  # occurrences that are no part of a longer name


class _Table:
    """Entities by key; the same key twice is one entity with the nodes of both."""

    def __init__(self) -> None:
        self.entities: list[Entity] = []
        self._places: dict[tuple[str, str], int] = {}

    def add(self, entity: Entity) -> int:
        place = self._places.setdefault(entity.key, len(self.entities))
        if place == len(self.entities):
            self.entities.append(entity)
            return place
        old = self.entities[place]
        self.entities[place] = Entity(
            old.name,
            old.type,
            old.description or entity.description,
            _aliases(old.name, [*old.aliases, *entity.aliases]),
            tuple(sorted({*old.nodes, *entity.nodes})),
        )
        return place


def extract_graph(tree: SectionTree) -> ExtractedGraph:
    """The raw graph of a book, before resolution; see the module for what is in it.

    Entities have unique keys (normalised name, type) and sorted node ids of every node in which
    they occur; relations have finite weights above 0 and the nodes they rest on. Deterministic.
    Time O(text · longest name), some hundreds of pages a second.
    """
    lexer = Lexer()
    windows = list(_read(tree, lexer))
    phrases = Phrases(lexer)
    acronyms: dict[str, _Acronym] = {}
    called: dict[Key, str] = {}
    words = 0
    for window in windows:
        for place, sentence in enumerate(window):
            words += len(sentence.words)
            phrases.add(sentence)
            after = window[place + 1].text if place + 1 < len(window) else ""
            _note_definitions(lexer, phrases, sentence, after, acronyms, called)
    limit = max(_AT_LEAST, math.ceil(words * _PER_THOUSAND / 1000))
    candidates = rank(phrases, limit=limit)
    table = _Table()
    relations: list[Relation] = []
    of_node = _add_structure(tree, table, relations)
    _add_text(windows, lexer, candidates, acronyms, called, table, relations, of_node)
    relations += _references(tree, lexer, windows, of_node)
    return ExtractedGraph(tuple(table.entities), tuple(relations))


# --- reading ----------------------------------------------------------------------------------


def _read(tree: SectionTree, lexer: Lexer) -> Iterator[list[Sentence]]:
    """The book as windows: groups of sentences of one node that are read together."""
    cited: set[int] = set()  # sections of references, and what is in them
    listed: set[int] = set()  # contents pages and the like
    for node in tree.nodes:
        title = normalise_name(bare_title(node.title)) if node.kind is NodeKind.SECTION else ""
        if node.parent in listed or title in _LISTS:
            listed.add(node.node_id)
            continue
        if node.parent in cited or title in _BIBLIOGRAPHIES:
            cited.add(node.node_id)
        if node.node_id in cited or _CITATION.search(node.text, 0, _CITATION_REACH):
            yield from _cut(lexer.read(node.node_id, Part.CITED, f"{node.title}\n\n{node.text}"))
            continue
        if node.kind is NodeKind.ROOT:
            continue
        if node.kind is NodeKind.SECTION:
            if not is_page(node):
                yield lexer.read(node.node_id, Part.HEADING, bare_title(node.title))
            yield from _cut(lexer.read(node.node_id, Part.BODY, node.text))
        elif node.kind is NodeKind.TABLE:
            yield lexer.read(node.node_id, Part.CAPTION, node.title)
            for line in _rows(node):
                yield [
                    sentence
                    for cell in line
                    if any(map(str.isalpha, cell))
                    for sentence in lexer.read(node.node_id, Part.CELL, cell)
                ]
        elif node.kind is NodeKind.IMAGE:
            yield lexer.read(node.node_id, Part.CAPTION, node.title)
            yield lexer.read(node.node_id, Part.CELL, node.text)
        elif node.kind is NodeKind.CODE:
            yield lexer.read(node.node_id, Part.CODE, node.text)
        elif node.kind is not NodeKind.EQUATION:
            yield from _cut(lexer.read(node.node_id, Part.BODY, node.text))


def _rows(node: Node) -> Iterable[list[str]]:
    if not node.cells:
        return [[line] for line in node.text.splitlines()]
    rows: dict[int, list[str]] = {}
    for cell in sorted(node.cells, key=lambda c: (c.row, c.column)):
        rows.setdefault(cell.row, []).append(cell.text)
    return rows.values()


def _cut(sentences: list[Sentence]) -> Iterator[list[Sentence]]:
    window: list[Sentence] = []
    words = 0
    for sentence in sentences:
        if _LEADERS.search(sentence.text):
            continue
        window.append(sentence)
        words += len(sentence.words)
        if words >= _WINDOW_WORDS:
            yield window
            window, words = [], 0
    if window:
        yield window


def _note_definitions(
    lexer: Lexer,
    phrases: Phrases,
    sentence: Sentence,
    after: str,
    acronyms: dict[str, _Acronym],
    called: dict[Key, str],
) -> None:
    for definition in find_definitions(sentence.text):
        ids = tuple(lexer[word] for word in Lexer.tokens(definition.long))
        key = _key(lexer, ids)
        longs = acronyms.setdefault(definition.short, _Acronym()).longs
        if key not in longs:
            # A glossary's entry names the term, and the next sentence says what it is.
            bare = len(sentence.text) < len(definition.long) + len(definition.short) + _BARE
            text = f"{sentence.text} {after}".strip() if bare else sentence.text
            longs[key] = (lexer.phrase(ids), shorten(text), set())
        longs[key][2].add(sentence.node)
        phrases.defined[ids] += 1
    if sentence.part is Part.BODY:
        for ids in called_terms(lexer, sentence):
            called.setdefault(_key(lexer, ids), shorten(sentence.text))
            phrases.defined[ids] += 1


def _key(lexer: Lexer, ids: Iterable[int]) -> Key:
    return tuple(lexer.words[i].stem for i in ids)


# --- structure --------------------------------------------------------------------------------


def _add_structure(
    tree: SectionTree, table: _Table, relations: list[Relation]
) -> dict[int, tuple[int, tuple[tuple[str, str], ...]]]:
    """Adds the entities of sections, tables, images and equations. Node id to (entity, what
    references call it)."""
    of_node: dict[int, tuple[int, tuple[tuple[str, str], ...]]] = {}
    for made in structural_entities(tree):
        entity = Entity(made.name, made.type, made.description, made.aliases, (made.node,))
        of_node[made.node] = (table.add(entity), made.targets)
    for node in tree.nodes:
        if node.kind is NodeKind.TABLE and node.node_id in of_node:
            for header in headers_of(node):
                place = table.add(Entity(header, "header", nodes=(node.node_id,)))
                relations.append(
                    Relation(place, of_node[node.node_id][0], CONTAINED_IN, nodes=(node.node_id,))
                )
    return of_node


def _references(
    tree: SectionTree,
    lexer: Lexer,
    windows: list[list[Sentence]],
    of_node: dict[int, tuple[int, tuple[tuple[str, str], ...]]],
) -> list[Relation]:
    """RefersTo, from the section (or captioned thing) that refers to what is referred to."""
    targets: dict[tuple[str, str], list[int]] = {}
    for node_id, (_, names) in of_node.items():
        for name in names:
            targets.setdefault(name, []).append(node_id)
    if not targets:
        return []
    index = TargetIndex(tree, targets)
    openers = {i for i, word in enumerate(lexer.words) if announces_reference(word.text)}
    met: dict[tuple[int, int], tuple[set[int], str]] = {}
    for sentence in (s for window in windows for s in window):
        if sentence.part in (Part.HEADING, Part.CODE, Part.CITED):
            continue
        if openers.isdisjoint(sentence.words):
            continue
        for reference in find_references(sentence.text):
            target = index.resolve(reference, sentence.node)
            source = _holder(tree, sentence.node, of_node)
            if target is None or source is None or source == of_node[target][0]:
                continue
            nodes, _ = met.setdefault((source, of_node[target][0]), (set(), reference.text))
            nodes.add(sentence.node)
    return [
        Relation(source, target, REFERS_TO, text, 1.0 + math.log2(len(nodes)), _ordered(nodes))
        for (source, target), (nodes, text) in sorted(met.items())
    ]


def _holder(
    tree: SectionTree, node: int, of_node: dict[int, tuple[int, tuple[tuple[str, str], ...]]]
) -> int | None:
    while node >= 0:
        if node in of_node:
            return of_node[node][0]
        node = tree.nodes[node].parent
    return None


# --- running text -----------------------------------------------------------------------------


def _add_text(
    windows: list[list[Sentence]],
    lexer: Lexer,
    candidates: list[Candidate],
    acronyms: dict[str, _Acronym],
    called: dict[Key, str],
    table: _Table,
    relations: list[Relation],
    of_node: dict[int, tuple[int, tuple[tuple[str, str], ...]]],
) -> None:
    candidates, shorts = _with_acronyms(lexer, candidates, acronyms)
    by_key = {c.key: i for i, c in enumerate(candidates)}
    matcher = Matcher(lexer)
    for i, candidate in enumerate(candidates):
        cased = len(candidate.key) == 1 and candidate.type in ("name", "organization", "person")
        matcher.add(candidate.key, i, cased=cased)
    for short, keys in shorts.items():
        if len(keys) == 1 and keys[0] in by_key:
            matcher.add(_key(lexer, _ids(lexer, short)), by_key[keys[0]], cased=True)
    matcher.freeze()

    found = [_Found() for _ in candidates]
    cooccurring = Windows(np.array([c.score for c in candidates], dtype=np.float32))
    titles: dict[tuple[int, int], str] = {}  # (candidate, node) to the relation
    for window in windows:
        together: set[int] = set()
        for sentence in window:
            occurrences = matcher.find(sentence)
            here = {o.entity for o in occurrences}
            for i in here:
                found[i].nodes.add(sentence.node)
            free = _free(occurrences)
            for i in free:
                found[i].free += 1
            if sentence.part is Part.HEADING or sentence.part is Part.CAPTION:
                name = IN_TITLE if sentence.part is Part.HEADING else IN_CAPTION
                titles.update(((i, sentence.node), name) for i in here)
            else:
                together |= free
            if sentence.part is Part.BODY and occurrences:
                for i, sureness in defined_entities(lexer, sentence, occurrences):
                    if sureness > found[i].sureness:
                        found[i].sureness, found[i].description = sureness, shorten(sentence.text)
        if together:
            cooccurring.add(window[0].node, together)

    descriptions = dict(called)
    aliases: dict[Key, list[str]] = {}
    for short, keys in shorts.items():
        for key in keys:
            descriptions.setdefault(key, acronyms[short].longs[key][1])
            if len(keys) == 1:
                aliases.setdefault(key, []).append(short)
    places: list[int] = []
    for candidate, seen in zip(candidates, found, strict=True):
        # What only ever occurs inside longer names is a fragment of them.
        if not seen.nodes or not (seen.free or candidate.vouched):
            places.append(-1)
            continue
        spelt = [*aliases.get(candidate.key, ()), *candidate.forms]
        places.append(
            table.add(
                Entity(
                    candidate.name,
                    candidate.type,
                    seen.description or descriptions.get(candidate.key, ""),
                    _aliases(candidate.name, spelt),
                    _ordered(seen.nodes),
                )
            )
        )
    for (i, node), name in sorted(titles.items()):
        if node in of_node and places[i] >= 0:
            relations.append(Relation(places[i], of_node[node][0], name, nodes=(node,)))
    for short, keys in shorts.items():
        own = by_key.get(_key(lexer, _ids(lexer, short)))
        for key in keys if len(keys) > 1 and own is not None else ():
            end = by_key.get(key)
            if end is not None and places[end] >= 0 and places[own] >= 0:  # type: ignore[index]
                _, text, nodes = acronyms[short].longs[key]
                start = places[own]  # type: ignore[index]
                relations.append(Relation(start, places[end], ALIAS_OF, text, 1.0, _ordered(nodes)))
    for r in associate(cooccurring, len(candidates)):
        left, right = places[r.source], places[r.target]
        if left != right and min(left, right) >= 0:
            relations.append(Relation(left, right, r.name, r.description, r.weight, r.nodes))


def _free(occurrences: list[Occurrence]) -> set[int]:
    """Entities with an occurrence that lies in no longer one. O(n log n)."""
    free: set[int] = set()
    reach, span = -1, (-1, -1)
    for o in sorted(occurrences, key=lambda o: (o.start, -o.stop)):
        if o.stop > reach or (o.start, o.stop) == span:
            free.add(o.entity)
            reach, span = max(reach, o.stop), (o.start, o.stop)
    return free


def _with_acronyms(
    lexer: Lexer, candidates: list[Candidate], acronyms: dict[str, _Acronym]
) -> tuple[list[Candidate], dict[str, list[Key]]]:
    """Candidates without the acronyms that are aliases, with those that stand for several things.

    Also each short form's long forms that are candidates.
    """
    chosen = {c.key for c in candidates}
    shorts: dict[str, list[Key]] = {}
    absorbed: set[Key] = set()
    extra: list[Candidate] = []
    for short, acronym in sorted(acronyms.items()):
        keys = [key for key in acronym.longs if key in chosen]
        if not keys:
            continue
        shorts[short] = keys
        own = _key(lexer, _ids(lexer, short))
        if len(keys) == 1:
            absorbed.add(own)
        elif own not in chosen:
            extra.append(Candidate(own, short, "concept", 1, 3.0))
    kept = [c for c in candidates if c.key not in absorbed]
    return kept + extra, shorts


def _ids(lexer: Lexer, text: str) -> array[int]:
    return array("I", map(lexer.__getitem__, Lexer.tokens(text)))


def _aliases(name: str, spelt: Iterable[str]) -> tuple[str, ...]:
    seen: Counter[str] = Counter([normalise_name(name)])
    kept = []
    for alias in spelt:
        folded = normalise_name(alias)
        if folded and not seen[folded]:
            kept.append(alias)
        seen[folded] += 1
    return tuple(kept[:_MOST_ALIASES])


def _ordered(nodes: set[int]) -> tuple[int, ...]:
    return tuple(sorted(nodes))
