"""The order of messages: who begins, who ends, which call is answered where."""

from collections.abc import Sequence
from itertools import pairwise

from tests.fakes.messages_api.catalogue import Spec
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.wire import Json, Turn, blocks, refuse, turns


def check_turns(request: Request, spec: Spec) -> None:
    messages = request.messages
    _check_ends(request, spec)
    for index, message in enumerate(messages):
        if message["role"] == "system":
            _check_system(messages, index, spec)
    _check_calls(turns(messages))


def _check_ends(request: Request, spec: Spec) -> None:
    first, last = request.messages[0], request.messages[-1]
    opening = blocks(first.get("content"))
    opens_with_compaction = bool(opening) and opening[0].get("type") == "compaction"
    if first["role"] != "user" and not (first["role"] == "assistant" and opens_with_compaction):
        refuse('messages: first message must use the "user" role')
    may_end = spec.takes_prefill or "compaction" in request.body or _ends_in_server_tool(last)
    if last["role"] == "assistant" and not may_end:
        refuse("This model does not support assistant message prefill. The conversation must end with a user message.")


def _ends_in_server_tool(message: Json) -> bool:
    """Also a paused turn, which is sent back as it came."""
    content = blocks(message.get("content"))
    return bool(content) and str(content[-1].get("type")).endswith(("_tool_result", "server_tool_use", "compaction"))


def _check_system(messages: Sequence[Json], index: int, spec: Spec) -> None:
    path = f"messages.{index}"
    if not spec.takes_system_messages:
        refuse(f"{path}: role 'system' is not supported on this model")
    before = messages[index - 1]
    after = messages[index + 1] if index + 1 < len(messages) else None
    if before["role"] == "assistant" and not _ends_in_server_tool(before):
        refuse(
            f"{path}: role 'system' must follow a user message or an assistant message ending in a server tool result"
        )
    if after is not None and after["role"] == "user":
        refuse(f"{path}: role 'system' must precede an assistant message or be the last message")


def _check_calls(found: Sequence[Turn]) -> None:
    seen: set[str] = set()
    for turn in found:
        for call in _calls(turn):
            if call in seen:
                refuse("messages: `tool_use` ids must be unique")
            seen.add(call)
    if found:
        _check_answers(Turn("assistant", 0), found[0])
    for turn, following in pairwise(found):
        _check_answers(turn, following)
        _check_server_calls(turn)
    if found and (open_calls := _calls(found[-1])):
        _refuse_unanswered(found[-1], open_calls)


def _calls(turn: Turn) -> list[str]:
    return [str(block["id"]) for block in turn.blocks if block["type"] == "tool_use"]


def _check_server_calls(turn: Turn) -> None:
    """A server tool has its result in the same turn; only the last turn may be paused before it."""
    results = {block.get("tool_use_id") for block in turn.blocks if str(block["type"]).endswith("_tool_result")}
    for block in turn.blocks:
        if block["type"] == "server_tool_use" and block["id"] not in results:
            refuse(
                f"messages.{turn.index}: `{block['name']}` tool use with id `{block['id']}` was found without a "
                f"corresponding `{block['name']}_tool_result` block"
            )


def _check_answers(turn: Turn, following: Turn) -> None:
    """Check that `following` begins with the results of the calls in `turn`, each once, and holds no others."""
    calls = _calls(turn)
    answered: list[str] = []
    for position, block in enumerate(following.blocks):
        if block["type"] != "tool_result":
            continue
        path, result = f"messages.{following.index}.content.{position}", str(block["tool_use_id"])
        if result not in calls:
            refuse(
                f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {result}. Each `tool_result` block "
                "must have a corresponding `tool_use` block in the previous message."
            )
        if result in answered:
            refuse(
                f"{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: "
                f"{result}"
            )
        if position == len(answered):  # a result that does not come first counts as none
            answered.append(result)
    if missing := [call for call in calls if call not in answered]:
        _refuse_unanswered(turn, missing)


def _refuse_unanswered(turn: Turn, calls: Sequence[str]) -> None:
    refuse(
        f"messages.{turn.index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(calls)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
