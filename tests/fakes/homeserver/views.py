"""What people see of a room: messages with their last edit, without what was redacted."""

import re
from html import unescape

from .world import Json, Room


def shown(room: Room, sender: str, thread: str = "") -> list[str]:
    """The sender's texts in the main line or a thread, as a client shows them now."""
    return [_text(_newest(room, event)) for event in messages(room, sender, thread)]


def messages(room: Room, sender: str, thread: str = "") -> list[Json]:
    found: list[Json] = []
    for _, event in room.events:
        relation: Json = event["content"].get("m.relates_to", {}) if event["type"] == "m.room.message" else {}
        here = str(relation.get("event_id")) if relation.get("rel_type") == "m.thread" else ""
        is_message = event["type"] == "m.room.message" and event["content"] and relation.get("rel_type") != "m.replace"
        if is_message and event["sender"] == sender and here == thread:
            found.append(event)
    return found


def edits(room: Room, event_id: str) -> list[Json]:
    return [
        event
        for _, event in room.events
        if event["content"].get("m.relates_to", {}).get("event_id") == event_id
        and event["content"]["m.relates_to"].get("rel_type") == "m.replace"
    ]


def _newest(room: Room, event: Json) -> Json:
    newer = edits(room, event["event_id"])
    return newer[-1]["content"]["m.new_content"] if newer else event["content"]


def body_now(room: Room, event: Json) -> str:
    return str(_newest(room, event)["body"])


def _text(content: Json) -> str:
    if html := content.get("formatted_body"):
        return unescape(re.sub(r"<[^>]+>", "", re.sub(r"<br>|</p><p>|</li>", "\n", html)))
    return str(content["body"])
