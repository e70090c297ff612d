"""What calls took, for the ledger."""

from __future__ import annotations

from bookrag_fast.config.models import PriceSettings
from bookrag_fast.errors import ModelError, ModelReplyError
from bookrag_fast.models.ledger import Spent, UsageLedger
from bookrag_fast.models.middleware.call import Call, Next, Reply
from bookrag_fast.models.protocols import TokenUsage

__all__ = ["Usage", "cost"]

_MILLION = 1_000_000


def cost(usage: TokenUsage, price: PriceSettings) -> float:
    """US dollars."""
    return (usage.prompt_tokens * price.input + usage.completion_tokens * price.output) / _MILLION


class Usage:
    """Books every reply, and every attempt that brought none or was given up."""

    def __init__(self, model: str, price: PriceSettings, ledger: UsageLedger) -> None:
        self._model = model
        self._price = price
        self._ledger = ledger

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        reply = await ahead(call)
        self.book(reply.usage, role=call.role, book=call.book)
        return reply

    def failed(self, call: Call, error: ModelError) -> None:
        """An attempt brought no reply. It took what its server stated, if it did: of what hung or
        broke off nobody knows."""
        stated = TokenUsage()
        if isinstance(error, ModelReplyError):
            stated = TokenUsage(error.prompt_tokens, error.completion_tokens)
        self.book(stated, role=call.role, book=call.book, failures=1)

    def cancelled(self, call: Call) -> None:
        """An attempt was given up by whoever made it. What it took nobody knows."""
        self._ledger.add(Spent(cancelled=1), role=call.role, book=call.book, model=self._model)

    def book(self, usage: TokenUsage, *, role: str, book: str = "", failures: int = 0) -> None:
        """What was taken, by whichever way."""
        spent = Spent(
            usage.calls,
            usage.cached,
            failures,
            usage.prompt_tokens,
            usage.completion_tokens,
            cost(usage, self._price),
        )
        self._ledger.add(spent, role=role, book=book, model=self._model)
