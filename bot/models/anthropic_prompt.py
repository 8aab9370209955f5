"""Our requests in the words of the Messages API: plain JSON, so that it can be tested without the SDK.

One rule: the same request is the same bytes, or the prompt cache is lost. Of the blocks that the API once sent, those
on a white list go back, and thinking only within the tool loop that it opened.
"""

import json
from dataclasses import dataclass
from typing import Final

from bot.models.history import open_loop, says_something, with_told
from memory.ports import ChatMessage, Json, ModelRequest, TextBlock, ToolCall, ToolResult, ToolSpec

CACHE: Final[Json] = {"type": "ephemeral", "ttl": "1h"}
"""One hour: people answer after minutes, and a read costs a tenth of a write or less."""
LOOP_CACHE: Final[Json] = {"type": "ephemeral"}
"""Five minutes: the next round of a tool loop follows at once."""
_BREAKPOINTS: Final = 4
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_GO_BACK: Final = frozenset({"text", "tool_use", "compaction"})
"""What of a raw answer may be sent again."""
_BYTES_PER_TOKEN: Final = 3
"""Low on purpose: English has about four, German and JSON three."""


@dataclass(frozen=True, slots=True)
class Prompt:
    system: list[Json]
    messages: list[Json]
    tools: list[Json]
    caches_loop: bool
    """A tool loop is open, or may begin, and a breakpoint is left for its newest round.

    That costs a quarter more of the newest turn and saves all of it in the next round: even at one turn in six.
    """
    compacted: Json | None = None
    """The compaction block that the messages begin with."""

    def guess_tokens(self) -> int:
        """About how many tokens it has."""
        told = json.dumps([self.system, self.messages, self.tools], ensure_ascii=False)
        return len(told.encode(errors="replace")) // _BYTES_PER_TOKEN


def build_prompt(request: ModelRequest, *, model: str = "", with_thinking: bool = True) -> Prompt:
    """Translate a request whose history was checked. Breakpoints go where `TextBlock.cache` asks, to the first four.

    `model` is who will read it: a compaction block goes back to its maker only, everybody else is told in words.
    """
    breakpoints = _Breakpoints()
    system = [breakpoints.text(block) for block in request.system if says_something(block)]
    block = request.compacted.block if request.compacted is not None and request.compacted.model == model else None
    told = with_told(request) if block is None else request.messages
    loop = open_loop(told)
    messages: list[Json] = [] if block is None else [{"role": "assistant", "content": [block]}]
    for index, message in enumerate(told):
        raw = _sendable(message, with_thinking=with_thinking) if index >= loop else []
        said = raw or [_block(each, breakpoints) for each in message.blocks if says_something(each)]
        messages.append({"role": message.role, "content": said})
    tools = [_tool(spec) for spec in sorted(request.tools, key=lambda spec: spec.name)]
    may_loop = bool(tools) or loop < len(told)
    caches_loop = may_loop and told[-1].role == "user" and breakpoints.left > 0
    return Prompt(system, messages, tools, caches_loop=caches_loop, compacted=block)


class _Breakpoints:
    """Those that a request may still set."""

    def __init__(self) -> None:
        self.left = _BREAKPOINTS

    def text(self, block: TextBlock) -> Json:
        if not block.cache or not self.left:
            return {"type": "text", "text": block.text}
        self.left -= 1
        return {"type": "text", "text": block.text, "cache_control": CACHE}


def _sendable(message: ChatMessage, *, with_thinking: bool) -> list[Json]:
    """The raw blocks that may go back; none where they do not make the very calls that are answered."""
    kinds = _GO_BACK | _THINKING if with_thinking else _GO_BACK
    kept = [block for block in message.raw if block.get("type") in kinds and not _is_blank(block)]
    calls = [block.id for block in message.blocks if isinstance(block, ToolCall)]
    return kept if [block["id"] for block in kept if block["type"] == "tool_use"] == calls else []


def _is_blank(block: Json) -> bool:
    return block["type"] == "text" and not str(block.get("text", "")).strip()


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
