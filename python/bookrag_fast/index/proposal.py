"""What the rules propose as the sections of a document, before a tree is made of it.

A source that states its sections (an outline, markup, tags) settles them, and so does a full
printed contents list that most headings stand in: over 14 such books not even one who knows the
truth about every candidate did better than the rules (mean F1 0.991 both). Other headings found
by their form are guesses: with them come the candidates that the rules rejected, and whoever knows
better, a model, may decide otherwise with `Proposal.decided`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bookrag_fast.document.model import Document
from bookrag_fast.index.contents import PrintedContents, read_contents
from bookrag_fast.index.evidence import add_form
from bookrag_fast.index.headings import headings_by_form
from bookrag_fast.index.judging import is_full
from bookrag_fast.index.markup import headings_from_markup, states_headings, title_block
from bookrag_fast.index.outline import headings_from_outline, usable_entries
from bookrag_fast.index.section import Heading, close_levels
from bookrag_fast.index.tags import usable_tags

__all__ = ["Proposal", "decided_level", "propose"]

MIN_PRINTED = 0.3  # share of outline entries that must stand printed on their pages
DEEPEST = 9  # level that a decision can give


@dataclass(frozen=True, slots=True)
class Proposal:
    """Sections of a document, as far as they are known.

    ``headings`` are in document order, without jumps of level; ``rejected`` are candidates that
    the rules do not take for headings, with level 0, in document order; none where ``settled``.
    ``source`` is what most headings rest on, as in `SectionTree.toc_source`. ``title`` is the
    block that is the document's title itself, if one is.
    """

    document: Document
    contents: PrintedContents
    headings: tuple[Heading, ...]
    rejected: tuple[Heading, ...]
    source: str
    settled: bool
    title: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def candidates(self) -> list[Heading]:
        """Headings and rejected candidates, in document order; none where the headings are
        settled."""
        if self.settled:
            return []
        return sorted((*self.headings, *self.rejected), key=lambda h: h.at)

    def decided(self, levels: Mapping[int, int]) -> Proposal:
        """The proposal with other decisions about some of its candidates.

        Args:
            levels: by the candidate's ``at``: the level, 1 for chapters; 0 for no heading. Others
                stay what the rules made of them; what is too deep or negative is moved to the
                nearest level that there is, and jumps are closed.
        """
        chosen = []
        for candidate in self.candidates:
            evidence = candidate.evidence
            if candidate.at in levels:
                evidence = tuple(dict.fromkeys((*evidence, "model")))
            level = decided_level(candidate, levels)
            chosen.append(replace(candidate, level=level, evidence=evidence))
        headings = [h for h in chosen if h.level]
        close_levels(headings)
        by_model = sum("model" in h.evidence for h in headings)
        return replace(
            self,
            headings=tuple(headings),
            rejected=tuple(h for h in chosen if not h.level),
            source="model" if 2 * by_model > len(headings) else self.source,
        )


def decided_level(candidate: Heading, levels: Mapping[int, int]) -> int:
    """The level of one candidate as `Proposal.decided` has it, before jumps are closed."""
    level = levels.get(candidate.at)
    return candidate.level if level is None else max(0, min(level, DEEPEST))


def propose(document: Document) -> Proposal:
    """Sections from the PDF's outline where it is sound, else from the headings that the source
    states or a PDF tags as such, else from contents pages, numbering and typography."""
    entries, warnings = usable_entries(document)
    contents = read_contents(document)
    headings: list[Heading] = []
    rejected: Sequence[Heading] = ()
    source, settled = "outline", True
    if entries:
        headings, printed = headings_from_outline(document, entries)
        if printed < MIN_PRINTED and len(entries) > 2:
            warnings.append(
                f"the PDF outline is ignored: {printed:.0%} of its titles stand on their pages"
            )
            headings = []
    if contents.beyond:
        warnings.append(
            f"{contents.beyond} entries of the printed contents lie beyond the last page "
            f"({len(document.pages)}): the file is not the whole book"
        )
    title = None
    if not headings and states_headings(document):
        headings, source = headings_from_markup(document), "markup"
        title = title_block(document)
    elif headings:
        add_form(document, contents, headings)
    if not headings:
        headings, source, rejected = headings_by_form(document, contents)
        tagged, doubts = usable_tags(document, contents, headings)
        warnings += doubts
        settled = bool(tagged) or (source == "contents-page" and is_full(contents))
        if tagged:
            headings, source = tagged, "tags"
            add_form(document, contents, headings)
        if settled:
            rejected = ()
    close_levels(headings)
    return Proposal(
        document, contents, tuple(headings), tuple(rejected), source, settled, title,
        tuple(warnings),
    )  # fmt: skip
