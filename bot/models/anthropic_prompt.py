"""Our requests in the words of the Messages API: plain JSON, so that it can be tested without the SDK.

One rule: the same request is the same bytes, or the prompt cache is lost.
"""

from dataclasses import dataclass
from typing import Final

from bot.models.history import says_something
from memory.ports import ChatMessage, Json, ModelRequest, TextBlock, ToolCall, ToolResult, ToolSpec

CACHE: Final[Json] = {"type": "ephemeral", "ttl": "1h"}
"""One hour: people answer after minutes, and a read costs a tenth of a write or less."""
_BREAKPOINTS: Final = 4
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """`has_free_breakpoint` says whether one is left for the newest history."""

    system: list[Json]
    messages: list[Json]
    tools: list[Json]
    has_free_breakpoint: bool


def build_prompt(request: ModelRequest, *, with_thinking: bool = True) -> Prompt:
    """Translate a request whose history was checked. Breakpoints go where `TextBlock.cache` asks, to the first four."""
    breakpoints = _Breakpoints()
    system = [breakpoints.text(block) for block in request.system if says_something(block)]
    messages = [_message(message, breakpoints, with_thinking=with_thinking) for message in request.messages]
    tools = [_tool(spec) for spec in sorted(request.tools, key=lambda spec: spec.name)]
    return Prompt(system, messages, tools, has_free_breakpoint=breakpoints.left > 0)


class _Breakpoints:
    """Those that a request may still set."""

    def __init__(self) -> None:
        self.left = _BREAKPOINTS

    def text(self, block: TextBlock) -> Json:
        if not block.cache or not self.left:
            return {"type": "text", "text": block.text}
        self.left -= 1
        return {"type": "text", "text": block.text, "cache_control": CACHE}


def _message(message: ChatMessage, breakpoints: _Breakpoints, *, with_thinking: bool) -> Json:
    raw = [block for block in message.raw if with_thinking or block.get("type") not in _THINKING]
    said = raw or [_block(block, breakpoints) for block in message.blocks if says_something(block)]
    return {"role": message.role, "content": said}


def _block(block: TextBlock | ToolCall | ToolResult, breakpoints: _Breakpoints) -> Json:
    if isinstance(block, TextBlock):
        return breakpoints.text(block)
    if isinstance(block, ToolCall):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    result: Json = {"type": "tool_result", "tool_use_id": block.call_id}
    if block.text.strip():
        result["content"] = block.text
    if block.is_error:
        result["is_error"] = True
    return result


def _tool(spec: ToolSpec) -> Json:
    tool: Json = {"name": spec.name, "description": spec.description, "input_schema": spec.schema}
    if spec.schema.get("additionalProperties") is False:
        tool["strict"] = True
    return tool
