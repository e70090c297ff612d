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
    """Books every reply, and every attempt that brought none."""

    def __init__(self, model: str, price: PriceSettings, ledger: UsageLedger) -> None:
        self._model = model
        self._price = price
        self._ledger = ledger

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        reply = await ahead(call)
        self._book(call, reply.usage)
        return reply

    def failed(self, call: Call, error: ModelError) -> None:
        """An attempt brought no reply. It took what its server stated, if it did: of what hung or
        broke off nobody knows."""
        stated = TokenUsage()
        if isinstance(error, ModelReplyError):
            stated = TokenUsage(error.prompt_tokens, error.completion_tokens)
        self._book(call, stated, failures=1)

    def _book(self, call: Call, usage: TokenUsage, failures: int = 0) -> None:
        spent = Spent(
            usage.calls,
            usage.cached,
            failures,
            usage.prompt_tokens,
            usage.completion_tokens,
            cost(usage, self._price),
        )
        self._ledger.add(spent, role=call.role, book=call.book, model=self._model)
