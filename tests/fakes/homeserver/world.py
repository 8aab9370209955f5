"""Rooms as a homeserver keeps them: one line of events, who is in, and what was redacted."""

import itertools
import time
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SERVER = "example.org"


class RefusalError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, errcode: str, error: str, **more: object) -> None:
        super().__init__(error)
        self.status = status
        self.body: Json = {"errcode": errcode, "error": error, **more}


@dataclass
class Room:
    id: str
    events: list[tuple[int, Json]] = field(default_factory=list[tuple[int, Json]])
    """(place in the stream, event)."""

    def state(self, before: int | None = None) -> list[Json]:
        """The newest state event of each key, of those before a place in the stream."""
        newest: dict[tuple[str, str], Json] = {}
        for at, event in self.events:
            if "state_key" in event and (before is None or at < before):
                newest[event["type"], event["state_key"]] = event
        return list(newest.values())

    def membership(self, user: str, before: int | None = None) -> str:
        found = [
            event for event in self.state(before) if (event["type"], event["state_key"]) == ("m.room.member", user)
        ]
        return str(found[0]["content"]["membership"]) if found else "leave"

    def has_changed(self, user: str, since: int) -> bool:
        """Whether something was said of somebody's membership after a place; an invitation may be said again."""
        member = ("m.room.member", user)
        return any(at > since and (event["type"], event.get("state_key")) == member for at, event in self.events)

    def find(self, event_id: str) -> Json | None:
        return next((event for _, event in self.events if event["event_id"] == event_id), None)


class World:
    """Everything the homeserver knows."""

    def __init__(self) -> None:
        self.rooms: dict[str, Room] = {}
        self.names: dict[str, str] = {}
        self.files: dict[str, bytes] = {}
        self._stream = itertools.count(1)
        self._numbers = itertools.count(1)
        self.newest = 0

    def create(self, *members: str, name: str = "") -> Room:
        """A room; the first makes it, the others are joined."""
        room = Room(f"!room{next(self._numbers)}:{SERVER}")
        self.rooms[room.id] = room
        creator = members[0]
        self.add(room, creator, "m.room.create", {"room_version": "11"}, state_key="")
        for member in members:
            self.join(room, member)
        if name:
            self.add(room, creator, "m.room.name", {"name": name}, state_key="")
        return room

    def join(self, room: Room, user: str) -> None:
        content = {"membership": "join", "displayname": self.names.get(user, user[1:].partition(":")[0])}
        self.add(room, user, "m.room.member", content, state_key=user)

    def add(self, room: Room, sender: str, kind: str, content: Json, *, state_key: str | None = None) -> Json:
        event: Json = {
            "type": kind,
            "sender": sender,
            "content": content,
            "event_id": f"$event{next(self._numbers)}",
            "origin_server_ts": int(time.time() * 1000),
            "room_id": room.id,
            "unsigned": {},
        }
        if state_key is not None:
            event["state_key"] = state_key
            if any((old["type"], old["state_key"]) == (kind, state_key) for old in room.state()):
                event["unsigned"]["replaces_state"] = "$before"
        self.newest = next(self._stream)
        room.events.append((self.newest, event))
        return event

    def redact(self, room: Room, sender: str, event_id: str) -> Json:
        event = room.find(event_id)
        if event is None:
            raise RefusalError(404, "M_NOT_FOUND", "Could not find event")
        event["content"] = {}
        done = self.add(room, sender, "m.room.redaction", {"redacts": event_id})
        event["unsigned"]["redacted_because"] = done
        return done
