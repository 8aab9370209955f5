"""What is stored of an event: its words, and what it takes to understand them when the room has gone on.

Rule: of the words a person sees, one copy: no formatted body, no keys to files, nothing of what servers add.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, cast

from bot.transports.matrix import keys, parse
from bot.transports.matrix.client import Homeserver, Json
from bot.transports.matrix.keys import Cards
from bot.transports.matrix.rooms import Room
from handlers.types import Place

MayPress = Callable[[str, str], Awaitable[bool]]
"""(identity, token): whether this button is open, and for this person."""
Open = Callable[[str, Json], Json | None]
"""(room id, event): the event in plain words; None where it cannot be decrypted."""

_KEPT = ("msgtype", "body", "filename", "m.mentions", "m.relates_to", "org.matrix.msc3245.voice")
_SEEN = 500
ENCRYPTED = "m.room.encrypted"
REDACTION = "m.room.redaction"


class Noter:
    """Makes the payloads. Looks up what an event refers to; asks the homeserver where it is not at hand."""

    def __init__(self, server: Homeserver, me: str, cards: Cards, may_press: MayPress, open_event: Open) -> None:
        self._server = server
        self._me = me
        self._cards = cards
        self._may_press = may_press
        self._open = open_event
        self._seen: OrderedDict[str, Json] = OrderedDict()

    def saw(self, event: Json) -> None:
        """Keep an event at hand for a while: replies are mostly to what is new."""
        self._seen[event["event_id"]] = event
        while len(self._seen) > _SEEN:
            self._seen.popitem(last=False)

    async def note(self, room: Room, event: Json) -> Json | None:
        """The payload of somebody's event; None where it asks for nothing. Raises `MatrixError`."""
        if event["type"] == "m.reaction":
            return self._reaction(room, event)
        if event["type"] == REDACTION:
            return self._redaction(room, event)
        relation = relation_of(event)
        payload = self._payload(room, event)
        if relation.get("rel_type") == "m.replace":
            return await self._edit(room, event, payload, str(relation.get("event_id")))
        if relation.get("rel_type") == "m.thread":
            payload["thread"] = str(relation.get("event_id"))
            payload["is_own_thread"] = await self._is_own_thread(room, payload["thread"])
        replied = relation.get("m.in_reply_to")
        if isinstance(replied, dict) and not relation.get("is_falling_back"):
            payload["quote"] = await self._quote(room, str(cast("Json", replied).get("event_id")))
        if press := await self._typed(room, event, payload):
            payload["press"] = press
        return payload

    def undecryptable(self, room: Room, event: Json) -> Json:
        """The payload that says that there was something which we could not read."""
        payload = self._payload(room, {**event, "content": {}})
        relation = relation_of(event)
        if relation.get("rel_type") == "m.thread":
            payload["thread"] = str(relation.get("event_id"))
        return payload

    def _payload(self, room: Room, event: Json) -> Json:
        kept = ("type", "sender", "event_id", "origin_server_ts")
        return {
            "event": {**{key: event[key] for key in kept}, "room_id": room.id, "content": _kept(event["content"])},
            "room": {
                "room_id": room.id,
                "name": room.name,
                "people": len(room.present),
                "sender_name": room.name_of(event["sender"]),
            },
            "me": self._me,
            "my_name": room.name_of(self._me),
        }

    def _reaction(self, room: Room, event: Json) -> Json | None:
        relation = relation_of(event)
        target, mark = str(relation.get("event_id")), relation.get("key")
        if relation.get("rel_type") != "m.annotation" or not isinstance(mark, str):
            return None
        token = self._cards.token(target, mark)
        if token is None:
            return None
        payload = self._payload(room, event)
        payload["thread"] = self._cards.thread(target)
        payload["press"] = {"token": token, "card": target}
        return payload

    def _redaction(self, room: Room, event: Json) -> Json | None:
        """Somebody took a message back. Whose it was is known where it is stored; a moderator's is not theirs."""
        ref = str(event.get("redacts") or event["content"].get("redacts"))  # where it is depends on the room's version
        taken = self._seen.get(ref)
        if taken is not None and taken.get("sender") != event["sender"]:
            return None
        payload = self._payload(room, event)
        payload["taken_back"] = ref
        relation = relation_of(taken or {})  # its turn comes after what is being answered there
        payload["thread"] = str(relation["event_id"]) if relation.get("rel_type") == "m.thread" else ""
        self._seen.pop(ref, None)
        return payload

    async def _edit(self, room: Room, event: Json, payload: Json, edited: str) -> Json | None:
        original = await self._find(room.id, edited)
        new: Any = event["content"].get("m.new_content")
        # only one's own words can be edited, and homeservers do not see to that
        if original is None or original.get("sender") != event["sender"] or not isinstance(new, dict):
            return None
        relation = relation_of(original)
        payload["event"]["content"] = {"m.new_content": _kept(cast("Json", new))}
        payload["edits"] = edited
        payload["thread"] = str(relation["event_id"]) if relation.get("rel_type") == "m.thread" else ""
        if payload["thread"]:
            payload["is_own_thread"] = await self._is_own_thread(room, payload["thread"])
        return payload

    async def _quote(self, room: Room, event_id: str) -> Json | None:
        event = await self._find(room.id, event_id)
        if event is None:
            return None
        author = str(event.get("sender"))
        return {
            "text": parse.words_of(event),
            "author": room.name_of(author),
            "ref": event_id,
            "is_mine": author == self._me,
        }

    async def _is_own_thread(self, room: Room, root: str) -> bool:
        """In a private room everything is for us; elsewhere a thread is where it began with us."""
        if len(room.present) <= parse.TWO:
            return True
        event = await self._find(room.id, root)
        if event is None:
            return False
        words = parse.words_of(event)
        mentions: Any = event.get("content", {}).get("m.mentions") or {}
        is_asked_for = words.casefold().startswith(("/newchat", "!newchat")) or self._me in mentions.get("user_ids", ())
        return event.get("sender") == self._me or is_asked_for

    async def _typed(self, room: Room, event: Json, payload: Json) -> Json | None:
        """A number presses the newest open card of its place, or the card that it replies to."""
        mark = keys.typed(parse.words_of(event)) if event["type"] == "m.room.message" else ""
        if not mark:
            return None
        identity = f"{parse.NAME}:{event['sender']}"
        place = Place(parse.NAME, room.id, payload.get("thread", ""))
        found = self._cards.tokens(place, mark)
        if quote := payload.get("quote"):
            found = [each for each in found if each[0] == quote["ref"]]
        for card, token in found:
            if await self._may_press(identity, token):
                return {"token": token, "card": card}
        return None

    async def _find(self, room_id: str, event_id: str) -> Json | None:
        if event := self._seen.get(event_id):
            return event
        raw = await self._server.event(room_id, event_id)
        if raw is None:
            return None
        event = self._open(room_id, raw) or raw
        self.saw(event)
        return event


def opener(decrypt: Open | None) -> Open:
    """What reads an event, encrypted or not."""

    def open_event(room_id: str, event: Json) -> Json | None:
        if event.get("type") != ENCRYPTED:
            return event
        return decrypt(room_id, event) if decrypt else None

    return open_event


def relation_of(event: Json) -> Json:
    """What an event says it relates to; empty for a shape that it should not have."""
    content: Any = event.get("content")
    relation: Any = cast("Json", content).get("m.relates_to") if isinstance(content, dict) else None
    return cast("Json", relation) if isinstance(relation, dict) else {}


def _kept(content: Json) -> Json:
    return {key: content[key] for key in _KEPT if key in content}
