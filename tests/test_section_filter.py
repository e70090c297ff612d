"""Section filtering by a model: what it decides, and what no reply of it can break."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookrag_fast.document import BBox, Block, BlockKind, Document, Page, Region, Style
from bookrag_fast.document.model import Lead, OutlineEntry
from bookrag_fast.errors import SpendingLimitError
from bookrag_fast.index.model import NodeKind, SectionTree
from bookrag_fast.index.proposal import Proposal, propose
from bookrag_fast.index.section import plain_key
from bookrag_fast.index.section_filter import BATCH, Filtered, filter_sections
from bookrag_fast.index.tree import build_tree, tree_of
from bookrag_fast.models.protocols import ModelInfo
from bookrag_fast.models.roles import Outcome, Role
from bookrag_fast.prompts import RenderedPrompt
from pdf_factory import LOREM
from scripted_model import Script, ScriptedModel

Say = Callable[[list[dict[str, Any]]], list[tuple[int, int | None]]]


def _block(kind: BlockKind, text: str, page: int, y: float, **more: Any) -> Block:
    style = more.pop("style", Style(size=10, family="F", gap_before=8))
    box = BBox(72, y, 72 + min(5 * len(text), 450), y + 12)
    return Block(kind, text, (Region(page, box),), style, **more)


def _book(chapters: int = 4) -> Document:
    """Numbered chapters; in each a slogan set like a chapter, and a heading in the running text's
    own face, which the rules do not find, that opens a paragraph."""
    bold = Style(size=16, bold=True, family="F", gap_before=20)
    blocks: list[Block] = []
    for k in range(1, chapters + 1):
        lead = f"Sowing in year {k}."
        blocks += [
            _block(BlockKind.TITLE, f"{k} Chapter about crop {k}", k, 60, style=bold),
            _block(BlockKind.TEXT, LOREM * 3, k, 90),
            _block(BlockKind.TITLE, f"The best oats of region {k}!", k, 200, style=bold),
            _block(BlockKind.TEXT, f"{lead} {LOREM}", k, 300, lead=Lead(lead, True, False, "F")),
            _block(BlockKind.TEXT, LOREM * 2, k, 500),
        ]
    pages = tuple(Page(k + 1, None, 600, 800) for k in range(chapters))
    return Document("b.pdf", "0" * 64, "A Farm", pages, tuple(blocks))


def _shown(prompt: RenderedPrompt) -> list[dict[str, Any]]:
    """The candidates of a prompt."""
    lines = prompt.user.splitlines()
    return [json.loads(line) for line in lines if line.startswith('{"id"')]


def _script(say: Say) -> Script:
    def reply(prompt: RenderedPrompt) -> str:
        said = say(_shown(prompt))
        return json.dumps({"levels": [{"id": i, "level": level} for i, level in said]})

    return reply


def _right(shown: list[dict[str, Any]]) -> list[tuple[int, int | None]]:
    def level(text: str) -> int | None:
        return 1 if "Chapter" in text else 2 if text.startswith("Sowing") else None

    return [(c["id"], level(c["text"])) for c in shown]


def _filtered(document: Document, model: ScriptedModel) -> Filtered:
    return asyncio.run(filter_sections(propose(document), model))


def _by(script: Script) -> ScriptedModel:
    return ScriptedModel(Role.SECTIONS, script)


def _sections(tree: SectionTree) -> list[tuple[int, str]]:
    nodes = tree.nodes[2:]
    return [(n.level - 1, n.title) for n in nodes if n.kind is NodeKind.SECTION]


TRUTH = [
    entry
    for k in range(1, 5)
    for entry in ((1, f"{k} Chapter about crop {k}"), (2, f"Sowing in year {k}"))
]


def test_a_good_model_adds_what_is_missing_and_drops_what_is_none() -> None:
    rules = build_tree(_book())
    assert [t for _, t in _sections(rules) if "oats" in t]  # what there is to mend
    assert not [t for _, t in _sections(rules) if "Sowing" in t]
    model = _by(_script(_right))
    filtered = _filtered(_book(), model)
    tree = tree_of(filtered.proposal)
    assert _sections(tree) == TRUTH
    assert tree.toc_source == "model"
    assert any("The best oats of region 2!" in n.text for n in tree.nodes)
    added = next(n for n in tree.nodes if n.title == "Sowing in year 1")
    assert added.evidence == ("run-in", "model")
    kept = next(n for n in tree.nodes if n.title.startswith("1 Chapter"))
    assert {"numbering", "typography", "model"} <= {*kept.evidence}
    assert kept.confidence is not None
    assert added.confidence is not None
    assert 0.5 < added.confidence < kept.confidence < 1
    assert (filtered.use.usage.calls, filtered.use.fallbacks) == (1, 0)
    assert (filtered.use.name, filtered.use.model) == ("scripted", "scripted")


def test_a_candidate_is_shown_with_what_it_looks_like_and_what_the_rules_say() -> None:
    model = _by(_script(_right))
    _filtered(_book(), model)
    (prompt,) = model.asked
    assert prompt.id == "section_filter@1/en"
    assert "Running text: 10 pt" in prompt.user
    chapter, slogan, run_in = _shown(prompt)[:3]
    assert chapter == {
        "id": 1, "text": "1 Chapter about crop 1", "page": 1, "size": 16, "bold": True,
        "number": "1", "rules": 1,
    }  # fmt: skip
    assert slogan["rules"] == 1
    assert run_in == {
        "id": 3, "text": "Sowing in year 1", "page": 1, "size": 10, "bold": True, "run_in": True,
        "rules": 0,
    }  # fmt: skip


def test_japanese_books_are_asked_about_in_japanese() -> None:
    style = Style(size=16, bold=True, family="F", gap_before=20)
    blocks = []
    for k in range(1, 4):
        blocks.append(_block(BlockKind.TITLE, f"第{k}章 畑のこと", k, 60, style=style))
        blocks.append(_block(BlockKind.TEXT, "麦は秋にまく。" * 40, k, 90))
    pages = tuple(Page(k, None, 600, 800) for k in range(1, 4))
    model = _by(lambda _: '{"levels": []}')
    _filtered(Document("b.pdf", "0" * 64, "畑", pages, tuple(blocks)), model)
    assert [p.id for p in model.asked] == ["section_filter@1/ja"]
    assert "第2章 畑のこと" in model.asked[0].user


def test_batches_carry_the_levels_already_decided() -> None:
    model = _by(_script(_right))
    book = _book(chapters=BATCH)  # three candidates a chapter
    assert _sections(tree_of(_filtered(book, model).proposal))[-1] == (2, f"Sowing in year {BATCH}")
    assert [len(_shown(p)) for p in model.asked] == [BATCH] * 3
    first, second, third = (p.user.partition("Outline so far")[2] for p in model.asked)
    assert "\n-\n" in first
    assert '[1, "2 Chapter about crop 2"]\n[2, "Sowing in year 2"]\n[1, "3' in second
    assert "oats of region 2" not in second.partition("Candidates")[0]
    assert '[2, "Sowing in year 20"]' in third


def test_a_small_context_makes_small_batches_and_a_short_outline() -> None:
    model = _by(_script(_right))
    model.info = ModelInfo("small", "small", context_tokens=1600)
    assert _sections(tree_of(_filtered(_book(20), model).proposal))[-1] == (2, "Sowing in year 20")
    sizes = [len(_shown(p)) for p in model.asked]
    assert sum(sizes) == 60
    assert max(sizes) < BATCH
    for prompt in model.asked:
        assert (len(prompt.system) + len(prompt.user)) / 4 < 1600
    outline = model.asked[-1].user.partition("Candidates")[0]
    assert "crop 19" in outline
    assert 'crop 2"' not in outline


def test_a_batch_that_fails_is_left_to_the_rules_alone() -> None:
    calls = 0

    def script(prompt: RenderedPrompt) -> str | None:
        nonlocal calls
        calls += 1
        return None if calls == 2 else _script(_right)(prompt)

    filtered = _filtered(_book(BATCH), _by(script))
    tree = tree_of(filtered.proposal)
    titles = [t for _, t in _sections(tree)]
    rules = [t for _, t in _sections(build_tree(_book(BATCH)))]
    spoilt = {h.title for h in propose(_book(BATCH)).candidates[BATCH : 2 * BATCH]}
    assert [t for t in titles if t in spoilt] == [t for t in rules if t in spoilt]
    assert any("oats" in t for t in spoilt & {*titles})
    assert not any("oats" in t for t in {*titles} - spoilt)
    (warning,) = tree.warnings
    assert warning == (
        f"the rules alone decided on {BATCH} of {3 * BATCH} candidates for headings "
        "(pages 14–27): the model is down"
    )
    assert filtered.use.fallbacks == 1
    assert filtered.use.usage.calls == 3


def test_what_a_reply_leaves_out_or_contradicts_stays_as_the_rules_have_it() -> None:
    def say(shown: list[dict[str, Any]]) -> list[tuple[int, int | None]]:
        said = [(i, 1 if level is None else level) for i, level in _right(shown)[6:]]
        oats = shown[7]["id"]
        return [*said, (oats, 0), (oats, 3), (10_000, 1), (-1, 1), (0, 1)]

    titles = [t for _, t in _sections(tree_of(_filtered(_book(), _by(_script(say))).proposal))]
    assert "The best oats of region 1!" in titles  # left out: the rules keep it
    assert "Sowing in year 1" not in titles
    assert "The best oats of region 3!" in titles  # contradicted
    assert "Sowing in year 3" in titles
    assert "The best oats of region 4!" in titles


@pytest.mark.parametrize("reply", ['{"levels": []}', '{"levels": [{"id": 99, "level": 1}]}'])
def test_a_reply_that_decides_nothing_is_none(reply: str) -> None:
    filtered = _filtered(_book(), _by(lambda _: reply))
    tree = tree_of(filtered.proposal)
    assert tree.nodes == build_tree(_book()).nodes
    assert filtered.use.fallbacks == 1
    assert "its reply decides on no candidate" in tree.warnings[0]


def test_a_model_that_leaves_no_heading_is_not_believed() -> None:
    filtered = _filtered(_book(), _by(_script(lambda shown: [(c["id"], 0) for c in shown])))
    tree = tree_of(filtered.proposal)
    assert tree.nodes == build_tree(_book()).nodes
    assert filtered.use.fallbacks == 1
    assert "those of the rules stand" in tree.warnings[0]


def test_a_problem_is_told_in_words_that_can_be_stored() -> None:
    class Rude(ScriptedModel):
        async def ask(self, *_: Any, **__: Any) -> Any:
            return Outcome(None, problem="no\x1b[2J \udc80JSON\n" + "x" * 9999)

    (warning,) = tree_of(_filtered(_book(), Rude(Role.SECTIONS, lambda _: None)).proposal).warnings
    assert "no[2J JSON xxx" in warning
    assert len(warning) < 400


def test_levels_are_clamped_and_jumps_are_closed() -> None:
    def say(shown: list[dict[str, Any]]) -> list[tuple[int, int | None]]:
        return [(c["id"], 99 if "Sowing" in c["text"] else -3 if "oats" in c["text"] else 4)
                for c in shown]  # fmt: skip

    tree = tree_of(_filtered(_book(), _by(_script(say))).proposal)
    assert _sections(tree) == TRUTH


def test_settled_headings_are_not_asked_about() -> None:
    book = _book()
    outline = tuple(OutlineEntry(f"{k} Chapter about crop {k}", 1, k) for k in range(1, 5))
    outlined = Document(book.name, book.sha256, book.title, book.pages, book.blocks, outline)
    stated = Document(
        "b.md", "0" * 64, None, (),
        (Block(BlockKind.TITLE, "One", (), level=1), Block(BlockKind.TEXT, LOREM, ())),
    )  # fmt: skip
    for document in (outlined, stated):
        model = _by(_script(_right))
        filtered = _filtered(document, model)
        assert model.asked == []
        assert tree_of(filtered.proposal) == build_tree(document)


def test_a_full_printed_contents_list_settles_the_headings() -> None:
    names = [f"Crop of the {k}th year" for k in range(4, 14)]
    bold = Style(size=14, bold=True, family="F", gap_before=20)
    blocks = [_block(BlockKind.TITLE, "Contents", 1, 60, style=bold)]
    for k, name in enumerate(names):
        blocks.append(_block(BlockKind.TEXT, f"{name} {'. ' * 30}{k + 2}", 1, 90 + 20 * k))
    for k, name in enumerate(names):
        blocks.append(_block(BlockKind.TITLE, name, k + 2, 60, style=bold))
        blocks.append(_block(BlockKind.TEXT, LOREM * 3, k + 2, 90))
    pages = tuple(Page(k + 1, None, 600, 800) for k in range(len(names) + 1))
    document = Document("b.pdf", "0" * 64, "A Farm", pages, tuple(blocks))
    model = _by(_script(_right))
    tree = tree_of(_filtered(document, model).proposal)
    assert model.asked == []
    assert tree.toc_source == "contents-page"
    assert [title for _, title in _sections(tree)] == names


def test_a_proposal_can_be_grown_and_decided_again_and_again() -> None:
    proposal = propose(_book())
    once = tree_of(proposal)
    proposal.decided({h.at: 3 for h in proposal.candidates})
    assert tree_of(proposal) == once == build_tree(_book())


# --- hostile replies ----------------------------------------------------------------------------

_PROPOSAL = propose(_book())
_IDS = st.one_of(st.integers(-2, 16), st.integers(), st.none(), st.text(max_size=3))
_LEVELS = st.one_of(st.integers(-3, 12), st.integers(), st.none(), st.floats(), st.text(max_size=5))
_REPLIES = st.one_of(
    st.lists(st.tuples(_IDS, _LEVELS), max_size=40).map(
        lambda said: json.dumps({"levels": [{"id": i, "level": level} for i, level in said]})
    ),
    st.lists(st.tuples(st.integers(1, 12), st.integers(-1, 99)), max_size=40).map(
        lambda said: json.dumps({"levels": [{"id": i, "level": level} for i, level in said]})
    ),
    st.text(max_size=60),
    st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists).map(json.dumps),
)


def _check(proposal: Proposal) -> None:
    tree = tree_of(proposal)
    said = "".join(plain_key(f"{n.title} {n.text}") for n in tree.nodes[2:])
    for block in proposal.document.blocks:
        assert plain_key(block.text) in said
    for node in tree.nodes[1:]:
        parent = tree.nodes[node.parent]
        assert node.parent < node.node_id
        assert node.level == parent.level + 1
        assert parent.kind in (NodeKind.ROOT, NodeKind.SECTION)


@settings(max_examples=200)
@given(_REPLIES)
def test_no_reply_loses_text_or_breaks_the_tree(reply: str) -> None:
    filtered = asyncio.run(filter_sections(_PROPOSAL, _by(lambda _: reply)))
    _check(filtered.proposal)


@settings(max_examples=100)
@given(st.dictionaries(st.integers(-1, 25), st.integers(-5, 20)))
def test_no_decision_loses_text_or_breaks_the_tree(levels: dict[int, int]) -> None:
    _check(_PROPOSAL.decided(levels))


# --- stopping -----------------------------------------------------------------------------------


class _Hanging(ScriptedModel):
    def __init__(self) -> None:
        super().__init__(Role.SECTIONS, lambda _: None)
        self.begun = asyncio.Event()
        self.cancelled = False

    async def ask(self, *_: Any, **__: Any) -> Any:
        self.begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled = True
            raise


def test_cancelling_ends_the_call_at_once() -> None:
    async def run() -> bool:
        model = _Hanging()
        task = asyncio.create_task(filter_sections(_PROPOSAL, model))
        await model.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)
        return model.cancelled

    assert asyncio.run(run())


def test_a_spent_budget_is_no_fallback() -> None:
    def script(_: RenderedPrompt) -> str:
        raise SpendingLimitError("the budget of today is spent")

    with pytest.raises(SpendingLimitError):
        _filtered(_book(), _by(script))
