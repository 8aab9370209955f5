"""One message at a time: its fields, its role, and each block by its kind."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from tests.fakes.messages_api.catalogue import CLEAR_AT, COMPACT, COMPACT_AT_THRESHOLD, EFFORT_PER_MESSAGE, TOOL_CHANGES
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.wire import Json, blocks, listing, mapping, mappings, refuse

REQUIRED: Final[Mapping[str, str]] = {
    "text": "text",
    "image": "source",
    "document": "source",
    "search_result": "content source title",
    "tool_use": "id input name",
    "tool_result": "tool_use_id",
    "thinking": "signature thinking",
    "redacted_thinking": "data",
    "server_tool_use": "id input name",
    "web_search_tool_result": "content tool_use_id",
    "web_fetch_tool_result": "content tool_use_id",
    "advisor_tool_result": "content tool_use_id",
    "container_upload": "file_id",
    "compaction": "",
    "fallback": "from to",
    "tool_addition": "tool",
    "tool_removal": "tool",
    "tool_reference": "tool_name",
}
OPTIONAL: Final[Mapping[str, str]] = {
    "text": "cache_control citations",
    "image": "cache_control transformations",
    "document": "cache_control citations context title",
    "search_result": "cache_control citations",
    "tool_use": "cache_control caller toolset_name",
    "tool_result": "cache_control content is_error toolset_name",
    "server_tool_use": "cache_control caller",
    "web_search_tool_result": "cache_control caller",
    "web_fetch_tool_result": "cache_control caller",
    "advisor_tool_result": "cache_control",
    "container_upload": "cache_control",
    "compaction": "cache_control content encrypted_content signature tool_changes",
    "fallback": "trigger",
    "tool_addition": "cache_control",
    "tool_removal": "cache_control",
    "tool_reference": "cache_control",
}
TAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "user": ("text", "image", "document", "search_result", "tool_result", "container_upload"),
    "assistant": (
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "advisor_tool_result",
        "compaction",
        "fallback",
    ),
    "system": ("text", "tool_addition", "tool_removal"),
    "tool_result": ("text", "image", "document", "search_result", "tool_reference"),
    "top-level system": ("text",),
}
MESSAGE_FIELDS: Final[Mapping[str, frozenset[str] | None]] = {
    "role": None,
    "content": None,
    "clear_at": frozenset({CLEAR_AT}),
    "output_config": frozenset({EFFORT_PER_MESSAGE}),
}
BLOCK_BETAS: Final[Mapping[str, frozenset[str]]] = {
    "compaction": frozenset({COMPACT, COMPACT_AT_THRESHOLD}),
    "tool_addition": TOOL_CHANGES,
    "tool_removal": TOOL_CHANGES,
}
ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
IMAGES: Final[Mapping[str, bytes]] = {
    "image/jpeg": b"\xff\xd8",
    "image/png": b"\x89PNG",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def check_blocks(request: Request) -> None:
    """Check `system` and every message."""
    system = request.body.get("system")
    if system is not None and not isinstance(system, str):
        if listing(system) is None:
            refuse("system: Input should be a valid string or list")
        for index, block in enumerate(mappings(system)):
            _check_block(block, f"system.{index}", "top-level system", request.betas)
    messages = listing(request.body.get("messages"))
    if messages is None:
        refuse("messages: Field required")
    if not messages:
        refuse("messages: at least one message is required")
    for index, entry in enumerate(messages):
        message = mapping(entry)
        if message is None:
            refuse(f"messages.{index}: Input should be a valid dictionary")
        _check_message(message, f"messages.{index}", request.betas)


def _check_message(message: Json, path: str, betas: frozenset[str]) -> None:
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        refuse(f"{path}.role: Input should be 'user' or 'assistant'")
    for name in message:
        needs = MESSAGE_FIELDS.get(name, frozenset[str]())
        if needs is not None and (role != "system" or not needs & betas):
            refuse(f"{path}.{name}: Extra inputs are not permitted")
    content = message.get("content")
    if content is None and "content" not in message and role != "system":
        refuse(f"{path}.content: Field required")
    if content in ("", []) and "output_config" not in message:
        refuse(f"{path}: all messages must have non-empty content except for the optional final assistant message")
    if isinstance(content, str):
        _check_text({"type": "text", "text": content}, path)
        return
    if listing(content) is None or len(listing(content) or []) != len(mappings(content)):
        refuse(f"{path}.content: Input should be a valid list of content blocks")
    for index, block in enumerate(mappings(content)):
        _check_block(block, f"{path}.content.{index}", str(role), betas)


def _check_block(block: Json, path: str, place: str, betas: frozenset[str]) -> None:
    kind = str(block.get("type"))
    tags = [tag for tag in TAGS[place] if tag not in BLOCK_BETAS or BLOCK_BETAS[tag] & betas]
    if kind not in tags:
        expected = ", ".join(f"'{tag}'" for tag in tags)
        refuse(f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {expected}")
    _check_fields(block, kind, f"{path}.{kind}")
    match kind:
        case "text":
            _check_text(block, path)
            if place == "user" and block.get("citations"):
                refuse(f"{path}.text.citations: citations are not permitted on text blocks of user messages")
        case "image" | "document":
            _check_source(block, f"{path}.{kind}")
        case "tool_use" | "server_tool_use":
            _check_call(block, f"{path}.{kind}")
        case "tool_result":
            _check_result(block, path, betas)
        case _:
            pass


def _check_fields(block: Json, kind: str, path: str) -> None:
    """Exactly the fields of its kind, none of them null (a compaction that failed has null content)."""
    required = REQUIRED[kind].split()
    known = {"type", *required, *OPTIONAL.get(kind, "").split()}
    for name, value in block.items():
        if name not in known or (value is None and (kind, name) != ("compaction", "content")):
            refuse(f"{path}.{name}: Extra inputs are not permitted")
    for name in required:
        if name not in block:
            refuse(f"{path}.{name}: Field required")


def _check_text(block: Json, path: str) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        refuse(f"{path}.text.text: Input should be a valid string")
    if not text and "cache_control" in block:
        refuse(f"{path}.text: cache_control cannot be set for empty text blocks")
    where = path.split(".", maxsplit=1)[0]
    if not text:
        refuse(f"{where}: text content blocks must be non-empty")
    if not text.strip():
        refuse(f"{where}: text content blocks must contain non-whitespace text")


def _check_call(block: Json, path: str) -> None:
    _check_id(block["id"], f"{path}.id")
    if mapping(block["input"]) is None:
        refuse(f"{path}.input: Input should be a valid dictionary")
    if not block["name"]:
        refuse(f"{path}.name: String should have at least 1 character")


def _check_result(block: Json, path: str, betas: frozenset[str]) -> None:
    _check_id(block["tool_use_id"], f"{path}.tool_result.tool_use_id")
    content = block.get("content")
    if isinstance(content, str) or content is None:
        return
    for index, part in enumerate(blocks(content)):
        _check_block(part, f"{path}.tool_result.content.{index}", "tool_result", betas)


def _check_id(value: object, path: str) -> None:
    if not ID.fullmatch(str(value)):
        refuse(f"{path}: String should match pattern '^{ID.pattern}$'")


def _check_source(block: Json, path: str) -> None:
    source = mapping(block["source"]) or {}
    kind = source.get("type")
    known = ("base64", "url", "file") if path.endswith("image") else ("base64", "url", "file", "text", "content")
    if kind not in known:
        refuse(f"{path}.source: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    if kind != "base64":
        return
    media = str(source.get("media_type"))
    if path.endswith("image") and media not in IMAGES:
        expected = ", ".join(f"'{name}'" for name in IMAGES)
        refuse(f"{path}.source.base64.media_type: Input should be {expected}")
    try:
        data = base64.b64decode(str(source.get("data", "")), validate=True)
    except binascii.Error:
        refuse(f"{path}.source.base64.data: Invalid base64 data")
    if not data.startswith(IMAGES.get(media, b"%PDF" if path.endswith("document") else b"")):
        refuse(f"{path}.source.base64: Could not process image")
