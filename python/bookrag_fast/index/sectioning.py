"""The part of indexing that makes the section tree, and asks models about it."""

from __future__ import annotations

from typing import NamedTuple

from bookrag_fast.config import Settings
from bookrag_fast.document.model import Document
from bookrag_fast.index.model import SectionTree
from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.index.proposal import propose
from bookrag_fast.index.section_filter import filter_sections
from bookrag_fast.index.stages import Stages
from bookrag_fast.index.summaries import summarised
from bookrag_fast.index.tree import tree_of
from bookrag_fast.models.protocols import TokenUsage
from bookrag_fast.models.roles import ModelSet, Role

__all__ = ["Sectioned", "sectioned"]


class Sectioned(NamedTuple):
    """``uses`` are of the models that were asked, ``embedding`` is what the embedder took."""

    tree: SectionTree
    uses: list[ModelUse]
    embedding: TokenUsage


async def sectioned(
    document: Document, models: ModelSet, settings: Settings, *, book_id: str, stages: Stages
) -> Sectioned:
    """The section tree of a document, with summaries if the settings want them.

    Raises:
        SpendingLimitError: the budget is spent. ModelError: the embedder failed.
    """
    uses: list[ModelUse] = []
    proposal = await stages.run(lambda: propose(document))
    model = models.role(Role.SECTIONS)
    if model is not None and proposal.candidates:
        proposal, use = await filter_sections(proposal, model, book=book_id, stages=stages)
        uses.append(use)
    tree = await stages.run(lambda: tree_of(proposal))
    if not settings.summaries:
        return Sectioned(tree, uses, TokenUsage())
    done = await summarised(
        tree, models.role(Role.SUMMARISE), models.embedder, book=book_id, stages=stages
    )
    if done.use is not None:
        uses.append(done.use)
    return Sectioned(done.tree, uses, done.embedding)
