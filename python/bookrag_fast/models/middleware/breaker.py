"""A circuit breaker: a server that fails all the time is left alone for a while."""

from __future__ import annotations

import asyncio
import logging
from math import inf

from bookrag_fast.errors import ModelUnavailableError

__all__ = ["Breaker", "CircuitOpenError"]

_log = logging.getLogger(__name__)

_FAILURES = 8  # in a row, of any calls of the model
_SILENCE = 4  # failures that a call counts for which hung: each has taken all that a call may
_COOL_DOWN_S = 2.0  # at first; doubled whenever the probe fails too
_LONGEST_COOL_DOWN_S = 15.0
_REFUSED_S = 60.0  # when nobody gets more than 429
_PATIENCE_S = 5.0  # with a server that has never answered


class CircuitOpenError(ModelUnavailableError):
    """The call, or its next attempt, did not go out."""


class Breaker:
    """Closed at first. Opens after eight failures in a row, two if the server hung, or when for
    ``patience_s`` no call got more than 429; when it has cooled down one call goes out as a probe,
    whose end closes it or opens it for twice as long. Times are seconds of the loop's clock.

    Calls may wait for a server that worked and is down for less than ``patience_s``: it is often
    there again soon, and a batch would be lost in the meantime. Then they are to fail at once.

    That it opens and closes is told in the log, once each, as of ``model``.
    """

    def __init__(self, model: str, patience_s: float) -> None:
        self._model = model
        self._patience_s = patience_s
        self.answers = 0  # but for 429
        self._worked = False
        self._failures = 0
        self._down_since = 0.0
        self._refused_since: float | None = None
        self._cool_down = 0.0  # 0: closed
        self._until = 0.0
        self._probing = False
        self._changed: asyncio.Future[None] | None = None

    def wait(self, now: float) -> float:
        """Seconds until a call may go: 0 for now, inf while a probe is out."""
        if not self._cool_down:
            return 0.0
        return inf if self._probing else max(0.0, self._until - now)

    def given_up(self, now: float) -> bool:
        """Whether it is no use to wait."""
        patience = self._patience_s if self._worked else _PATIENCE_S
        return now - self._down_since >= patience

    async def changed(self, seconds: float) -> None:
        """Wait until a probe has ended, however it did, but no longer than so."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.wait((self._changed,), timeout=seconds)

    def go(self) -> bool:
        """A call goes out, which `wait` allowed. Whether it is the probe; its end must be told."""
        self._probing = bool(self._cool_down)
        return self._probing

    def answered(self) -> None:
        """The server answered a call, whatever it was."""
        self._is_up()
        self._refused_since = None
        self.answers += 1

    def refused(self, now: float) -> None:
        """The server answered that there are too many calls."""
        self._is_up()
        self._refused_since = now if self._refused_since is None else self._refused_since
        if now - self._refused_since > self._patience_s:
            self.open(_REFUSED_S, now)

    def failed(self, now: float, *, probe: bool) -> None:
        self._fail(1, now, now, probe)

    def hung(self, since: float, now: float, *, probe: bool) -> None:
        """A call got no reply at all until its deadline, nor did any other call since then."""
        self._fail(_SILENCE, since, now, probe)

    def _fail(self, count: int, since: float, now: float, probe: bool) -> None:
        self._down_since = min(self._down_since, since) if self._failures else since
        self._failures += count
        if probe and self._cool_down:
            self.open(min(2 * self._cool_down, _LONGEST_COOL_DOWN_S), now)
            self._probe_ended()
        elif not self._cool_down and self._failures >= _FAILURES:
            self.open(_COOL_DOWN_S, now)

    def open(self, seconds: float, now: float) -> None:
        """For as long as that: also for a server that says for how long it is out."""
        if not self._cool_down:
            _log.warning("model %s is left alone until its server answers again", self._model)
        self._cool_down = max(self._cool_down, seconds)
        self._until = max(self._until, now + seconds)

    def abandoned(self, *, probe: bool) -> None:
        """A call ended without telling anything of the server (it was cancelled)."""
        if probe and self._cool_down:
            self._probe_ended()

    def _is_up(self) -> None:
        self._worked, self._failures = True, 0
        if self._cool_down:
            _log.warning("model %s answers again", self._model)
            self._cool_down, self._until = 0.0, 0.0
            self._probe_ended()

    def _probe_ended(self) -> None:
        self._probing = False
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done():
            changed.set_result(None)
