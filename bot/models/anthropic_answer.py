"""What the Messages API answered, in our words: from plain JSON, so that it can be tested without the SDK.

One rule: what a block holds is passed on as it came; only fields that the API sent are in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Final, cast

from bot.models.anthropic_bill import bill
from memory.ports import Billed, Compacted, Failure, Finished, Json, ModelError, StopReason, ToolCall, Usage

STOPS: Final = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.TOOLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "pause_turn": StopReason.LENGTH,  # still pausing after all attempts
    "refusal": StopReason.REFUSED,
    "compaction": StopReason.END,
}


class BrokenAnswerError(Exception):
    """An answer that is none, which the SDK does not call an error."""


def read_answer(parts: Sequence[Json], *, named: str) -> Finished:
    """Make one result of the parts of an answer: more than one where it paused. `named` is the model that was asked.

    Raises `BrokenAnswerError`, and `ModelError(TOO_LONG)` where the prompt left no room for a word.
    """
    last = parts[-1]
    reason = str(last["stop_reason"])
    stop = STOPS[reason]
    calls = tuple(_calls(last)) if stop is StopReason.TOOLS else ()  # elsewhere a call may be cut in half
    if stop is StopReason.TOOLS and not calls:
        stop = StopReason.END
    blocks = [block for part in parts for block in raw_blocks(part)]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    if reason == "model_context_window_exceeded" and not text:
        raise ModelError(Failure.TOO_LONG, "the prompt left no room for an answer")
    lines = tuple(line for part in parts for line in bill(str(part["model"]), part["usage"]))
    return Finished(
        stop=stop,
        text="" if stop is StopReason.REFUSED else text,
        calls=calls,
        usage=_sum(lines),
        model=str(last["model"]),
        raw=tuple(blocks) if calls else (),
        compacted=None if stop is StopReason.REFUSED else _compacted(blocks, named),
        billed=lines if len(lines) > 1 else (),
        id=str(last.get("id") or ""),
        cache_miss=_cache_miss(parts[0]),
    )


def raw_blocks(part: Json) -> list[Json]:
    """The blocks of a message without blank text, which the API refuses when it comes back."""
    return [block for block in part["content"] if block.get("type") != "text" or block["text"].strip()]


def _calls(part: Json) -> Iterator[ToolCall]:
    for block in part["content"]:
        if block["type"] == "tool_use":
            if not isinstance(block["input"], dict):
                raise BrokenAnswerError("the input of a tool call is no object")
            yield ToolCall(block["id"], block["name"], block["input"])


def _compacted(blocks: Sequence[Json], model: str) -> Compacted | None:
    """The newest compaction; one without content has failed and counts as none."""
    made = [block for block in blocks if block["type"] == "compaction" and block.get("content")]
    return Compacted(str(made[-1]["content"]), made[-1], model) if made else None


def _cache_miss(part: Json) -> str:
    """A code such as `tools_changed`; the API may leave any of it out, or have no answer yet."""
    told = cast("Json", part.get("diagnostics") or {})
    reason = cast("Json", told.get("cache_miss_reason") or {})
    return str(reason.get("type") or "")


def _sum(lines: Sequence[Billed]) -> Usage:
    names = [field.name for field in fields(Usage)]
    return Usage(**{name: sum(getattr(line.usage, name) for line in lines) for name in names})
