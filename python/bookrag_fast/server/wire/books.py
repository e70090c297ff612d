"""Books, the models that had a part in them, and the progress of indexing."""

from __future__ import annotations

import dataclasses

from bookrag_fast.index.model_use import ModelUse
from bookrag_fast.library.types import Book, Progress
from bookrag_fast.models.protocols import TokenUsage
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb
from bookrag_fast.server.wire.values import text_to

__all__ = ["book_from", "book_to", "progress_from", "progress_to"]


def book_to(book: Book) -> pb.Book:
    return pb.Book(
        id=book.id,
        title=text_to(book.title),
        name=text_to(book.name),
        pages=book.pages,
        nodes=book.nodes,
        entities=book.entities,
        relations=book.relations,
        sha256=book.sha256,
        embedder=book.embedder,
        created=book.created,
        toc_source=book.toc_source,
        warnings=[text_to(w) for w in book.warnings],
        confidence=book.confidence,
        models=[_use_to(use) for use in book.models],
    )


def _use_to(use: ModelUse) -> pb.ModelUse:
    return pb.ModelUse(
        role=use.role,
        name=text_to(use.name),
        model=text_to(use.model),
        usd=use.usd,
        fallbacks=use.fallbacks,
        **dataclasses.asdict(use.usage),
    )


def _use_from(message: pb.ModelUse) -> ModelUse:
    usage = TokenUsage(
        message.prompt_tokens, message.completion_tokens, message.calls, message.cached
    )
    return ModelUse(
        message.role, message.name, message.model, usage, message.usd, message.fallbacks
    )


def book_from(message: pb.Book) -> Book:
    return Book(
        id=message.id,
        title=message.title,
        name=message.name,
        pages=message.pages,
        nodes=message.nodes,
        entities=message.entities,
        relations=message.relations,
        sha256=message.sha256,
        embedder=message.embedder,
        created=message.created,
        toc_source=message.toc_source,
        warnings=tuple(message.warnings),
        confidence=message.confidence if message.HasField("confidence") else None,
        models=tuple(map(_use_from, message.models)),
    )


def progress_to(progress: Progress) -> pb.IndexProgress:
    return pb.IndexProgress(
        stage=progress.stage,
        done=progress.done,
        total=progress.total,
        unit=progress.unit,
        rate=progress.rate,
        eta_s=progress.eta_s,
    )


def progress_from(message: pb.IndexProgress) -> Progress:
    return Progress(
        stage=message.stage,
        done=message.done,
        total=message.total if message.HasField("total") else None,
        unit=message.unit,
        rate=message.rate if message.HasField("rate") else None,
        eta_s=message.eta_s if message.HasField("eta_s") else None,
    )
