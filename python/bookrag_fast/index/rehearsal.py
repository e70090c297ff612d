"""Indexing as far as models have a part in it, to see what it would ask of them."""

from __future__ import annotations

from dataclasses import replace

from bookrag_fast.config import Settings
from bookrag_fast.document.model import Document
from bookrag_fast.index.embedding import embedded
from bookrag_fast.index.extraction import extract_graph
from bookrag_fast.index.model import SectionTree
from bookrag_fast.index.searchable import searchable
from bookrag_fast.index.sectioning import sectioned
from bookrag_fast.index.stages import Stages
from bookrag_fast.models.blank import BlankEmbedder
from bookrag_fast.models.roles import ModelSet, Role

__all__ = ["rehearse"]


async def rehearse(
    document: Document, models: ModelSet, settings: Settings, *, book_id: str, stages: Stages
) -> SectionTree:
    """Asks models what `build_index` asks them, and makes nothing of it but the tree.

    Args:
        models: that count; their embedder is a `BlankEmbedder` where embedding is free.
    """
    asked = models
    if models.role(Role.SUMMARISE) is not None:  # extracts are for where it has no reply
        asked = replace(models, embedder=BlankEmbedder())
    tree, _, _ = await sectioned(document, asked, settings, book_id=book_id, stages=stages)
    if isinstance(models.embedder, BlankEmbedder):
        return tree
    await stages.tell("extract", 0, len(tree.nodes), "nodes")
    graph = await stages.run(lambda: extract_graph(tree))
    names = [e.name for e in graph.entities]
    await embedded(names, models.embedder, stages, stage="resolve", unit="entities")
    texts = searchable(tree.nodes)
    await embedded(texts, models.embedder, stages, stage="embed", unit="nodes")
    return tree
