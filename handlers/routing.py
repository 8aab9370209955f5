"""Which handler an incoming thing goes to: pure decisions."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from handlers.types import Incoming

_COMMAND = re.compile(r"^/([a-z][a-z0-9_]{0,31})(?:\s+(.*))?$", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Route:
    """`kind`: press | edit | command | unknown_command | message."""

    kind: str
    name: str = ""
    args: str = ""


def route(incoming: Incoming, commands: Collection[str]) -> Route:
    if incoming.press:
        return Route("press")
    if incoming.is_edit:
        return Route("edit")
    # only what a person typed is a command: a forwarded "/forget all" is somebody's words
    found = _COMMAND.match(incoming.text) if incoming.origin == "typed" else None
    if not found:
        return Route("message")
    name, args = found[1].lower(), (found[2] or "").strip()
    return Route("command" if name in commands else "unknown_command", name, args)
