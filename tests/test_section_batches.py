"""The batches of candidates that a model is asked about: the same as a slow, obvious twin makes,
at a cost that is linear in the candidates."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast.document import BBox, Block, BlockKind, Document, Region, Style
from bookrag_fast.index.book_index import count_tokens
from bookrag_fast.index.contents import read_contents
from bookrag_fast.index.proposal import Proposal
from bookrag_fast.index.section import Heading, close_levels
from bookrag_fast.index.section_filter import (
    BATCH,
    FILLED,
    LONGEST_TEXT,
    OUTLINE_SHARE,
    REPLY_TOKENS,
    filter_sections,
)
from bookrag_fast.index.stages import Stages
from bookrag_fast.models.plain_text import one_line
from bookrag_fast.models.roles import Role
from bookrag_fast.prompts import RenderedPrompt, load_prompt
from scripted_model import ScriptedModel

T = TypeVar("T")


def _proposal(found: Sequence[tuple[str, int]]) -> Proposal:
    """Candidates by title and level, each a block of its own; 0 for those that are rejected."""
    bold, regions = Style(size=16, bold=True, family="F"), (Region(1, BBox(72, 60, 400, 72)),)
    blocks = tuple(Block(BlockKind.TITLE, title, regions, bold) for title, _ in found)
    document = Document("b.pdf", "0" * 64, "A Farm", (), blocks)
    every = [
        Heading(title, level, 1, at, (at,), regions) for at, (title, level) in enumerate(found)
    ]
    headings = [h for h in every if h.level]
    close_levels(headings)
    rejected = tuple(h for h in every if not h.level)
    return Proposal(document, read_contents(document), tuple(headings), rejected, "form", False)


def _shown(prompt: RenderedPrompt) -> list[str]:
    """The candidates of a prompt, as lines."""
    return [line for line in prompt.user.splitlines() if line.startswith('{"id"')]


def _by(levels: Mapping[int, int], context_tokens: int) -> ScriptedModel:
    """A model that says these levels, by id."""

    def script(prompt: RenderedPrompt) -> str:
        ids = [json.loads(line)["id"] for line in _shown(prompt)]
        return json.dumps({"levels": [{"id": i, "level": levels[i]} for i in ids if i in levels]})

    return ScriptedModel(Role.SECTIONS, script, context_tokens=context_tokens)


# --- the twin -----------------------------------------------------------------------------------


def _outline_slowly(headings: Sequence[Heading], budget: int) -> str:
    lines: list[str] = []
    spent, highest, skipped = 0, 10**9, False
    for heading in reversed(headings):
        line = json.dumps(
            [heading.level, one_line(heading.title, LONGEST_TEXT)], ensure_ascii=False
        )
        skipped = skipped or spent + count_tokens(line) > budget
        if skipped and heading.level >= highest:
            continue
        highest = min(highest, heading.level)
        spent += count_tokens(line) + 1
        lines.append(line)
    return "\n".join(reversed(lines)) or "-"


def _prompts_slowly(
    proposal: Proposal, lines: Sequence[str], said: Mapping[int, int], context_tokens: int
) -> list[RenderedPrompt]:
    """The prompts, the whole proposal decided anew for each of them.

    Args:
        lines: of all candidates.
        said: levels by id.
    """
    template = load_prompt("section_filter", "en")

    def rendered(outline: str, shown: Sequence[str]) -> RenderedPrompt:
        values = {"title": '"A Farm"', "size": "10", "outline": outline}
        return template.render({**values, "candidates": "\n".join(shown)})

    bare = rendered("", ())
    context = int(FILLED * context_tokens)
    prompts: list[RenderedPrompt] = []
    done = 0
    while done < len(lines):
        seen = {h.at for h in proposal.candidates[:done]}
        decided = proposal.decided({i - 1: level for i, level in said.items() if i <= done})
        outline = _outline_slowly(
            [h for h in decided.headings if h.at in seen], int(OUTLINE_SHARE * context)
        )
        left = context - count_tokens(bare.system) - count_tokens(bare.user)
        left -= count_tokens(outline) + 64
        size = 0
        for line in lines[done : done + BATCH]:
            left -= count_tokens(line) + 1 + 2 * REPLY_TOKENS
            if left < 0 and size:
                break
            size += 1
        prompts.append(rendered(outline, lines[done : done + size]))
        done += size
    return prompts


_TITLES = st.sampled_from(["A", "Of oats", "Of the harvest in the hills", "x" * 150, "麦" * 150])
_LEVELS = st.integers(-1, 11)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[list[tuple[str, int]], dict[int, int]]:
    found = draw(st.lists(st.tuples(_TITLES, st.integers(0, 11)), min_size=1, max_size=150))
    ids = st.integers(1, len(found))
    return found, draw(st.dictionaries(ids, _LEVELS, max_size=len(found)))


@settings(max_examples=150, deadline=None)
@given(_cases(), st.sampled_from([512, 1200, 1400, 2000, 4000, 128_000]))
def test_prompts_are_those_of_the_slow_twin(
    case: tuple[list[tuple[str, int]], dict[int, int]], context_tokens: int
) -> None:
    found, said = case
    proposal = _proposal(found)
    model = _by(said, context_tokens)
    asyncio.run(filter_sections(proposal, model))
    lines = [line for prompt in model.asked for line in _shown(prompt)]
    assert [json.loads(line)["id"] for line in lines] == [*range(1, len(found) + 1)]
    assert model.asked == _prompts_slowly(proposal, lines, said, context_tokens)


# --- cost ---------------------------------------------------------------------------------------


class _Here(Stages):
    """Work is done on the calling thread, whose calls can be counted."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()


def _calls(candidates: int) -> int:
    """How many functions are called to filter so many candidates."""
    proposal = _proposal([(f"Of crop {k}", k % 4) for k in range(candidates)])
    model = _by({k: k % 3 for k in range(candidates)}, 2000)
    count = 0

    def note(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        asyncio.run(filter_sections(proposal, model, stages=_Here()))
    finally:
        sys.setprofile(before)
    return count


def test_four_times_the_candidates_cost_four_times_the_work() -> None:
    assert _calls(2000) < 5 * _calls(500)
