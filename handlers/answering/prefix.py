"""Whether a prompt begins as the last one did: what a provider keeps of a prompt is found only where it does.

Pure. Rule: of what anybody said only digests are kept, of four bytes each.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

from handlers.prompt import Situation
from memory.ports import ChatMessage, ModelRequest, TextBlock

Prefix = dict[str, Any]
"""The digests of a prompt's beginning, as they are kept in the memory trace of its answer."""


def prefix_of(situation: Situation, request: ModelRequest, model: str) -> Prefix:
    """What of a prompt should be the beginning of the next one: all but its newest message."""
    history = request.messages[:-1]
    return {
        "model": model,
        "tools": _digest([[spec.name, spec.description, spec.schema] for spec in request.tools]),
        "persona": _digest(situation.persona),
        "instructions": _digest(situation.instructions),
        "facts": _digest([fact.text for fact in situation.recall.facts if situation.is_private]),
        "compacted": _digest((situation.compacted.block if situation.compacted else None) or None),
        "messages": len(history),
        "first": _digest(_told(history[:1])),
        "history": _digest(_told(history)),
    }


def broke(before: Mapping[str, Any], now: Mapping[str, Any], request: ModelRequest) -> str | None:
    """Why a prompt does not begin as the one `before` did, as a code; None where it does."""
    length = before["messages"]
    is_same = {
        "model_switched": before["model"] == now["model"],
        "tools_changed": before["tools"] == now["tools"],
        "persona_changed": before["persona"] == now["persona"],
        "instructions_changed": before["instructions"] == now["instructions"],
        "facts_changed": before["facts"] == now["facts"],
        "compacted": before["compacted"] == now["compacted"],
        "history_cut": not length or before["first"] == now["first"],
        "history_changed": before["history"] == _digest(_told(request.messages[:-1][:length])),
    }
    return next((reason for reason, same in is_same.items() if not same), None)


def _told(messages: Sequence[ChatMessage]) -> list[Any]:
    """The messages as far as they are the same prompt: a breakpoint is no part of it."""
    return [
        [each.role, *(block.text if isinstance(block, TextBlock) else asdict(block) for block in each.blocks)]
        for each in messages
    ]


def _digest(value: object) -> str:
    told = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return blake2b(told.encode(errors="surrogatepass"), digest_size=4).hexdigest()
