"""Document → BookIndex: tree, graph, resolution, vectors, words; by models where there are any."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

from bookrag_fast.config import Settings
from bookrag_fast.document.model import Document
from bookrag_fast.errors import ModelReplyError
from bookrag_fast.index.book_index import BookIndex, BookMeta, Neighbours
from bookrag_fast.index.embedding import embedded
from bookrag_fast.index.extraction import extract_graph
from bookrag_fast.index.lexicon import build_lexicon
from bookrag_fast.index.model import SectionTree
from bookrag_fast.index.model_use import EMBEDDER, ModelUse
from bookrag_fast.index.neighbours import nearest
from bookrag_fast.index.resolution import resolve
from bookrag_fast.index.searchable import searchable
from bookrag_fast.index.sectioning import sectioned
from bookrag_fast.index.stages import Stages
from bookrag_fast.models.protocols import EmbedderInfo, FloatMatrix, TokenUsage
from bookrag_fast.models.roles import ModelSet

__all__ = ["build_index"]

_NEIGHBOURS = 10  # kept for each entity; the augmentation of G' adds at most its mean degree


async def build_index(
    document: Document,
    models: ModelSet,
    settings: Settings,
    *,
    book_id: str,
    source: str | None = None,
    stages: Stages | None = None,
) -> BookIndex:
    """Index a parsed document; the same document and replies of models give the same index.

    What computes does so on worker threads. Cancelled, it stops at once while models are awaited,
    else at the thread's next stage.

    Args:
        source: where the document's file lies, to be remembered.
        stages: told of progress, at least once a stage; whatever it raises ends the build.

    Raises:
        ModelError: the embedder failed. SpendingLimitError: the budget is spent.
    """
    stages = stages or Stages()
    await stages.tell("tree", 0, len(document.blocks), "blocks")
    tree, uses, spent = await sectioned(document, models, settings, book_id=book_id, stages=stages)
    nodes = tree.nodes
    await stages.tell("extract", 0, len(nodes), "nodes")
    raw = await stages.run(lambda: extract_graph(tree))
    names = [e.name for e in raw.entities]
    named = await embedded(names, models.embedder, stages, stage="resolve", unit="entities")
    limits = settings.resolution
    graph, entity_vectors = await stages.run(
        lambda: resolve(
            raw,
            named.vectors,
            k=limits.candidates,
            g=limits.gradient,
            max_distance=limits.max_distance,
            min_score=limits.min_score,
        )
    )
    texts = searchable(nodes)
    found = await embedded(texts, models.embedder, stages, stage="embed", unit="nodes")
    spent += named.usage + found.usage

    def assembled() -> BookIndex:
        embedder = models.embedder.info
        _check_dimension(embedder, found.vectors, entity_vectors)
        if spent.calls or spent.cached:
            uses.append(_embedding(embedder.name, settings, spent))
        return BookIndex(
            meta=BookMeta(
                book_id=book_id,
                title=_title(document, tree),
                name=document.name,
                sha256=document.sha256,
                created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
                toc_source=tree.toc_source,
                embedder=embedder,
                warnings=document.warnings + tree.warnings,
                confidence=tree.confidence,
                source=source,
                models=tuple(_priced(use, settings) for use in uses),
            ),
            pages=document.pages,
            nodes=nodes,
            entities=graph.entities,
            relations=graph.relations,
            merges=graph.merges,
            node_vectors=found.vectors,
            entity_vectors=entity_vectors,
            lexicon=build_lexicon(texts),
            neighbours=Neighbours(*nearest(entity_vectors, _NEIGHBOURS)),
            annotations=document.annotations,
        )

    return await stages.run(assembled)


def _embedding(model: str, settings: Settings, usage: TokenUsage) -> ModelUse:
    return ModelUse(EMBEDDER, settings.embedder, model, usage)


def _check_dimension(embedder: EmbedderInfo, *made: FloatMatrix) -> None:
    for vectors in made:
        if vectors.shape[1] != embedder.dimension:
            raise ModelReplyError(
                f"the book's vectors have {vectors.shape[1]} dimensions, those of {embedder.name} "
                f"have {embedder.dimension}",
                "its server has another model than when they were kept; run with --no-cache once",
            )


def _priced(use: ModelUse, settings: Settings) -> ModelUse:
    price = getattr(settings.models.get(use.name), "price", None)
    if price is None:
        return use
    usd = use.usage.prompt_tokens * price.input + use.usage.completion_tokens * price.output
    return replace(use, usd=usd / 1e6)


def _title(document: Document, tree: SectionTree) -> str:
    title = document.title or tree.nodes[0].title or document.name
    if document.span is not None:
        title = f"{title} (pages {document.span[0]}–{document.span[1]})"
    return title
