"""Answers of the Messages API, byte for byte, and the ways to ask for one."""

import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from bot.models.anthropic import AnthropicModel
from memory.ports import Finished, Json, ModelError, ModelEvent, ModelRequest, Tier
from tests.fakes.canned_http import Canned
from tests.fakes.histories import user

MESSAGES = "/v1/messages"
MODELS = {Tier.DEFAULT: "claude-sonnet-5-5", Tier.SMALL: "claude-haiku-5-5"}
QUICK = {"retry-after-ms": "1"}
ASK = ModelRequest((user("hi"),))
TOOL: Json = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"q": "Köln"}}
THINKING: Json = {"type": "thinking", "thinking": "", "signature": "c2ln"}
PAUSED: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
STRICT: Json = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}


def sse(name: str, **data: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def start(**usage: int) -> bytes:
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": []}
    counted = {"input_tokens": 7, "output_tokens": 1, **usage}
    return sse("message_start", message=message | {"stop_reason": None, "stop_sequence": None, "usage": counted})


def block(index: int, content: Mapping[str, Any]) -> bytes:
    """A content block, its text or input in one delta."""
    opening: Json
    delta: Json
    match content["type"]:
        case "text":
            opening, delta = {**content, "text": ""}, {"type": "text_delta", "text": content["text"]}
        case "thinking":
            opening, delta = {**content, "signature": ""}, {"type": "signature_delta", "signature": "c2ln"}
        case _:
            opening = {**content, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(content["input"])}
    return (
        sse("content_block_start", index=index, content_block=opening)
        + sse("content_block_delta", index=index, delta=delta)
        + sse("content_block_stop", index=index)
    )


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def end(stop: str | None) -> bytes:
    delta = {"stop_reason": stop, "stop_sequence": None}
    return sse("message_delta", delta=delta, usage={"output_tokens": 5}) + sse("message_stop")


def answer(*content: Mapping[str, Any], stop: str = "end_turn", usage: Mapping[str, int] | None = None) -> Canned:
    body = start(**usage or {}) + b"".join(block(index, each) for index, each in enumerate(content)) + end(stop)
    return Canned(body, headers={"content-type": "text/event-stream", "request-id": "req_1"})


def error(status: int, kind: str, message: str = "no", *, code: str | None = None, **headers: str) -> Canned:
    details = {"details": {"error_code": code}} if code else {}
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message, **details}}).encode()
    return Canned(body, status, QUICK | {"content-type": "application/json"} | headers)


async def run(claude: AnthropicModel, request: ModelRequest) -> tuple[list[ModelEvent], ModelError | None]:
    events: list[ModelEvent] = []
    try:
        async with aclosing(claude.stream(request)) as stream:
            async for event in stream:
                events.append(event)  # noqa: PERF401 (what came before an error is part of the result)
    except ModelError as err:
        return events, err
    return events, None


async def finish(claude: AnthropicModel, request: ModelRequest) -> Finished:
    events, err = await run(claude, request)
    assert err is None
    assert isinstance(events[-1], Finished)
    return events[-1]


async def fail(claude: AnthropicModel, request: ModelRequest = ASK) -> ModelError:
    _, err = await run(claude, request)
    assert err is not None
    return err


def info(**fields: object) -> Canned:
    about = {"id": "claude-sonnet-5-5", "type": "model", "display_name": "S", "created_at": "2026-09-28T00:00:00Z"}
    return Canned(json.dumps(about | fields).encode(), headers={"content-type": "application/json"})
