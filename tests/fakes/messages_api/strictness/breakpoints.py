"""Cache breakpoints: at most four, 1h before 5m, on blocks that can hold one."""

from typing import Final

from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.wire import Json, blocks, mapping, mappings, refuse

MAX_BREAKPOINTS: Final = 4


def check_breakpoints(request: Request) -> None:
    found = _explicit(request)
    automatic = mapping(request.body.get("cache_control"))
    if automatic is not None:
        last = blocks(request.messages[-1].get("content"))
        own = mapping(last[-1].get("cache_control")) if last else None
        if own is None:
            found.append(("cache_control", automatic))
        elif own.get("ttl", "5m") != automatic.get("ttl", "5m"):
            refuse("cache_control: the last block already has a cache_control with a different ttl")
    if len(found) > MAX_BREAKPOINTS:
        refuse(f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {len(found)}.")
    has_short = False
    for path, mark in found:
        _check_mark(path, mark)
        is_short = mark.get("ttl", "5m") == "5m"
        if has_short and not is_short:
            refuse(
                f"{path}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note "
                "that blocks are processed in the following order: `tools`, `system`, `messages`."
            )
        has_short = has_short or is_short


def _explicit(request: Request) -> list[tuple[str, Json]]:
    """Breakpoints with their paths, in the order of the prompt."""
    places = [(f"tools.{index}", tool) for index, tool in enumerate(request.tools)]
    places += [(f"system.{index}", block) for index, block in enumerate(mappings(request.body.get("system")))]
    for index, message in enumerate(request.messages):
        for position, block in enumerate(blocks(message.get("content"))):
            path = f"messages.{index}.content.{position}"
            places.append((path, block))
            places += [
                (f"{path}.{block['type']}.content.{nested}", part)
                for nested, part in enumerate(mappings(block.get("content")))
                if block.get("type") == "tool_result"
            ]
    return [
        (f"{path}.cache_control", mapping(block["cache_control"]) or {})
        for path, block in places
        if block.get("cache_control") is not None
    ]


def _check_mark(path: str, mark: Json) -> None:
    if mark.get("type") != "ephemeral":
        refuse(f"{path}.type: Input should be 'ephemeral'")
    if mark.get("ttl", "5m") not in ("5m", "1h"):
        refuse(f"{path}.ttl: Input should be '5m' or '1h'")
    if extra := mark.keys() - {"type", "ttl"}:
        refuse(f"{path}.{min(extra)}: Extra inputs are not permitted")
