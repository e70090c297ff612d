"""What models took, or would take, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bookrag_fast.index.model_use import ModelUse
    from bookrag_fast.library.types import Book, Estimate

__all__ = ["estimate_lines", "known_lines", "left_lines", "spent_lines"]

# What a model is asked in a role when a book is made: one and several of it.
_QUESTIONS = {
    "sections": ("heading question", "heading questions"),
    "summarise": ("summary", "summaries"),
}
_ANEW = "useless replies are kept as well: with --no-cache the model is asked anew"


def spent_lines(uses: Sequence[ModelUse]) -> Iterator[str]:
    """One line a role."""
    from bookrag_fast.models.money import usd_text

    for use in uses:
        usage = use.usage
        parts = [_calls(use)]
        if usage.calls:
            parts.append(f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens")
        if use.usd:
            parts.append(f"${usd_text(use.usd)}")
        if use.fallbacks:
            parts.append(f"{use.fallbacks:,} left to the rules")
        yield f"  {use.role} by {use.name} ({use.model}): {', '.join(parts)}"


def left_lines(book: Book, again: str) -> Iterator[str]:
    """What to do about a new book whose models failed; ``again`` is the command that makes it."""
    left = [use for use in book.models if use.fallbacks]
    if left:
        what = " and ".join(_asked(use) for use in left)
        were = "was" if sum(use.fallbacks for use in left) == 1 else "were"
        yield (
            f"  {what} {were} left to the rules; when the model is back: "
            f"bookrag rm {book.id} && {again}"
        )
        if _may_be_kept(book):
            yield f"  {_ANEW}"


def known_lines(book: Book, changes: Sequence[str], *, cached: bool) -> Iterator[str]:
    """Who made a book, and what would be different about it if it were made now."""
    if book.models:
        made = ", ".join(f"{use.role} by {use.name} ({use.model})" for use in book.models)
        yield f"  when it was made: {made}"
    for change in changes:
        yield f"  {change}"
    if changes:
        paid = "; what was paid for comes from the cache" if cached else ""
        yield f"  to have it made anew: `bookrag rm {book.id}`, then index it again{paid}"
        if cached and _may_be_kept(book):
            yield f"  {_ANEW}"


def estimate_lines(file: str, estimate: Estimate) -> Iterator[str]:
    if estimate.known:
        yield f"{file} is already on the shelf: nothing would be asked"
        return
    pages = f"{estimate.pages} {_plural(estimate.pages, 'page')}, " if estimate.pages else ""
    if not estimate.models:
        yield f"{file}: {pages}{estimate.nodes} nodes; no model would be called"
        return
    calls = f"about {estimate.calls:,} {_plural(estimate.calls, 'call')}"
    yield f"{file}: {pages}{estimate.nodes} nodes; {calls}, {_cost(estimate)}"
    yield from spent_lines(estimate.models)


def _cost(estimate: Estimate) -> str:
    from bookrag_fast.models.money import usd_text

    unpriced = estimate.calls and not estimate.usd
    return "no price is set" if unpriced else f"${usd_text(estimate.usd)}"


def _asked(use: ModelUse) -> str:
    """What of a role was left to the rules."""
    one, several = _QUESTIONS.get(use.role, ("question", "questions"))
    return f"{use.fallbacks:,} {one if use.fallbacks == 1 else several}"


def _may_be_kept(book: Book) -> bool:
    """Whether a model that was of no use had answered: the cache would say the same again."""
    return any(use.fallbacks and (use.usage.calls or use.usage.cached) for use in book.models)


def _calls(use: ModelUse) -> str:
    calls = f"{use.usage.calls:,} {_plural(use.usage.calls, 'call')}"
    return f"{calls} ({use.usage.cached:,} more from the cache)" if use.usage.cached else calls


def _plural(count: int, one: str) -> str:
    return one if count == 1 else f"{one}s"
