"""What calls took, for the ledger."""

from __future__ import annotations

from bookrag_fast.config.models import PriceSettings
from bookrag_fast.errors import ModelError
from bookrag_fast.models.ledger import Spent, UsageLedger
from bookrag_fast.models.middleware.call import Call, Next, Reply
from bookrag_fast.models.protocols import TokenUsage

__all__ = ["Usage", "cost"]

_MILLION = 1_000_000
_FAILURE = Spent(failures=1)


def cost(usage: TokenUsage, price: PriceSettings) -> float:
    """US dollars."""
    return (usage.prompt_tokens * price.input + usage.completion_tokens * price.output) / _MILLION


class Usage:
    """Books every reply, and every attempt that brought none. A reply counts when it is there,
    also when nobody waits for it any more by then."""

    def __init__(self, model: str, price: PriceSettings, ledger: UsageLedger) -> None:
        self._model = model
        self._price = price
        self._ledger = ledger

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        reply = await ahead(call)
        usage = reply.usage
        spent = Spent(
            usage.calls,
            usage.cached,
            0,
            usage.prompt_tokens,
            usage.completion_tokens,
            cost(usage, self._price),
        )
        self._ledger.add(spent, role=call.role, book=call.book, model=self._model)
        return reply

    def failed(self, call: Call, error: ModelError) -> None:
        del error  # whatever it was: what it cost is not known
        self._ledger.add(_FAILURE, role=call.role, book=call.book, model=self._model)
