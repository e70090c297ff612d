"""Every way in which a `FakeEndpoint` can fail: behaviours like those that work."""

from __future__ import annotations

import asyncio
import json

from fake_endpoint import Behaviour, Exchange, chat, delta


def status(code: int, message: str = "it failed", **headers: str) -> Behaviour:
    """An error; ``retry_after="2"`` becomes the header Retry-After."""
    lines = {name.replace("_", "-"): value for name, value in headers.items()}

    async def behave(x: Exchange) -> None:
        body = json.dumps({"error": {"message": message, "type": "fake", "code": None}})
        await x.reply(body.encode(), code, lines)

    return behave


def raw(body: bytes | str, code: int = 200, **headers: str) -> Behaviour:
    """Exactly these bytes."""
    lines = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body.encode() if isinstance(body, str) else body

    async def behave(x: Exchange) -> None:
        await x.reply(data, code, lines)

    return behave


def hang() -> Behaviour:
    """Takes the request and never answers."""

    async def behave(x: Exchange) -> None:
        await asyncio.Event().wait()

    return behave


def drip(interval: float = 0.02) -> Behaviour:
    """A good beginning, then a byte now and then, for ever."""

    async def behave(x: Exchange) -> None:
        if x.call.body.get("stream"):
            await x.start_events()
            while True:
                await x.event(delta(content="."))
                await asyncio.sleep(interval)
        await x.start(200, {"content-type": "application/json", "content-length": "1000000"})
        while True:
            await x.send(b" ")
            await asyncio.sleep(interval)

    return behave


def disconnect(*, events: int = 2) -> Behaviour:
    """Hangs up in the middle: of the body, or after so many events of a stream."""

    async def behave(x: Exchange) -> None:
        if x.call.body.get("stream"):
            await x.start_events()
            for _ in range(events):
                await x.event(delta(content="half "))
        else:
            await x.start(200, {"content-type": "application/json", "content-length": "1000"})
            await x.send(b'{"choices": [{"mess')
        await asyncio.sleep(0.01)  # what was said gets through first
        x.hang_up()

    return behave


def refuse() -> Behaviour:
    """Hangs up without a word."""

    async def behave(x: Exchange) -> None:
        x.hang_up()

    return behave


def garbage(data: bytes = b"SSH-2.0-OpenSSH_9.2\r\n\r\n") -> Behaviour:
    """What is no HTTP."""

    async def behave(x: Exchange) -> None:
        await x.send(data)
        x.writer.close()

    return behave


def invalid_json() -> Behaviour:
    """A body that is no JSON, or an event that is none."""

    async def behave(x: Exchange) -> None:
        if x.call.body.get("stream"):
            await x.start_events()
            await x.event("{not json")
            await x.chunk(b"")
        else:
            await x.reply(b'{"choices": [{"message": {"content": "po')

    return behave


def empty_choices() -> Behaviour:
    async def behave(x: Exchange) -> None:
        if x.call.body.get("stream"):
            await x.start_events()
            await x.event({"choices": []})
            await x.event("[DONE]")
            await x.chunk(b"")
        else:
            usage = {"prompt_tokens": 7, "completion_tokens": 3}
            await x.reply_json({"choices": [], "usage": usage})

    return behave


def think_only() -> Behaviour:
    """Thoughts without a reply after them."""
    return chat("<think>The user wants a reply. What could it be? I wonder")


def truncated_json(text: str = '{"items": ["one", "two", "thr') -> Behaviour:
    """A reply cut off at its most tokens."""
    return chat(text, finish="length")


def huge(size: int = 10_000_000, *, declared: bool = True) -> Behaviour:
    """A reply of so many bytes, its length said before or not."""

    async def behave(x: Exchange) -> None:
        block = b"x" * 65536
        if declared:
            await x.start(200, {"content-type": "application/json", "content-length": str(size)})
        else:
            await x.start(200, {"content-type": "application/json", "transfer-encoding": "chunked"})
        for left in range(size, 0, -len(block)):
            await (x.send if declared else x.chunk)(block[:left])
        if not declared:
            await x.chunk(b"")

    return behave


def redirect(to: str = "http://127.0.0.1:9/elsewhere") -> Behaviour:
    return raw(b"", 307, location=to)
