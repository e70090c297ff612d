"""Language and vision models behind an OpenAI-compatible chat endpoint."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from bookrag_fast.config import ChatModelSettings
from bookrag_fast.errors import ModelError, ModelRefusedError
from bookrag_fast.models.counting import count_tokens, is_count, prompt_tokens
from bookrag_fast.models.endpoints.client import EndpointClient
from bookrag_fast.models.endpoints.faults import StatusRefusedError
from bookrag_fast.models.endpoints.manners import ChatManner
from bookrag_fast.models.endpoints.schemas import response_format
from bookrag_fast.models.endpoints.texts import well_formed
from bookrag_fast.models.protocols import (
    ChatRequest,
    Completion,
    Message,
    ModelInfo,
    TokenUsage,
)
from bookrag_fast.prompts import load_prompt

__all__ = ["ChatEndpoint"]

_PATH = "/chat/completions"
_REPLY_BYTES = 4 << 20  # of a whole reply
_EVENTS_BYTES = 32 << 20  # of a streamed one: an event of some 300 bytes a token


class ChatEndpoint:
    """Implements `protocols.VisionModel`. Calls run on one loop; one attempt a call, without a
    deadline but that of a silent connection: those are the middleware's."""

    def __init__(self, name: str, settings: ChatModelSettings) -> None:
        self._settings = settings
        self._client = EndpointClient(
            name,
            settings,
            reply_limit=_REPLY_BYTES,
            events_limit=_EVENTS_BYTES,
            api_version=settings.api_version,
        )
        self._info = ModelInfo(name, settings.model, settings.context_tokens)
        self._manner = (
            ChatManner()
            if settings.structured == "auto"
            else ChatManner(settings.structured, fixed=True)
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def max_images(self) -> int:
        return self._settings.max_images if self._settings.vision else 0

    async def complete(self, request: ChatRequest) -> Completion:
        self._check(request)
        while True:
            manner = self._manner
            try:
                reply = await self._client.post(_PATH, self._body(request, manner))
                break
            except StatusRefusedError as refusal:
                self._mend(manner, refusal, request, streamed=False)
        with self._client.faults.billed(reply.get("usage") if isinstance(reply, Mapping) else None):
            return self._read(reply, request)

    async def complete_batch(
        self, requests: Sequence[ChatRequest]
    ) -> list[Completion | ModelError]:
        async def alone(request: ChatRequest) -> Completion | ModelError:
            try:
                return await self.complete(request)
            except ModelError as error:
                return error

        return list(await asyncio.gather(*map(alone, requests)))

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | Completion, None]:
        self._check(request)
        while True:
            manner = self._manner
            body = self._body(request, manner)
            if manner.stream_usage:
                body["stream_options"] = {"include_usage": True}
            try:
                async with aclosing(self._streamed(body, request)) as parts:
                    async for part in parts:
                        yield part
                return
            except StatusRefusedError as refusal:  # comes before any piece
                self._mend(manner, refusal, request, streamed=True)

    async def aclose(self) -> None:
        await self._client.aclose()

    # --- asking ---------------------------------------------------------------------------------

    def _check(self, request: ChatRequest) -> None:
        images = sum(len(message.images) for message in request.messages)
        if images > self.max_images:
            where = f"models.{self._info.name}"
            raise ModelRefusedError(
                f"model {self._info.name!r} takes {self.max_images} images, not {images}",
                f"set {where}.vision and {where}.max_images if it can see so many",
            )

    def _mend(
        self, used: ChatManner, refusal: StatusRefusedError, request: ChatRequest, *, streamed: bool
    ) -> None:
        """Another manner for the next try, or the refusal itself."""
        other = used.after(refusal, structured=request.schema is not None, streamed=streamed)
        if other is None:
            raise refusal
        if self._manner == used:  # else another call has learnt something meanwhile
            self._manner = other

    def _body(self, request: ChatRequest, manner: ChatManner) -> dict[str, Any]:
        messages = [_message(message) for message in request.messages]
        body: dict[str, Any] = {
            "model": self._settings.model,
            "messages": messages,
            manner.completion_limit: min(request.max_tokens, self._settings.max_tokens),
        }
        if manner.temperature:
            body["temperature"] = request.temperature
        if request.schema is not None:
            if manner.structured == "schema":
                body["response_format"] = response_format(request.schema)
            else:
                _ask_for_json(messages, request)
            if manner.structured == "json":
                body["response_format"] = {"type": "json_object"}
        return body | self._settings.extra_body

    # --- reading --------------------------------------------------------------------------------

    def _read(self, reply: object, request: ChatRequest) -> Completion:
        choices = reply.get("choices") if isinstance(reply, Mapping) else None
        if not isinstance(reply, Mapping) or not isinstance(choices, list):
            self._client.faults.reply("sent something else than a chat completion")
        choice = choices[0] if choices else None
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
            self._client.faults.reply("sent a completion without a choice")
        text = _text(message.get("content"))
        if text is None:
            self._client.faults.reply("sent a completion whose content is no text")
        return Completion(
            text, _usage(reply.get("usage"), request, text), _finish(choice.get("finish_reason"))
        )

    async def _streamed(
        self, body: dict[str, Any], request: ChatRequest
    ) -> AsyncGenerator[str | Completion, None]:
        pieces: list[str] = []
        finish: object = None
        usage: object = None
        async with aclosing(self._client.events(_PATH, body)) as events:
            async for event in events:
                if not isinstance(event, Mapping):
                    self._client.faults.reply("sent an event that is no completion's")
                usage = event.get("usage") or usage
                choices = event.get("choices")
                choice = choices[0] if isinstance(choices, list) and choices else None
                if not isinstance(choice, Mapping):
                    continue
                finish = choice.get("finish_reason") or finish
                delta = choice.get("delta")
                piece = _text(delta.get("content")) if isinstance(delta, Mapping) else None
                if piece:
                    pieces.append(piece)
                    yield piece
        if finish is None:
            # A connection that is closed looks like an end; a completion's end has a reason.
            if not pieces:
                self._client.faults.reply("sent a stream without a completion")
            self._client.faults.broken_off()
        text = "".join(pieces)
        yield Completion(text, _usage(usage, request, text), _finish(finish))


