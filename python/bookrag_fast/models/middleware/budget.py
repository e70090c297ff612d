"""The limits of what models may take, by day and by book."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bookrag_fast.config.models import BudgetSettings, PriceSettings
from bookrag_fast.errors import SpendingLimitError
from bookrag_fast.forks import begins_anew
from bookrag_fast.models.ledger import UsageLedger
from bookrag_fast.models.middleware.call import Call, Next, Reply
from bookrag_fast.models.middleware.concurrency import Slots
from bookrag_fast.models.middleware.usage import cost
from bookrag_fast.models.money import usd_text

__all__ = ["Budget", "Spending", "StillAffordable"]

_Scope = tuple[Literal["book", "day"], str]


@dataclass(slots=True)
class _Amount:
    usd: float = 0.0
    tokens: int = 0


class Budget:
    """Reserves what a call is expected to take before it leaves, against what the ledger knows and
    what other calls have reserved. One for all models of a library, used on one loop."""

    def __init__(self, settings: BudgetSettings, ledger: UsageLedger) -> None:
        self._settings = settings
        self._ledger = ledger
        self.forked()
        begins_anew(self)

    def forked(self) -> None:
        self._reserved: dict[_Scope, _Amount] = {}
        self._line = Slots(1)  # whose turn it is to reserve
        self._settled: asyncio.Future[None] | None = None

    @property
    def limited(self) -> bool:
        return any(limit is not None for limit in self._settings.model_dump().values())

    async def reserve(self, wanted: _Amount, book: str, came: int) -> list[_Scope]:
        """Returns when the amount fits. While it does not only because of what others have
        reserved, which is more than they mostly take, it waits for them.

        Raises:
            SpendingLimitError: it does not fit into what is left.
        """
        await self._line.take(came)
        try:
            while True:
                scopes = await self._scopes(book)
                fits = [self._fits(scope, wanted) for scope in scopes]  # each may say: never
                if all(fits):
                    break
                self._settled = asyncio.get_running_loop().create_future()
                await self._settled
        finally:
            self._line.give_back()
        for scope in scopes:
            reserved = self._reserved.setdefault(scope, _Amount())
            reserved.usd += wanted.usd
            reserved.tokens += wanted.tokens
        return scopes

    async def check(self, wanted: _Amount, book: str) -> None:
        """Raises SpendingLimitError for what was reserved and does not fit any more: other
        processes spend from the same budget."""
        for scope in await self._scopes(book):
            self._fits(scope, wanted)

    def release(self, amount: _Amount, scopes: list[_Scope]) -> None:
        for scope in scopes:
            reserved = self._reserved[scope]
            reserved.usd -= amount.usd
            reserved.tokens -= amount.tokens
            if reserved.tokens <= 0 and reserved.usd <= 1e-12:
                del self._reserved[scope]
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)

    async def _scopes(self, book: str) -> list[_Scope]:
        """What the limits are of, with what they took known."""
        scopes: list[_Scope] = [("day", self._ledger.today())]
        if book:
            scopes.append(("book", book))
        # Once more where the ledger has let go of one for the sake of the other.
        while unknown := [scope for scope in scopes if self._ledger.spent(*scope) is None]:
            for scope in unknown:
                await asyncio.to_thread(self._ledger.watch, *scope)
        return scopes

    def _fits(self, scope: _Scope, wanted: _Amount) -> bool:
        spent = self._ledger.spent(*scope)
        reserved = self._reserved.get(scope, _Amount())
        fits = True
        for unit, limit in self._limits(scope):
            used = 0.0 if spent is None else (spent.usd if unit == "USD" else spent.tokens)
            more = wanted.usd if unit == "USD" else wanted.tokens
            others = reserved.usd if unit == "USD" else reserved.tokens
            if used + more > limit:
                raise _limit_reached(scope, unit, limit, used, more)
            fits = fits and used + others + more <= limit
        return fits

    def _limits(self, scope: _Scope) -> Iterator[tuple[Literal["USD", "tokens"], float]]:
        day = scope[0] == "day"
        usd = self._settings.usd_per_day if day else self._settings.usd_per_book
        tokens = self._settings.tokens_per_day if day else self._settings.tokens_per_book
        if usd is not None:
            yield "USD", usd
        if tokens is not None:
            yield "tokens", tokens


class Spending:
    """Lets a call out when the budget has room for it."""

    def __init__(self, budget: Budget, price: PriceSettings) -> None:
        self._budget = budget
        self._price = price

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        amount = _expected(call, self._price)
        scopes = await self._budget.reserve(amount, call.book, call.came)
        try:
            return await ahead(call)
        finally:
            # The stages above book what it took before anything else runs on this loop.
            self._budget.release(amount, scopes)


class StillAffordable:
    """Looks once more as a call leaves, which may have waited long since its amount was reserved.
    So processes with one budget go beyond it by what they have out, not by what they have in line.
    """

    def __init__(self, budget: Budget, price: PriceSettings) -> None:
        self._budget = budget
        self._price = price

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        await self._budget.check(_expected(call, self._price), call.book)
        return await ahead(call)


def _expected(call: Call, price: PriceSettings) -> _Amount:
    return _Amount(cost(call.expected, price), call.tokens)


def _limit_reached(
    scope: _Scope, unit: Literal["USD", "tokens"], limit: float, used: float, more: float
) -> SpendingLimitError:
    facet, name = scope
    whole = unit == "tokens"
    said = [f"{x:,.0f} tokens" if whole else f"{usd_text(x)} USD" for x in (limit, used, more)]
    return SpendingLimitError(
        f"the budget of {facet} {name} is {said[0]}; {said[1]} are spent and the next call takes "
        f"about {said[2]}",
        f"raise budget.{'tokens' if whole else 'usd'}_per_{facet}"
        + (" or go on tomorrow" if facet == "day" else "")
        + "; what was paid for is kept, and the same command goes on from there",
    )
