"""Thinking and compaction blocks that come back: unchanged, in their place, bound to their prefix."""

from collections.abc import Iterator

from tests.fakes.messages_api.catalogue import BINDING_CONTROLS, Spec
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.seals import THINKING, Seals, prefix
from tests.fakes.messages_api.wire import Json, Turn, blocks, mapping, refuse, turns


def check_sealed(request: Request, spec: Spec, seals: Seals) -> None:
    _check_compaction_blocks(request, seals)
    for index, position, block in _blocks_of(request, "thinking"):
        if not seals.is_genuine(block):
            refuse(f"messages.{index}.content.{position}: Invalid `signature` in `thinking` block")
    if not drops_mismatches(request) and (strays := stray_thinking(request, spec, seals)):
        refuse(f"{strays[0]}: Invalid `signature` in `thinking` block. The block is bound to a different conversation.")
    _check_open_loop(request, seals)


def drops_mismatches(request: Request) -> bool:
    """Whether the client asked for thinking with another prefix to be dropped instead of refused."""
    binding = mapping((mapping(request.body.get("thinking")) or {}).get("block_binding")) or {}
    return BINDING_CONTROLS in request.betas and binding.get("prefix_mismatch_behavior") == "drop_block"


def stray_thinking(request: Request, spec: Spec, seals: Seals) -> list[str]:
    """Paths of thinking blocks whose prefix is not the one they were made after."""
    if not spec.binds_thinking or next(_blocks_of(request, "compaction"), None) is not None:
        return []  # after a compaction kept turns stay valid; under which prefix, only the server knows
    return [
        f"messages.{index}.content.{position}"
        for index, position, block in _blocks_of(request, "thinking")
        if not seals.is_bound_to(block, prefix(request, request.messages[:index]))
    ]


def _blocks_of(request: Request, kind: str) -> Iterator[tuple[int, int, Json]]:
    for index, message in enumerate(request.messages):
        for position, block in enumerate(blocks(message.get("content"))):
            if block.get("type") == kind:
                yield index, position, block


def _check_compaction_blocks(request: Request, seals: Seals) -> None:
    signed = 0
    for index, position, block in _blocks_of(request, "compaction"):
        path = f"messages.{index}.content.{position}"
        if not seals.is_compaction(block):
            refuse(f"{path}: Invalid `signature` in `compaction` block", code="compaction_signature_invalid")
        if "signature" not in block:
            continue
        signed += 1
        if signed > 1:
            refuse("messages: only one compaction block is permitted", code="compaction_block_ambiguous")
        if (index, position) != (0, 0):
            refuse(f"{path}: the compaction block must be first in `messages`", code="compaction_block_misplaced")


def _check_open_loop(request: Request, seals: Seals) -> None:
    """Inside an open tool loop the thinking that led to a call has to stay."""
    for turn in _open_loop(request):
        calls = {str(block["id"]) for block in turn.blocks if block["type"] == "tool_use"}
        if calls & seals.thought_calls and not any(block["type"] in THINKING for block in turn.blocks):
            refuse(
                f"messages.{turn.index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                f"`{turn.blocks[0]['type']}`. When `thinking` is enabled, a final `assistant` message must start with "
                "a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks)."
            )


def _open_loop(request: Request) -> list[Turn]:
    """The assistant turns after the last thing a person wrote, if the request ends in tool results."""
    found: list[Turn] = []
    for turn in reversed(turns(request.messages)):
        if turn.role == "assistant":
            found.append(turn)
        elif any(block["type"] != "tool_result" for block in turn.blocks):
            break
    return found
