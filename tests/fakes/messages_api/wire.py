"""The shapes every part of the stand-in shares: JSON access, refusals, turns, weights. Nothing here decides."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, cast

Json = dict[str, Any]

ERROR_TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
IMAGE_TOKENS: Final = 1_500  # a picture costs by its size in pixels, not by its bytes


class ApiError(Exception):
    """An HTTP error of the API. `is_violation` marks what a client did wrong, unlike an outage or a full window."""

    def __init__(self, status: int, message: str, *, code: str | None = None, is_violation: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.is_violation = is_violation

    def body(self, request_id: str) -> Json:
        return error_body(self.status, self.message, request_id, code=self.code)


def error_body(status: int, message: str, request_id: str, *, code: str | None = None) -> Json:
    error: Json = {"type": ERROR_TYPES.get(status, "api_error"), "message": message}
    if code is not None:
        error["details"] = {"error_code": code}
    return {"type": "error", "error": error, "request_id": request_id}


def refuse(message: str, *, status: int = 400, code: str | None = None) -> NoReturn:
    """Turn the request down for breaking a rule of the API."""
    raise ApiError(status, message, code=code, is_violation=True)


def mapping(value: Any) -> Json | None:
    return cast("Json", value) if isinstance(value, dict) else None


def listing(value: Any) -> list[Any] | None:
    return cast("list[Any]", value) if isinstance(value, list) else None


def mappings(value: Any) -> list[Json]:
    """The JSON objects in a list; anything else is left out."""
    found = (mapping(entry) for entry in listing(value) or [])
    return [entry for entry in found if entry is not None]


def blocks(content: Any) -> list[Json]:
    """Content as blocks: a string is short for one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return mappings(content)


def bare(block: Json) -> Json:
    """The block as the model sees it: a cache breakpoint is not part of it."""
    return {key: value for key, value in block.items() if key != "cache_control"}


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def canonical(block: Json) -> str:
    """One text per block. The order of its own keys is our client's affair; inside a value it reaches the prompt."""
    return dumps({key: block[key] for key in sorted(block)})


def size(text: str) -> int:
    """Tokens of a text: its UTF-8 bytes by four, at least one."""
    return max(1, len(text.encode("utf-8", "surrogatepass")) // 4)


def weigh(block: Json) -> int:
    """Tokens of one block, tool or system entry."""
    source = mapping(block.get("source")) or {}
    if source.get("type") == "base64":
        return IMAGE_TOKENS
    return size(canonical(bare(block)))


def text_of(block: Json) -> str:
    """All text of one block, with what is nested in it."""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "tool_use" | "server_tool_use":
            return dumps(block.get("input"))
        case "document" if (source := mapping(block.get("source")) or {}).get("type") == "text":
            return f"{block.get('title') or ''}\n{block.get('context') or ''}\n{source.get('data', '')}"
        case "search_result":
            return "\n".join([str(block.get("title", "")), str(block.get("source", "")), join_texts(block)])
        case "thinking":
            return str(block.get("thinking", ""))
        case _:
            return join_texts(block)


def join_texts(holder: Json) -> str:
    """Text of everything under `content`, one line a block."""
    content = holder.get("content")
    if nested := mapping(content):
        return text_of(nested)
    return "\n".join(text_of(block) for block in blocks(content))


@dataclass
class Turn:
    """Consecutive messages of one role, which the API reads as one. `index` is that of the first."""

    role: str
    index: int
    blocks: list[Json] = field(default_factory=list[Json])


def turns(messages: Iterable[Json]) -> list[Turn]:
    """User and assistant turns; system messages stand outside of them."""
    found: list[Turn] = []
    for index, message in enumerate(messages):
        role = str(message.get("role"))
        if role == "system":
            continue
        if not found or found[-1].role != role:
            found.append(Turn(role, index))
        found[-1].blocks.extend(blocks(message.get("content")))
    return found
