"""The order of the stages, and why it is this one.

    complaints → usage and cost → cache → budget → rate limit → concurrency → retry → deadline
    → client

* **Complaints** is outermost: it tells the log what failed in the end, whyever.
* **Usage and cost** comes next: it sees replies of the cache as well, which count as cached and
  cost nothing. Attempts that fail further down, or are given up, are told to it one by one.
* **Cache** before all limits: what is known waits for nobody, and passes even when the budget is
  spent. Of calls that are the same at the same time one goes on.
* **Budget** is the part of "cost" that has to lie behind the cache: it holds what a call is
  expected to take from here on, until the reply says what it took. When the call leaves it is
  asked once more: other processes spend from it while calls are in the lines below.
* **Rate limit**, then **concurrency**: who waits for the minute to pass must not keep one of the
  few places from a call that may go. The places are taken last, held while a call is out, and by
  nobody who waits.
* **Retry** within both, so that a call which failed does not start again at the end of the line
  with its deadline running. But an attempt is an attempt to the server, which counts requests as
  they come: before each further one the retry stage gives the call's place back, sleeps, takes
  from the rate limit again and then a place. So a pause holds up nobody, and no retry exceeds the
  limits; and since lines are served by when a call came to the stack, it is at the head of both.
  When the server says that there are too many, or for how long it wants none, the rate limit slows
  down or stops for all. The circuit breaker is the retry stage's too: it counts attempts.
* **Deadline** holds for a call with all its attempts and their pauses, so the retry stage sets it,
  absolute, as it is entered, and moves it by what the call waits for limits again while others are
  answered: that is no time of the model, before any attempt.
  The stage itself is innermost, since what has to be cut off at that time is the client's call.

State lives on the loop of the library's `LoopRunner`; nothing in here is locked. A stage is a
class with ``__call__(call, ahead)``, and a streamed reply passes as others do: its pieces go to the
call's sink on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random

from bookrag_fast.config.models import EndpointSettings
from bookrag_fast.loops import LoopRunner
from bookrag_fast.models.ledger import UsageLedger
from bookrag_fast.models.middleware.budget import Budget, Spending, StillAffordable
from bookrag_fast.models.middleware.cache import Cache, Codec
from bookrag_fast.models.middleware.call import Next, Stage
from bookrag_fast.models.middleware.complaints import Complaints
from bookrag_fast.models.middleware.concurrency import Concurrency
from bookrag_fast.models.middleware.deadline import Deadline
from bookrag_fast.models.middleware.rate import RateLimit
from bookrag_fast.models.middleware.retry import Retry
from bookrag_fast.models.middleware.usage import Usage
from bookrag_fast.models.reply_cache import ReplyCache

__all__ = ["Services", "stack"]


@dataclass(frozen=True, slots=True)
class Services:
    """What the models of a library share. Without a ``cache`` every call goes out.

    ``random`` draws the pauses between attempts.
    """

    runner: LoopRunner
    ledger: UsageLedger
    cache: ReplyCache | None = None
    budget: Budget | None = None
    random: Random = field(default_factory=Random)

    def close(self) -> None:
        """Write what is to be kept. Blocking; after the runner is closed, whose calls add to it."""
        if self.cache is not None:
            self.cache.close()
        self.ledger.close()


def stack(
    name: str,
    settings: EndpointSettings,
    services: Services,
    client: Next,
    codec: Codec,
    role_limits: Mapping[str, int] | None = None,
) -> Next:
    """All stages over a client. ``name`` is the model's in the configuration."""
    usage = Usage(name, settings.price, services.ledger)
    rate = RateLimit(
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
    )
    retry = Retry(
        name,
        timeout_s=settings.timeout_s,
        retries=settings.retries,
        rate=rate,
        failed=usage.failed,
        cancelled=usage.cancelled,
        random=services.random,
    )
    stages: list[Stage] = [Complaints(name), usage]
    if services.cache is not None:
        stages.append(Cache(services.cache, codec))
    if services.budget is not None and services.budget.limited:
        stages.append(Spending(services.budget, settings.price))
    stages += [rate, Concurrency(settings.concurrency, role_limits)]
    if services.budget is not None and services.budget.limited:
        stages.append(StillAffordable(services.budget, settings.price))
    stages.append(retry)
    stages.append(Deadline(name, settings.timeout_s))
    ahead = client
    for stage in reversed(stages):
        ahead = partial(stage, ahead=ahead)
    return ahead
