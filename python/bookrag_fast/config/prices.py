"""Budgets in dollars, and models whose calls cost nothing that is known."""

from __future__ import annotations

from collections.abc import Iterator

from bookrag_fast.config.models import EndpointSettings
from bookrag_fast.config.references import named_models
from bookrag_fast.config.settings import Settings

__all__ = ["unbounded"]


def unbounded(settings: Settings) -> Iterator[tuple[str, str]]:
    """(what is wrong, what to do) for each model in use that a budget in dollars is to bound and
    cannot, since no price is set. A price of 0 that is set says that the model is free; a limit on
    tokens bounds all."""
    budget = settings.budget
    scopes = [
        scope
        for scope, usd, tokens in (
            ("day", budget.usd_per_day, budget.tokens_per_day),
            ("book", budget.usd_per_book, budget.tokens_per_book),
        )
        if usd is not None and tokens is None
    ]
    if not scopes:
        return
    limits = " and ".join(f"budget.usd_per_{scope}" for scope in scopes)
    others = " and ".join(f"budget.tokens_per_{scope}" for scope in scopes)
    for name in dict.fromkeys(name for _, name in named_models(settings)):
        model = settings.models.get(name)
        if isinstance(model, EndpointSettings) and "price" not in model.model_fields_set:
            yield (
                f"{limits} cannot bound model {name}: it has no price",
                f"set models.{name}.price or {others}",
            )
