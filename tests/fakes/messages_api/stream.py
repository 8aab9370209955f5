"""One message as server-sent events, in the order and grain of the API."""

import re
from collections.abc import Iterator
from typing import Any, Final

from tests.fakes.messages_api.wire import Json, dumps

Event = tuple[str, dict[str, Any]]
GRAIN: Final = 12  # characters a delta carries, about
DELTA: Final = "content_block_delta"
LATE: Final = ("context_management", "input_transformations")  # told in message_delta


def events(message: Json) -> Iterator[Event]:
    """All events of a message, from message_start to message_stop."""
    usage: Json = message["usage"]
    opening = {name: value for name, value in message.items() if name not in (*LATE, "stop_details")}
    early = {name: value for name, value in usage.items() if name not in ("iterations", "output_tokens_details")}
    opening |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": early | {"output_tokens": 1}}
    yield "message_start", {"message": opening}
    for index, block in enumerate(message["content"]):
        yield from _block(index, block)
        if index == 0:
            yield "ping", {}
    delta: Json = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
    if "stop_details" in message:
        delta["stop_details"] = message["stop_details"]
    late = {name: message[name] for name in LATE if name in message}
    cumulative = {name: value for name, value in usage.items() if name not in ("cache_creation", "service_tier")}
    yield "message_delta", {"delta": delta, "usage": cumulative, **late}
    yield "message_stop", {}


def encode(event: Event) -> bytes:
    name, data = event
    return f"event: {name}\ndata: {dumps({'type': name, **data})}\n\n".encode("utf-8", "surrogatepass")


def _block(index: int, block: Json) -> Iterator[Event]:
    start, deltas = _parts(block)
    yield "content_block_start", {"index": index, "content_block": start}
    for delta in deltas:
        yield DELTA, {"index": index, "delta": delta}
    yield "content_block_stop", {"index": index}


def _parts(block: Json) -> tuple[Json, list[Json]]:
    """The block as it starts, and the deltas that complete it."""
    match block["type"]:
        case "text":
            return block | {"text": ""}, [{"type": "text_delta", "text": part} for part in pieces(block["text"])]
        case "thinking":
            shown = [{"type": "thinking_delta", "thinking": part} for part in pieces(block["thinking"])]
            signature = {"type": "signature_delta", "signature": block["signature"]}
            return block | {"thinking": "", "signature": ""}, [*shown, signature]
        case "tool_use" | "server_tool_use":
            parts = pieces(dumps(block["input"])) if block["input"] else []
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in ("", *parts)]
            return block | {"input": {}}, deltas
        case "compaction" if "encrypted_content" in block:
            delta = {name: block[name] for name in ("content", "encrypted_content")}
            return {"type": "compaction", "content": None}, [{"type": "compaction_delta", **delta}]
        case _:
            return block, []  # results and signed compactions arrive whole


def pieces(text: str) -> list[str]:
    """A text in pieces of about GRAIN characters that end after white space where there is any."""
    return re.findall(rf"(?s).{{1,{GRAIN}}}(?:\s|$)|.{{1,{GRAIN}}}", text)
