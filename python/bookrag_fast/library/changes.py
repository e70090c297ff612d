"""What would be different about a book if it were made anew with the settings that hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bookrag_fast.config import Settings
from bookrag_fast.index.book_index import BookIndex, BookMeta, count_tokens
from bookrag_fast.index.model import Node
from bookrag_fast.index.summaries import SHORT
from bookrag_fast.models.roles import Role

__all__ = ["changes"]

_GUESSED = {"numbering", "typography", "run-in"}  # trees that a model would have been asked about


def changes(index: BookIndex, settings: Settings) -> Iterator[str]:
    """In words, one a change; nothing for a book that would come out as it is, as far as can be
    seen without reading its file."""
    meta = index.meta
    with_summaries = any(node.summary for node in index.nodes)
    if settings.summaries and not with_summaries and _is_long(index.nodes):
        yield "summaries are asked for now, and it has none"
    if meta.toc_source in _GUESSED or _served(meta, Role.SECTIONS):
        yield from _other_model(meta, Role.SECTIONS, settings)
    if settings.summaries and with_summaries:
        yield from _other_model(meta, Role.SUMMARISE, settings)
    for use in meta.models:
        if use.fallbacks and getattr(settings.roles, use.role, None) is not None:
            yield f"{use.fallbacks:,} of its questions for {use.role} were left to the rules"


def _other_model(meta: BookMeta, role: Role, settings: Settings) -> Iterator[str]:
    chosen = getattr(settings.roles, role.value)
    if chosen is None:
        return
    now, then = getattr(settings.models[chosen.model], "model", ""), _served(meta, role)
    if now != then:
        was = f"by {then}" if then else "by the rules"
        yield f"{role.value} would be by {chosen.model} ({now}) now, and was {was}"


def _served(meta: BookMeta, role: Role) -> str:
    """What the server called the model that had the role; "" for none."""
    return next((use.model for use in meta.models if use.role == role.value), "")


def _is_long(nodes: Sequence[Node]) -> bool:
    """Whether a section has more text, with what is in it, than is its own summary."""
    tokens = [count_tokens(node.text) for node in nodes]
    for node in reversed(nodes[1:]):  # those in it come after it
        if node.parent:
            tokens[node.parent] += tokens[node.node_id]
    return any(count > SHORT for count in tokens[1:])
