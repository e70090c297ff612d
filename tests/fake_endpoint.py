"""A model server on loopback that behaves as a test tells it to: well, badly, or worse.

Real HTTP/1.1 over a real socket, on a thread of its own; only what it says is made up::

    with FakeEndpoint(sequence(status(503), ok("pong"))) as server:
        ...  # server.base_url, server.calls, server.disconnects

A behaviour is an async function of an `Exchange`; those here are made by calling their names, and
put together by `sequence`, `after` and `by_path`. Those that fail are in `fake_faults`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

# A self-signed certificate for 127.0.0.1 with its key: trusted by nobody who does not name it.
CERTIFICATE = Path(__file__).parent / "data" / "loopback.pem"


@dataclass(frozen=True)
class Call:
    """A request as it came: ``path`` with its query, header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float = field(default_factory=time.monotonic)


@dataclass
class Exchange:
    """A request to be answered, and the means to."""

    call: Call
    number: int  # of the call at its server, from 0
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def start(self, code: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {code} -", *(f"{name}: {value}" for name, value in headers.items())]
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def reply(
        self, body: bytes, code: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        lines = {"content-type": "application/json", "content-length": str(len(body))}
        await self.start(code, lines | dict(headers or {}))
        await self.send(body)

    async def reply_json(self, value: object, code: int = 200) -> None:
        await self.reply(json.dumps(value).encode(), code)

    async def start_events(self) -> None:
        await self.start(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})

    async def event(self, value: object) -> None:
        data = value if isinstance(value, str) else json.dumps(value)
        await self.chunk(f"data: {data}\n\n".encode())

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def hang_up(self) -> None:
        self.writer.transport.abort()


Behaviour = Callable[[Exchange], Awaitable[None]]
Text = str | Callable[[dict[str, Any]], str]


# --- a server that works --------------------------------------------------------------------------


def ok(text: Text = "pong", *, dimension: int = 8, delay: float = 0.0) -> Behaviour:
    """Chat, embeddings and rerank, whatever is asked for; ``delay`` seconds later."""
    routes = by_path({"/chat/completions": chat(text), "/embeddings": embeddings(dimension)})
    return after(delay, routes) if delay else routes


def chat(
    text: Text = "pong",
    *,
    finish: str = "stop",
    usage: bool = True,
    reasoning: str = "",
) -> Behaviour:
    """A completion, streamed if that is asked for, of a text or of what a function makes of the
    request's body."""

    async def behave(x: Exchange) -> None:
        said = text if isinstance(text, str) else text(x.call.body)
        used = usage_of(x.call.body, said) if usage else None
        if x.call.body.get("stream"):
            await x.start_events()
            if reasoning:
                await x.event(delta(reasoning_content=reasoning))
            for piece in pieces(said):
                await x.event(delta(content=piece))
            await x.event(delta(finish=finish))
            if used and (x.call.body.get("stream_options") or {}).get("include_usage"):
                await x.event({"object": "chat.completion.chunk", "choices": [], "usage": used})
            await x.event("[DONE]")
            await x.chunk(b"")
        else:
            message = {"role": "assistant", "content": said}
            if reasoning:
                message["reasoning_content"] = reasoning
            choice = {"index": 0, "finish_reason": finish, "message": message}
            await x.reply_json(
                {"id": "1", "object": "chat.completion", "choices": [choice], "usage": used}
            )

    return behave


def delta(*, finish: str | None = None, **message: str) -> dict[str, Any]:
    """An event of a streamed completion."""
    choice = {"index": 0, "delta": message, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "choices": [choice]}


def events(*values: object) -> bytes:
    """The body of a stream of these."""
    lines = (value if isinstance(value, str) else json.dumps(value) for value in values)
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def pieces(text: str) -> list[str]:
    return [text[at : at + 4] for at in range(0, len(text), 4)]


def usage_of(body: dict[str, Any], said: str) -> dict[str, int]:
    prompt = len(json.dumps(body.get("messages", ""))) // 4
    written = len(said) // 4 + 1
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


def embeddings(
    dimension: int = 8,
    *,
    count: int = 0,
    value: float | None = None,
    base64_too: bool = True,
    shuffled: bool = False,
) -> Behaviour:
    """Vectors that go by the text's hash. ``count`` more or fewer than were asked for; each number
    ``value``, if given; in the format asked for, or always floats; perhaps in another order."""

    async def behave(x: Exchange) -> None:
        texts = x.call.body["input"]
        vectors = [vector_of(text, dimension) for text in texts]
        vectors = (vectors + vectors * max(0, count))[: len(texts) + count]
        if value is not None:
            vectors = [np.full(dimension, value, dtype=np.float32) for _ in vectors]
        packed = base64_too and x.call.body.get("encoding_format") == "base64"
        data: list[dict[str, Any]] = [
            {
                "index": index,
                "embedding": base64.b64encode(vector.tobytes()).decode()
                if packed
                else [float(number) for number in vector],
            }
            for index, vector in enumerate(vectors)
        ]
        if shuffled:
            data.reverse()
        tokens = sum(len(text) for text in texts) // 4
        await x.reply_json(
            {
                "object": "list",
                "data": data,
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            }
        )

    return behave


def vector_of(text: str, dimension: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """What a fake server embeds a text to; not of length 1."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).normal(size=dimension).astype(np.float32)


def rerank(
    score: Callable[[str, str], float] | None = None, *, shape: str = "jina", extra: int = 0
) -> Behaviour:
    """Scores of a question and a text, best first, in the shape of "jina" or "tei"; for ``extra``
    texts more than there are."""

    def overlap(question: str, text: str) -> float:
        return float(len(set(question.lower().split()) & set(text.lower().split())))

    async def behave(x: Exchange) -> None:
        body = x.call.body
        texts = body.get("documents") or body.get("texts") or []
        scores = [(i, (score or overlap)(body["query"], text)) for i, text in enumerate(texts)]
        scores += [(len(texts) + i, 0.0) for i in range(extra)]
        scores.sort(key=lambda pair: -pair[1] if not math.isnan(pair[1]) else 0.0)
        if shape == "tei":
            if "documents" in body:
                await x.reply_json({"error": {"message": "missing field `texts`"}}, 422)
                return
            await x.reply_json([{"index": i, "score": s} for i, s in scores])
        else:
            results = [{"index": i, "relevance_score": s} for i, s in scores]
            await x.reply_json({"results": results, "usage": {"total_tokens": 10}})

    return behave


# --- putting together -----------------------------------------------------------------------------


def sequence(*behaviours: Behaviour) -> Behaviour:
    """One after the other, a call each; the last one from then on."""
    left = list(behaviours)

    async def behave(x: Exchange) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(x)

    return behave


def after(seconds: float, behaviour: Behaviour) -> Behaviour:
    async def behave(x: Exchange) -> None:
        await asyncio.sleep(seconds)
        await behaviour(x)

    return behave


def together(count: int, behaviour: Behaviour) -> Behaviour:
    """Answers nobody before so many calls wait, then all of them."""
    waiting: list[asyncio.Future[None]] = []

    async def behave(x: Exchange) -> None:
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        if len(waiting) == count:
            for other in waiting:
                other.set_result(None)
            waiting.clear()
        await turn
        await behaviour(x)

    return behave


def by_path(routes: Mapping[str, Behaviour]) -> Behaviour:
    """By how the path ends; any other one is of a reranker."""

    async def behave(x: Exchange) -> None:
        path = x.call.path.partition("?")[0]
        for ending, behaviour in routes.items():
            if path.endswith(ending):
                return await behaviour(x)
        return await rerank()(x)

    return behave


# --- the server -----------------------------------------------------------------------------------


class FakeEndpoint:
    """A context manager. Read its lists when the client is done.

    ``calls`` are the requests that came whole, ``disconnects`` how many clients hung up before
    they were answered, ``most_at_once`` the most calls that were being answered at one time.
    """

    def __init__(self, behaviour: Behaviour | None = None, *, tls: bool = False) -> None:
        self.behaviour = behaviour or ok()
        self.calls: list[Call] = []
        self.disconnects = 0
        self.most_at_once = 0
        self.connections = 0
        self._now = 0
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="fake-endpoint", daemon=True)

    @property
    def base_url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> FakeEndpoint:
        self._thread.start()
        assert self._ready.wait(10), "the fake server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def wait_until(self, true: Callable[[FakeEndpoint], bool], timeout: float = 5.0) -> bool:
        """Whether it becomes true in time: what the server sees comes a moment after."""
        end = time.monotonic() + timeout
        while not true(self):
            if time.monotonic() > end:
                return False
            time.sleep(0.002)
        return True

    def _serve(self) -> None:
        context = None
        if self._tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
        self._loop.set_exception_handler(lambda *_: None)  # broken connections are the point
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=context, backlog=512)
        )
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            self._loop.run_until_complete(_end_all())
            self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One exchange of a connection; whether there may be another."""
        first = await reader.readexactly(1)
        if first == b"\x16":  # TLS, which this server was not told to speak
            writer.write(b"HTTP/1.1 400 -\r\nconnection: close\r\n\r\n")
            return False
        rest = await reader.readuntil(b"\r\n\r\n")
        head = (first + rest).decode("latin-1").split("\r\n")
        _, path, _ = head[0].split(" ", 2)
        fields = [line.partition(":") for line in head[1:] if line]
        headers = {name.lower(): value.strip() for name, _, value in fields}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        call = Call(path, headers, json.loads(body) if body else {})
        exchange = Exchange(call, len(self.calls), writer)
        self.calls.append(call)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        answering = asyncio.ensure_future(self.behaviour(exchange))
        # Nothing more comes before the answer is out, so that a read which ends says: gone.
        watching = asyncio.ensure_future(reader.read(1))
        try:
            done, _ = await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
            if answering not in done:
                self.disconnects += 1
                return False
            try:
                answering.result()
            except ConnectionError:
                self.disconnects += 1
                return False
            return not writer.transport.is_closing()
        finally:
            self._now -= 1
            for task in (answering, watching):
                task.cancel()
            await asyncio.gather(answering, watching, return_exceptions=True)


async def _end_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
