"""Summaries of sections, from the leaves of the tree up.

A section is summarised from its own text and the summaries of the sections in it, by a model where
there is one, and by its most central sentences where there is none or its reply is no use. A
section that is hardly longer than a summary is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bookrag_fast.index.book_index import count_tokens
from bookrag_fast.index.extracts import central
from bookrag_fast.index.lexing import split_sentences
from bookrag_fast.index.model import Node, NodeKind, SectionTree
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.index.stages import Stages, side_by_side
from bookrag_fast.models.plain_text import one_line, shortened
from bookrag_fast.models.protocols import Embedder, TokenUsage
from bookrag_fast.models.roles import RoleModel, Terms
from bookrag_fast.prompts import RenderedPrompt, language_of, load_prompt

__all__ = ["summarised"]

PROMPT = "summarise"
SHORT = 160  # tokens that need no summary
EXTRACT_TOKENS = 120  # of an extractive summary
REPLY_TOKENS = 400  # at most
EXPECTED_TOKENS = 120
LEAST_TOKENS = 16  # of a passage that is cut
LONGEST_TITLE = 200  # characters
LONGEST = 1200  # characters of a summary
FILLED = 0.7  # of the context: servers count tokens otherwise than we do
AT_ONCE = 64  # sections whose prompts are held
MOST_SENTENCES = 400  # that an extract chooses from
LONGEST_SENTENCE = 600  # characters; a longer one is no sentence


class Summarised(NamedTuple):
    tree: SectionTree
    use: ModelUse | None  # None without a model
    embedding: TokenUsage  # of the sentences of extracts


async def summarised(
    tree: SectionTree,
    model: RoleModel | None,
    embedder: Embedder,
    *,
    book: str = "",
    stages: Stages | None = None,
) -> Summarised:
    """The tree with summaries of its sections.

    Args:
        embedder: of the sentences that extracts are chosen from.
        book: whom calls are made for.

    Raises:
        SpendingLimitError: the budget is spent. ModelError: the embedder failed.
    """
    work = _Work(tree, model, embedder, book, stages or Stages())
    await work.all()
    nodes = tuple(replace(n, summary=work.summaries.get(n.node_id, "")) for n in tree.nodes)
    return Summarised(replace(tree, nodes=nodes), work.use, work.embedding)


class _Work:
    """Summaries so far."""

    def __init__(
        self,
        tree: SectionTree,
        model: RoleModel | None,
        embedder: Embedder,
        book: str,
        stages: Stages,
    ) -> None:
        self.summaries: dict[int, str] = {}
        self.use = None if model is None else ModelUse.of(model)
        self.embedding = TokenUsage()
        self._model, self._embedder, self._book = model, embedder, book
        self._nodes, self._stages = tree.nodes, stages
        self._children: dict[int, list[Node]] = {}
        for node in tree.nodes[1:]:
            self._children.setdefault(node.parent, []).append(node)
        self._short: dict[int, str] = {}  # sections that are their own summaries
        self._sections = sum(n.kind is NodeKind.SECTION for n in tree.nodes)

    async def _summarise(self, node: Node) -> None:
        pieces = self._pieces(node)
        longer = any(c.node_id in self.summaries for c in self._children.get(node.node_id, ()))
        if not longer and count_tokens("\n".join(pieces)) <= SHORT:
            self._short[node.node_id] = "\n".join(pieces)
            return
        await self._stages.mention("summarise", self._done, self._sections, "sections")
        self.summaries[node.node_id] = await self._by_model(node, pieces) or await self._extract(
            node, pieces
        )

    @property
    def _done(self) -> int:
        return len(self._short) + len(self.summaries)

    async def all(self) -> None:
        """Every section, the deepest first."""
        by_level: dict[int, list[Node]] = {}
        for node in self._nodes:
            if node.kind is NodeKind.SECTION:
                by_level.setdefault(node.level, []).append(node)
        await self._stages.tell("summarise", 0, self._sections, "sections")
        for level in sorted(by_level, reverse=True):
            await side_by_side(by_level[level], self._summarise, limit=AT_ONCE)
        await self._stages.tell("summarise", self._done, self._sections, "sections")

    def _pieces(self, node: Node) -> list[str]:
        """What a section says, in order: passages of its own, and what the sections in it come
        to, under their headings."""
        pieces = []
        for child in self._children.get(node.node_id, ()):
            piece = "\n".join(part for part in (child.title, self._said(child)) if part)
            if piece:
                pieces.append(piece)
        return pieces

    def _said(self, child: Node) -> str:
        if child.kind is not NodeKind.SECTION:
            return child.text
        return self.summaries.get(child.node_id) or self._short[child.node_id]

    async def _by_model(self, node: Node, pieces: Sequence[str]) -> str:
        if self._model is None or self.use is None:
            return ""
        outcome = await self._model.write(
            self._prompt(node, pieces, self._model.info.context_tokens),
            Terms(self._book, max_tokens=REPLY_TOKENS, expected_tokens=EXPECTED_TOKENS),
        )
        summary = one_line(outcome.value or "", LONGEST)
        if not summary:
            outcome = replace(outcome, value=None)
        self.use = self.use.with_outcome(outcome)
        return summary

    def _prompt(self, node: Node, pieces: Sequence[str], context: int) -> RenderedPrompt:
        prompt = load_prompt(PROMPT, language_of("\n".join(pieces[:8])))
        values = {
            "title": one_line(self._nodes[0].title, LONGEST_TITLE),
            "section": one_line(node.title, LONGEST_TITLE),
        }
        bare = prompt.render({**values, "text": ""})
        taken = count_tokens(bare.system) + count_tokens(bare.user) + REPLY_TOKENS
        room = max(SHORT, int(FILLED * context) - taken)
        return prompt.render({**values, "text": "\n\n".join(_fitted(pieces, room))})

    async def _extract(self, node: Node, pieces: Sequence[str]) -> str:
        """The most central sentences; where there are none, as many as fit of the first words."""
        prose = (NodeKind.TEXT, NodeKind.LIST, NodeKind.SECTION)
        sentences = [
            sentence
            for child in self._children[node.node_id]
            if child.kind in prose
            for sentence in split_sentences(self._said(child))
            if 40 <= len(sentence) <= LONGEST_SENTENCE
        ][:MOST_SENTENCES]
        chosen: list[int] = []
        if sentences:
            made = await self._embedder.aembed(sentences)
            self.embedding += made.usage
            chosen = central(sentences, made.vectors, EXTRACT_TOKENS)
        if not chosen:
            return one_line("\n".join(pieces), 4 * EXTRACT_TOKENS)
        return " ".join(" ".join(sentences[i].split()) for i in chosen)


def _fitted(pieces: Sequence[str], budget: int) -> list[str]:
    """The pieces within a budget of tokens: where they are too long, only their beginnings, each
    as long as all can be; of very many, some from everywhere."""
    costs = [count_tokens(piece) for piece in pieces]
    if sum(costs) <= budget:
        return list(pieces)
    most = max(1, budget // LEAST_TOKENS)
    if len(pieces) > most:
        return _fitted([pieces[k * len(pieces) // most] for k in range(most)], budget)
    limit, left, waiting = budget, budget, len(pieces)
    for cost in sorted(costs):  # short ones leave their share to the others
        limit = left // waiting
        if cost > limit:
            break
        left, waiting = left - cost, waiting - 1
    return [
        piece if cost <= limit else shortened(piece, len(piece) * limit // cost)
        for piece, cost in zip(pieces, costs, strict=True)
    ]