def _message(message: Message) -> dict[str, Any]:
    text = well_formed(message.text)
    if not message.images:
        return {"role": message.role, "content": text}
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for image in message.images:
        data = base64.b64encode(image.data).decode("ascii")
        url = f"data:{image.media_type};base64,{data}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": message.role, "content": parts}


def _ask_for_json(messages: list[dict[str, Any]], request: ChatRequest) -> None:
    """Say the schema in words, in the system's message."""
    prompt = load_prompt("json_reply", "ja" if request.prompt.endswith("/ja") else "en")
    schema = json.dumps(request.schema, ensure_ascii=False)
    said = prompt.render({"schema": schema}).system
    if messages and messages[0]["role"] == "system":
        messages[0]["content"] += f"\n\n{said}"
    else:
        messages.insert(0, {"role": "system", "content": said})


def _text(content: object) -> str | None:
    """A message's text; "" for one that has none (thoughts alone), None for what is no content."""
    if content is None:
        return ""
    if isinstance(content, str):
        return well_formed(content)
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return well_formed("".join(part for part in parts if isinstance(part, str)))
    return None


def _finish(reason: object) -> str:
    return reason[:32] if isinstance(reason, str) and reason else "stop"


def _usage(stated: object, request: ChatRequest, text: str) -> TokenUsage:
    """As the server states it, number by number; estimated where it does not."""
    known = stated if isinstance(stated, Mapping) else {}
    prompt, completion = known.get("prompt_tokens"), known.get("completion_tokens")
    return TokenUsage(
        prompt if is_count(prompt) else prompt_tokens(request.messages),
        completion if is_count(completion) else count_tokens(text),
        calls=1,
    )
