"""Extract: the entities of a question, by model where there is one, linked to each book's G."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from bookrag_fast.models.plain_text import clipped
from bookrag_fast.models.roles import Role
from bookrag_fast.query.formulators import LinkedEntity, Mentions, Named, linked, mentions
from bookrag_fast.query.inquiry import Call, Inquiry
from bookrag_fast.query.question import Question

__all__ = ["EntitiesReply", "extract_entities"]

_MOST_NAMED = 16  # entities taken from a model
_LONGEST_NAME = 200  # characters
_SHOWN = 20  # entities of a book in the trace


class EntityReply(BaseModel):
    name: str = Field(description="as the question writes it")
    type: str = Field("", description="one word, such as person, organisation, product, concept")


class EntitiesReply(BaseModel):
    """What a question is about."""

    entities: list[EntityReply] = Field(description="in the order of the question; may be empty")


async def extract_entities(inquiry: Inquiry, question: Question) -> list[list[LinkedEntity]]:
    """The question's entities in each book's G.

    What a model names joins what stands in the question by exact name or near it: the model knows
    what is meant, the book's names know what is there.
    """
    books, distance = inquiry.books, inquiry.settings.link_distance
    with inquiry.tracer.operator("Extract") as note:
        named = await _named(inquiry, question, note)
        found: list[Mentions] = await inquiry.work.run(
            lambda: [mentions(book, question, named) for book in books]
        )
        row = {p: i for i, p in enumerate(dict.fromkeys(p for f in found for p in f.phrases))}
        vectors = await inquiry.embed(list(row), query=True) if row else None

        def link() -> list[list[LinkedEntity]]:
            links = []
            for book, mentioned in zip(books, found, strict=True):
                rows = [row[phrase] for phrase in mentioned.phrases]
                own = vectors[rows] if vectors is not None and rows else None
                links.append(linked(book, mentioned, own, distance))
            return links

        links = await inquiry.work.run(link)
        note["entities"] = [
            {"name": book.entities[e.entity].name, "mention": e.mention, "cosine": e.cosine}
            for book, entities in zip(books, links, strict=True)
            for e in entities[:_SHOWN]
        ]
    return links


async def _named(inquiry: Inquiry, question: Question, note: dict[str, Any]) -> list[Named]:
    if inquiry.models.role(Role.EXTRACT) is None:
        return []
    call = Call(
        Role.EXTRACT,
        "extract",
        {"question": question.text},
        "entities found by name",
        max_tokens=512,
        expected_tokens=60,
    )
    reply = await inquiry.ask(call, EntitiesReply, note)
    if reply is None:
        return []
    names = [
        Named(clipped(e.name, _LONGEST_NAME), clipped(e.type, _LONGEST_NAME))
        for e in reply.entities[:_MOST_NAMED]
    ]
    return [named for named in dict.fromkeys(names) if named.name]
