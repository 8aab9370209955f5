"""What Synapse refuses of the events that a bot sends."""

import json

from .world import Json, RefusalError, Room

MOST_BYTES = 65_536


def check(room: Room, kind: str, content: Json) -> None:
    """Raise `RefusalError` for what no client could make sense of."""
    if len(json.dumps(content, ensure_ascii=False).encode()) > MOST_BYTES - 1000:
        raise RefusalError(413, "M_TOO_LARGE", "event too large")
    relation = content.get("m.relates_to", {})
    if kind == "m.reaction":
        if set(content) != {"m.relates_to"} or relation.get("rel_type") != "m.annotation" or not relation.get("key"):
            raise RefusalError(400, "M_BAD_JSON", "not a reaction")
    elif kind == "m.room.message":
        _check_message(content)
    else:
        raise RefusalError(400, "M_UNKNOWN", f"unexpected event type {kind}")
    _check_relation(room, relation)


def _check_message(content: Json) -> None:
    if content.get("msgtype") not in ("m.text", "m.notice", "m.file") or not isinstance(content.get("body"), str):
        raise RefusalError(400, "M_BAD_JSON", "not a message")
    if not content["body"].strip() or content["body"] == "…":
        raise RefusalError(400, "M_BAD_JSON", "a message with nothing to see")
    if content.get("m.mentions") != {}:
        raise RefusalError(400, "M_BAD_JSON", "a bot that pings people by accident")
    if ("formatted_body" in content) != (content.get("format") == "org.matrix.custom.html"):
        raise RefusalError(400, "M_BAD_JSON", "formatted_body and format go together")
    if content["msgtype"] == "m.file" and not str(content.get("url", "")).startswith("mxc://"):
        raise RefusalError(400, "M_BAD_JSON", "a file without an address")


def _check_relation(room: Room, relation: Json) -> None:
    if not relation:
        return
    target = room.find(str(relation.get("event_id")))
    if target is None:
        raise RefusalError(400, "M_UNKNOWN", "Can't send relation to non-existent event")
    if relation.get("rel_type") == "m.thread":
        if "rel_type" in target["content"].get("m.relates_to", {}):
            raise RefusalError(400, "M_UNKNOWN", "Cannot start threads from an event with a relation")
        if not (relation.get("is_falling_back") and relation.get("m.in_reply_to", {}).get("event_id")):
            raise RefusalError(400, "M_BAD_JSON", "a thread without a fallback")


def check_annotation(room: Room, sender: str, relation: Json) -> None:
    """The same reaction twice by one person."""
    for _, event in room.events:
        if (
            event["type"] == "m.reaction"
            and event["sender"] == sender
            and event["content"].get("m.relates_to") == relation
        ):
            raise RefusalError(400, "M_DUPLICATE_ANNOTATION", "Can't send same reaction twice")
