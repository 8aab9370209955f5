"""From a stored event to what a person did. Pure; None for what asks for nothing.

Rule: all that it takes to understand an event was stored with it: a later parse depends on no room and no clock.
"""

import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, Literal

from bot.transports.base import Presence
from bot.transports.matrix.client import Json
from handlers.types import Attachment, Incoming, Place, Press, Sender

NAME = "matrix"

TWO = 2
UNDECRYPTED = "encrypted"
"""The kind of attachment that stands for words that could not be decrypted."""

_KINDS = {
    "m.image": "photo",
    "m.video": "video",
    "m.audio": "audio",
    "m.file": "document",
    "m.location": "location",
}
_REPLY_FALLBACK = re.compile(r"\A(?:> ?[^\n]*(?:\n|\Z))+\n?")
_BANG = re.compile(r"\A[!/]([A-Za-z][A-Za-z0-9_]*)(?=\s|\Z)")
_WORDLESS = {
    "m.sticker": "sticker",
    "m.poll.start": "other",
    "org.matrix.msc3381.poll.start": "other",
    "m.room.encrypted": UNDECRYPTED,
}


def parse(payload: Json, inbox_id: int, commands: Collection[str]) -> Incoming | None:
    """Understand a stored event. Raises for a shape that we do not store."""
    event, room = payload["event"], payload["room"]
    kind: Literal["ai", "user"] = "ai" if room["people"] == TWO else "user"
    place = Place(NAME, room["room_id"], payload.get("thread", ""))
    sender = Sender(f"{NAME}:{event['sender']}", room["sender_name"], "")
    sent_at = datetime.fromtimestamp(event["origin_server_ts"] / 1000, UTC)
    common: dict[str, Any] = {
        "inbox_ids": (inbox_id,),
        "place": place,
        "sender": sender,
        "sent_at": sent_at,
        "chat_kind": kind,
        "chat_title": room["name"],
        "ref": event["event_id"],
    }
    if press := payload.get("press"):
        return Incoming(**common, press=Press(press["token"], press["card"]))
    if payload.get("invited"):
        return Incoming(**common, is_addressed=False, is_invitation=True)
    if taken := payload.get("taken_back"):
        return Incoming(**common | {"ref": taken}, is_taken_back=True)
    edited = payload.get("edits", "")
    content = event["content"]["m.new_content"] if edited else event["content"]
    text, attachments = _said(event["type"], content)
    if not text and not attachments:
        return None
    is_mentioned = payload["me"] in _mentioned(content)
    text, is_named = _without_name(text, payload["me"], payload["my_name"], is_mentioned=is_mentioned)
    text, is_command = _command(text, commands)
    quote: Json = payload.get("quote") or {}
    answers_me = bool(quote.get("is_mine")) or bool(payload.get("is_own_thread"))
    if edited:
        common["ref"] = edited
    return Incoming(
        **common,
        text=text,
        quote=quote.get("text", ""),
        quote_author=quote.get("author", ""),
        attachments=attachments,
        reply_to=quote.get("ref", ""),
        is_addressed=kind == "ai" or is_mentioned or is_named or is_command or answers_me,
        is_edit=bool(edited),
    )


def moved(payload: Json) -> tuple[str, str] | None:
    """The old and the new id of a room that was upgraded."""
    found = payload.get("moved")
    return (str(found[0]), str(found[1])) if found else None


def members(payload: Json) -> Presence | None:
    """Who came to a room and who left it; where it was we ourselves, that nobody tells any more."""
    told = payload.get("members")
    if told is None:
        return None
    came, left = (frozenset(f"{NAME}:{user}" for user in told[key]) for key in ("came", "left"))
    room = payload["room"]
    return Presence(room["room_id"], came, left, is_over=told["is_over"], title=room.get("name", ""))


def words_of(event: Json) -> str:
    """What an event says, in the newest version that it holds."""
    try:
        content: Json = event["content"]
        return _said(event["type"], content.get("m.new_content", content))[0]
    except (TypeError, AttributeError, KeyError):
        return ""


def _said(kind: str, content: Json) -> tuple[str, tuple[Attachment, ...]]:
    """Words and attachments."""
    if kind in _WORDLESS:
        name = str(content.get("body", "")) if kind == "m.sticker" else ""
        return "", (Attachment(_WORDLESS[kind], name),)
    msgtype, body = content.get("msgtype"), content.get("body")
    if not isinstance(body, str) or msgtype == "m.notice":  # what programs say to people: never answered
        return "", ()
    if msgtype in ("m.text", "m.emote"):
        return _without_fallback(body, content).strip(), ()
    return _file(str(msgtype), body, content)


def _file(msgtype: str, body: str, content: Json) -> tuple[str, tuple[Attachment, ...]]:
    kind = "voice" if "org.matrix.msc3245.voice" in content else _KINDS.get(msgtype, "other")
    name = content.get("filename")
    if isinstance(name, str) and name != body:  # then the body is a caption
        return body.strip(), (Attachment(kind, name),)
    return "", (Attachment(kind, body if kind in ("document", "location") else ""),)


def _without_fallback(body: str, content: Json) -> str:
    """Older clients repeat what they reply to as quoted lines at the start."""
    is_reply = "m.in_reply_to" in (content.get("m.relates_to") or {})
    return _REPLY_FALLBACK.sub("", body) if is_reply and body.startswith("> ") else body


def _mentioned(content: Json) -> list[str]:
    mentions: Json = content.get("m.mentions") or {}
    users: list[Any] = mentions.get("user_ids") or []
    return [user for user in users if isinstance(user, str)]


def _without_name(text: str, me: str, my_name: str, *, is_mentioned: bool) -> tuple[str, bool]:
    """The text without our name at its start, and whether it was there.

    "Merk, …" names us and "Merk dir …" does not, unless the client says that it is a mention.
    """
    for name in filter(None, (me, my_name, me[1:].partition(":")[0])):
        mark = r"(?:[:,]\s*|\s+|\Z)" if is_mentioned or name == me else r"(?:[:,]\s*|\Z)"
        found = re.match(rf"@?{re.escape(name)}{mark}", text, re.IGNORECASE)
        if found:
            return text[found.end() :] or text, True
    return text, False


def _command(text: str, commands: Collection[str]) -> tuple[str, bool]:
    """`!name` is `/name`: some clients keep what begins with a slash for themselves."""
    found = _BANG.match(text)
    if not found or found[1].lower() not in commands:
        return text, False
    return f"/{text[1:]}", True
