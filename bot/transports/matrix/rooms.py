"""What the state of rooms comes to: who can read along, what a room is called, whether it is encrypted. Pure."""

from dataclasses import dataclass, field
from typing import Any, cast

from bot.transports.matrix.client import Json

PRESENT = ("join", "invite")
"""Who is invited may join at any time and read: they count."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """How long one key serves in a room: never longer than the specification recommends, and sooner where it asks."""

    messages: int = 100
    seconds: float = 7 * 86_400


@dataclass(slots=True)
class Room:
    """One room, as far as its state events have told."""

    id: str
    members: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """User id -> (membership, display name)."""
    name: str = ""
    is_encrypted: bool = False
    rotation: Rotation = Rotation()
    replacement: str = ""
    """The room that stands in its place since an upgrade."""

    def apply(self, event: Json) -> None:
        """Take over a state event; what has another shape than it should says nothing."""
        content: Any = event.get("content")
        if "state_key" not in event or not isinstance(content, dict):
            return
        said = cast("Json", content)
        match event.get("type"):
            case "m.room.member":
                name = said.get("displayname")
                self.members[str(event["state_key"])] = (
                    str(said.get("membership")),
                    name if isinstance(name, str) else "",
                )
            case "m.room.name":
                name = said.get("name")
                self.name = name if isinstance(name, str) else ""
            case "m.room.encryption":
                self.is_encrypted = True  # there is no way back
                self.rotation = _rotation(said)
            case "m.room.tombstone":
                room = said.get("replacement_room")
                self.replacement = room if isinstance(room, str) else ""
            case _:
                pass

    @property
    def present(self) -> list[str]:
        """Everybody who reads along, or may from one moment to the next."""
        return [user for user, (membership, _) in self.members.items() if membership in PRESENT]

    @property
    def joined(self) -> list[str]:
        return [user for user, (membership, _) in self.members.items() if membership == "join"]

    def name_of(self, user_id: str) -> str:
        """As others see it; the local part where a person has given no name."""
        return self.members.get(user_id, ("", ""))[1] or user_id[1:].partition(":")[0]


def _rotation(said: Json) -> Rotation:
    """An hour at least, as other clients have it: a key is shared with everybody each time."""
    longest, messages, period = Rotation(), said.get("rotation_period_msgs"), said.get("rotation_period_ms")
    return Rotation(
        min(max(messages, 1), longest.messages) if isinstance(messages, int) else longest.messages,
        min(max(period / 1000, 3600), longest.seconds) if isinstance(period, int) else longest.seconds,
    )


class Rooms:
    """The rooms that we are in."""

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}

    def of(self, room_id: str) -> Room:
        return self._rooms.setdefault(room_id, Room(room_id))

    def find(self, room_id: str) -> Room | None:
        return self._rooms.get(room_id)

    def drop(self, room_id: str) -> None:
        self._rooms.pop(room_id, None)

    def replaced_by(self, room_id: str) -> str | None:
        """The room whose tombstone names this one: what a new room says of its past proves nothing."""
        return next((room.id for room in self._rooms.values() if room.replacement == room_id), None)


def inviter(invite_state: list[Json], me: str) -> str:
    """Who invited us, by the stripped state of an invitation; empty where it does not say."""
    for event in invite_state:
        content: Any = event.get("content")
        is_mine = event.get("type") == "m.room.member" and event.get("state_key") == me
        if is_mine and isinstance(content, dict) and cast("Json", content).get("membership") == "invite":
            return str(event.get("sender", ""))
    return ""
