"""What went wrong at an endpoint, in our own errors.

A message names the model and its host and quotes what the server says, cut and without secrets;
never a key, a header, or what the model was asked.
"""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import NoReturn

import httpx2
import openai

from bookrag_fast.errors import (
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelReplyError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from bookrag_fast.models.counting import is_count
from bookrag_fast.models.endpoints.texts import too_long
from bookrag_fast.models.endpoints.transport import ReplyTooLongError, UnreadableReplyError

__all__ = ["Faults", "StatusRefusedError"]

_QUOTED = 300  # characters of what a server says
_READ = 20_000  # characters of it that are looked at
_KEYS = re.compile(
    r"\b(?:bearer|basic)\s+[\w.~+/=*-]+|\b(?:sk|pk|hf|key|gsk|xai)[-_][\w*-]{6,}", re.IGNORECASE
)
_TAG = re.compile(r"<[^<>]{0,300}>")
_HUNG_UP = re.compile(r"closed|disconnected|reset", re.IGNORECASE)
_ASKED = 200_000  # characters of the request that are compared with it
_ECHO = 20  # characters in a row that a server has from the request


class StatusRefusedError(ModelRefusedError):
    """A refusal by HTTP status, with what the server said (uncut: not for people's eyes)."""

    def __init__(self, message: str, hint: str, *, status: int, said: str) -> None:
        super().__init__(message, hint)
        self.status = status
        self.said = said


class Faults:
    """Names the errors of one model."""

    def __init__(self, name: str, host: str, model: str, secrets: Sequence[str]) -> None:
        self._who = f"model {name!r} at {host}"
        self._where = f"models.{name}"
        self._model = model
        # The longest first: one may hold another.
        self._secrets = sorted({s for s in secrets if len(s) >= 4}, key=len, reverse=True)

    @contextmanager
    def named(self, asked: object = None) -> Iterator[None]:
        """Whatever the client raises, as a ModelError. Without its cause: that quotes too much.
        ``asked`` is the body of the request, which servers like to repeat."""
        try:
            yield
        except ModelError:
            raise
        except _FAULTS as error:
            raise self._named(error, asked) from None

    def reply(self, problem: str, hint: str = "") -> NoReturn:
        """Refuse a reply that came but is of no use."""
        raise ModelReplyError(f"{self._who} {problem}", hint)

    @contextmanager
    def billed(self, usage: object) -> Iterator[None]:
        """Refusals of a reply in there carry the tokens that the server states for it."""
        try:
            yield
        except ModelReplyError as error:
            if isinstance(usage, Mapping):
                prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
                error.prompt_tokens = prompt if is_count(prompt) else 0
                error.completion_tokens = completion if is_count(completion) else 0
            raise

    def broken_off(self) -> NoReturn:
        raise ModelUnavailableError(f"{self._who} ended its reply in the middle")

    def quoted(self, text: str, asked: object = None) -> str:
        """What a server says, fit for a message: one line, cut, without secrets and without what
        it repeats of ``asked``."""
        text = " ".join(text[:_READ].split())
        text = "".join(c if c.isprintable() else "?" for c in text)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = _without_echo(
            _KEYS.sub("***", text)[: 4 * _QUOTED], "\n".join(_strings(asked))[:_ASKED]
        )
        return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"

    # --- one kind after the other ---------------------------------------------------------------

    def _named(self, error: Exception, asked: object) -> ModelError:
        chain = list(_chain(error))
        if isinstance(error, openai.APIStatusError):
            return self._status(error, asked)
        for cause in chain:
            if isinstance(cause, ReplyTooLongError):
                return ModelReplyError(f"{self._who} sent a reply of {cause}; it was not read")
            if isinstance(cause, UnreadableReplyError):
                return ModelReplyError(f"{self._who} sent a reply that cannot be read: {cause}")
        connecting = any(isinstance(cause, httpx2.ConnectError) for cause in chain)
        for cause in chain:
            if isinstance(cause, ssl.SSLError) and _refuses(cause, connecting):
                return self._untrusted(cause)
        if any(isinstance(cause, httpx2.ConnectTimeout) for cause in chain):
            return ModelUnavailableError(
                f"{self._who} cannot be reached: it does not answer", unreachable=True
            )
        if isinstance(error, (openai.APITimeoutError, httpx2.TimeoutException)):
            return ModelTimeoutError(
                f"{self._who} did not answer in time", f"raise {self._where}.timeout_s"
            )
        if connecting:
            return ModelUnavailableError(
                f"{self._who} cannot be reached",
                f"check {self._where}.base_url and the server",
                unreachable=True,
            )
        for cause in chain:
            if isinstance(cause, httpx2.RemoteProtocolError) and not _HUNG_UP.search(str(cause)):
                return ModelUnavailableError(
                    f"{self._who} answers, but not in HTTP", f"check {self._where}.base_url"
                )
        if isinstance(error, (openai.APIConnectionError, httpx2.RequestError, ssl.SSLError)):
            return ModelUnavailableError(f"{self._who} hung up before its reply was whole")
        if isinstance(error, openai.APIError):  # said in the middle of a stream
            said = self.quoted(server_message(error.body) or error.message, asked)
            return ModelUnavailableError(f"{self._who} failed in the middle of its reply: {said}")
        return ModelReplyError(f"{self._who} sent a reply that is no JSON")

    def _untrusted(self, error: ssl.SSLError) -> ModelError:
        why = getattr(error, "verify_message", "") or (error.reason or "").replace("_", " ").lower()
        return ModelRefusedError(
            f"{self._who}: no secure connection: {why or 'the handshake failed'}",
            f"name the server's certificate in {self._where}.ca_file,"
            " or write http:// if it has none",
        )

    def _status(self, error: openai.APIStatusError, asked: object) -> ModelError:
        code, headers = error.status_code, error.response.headers
        said = server_message(error.body)
        quoted = self.quoted(said, asked)
        message = f"{self._who} answered {code}" + (f": {quoted}" if quoted else "")
        if 300 <= code < 400:
            target = self.quoted(headers.get("location", "nowhere"))
            return ModelRefusedError(
                f"{self._who} points elsewhere ({code}): {target}",
                f"if that is right, write it into {self._where}.base_url; it is not followed",
            )
        spent = "insufficient_quota" in (error.code, error.type) or "insufficient_quota" in said
        if code == 429 and not spent:
            return ModelRateLimitError(message, retry_after=_retry_after(headers))
        permanent = code == 501 or (code == 500 and too_long(said))  # as llama.cpp says it
        if code in (408, 409, 425) or (code >= 500 and not permanent):
            return ModelUnavailableError(message, retry_after=_retry_after(headers))
        return StatusRefusedError(message, self._mend(code), status=code, said=said[:_READ])

    def _mend(self, code: int) -> str:
        if code in (401, 403):
            return f"check the key: {self._where}.api_key_env"
        if code == 404:
            return (
                f"check {self._where}.base_url (up to and with /v1)"
                f" and whether the server has the model {self._model!r}"
            )
        if code in (402, 429):
            return "the account has no credit left"
        return f"check {self._where}.model and what else is set there"


# What a client may raise: the last two are JSON that is none, and JSON that is too deep.
_FAULTS: tuple[type[Exception], ...] = (
    openai.OpenAIError,
    httpx2.HTTPError,
    httpx2.StreamError,
    ssl.SSLError,
    ReplyTooLongError,
    UnreadableReplyError,
    ValueError,
    RecursionError,
)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what it came from; a chain has no loops but is bounded all the same."""
    current: BaseException | None = error
    for _ in range(20):
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__


def _refuses(error: ssl.SSLError, connecting: bool) -> bool:
    """Whether trying again is of no use: a handshake that is refused, not a line that broke."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    broke = isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError))
    return connecting and not broke


def server_message(body: object) -> str:
    """What a server says went wrong, out of the shapes in which servers say it."""
    return _message(body, 4)


def _message(body: object, depth: int) -> str:
    if isinstance(body, str):
        return _TAG.sub(" ", body[:_READ])
    if isinstance(body, Mapping) and depth:
        for key in ("message", "error", "detail", "msg", "title"):
            if said := _message(body.get(key), depth - 1):
                where = body.get("loc")
                if key == "msg" and isinstance(where, list):  # FastAPI: which field it was
                    said = f"{'.'.join(str(part) for part in where[:8])}: {said}"
                return said
    if isinstance(body, list) and depth:
        return "; ".join(filter(None, (_message(item, depth - 1) for item in body[:3])))
    return ""


def _strings(value: object) -> Iterator[str]:
    """The texts of a request's body, not its pictures."""
    if isinstance(value, str):
        if not value.startswith("data:"):
            yield " ".join(value.split())
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _without_echo(said: str, asked: str) -> str:
    """What a server says, without runs of `_ECHO` characters or more that are from the request."""
    kept, at = [], 0
    while at < len(said):
        end = at + _ECHO
        if end > len(said) or said[at:end] not in asked:
            kept.append(said[at])
            at += 1
            continue
        while end < len(said) and said[at : end + 1] in asked:
            end += 1
        kept.append("…")
        at = end
    return "".join(kept)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from a number of them or a date; None where there is none that makes sense."""
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text) if text else float(headers.get("retry-after-ms", "")) / 1000
    except ValueError:
        try:
            when = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        if when.tzinfo is None:
            when = when.replace(tzinfo=timezone.utc)
        seconds = max(0.0, (when - datetime.now(timezone.utc)).total_seconds())
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
