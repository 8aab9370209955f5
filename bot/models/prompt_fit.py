"""A request as a short chat for a small model: what stays when not everything fits.

One rule: pure; sizes are UTF-8 bytes.
"""

from itertools import groupby
from typing import Final

from bot.models.history import with_told
from memory.ports import ChatMessage, Json, ModelRequest, TextBlock, ToolResult

_SYSTEM: Final = "You are a helpful assistant."
"""Without a system text some templates bring in their maker's."""
_PER_TURN: Final = 16
"""What a chat template adds to a turn, in bytes of text."""
_ELLIPSIS: Final = " … "


def fit(request: ModelRequest, size: int) -> list[Json]:
    """Return OpenAI-style messages of at most `size` bytes: the system text, the newest turn, and what else fits.

    Roles alternate and the first turn is the user's. If even system and newest turn are too long, the system text
    keeps its beginning (up to a third of the size) and the newest turn its beginning and its end.
    """
    system = "\n\n".join(block.text for block in request.system if block.text.strip()) or _SYSTEM
    *earlier, (role, newest) = _turns(with_told(request))
    room = size - 2 * _PER_TURN
    if _bytes(system) + _bytes(newest) > room:
        system = _head(system, max(room // 3, room - _bytes(newest)))
        newest = _ends(newest, room - _bytes(system))
    room -= _bytes(system) + _bytes(newest)
    kept = [(role, newest)]
    for turn in reversed(earlier):
        room -= _bytes(turn[1]) + _PER_TURN
        if room < 0:
            break
        kept.insert(0, turn)
    if kept[0][0] == "assistant":
        del kept[0]
    return [{"role": role, "content": text} for role, text in [("system", system), *kept]]


def weigh(messages: list[Json]) -> int:
    """Return the size of messages in the bytes that `fit` counts."""
    return sum(_bytes(message["content"]) + _PER_TURN for message in messages)


def _turns(messages: tuple[ChatMessage, ...]) -> list[tuple[str, str]]:
    """Merge neighbours of one role. Tool calls vanish, their results become the user's text."""
    told = [(message.role, text) for message in messages if (text := _text(message))]
    return [(role, "\n\n".join(text for _, text in group)) for role, group in groupby(told, key=lambda turn: turn[0])]


def _text(message: ChatMessage) -> str:
    parts: list[str] = []
    for block in message.blocks:
        if isinstance(block, TextBlock):
            parts.append(block.text)
        elif isinstance(block, ToolResult):
            parts.append(f"Result of {block.name}: {block.text}")
    return "\n\n".join(part for part in parts if part.strip())


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _head(text: str, size: int) -> str:
    if _bytes(text) <= size:
        return text
    return (
        text.encode(errors="replace")[: max(size - _bytes(_ELLIPSIS), 0)].decode(errors="ignore") + _ELLIPSIS.rstrip()
    )


def _ends(text: str, size: int) -> str:
    """Keep a third of the room for the beginning: the end holds the question."""
    if _bytes(text) <= size:
        return text
    raw = text.encode(errors="replace")
    left = max(size - _bytes(_ELLIPSIS), 0)
    head, tail = raw[: left // 3], raw[len(raw) - (left - left // 3) :]
    return head.decode(errors="ignore") + _ELLIPSIS + tail.decode(errors="ignore")
