"""Section filtering: a model decides which candidates are headings, and of which level.

Candidates go in batches, in document order; each batch is shown the outline that the ones before
it came to. What a reply does not say, or says twice in different ways, stays as the rules have it,
and so does a whole batch without a usable reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel, Field, field_validator

from bookrag_fast.document.numbering import parse_numbering
from bookrag_fast.index.book_index import count_tokens
from bookrag_fast.index.candidates import body_face, style_of
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.index.proposal import Proposal, decided_level
from bookrag_fast.index.section import ClosedLevels, Heading
from bookrag_fast.index.stages import Stages
from bookrag_fast.models.plain_text import one_line
from bookrag_fast.models.protocols import ModelInfo
from bookrag_fast.models.roles import Outcome, RoleModel, Terms
from bookrag_fast.prompts import Language, Prompt, RenderedPrompt, language_of, load_prompt

__all__ = ["SectionLevels", "filter_sections"]

PROMPT = "section_filter"
BATCH = 40  # candidates of one call, if they fit
REPLY_TOKENS = 16  # of one candidate
LONGEST_TEXT = 200  # characters of a candidate or a title
OUTLINE_SHARE = 0.25  # of the context, for the outline so far
FILLED = 0.7  # of the context: servers count tokens otherwise than we do
NAMED_BATCHES = 3  # that failed, in a warning
NONE_LEFT = "the model took no candidate for a heading: those of the rules stand"


class SectionLevel(BaseModel):
    id: int = Field(description="of the candidate")
    level: int = Field(description="1 for a chapter, 2 for a section in it …, 0 for no heading")

    @field_validator("level", mode="before")
    @classmethod
    def _none_is_0(cls, value: object) -> object:
        return 0 if value is None or value in ("none", "None", "null", "text") else value


class SectionLevels(BaseModel):
    """The reply to a batch of candidates."""

    levels: list[SectionLevel]


class Filtered(NamedTuple):
    proposal: Proposal
    use: ModelUse


async def filter_sections(
    proposal: Proposal, model: RoleModel, *, book: str = "", stages: Stages | None = None
) -> Filtered:
    """The proposal as the model has it; as it was where its headings are settled or nothing is in
    question.

    Args:
        book: whom calls are made for.

    Raises:
        SpendingLimitError: the budget is spent.
    """
    stages = stages or Stages()
    use = ModelUse.of(model)
    candidates = proposal.candidates
    if not candidates:
        return Filtered(proposal, use)
    batches = await stages.run(partial(_Batches, proposal, candidates, model.info))
    levels: dict[int, int] = {}
    failed: list[tuple[Sequence[Heading], str]] = []
    done = 0
    while done < len(candidates):
        await stages.tell("sections", done, len(candidates), "candidates")
        size, prompt = await stages.run(partial(batches.next, done, levels))
        outcome: Outcome[SectionLevels] = await model.ask(
            prompt,
            SectionLevels,
            Terms(
                book,
                max_tokens=64 + 2 * REPLY_TOKENS * size,
                expected_tokens=REPLY_TOKENS * size,
            ),
        )
        batch = candidates[done : done + size]
        said = {} if outcome.value is None else _agreed(outcome.value)
        decided = {h.at: said[i] for i, h in enumerate(batch, done + 1) if i in said}
        if outcome.value is not None and not decided:
            outcome = replace(outcome, value=None, problem="its reply decides on no candidate")
        if outcome.value is None:
            failed.append((batch, outcome.problem))
        use = use.with_outcome(outcome)
        levels.update(decided)
        done += size
    await stages.tell("sections", done, len(candidates), "candidates")
    filtered = proposal.decided(levels)
    if proposal.headings and not filtered.headings:
        # No book says that of itself: a model that finds no heading at all has seen none.
        use = replace(use, fallbacks=use.fallbacks + 1)
        filtered = replace(proposal, warnings=(*proposal.warnings, NONE_LEFT))
    if failed:
        warning = _warning(failed, len(candidates))
        filtered = replace(filtered, warnings=(*filtered.warnings, warning))
    return Filtered(filtered, use)


def _agreed(reply: SectionLevels) -> dict[int, int]:
    """Levels by id, without ids that are given several."""
    said: dict[int, set[int]] = {}
    for verdict in reply.levels:
        said.setdefault(verdict.id, set()).add(verdict.level)
    return {number: levels.pop() for number, levels in said.items() if len(levels) == 1}


def _warning(failed: Sequence[tuple[Sequence[Heading], str]], candidates: int) -> str:
    pages = [(batch[0].page, batch[-1].page) for batch, _ in failed]
    where = ", ".join(f"pages {a}–{b}" for a, b in pages[:NAMED_BATCHES] if a)
    if len(pages) > NAMED_BATCHES:
        where += " …"
    count = sum(len(batch) for batch, _ in failed)
    why = one_line(failed[0][1], LONGEST_TEXT)
    return (
        f"the rules alone decided on {count} of {candidates} candidates for headings"
        f"{f' ({where})' if where else ''}: {why}"
    )


@dataclass
class _Batches:
    """Candidates as prompts that fit into a model's context; the work is linear in them."""

    proposal: Proposal
    candidates: Sequence[Heading]
    info: ModelInfo

    def __post_init__(self) -> None:
        document = self.proposal.document
        self._prompt = self._load()
        self._size = f"{body_face(document.blocks).size:g}"
        self._title = json.dumps(
            one_line(document.title or document.name, LONGEST_TEXT), ensure_ascii=False
        )
        self._lines = [
            json.dumps(self._shown(number, h), ensure_ascii=False)
            for number, h in enumerate(self.candidates, 1)
        ]
        self._outline = _Outline()
        self._behind = 0  # candidates that the outline has heard of
        # What the prompt takes without outline and candidates.
        bare = self._prompt.render(self._values("", ()))
        self._bare = count_tokens(bare.system) + count_tokens(bare.user)

    def next(self, done: int, levels: Mapping[int, int]) -> tuple[int, RenderedPrompt]:
        """How many candidates go next, at least one, and the prompt for them.

        Args:
            done: candidates that are behind us; never fewer than in the call before.
            levels: what was decided on them; this stays.
        """
        context = int(FILLED * self.info.context_tokens)
        for candidate in self.candidates[self._behind : done]:
            if level := decided_level(candidate, levels):
                self._outline.add(candidate.title, level)
        self._behind = done
        outline = self._outline.text(int(OUTLINE_SHARE * context))
        left = context - self._bare - count_tokens(outline) - 64
        size = 0
        for line in self._lines[done : done + BATCH]:
            left -= count_tokens(line) + 1 + 2 * REPLY_TOKENS
            if left < 0 and size:
                break
            size += 1
        lines = self._lines[done : done + size]
        return size, self._prompt.render(self._values(outline, lines))

    def _load(self) -> Prompt:
        texts: Iterator[str] = (h.title for h in self.candidates)
        language: Language = language_of("\n".join(texts))
        return load_prompt(PROMPT, language)

    def _values(self, outline: str, lines: Sequence[str]) -> dict[str, str]:
        return {
            "title": self._title,
            "size": self._size,
            "outline": outline,
            "candidates": "\n".join(lines),
        }

    def _shown(self, number: int, heading: Heading) -> dict[str, Any]:
        block = self.proposal.document.blocks[heading.at]
        run_in = "run-in" in heading.evidence
        style = style_of(block)
        lead = block.lead if run_in else None
        numbering = parse_numbering(heading.title)
        shown: dict[str, Any] = {"id": number, "text": one_line(heading.title, LONGEST_TEXT)}
        if heading.page:
            shown["page"] = heading.page
        if block.style.size:
            shown["size"] = round(block.style.size, 1)
        marks = {
            "bold": lead.bold if lead else style.bold,
            "italic": lead.italic if lead else style.italic,
            "capitals": style.caps and not run_in,
            "run_in": run_in,
        }
        shown |= {name: True for name, is_so in marks.items() if is_so}
        if numbering is not None:
            shown["number"] = numbering.label
        return {**shown, "rules": heading.level}


class _Outline:
    """The headings so far, each a line of JSON: level and title."""

    def __init__(self) -> None:
        self._levels = ClosedLevels()
        self._lines: list[tuple[int, str, int]] = []  # level, line, its tokens
        self._path: list[str] = []  # lines of the latest heading and of those that it stands under

    def add(self, title: str, level: int) -> None:
        level = self._levels.close(level)
        line = json.dumps([level, one_line(title, LONGEST_TEXT)], ensure_ascii=False)
        self._lines.append((level, line, count_tokens(line)))
        self._path[level - 1 :] = [line]

    def text(self, budget: int) -> str:
        """The latest headings that fit into the budget of tokens; of those before them the ones
        that they stand under. It looks at no others, so it costs what the text is long."""
        latest: list[str] = []
        spent, highest = 0, len(self._path) + 1
        for level, line, tokens in reversed(self._lines):
            if spent + tokens > budget:
                break
            spent += tokens + 1
            highest = min(highest, level)
            latest.append(line)
        # Behind the last of the highest headings here all are lower, so that what it stands under
        # is on the path of the very last one.
        return "\n".join([*self._path[: highest - 1], *reversed(latest)]) or "-"
