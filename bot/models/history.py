"""What every provider demands of a history, checked before anything is sent.

One rule: this only judges. Repairing a broken history belongs to whoever loads it.
"""

import re
from collections.abc import Sequence
from itertools import groupby

from memory.ports import ChatMessage, Failure, ModelError, ModelRequest, TextBlock, ToolCall, ToolResult

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def check_history(messages: Sequence[ChatMessage], *, may_end_answered: bool = False) -> None:
    """Raise `ModelError(BAD_REQUEST)` unless a model can answer these messages.

    They begin and end with the user, none is empty, and every tool call is answered exactly once, by a result at the
    beginning of what the user side says next. Neighbours of one role count as one message, as providers merge them.
    `may_end_answered`: nothing is asked, so that they may end with an answer.
    """
    if not messages:
        raise _broken("the history is empty")
    if messages[0].role != "user" or (messages[-1].role != "user" and not may_end_answered):
        raise _broken("the history must begin and end with a user message")
    for number, message in enumerate(messages):
        if not any(says_something(block) for block in message.blocks):
            raise _broken(f"message {number} is empty")
    seen: set[str] = set()
    open_calls: list[str] = []
    for role, group in groupby(messages, key=lambda message: message.role):
        blocks = [block for message in group for block in message.blocks]
        if role == "user":
            _check_results(blocks, open_calls)
            open_calls = []
        else:
            open_calls = _check_calls(blocks, seen)
    if open_calls:
        raise _broken(f"tool calls {sorted(open_calls)} are not answered")


def open_loop(messages: Sequence[ChatMessage]) -> int:
    """Where the tool loop begins that is still open: the first message after a person's newest words."""
    for index in range(len(messages) - 1, -1, -1):
        said = messages[index]
        if said.role == "user" and any(isinstance(block, TextBlock) and says_something(block) for block in said.blocks):
            return index + 1
    return 0


def with_told(request: ModelRequest) -> tuple[ChatMessage, ...]:
    """The messages, with a compaction in front of them in words: for a model that cannot read its block."""
    if request.compacted is None:
        return request.messages
    return (ChatMessage("user", (TextBlock(request.compacted.text),)), *request.messages)


def says_something(block: TextBlock | ToolCall | ToolResult) -> bool:
    """Whether a block may be sent: providers refuse blank text."""
    return not isinstance(block, TextBlock) or bool(block.text.strip())


def _check_calls(blocks: Sequence[TextBlock | ToolCall | ToolResult], seen: set[str]) -> list[str]:
    if any(isinstance(block, ToolResult) for block in blocks):
        raise _broken("an assistant message holds a tool result")
    calls = [block.id for block in blocks if isinstance(block, ToolCall)]
    for call in calls:
        if not _CALL_ID.fullmatch(call):
            raise _broken(f"tool call id {call!r} holds more than letters, digits, _ and -")
        if call in seen:
            raise _broken(f"tool call {call} appears twice")
        seen.add(call)
    return calls


def _check_results(blocks: Sequence[TextBlock | ToolCall | ToolResult], calls: Sequence[str]) -> None:
    if any(isinstance(block, ToolCall) for block in blocks):
        raise _broken("a user message holds a tool call")
    is_result = [isinstance(block, ToolResult) for block in blocks if says_something(block)]
    if is_result != sorted(is_result, reverse=True):
        raise _broken("tool results must come before the text of a user message")
    answered = [block.call_id for block in blocks if isinstance(block, ToolResult)]
    if sorted(answered) != sorted(calls):
        raise _broken(f"tool calls {sorted(calls)} are answered by results for {sorted(answered)}")


def _broken(detail: str) -> ModelError:
    return ModelError(Failure.BAD_REQUEST, f"history: {detail}")
