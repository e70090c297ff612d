"""Summaries of sections: from the leaves up, by a model or out of the text itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookrag_fast.document import Block, BlockKind, Document
from bookrag_fast.errors import SpendingLimitError
from bookrag_fast.index.book_index import count_tokens
from bookrag_fast.index.model import NodeKind, SectionTree
from bookrag_fast.index.summaries import EXTRACT_TOKENS, LONGEST, Summarised, _fitted, summarised
from bookrag_fast.index.tree import build_tree
from bookrag_fast.models.protocols import ModelInfo
from bookrag_fast.models.roles import USUAL, Role, Terms
from bookrag_fast.prompts import RenderedPrompt
from factories import HashEmbedder
from pdf_factory import LOREM
from scripted_model import ScriptedModel

OATS = "Oats grow on poor soil where wheat does not, and ask for little lime or dung. " * 12
RYE = "Rye stands the frost of a hard winter better than any other corn of the north. " * 12


def _head(level: int, text: str) -> Block:
    return Block(BlockKind.TITLE, text, (), level=level)


def _tree(more: tuple[Block, ...] = ()) -> SectionTree:
    blocks = (
        _head(1, "Corn"),
        Block(BlockKind.TEXT, "Corn feeds the farm.", ()),
        _head(2, "Oats"),
        Block(BlockKind.TEXT, OATS, ()),
        _head(2, "Rye"),
        Block(BlockKind.TEXT, RYE, ()),
        _head(2, "Maize"),
        Block(BlockKind.TEXT, "Maize is not grown here.", ()),
        _head(1, "Cattle"),
        Block(BlockKind.TEXT, LOREM * 12, ()),
        *more,
    )
    return build_tree(Document("farm.md", "0" * 64, "A Farm", (), blocks))


def _asked_section(prompt: RenderedPrompt) -> str:
    return next(
        line.removeprefix("Section: ")
        for line in prompt.user.splitlines()
        if line.startswith("Section: ")
    )


def _made(tree: SectionTree, model: ScriptedModel | None) -> Summarised:
    return asyncio.run(summarised(tree, model, HashEmbedder()))


def _by(script: Callable[[RenderedPrompt], str | None]) -> ScriptedModel:
    return ScriptedModel(Role.SUMMARISE, script)


def _summaries(tree: SectionTree) -> dict[str, str]:
    return {n.title: n.summary for n in tree.nodes if n.summary}


def test_sections_are_summarised_from_the_leaves_up() -> None:
    model = _by(lambda p: f"All about {_asked_section(p)}.")
    made = _made(_tree(), model)
    assert _summaries(made.tree) == {
        "A Farm": "All about A Farm.",
        "Corn": "All about Corn.",
        "Cattle": "All about Cattle.",
        "Oats": "All about Oats.",
        "Rye": "All about Rye.",
    }
    order = [_asked_section(p) for p in model.asked]
    assert order == ["Oats", "Rye", "Corn", "Cattle", "A Farm"]
    corn, whole = model.asked[2].user, model.asked[4].user
    assert "Corn feeds the farm.\n\nOats\nAll about Oats.\n\nRye" in corn
    assert "Maize\nMaize is not grown here." in corn  # too short for a summary
    assert "Corn\nAll about Corn.\n\nCattle\nAll about Cattle." in whole
    assert "Oats" not in whole
    assert all(n.summary == "" for n in made.tree.nodes if n.kind is not NodeKind.SECTION)
    assert made.use is not None
    assert (made.use.usage.calls, made.use.fallbacks) == (5, 0)
    assert {p.id for p in model.asked} == {"summarise@1/en"}


def test_nothing_else_of_the_tree_changes() -> None:
    tree = _tree()
    made = _made(tree, _by(lambda _: "Short."))
    bare = replace(made.tree, nodes=tuple(replace(n, summary="") for n in made.tree.nodes))
    assert bare == tree


@pytest.mark.parametrize("reply", [None, "", " \n "])
def test_a_section_whose_reply_is_no_use_is_summarised_by_its_own_sentences(
    reply: str | None,
) -> None:
    model = _by(lambda p: reply if _asked_section(p) == "Oats" else "By the model.")
    made = _made(_tree(), model)
    found = _summaries(made.tree)
    assert found["Oats"] == OATS.split(". ")[0].strip() + "."
    assert found["Rye"] == "By the model."
    assert made.use is not None
    assert made.use.fallbacks == 1


def test_without_a_model_all_are_extracts_of_the_text() -> None:
    tree = _tree()
    made = _made(tree, None)
    assert made.use is None
    found = _summaries(made.tree)
    assert {*found} == {"A Farm", "Corn", "Oats", "Rye", "Cattle"}
    for summary in found.values():
        assert 0 < count_tokens(summary) <= EXTRACT_TOKENS
    everything = " ".join(" ".join(n.text.split()) for n in tree.nodes)
    assert all(s in everything for s in found["Cattle"].split(". "))


def test_a_section_without_sentences_is_summarised_by_its_first_words() -> None:
    rows = "\n".join(f"{k} | {k * k}" for k in range(300))
    tree = _tree((_head(1, "Squares"), Block(BlockKind.TABLE, rows, ())))
    assert _summaries(_made(tree, None).tree)["Squares"].startswith("0 | 0 1 | 1 2 | 4")


def test_a_reply_without_end_is_cut() -> None:
    found = _summaries(_made(_tree(), _by(lambda _: "word " * 10_000)).tree)
    assert {len(s) for s in found.values()} == {LONGEST}


def test_a_summary_is_text_that_can_be_stored() -> None:
    found = _summaries(_made(_tree(), _by(lambda _: "One\x00 \ud800two.\n\x1b[31mThree.")).tree)
    assert {*found.values()} == {"One two. [31mThree."}


def test_what_is_too_long_for_the_context_is_cut_everywhere_alike() -> None:
    long = tuple(Block(BlockKind.TEXT, f"Passage {k}. {LOREM * 10}", ()) for k in range(40))
    model = _by(lambda _: "Short.")
    model.info = ModelInfo("small", "small", context_tokens=2048)
    _made(_tree((_head(1, "Long"), *long)), model)
    prompt = next(p for p in model.asked if _asked_section(p) == "Long")
    assert count_tokens(prompt.system) + count_tokens(prompt.user) <= 2048 - 400
    assert all(f"Passage {k}." in prompt.user for k in range(0, 40, 10))


@given(st.lists(st.text(max_size=400), max_size=60), st.integers(0, 600))
def test_pieces_fit_into_any_budget(pieces: list[str], budget: int) -> None:
    kept = _fitted(pieces, budget)
    # A cut piece may round up by a token or two.
    assert sum(map(count_tokens, kept)) <= max(budget, 1) + 2 * len(kept)
    assert len(kept) <= len(pieces)
    if sum(map(count_tokens, pieces)) <= budget:
        assert kept == pieces


def test_sections_of_one_depth_are_asked_about_at_once() -> None:
    most = under_way = 0

    class Slow(ScriptedModel):
        async def write(self, prompt: RenderedPrompt, terms: Terms = USUAL) -> Any:
            nonlocal most, under_way
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.02)
            under_way -= 1
            return await super().write(prompt, terms)

    chapters = tuple(
        block for k in range(8)
        for block in (_head(1, f"Field {k}"), Block(BlockKind.TEXT, OATS, ()))
    )  # fmt: skip
    _made(_tree(chapters), Slow(Role.SUMMARISE, lambda _: "Short."))
    assert most == 10  # the fields, corn and cattle


def test_a_spent_budget_and_a_cancellation_end_every_call() -> None:
    ended: list[str] = []

    class Half(ScriptedModel):
        async def write(self, prompt: RenderedPrompt, terms: Terms = USUAL) -> Any:
            if _asked_section(prompt) == "Rye":
                raise SpendingLimitError("the budget is spent")
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(_asked_section(prompt))

    with pytest.raises(SpendingLimitError):
        _made(_tree(), Half(Role.SUMMARISE, lambda _: None))
    assert ended == ["Oats"]

    async def cancelled() -> None:
        hanging = Half(Role.SUMMARISE, lambda _: None)
        tree = _tree()
        for_oats = replace(tree, nodes=tree.nodes[:6])
        task = asyncio.create_task(summarised(for_oats, hanging, HashEmbedder()))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)

    asyncio.run(cancelled())
    assert ended == ["Oats", "Oats"]
