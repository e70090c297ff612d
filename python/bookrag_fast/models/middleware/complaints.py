"""Calls that failed in the end, told in the log of whoever runs the process."""

from __future__ import annotations

import asyncio
import logging

from bookrag_fast.errors import ModelError
from bookrag_fast.models.middleware.call import Call, Next, Reply

__all__ = ["Complaints"]

_log = logging.getLogger(__name__)

_QUIET_S = 60.0  # between two lines


class Complaints:
    """One warning a minute at most; the next one says how many failures were left out. It holds
    what the error says, which quotes neither keys nor what was asked."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._silent_until = 0.0
        self._left_out = 0

    async def __call__(self, call: Call, ahead: Next) -> Reply:
        try:
            return await ahead(call)
        except ModelError as error:
            self._tell(call.role, error)
            raise

    def _tell(self, role: str, error: ModelError) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._silent_until:
            self._left_out += 1
            return
        what = " ".join(error.message.split())
        more = f" ({self._left_out:,} more failures were not told)" if self._left_out else ""
        _log.warning("model %s failed for %s: %s%s", self._model, role or "no role", what, more)
        self._silent_until, self._left_out = now + _QUIET_S, 0
