"""What every person of the tests can do in a room, whatever client they use, and how they wait for what they see.

One rule: contents are written as clients write them, by the specification.
"""

import contextlib
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from tests.e2e.synapse_view import Event, RoomView


class Participant(ABC):
    """One device of one user. `rooms` holds what it has seen so far, by room id."""

    def __init__(self, user_id: str, device_id: str, access_token: str) -> None:
        self.user_id = user_id
        self.device_id = device_id
        self.access_token = access_token
        self.rooms: dict[str, RoomView] = {}

    @abstractmethod
    async def call(self, method: str, path: str, body: Event | None = None, **parameters: Any) -> Event:
        """Any other endpoint below /_matrix/client/v3."""

    @abstractmethod
    async def send_event(self, room: str, kind: str, content: Event) -> str:
        """The event id. Encrypted where the client can and the room asks for it."""

    @abstractmethod
    async def sync(self, seconds: float = 0) -> object:
        """Bring `rooms` up to date, waiting so long for news."""

    # Rooms

    async def create_room(
        self,
        *,
        invite: Sequence[str] = (),
        name: str | None = None,
        encrypted: bool = False,
        direct: bool = False,
        state: Sequence[Event] = (),
    ) -> str:
        """A room id. `direct` marks the room as the private chat of two, as clients do."""
        algorithm = {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
        body: Event = {
            "preset": "trusted_private_chat" if direct else "private_chat",
            "invite": list(invite),
            "is_direct": direct,
            "initial_state": [*([algorithm] if encrypted else []), *state],
            **({"name": name} if name else {}),
        }
        return (await self.call("POST", "/createRoom", body))["room_id"]

    async def invite(self, room: str, user_id: str) -> None:
        await self.call("POST", f"/rooms/{quote(room)}/invite", {"user_id": user_id})

    async def join(self, room: str) -> None:
        await self.call("POST", f"/join/{quote(room)}", {})

    async def leave(self, room: str) -> None:
        await self.call("POST", f"/rooms/{quote(room)}/leave", {})

    async def kick(self, room: str, user_id: str) -> None:
        await self.call("POST", f"/rooms/{quote(room)}/kick", {"user_id": user_id})

    async def upgrade(self, room: str, version: str = "11") -> str:
        """The id of the room that replaces this one."""
        return (await self.call("POST", f"/rooms/{quote(room)}/upgrade", {"new_version": version}))["replacement_room"]

    async def put_state(self, room: str, kind: str, content: Event, key: str = "") -> None:
        await self.call("PUT", f"/rooms/{quote(room)}/state/{kind}/{quote(key)}", content)

    # Saying things. Each returns the event id.

    async def send(
        self,
        room: str,
        text: str,
        *,
        thread: str | None = None,
        reply_to: str | None = None,
        mention: Sequence[str] = (),
        more: Event | None = None,
    ) -> str:
        """A text, in a thread or as a reply, as clients write it. `more` is merged into the content."""
        content: Event = {
            "msgtype": "m.text",
            "body": text,
            "m.mentions": {"user_ids": list(mention)} if mention else {},
        }
        if thread:
            content["m.relates_to"] = {
                "rel_type": "m.thread",
                "event_id": thread,
                "is_falling_back": reply_to is None,
                "m.in_reply_to": {"event_id": reply_to or thread},
            }
        elif reply_to:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": reply_to}}
        return await self.send_event(room, "m.room.message", content | (more or {}))

    async def edit(self, room: str, event_id: str, text: str) -> str:
        new: Event = {"msgtype": "m.text", "body": text, "m.mentions": {}}
        relation = {"rel_type": "m.replace", "event_id": event_id}
        content = {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": relation}
        return await self.send_event(room, "m.room.message", content)

    async def react(self, room: str, event_id: str, key: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": event_id, "key": key}
        return await self.send_event(room, "m.reaction", {"m.relates_to": relation})

    async def redact(self, room: str, event_id: str, reason: str = "") -> str:
        path = f"/rooms/{quote(room)}/redact/{quote(event_id)}/{secrets.token_hex(8)}"
        return (await self.call("PUT", path, {"reason": reason} if reason else {}))["event_id"]

    async def view(self, room: str) -> RoomView:
        """The room as it is now. An empty view where the person is not in it."""
        await self.sync()
        return self.rooms.get(room, RoomView())

    async def wait_for(self, room: str, predicate: Callable[[RoomView], object], within: float = 30) -> RoomView:
        """The first view that fulfils the predicate (a KeyError in it counts as not yet).

        TimeoutError with the transcript after `within` seconds.
        """
        deadline = time.monotonic() + within
        view = await self.view(room)
        while not _holds(predicate, view):
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{self.user_id} waited {within} s in {room} and sees:\n{view.transcript()}")
            await self.sync(min(left, 5))
            view = self.rooms.get(room, view)
        return view


def _holds(predicate: Callable[[RoomView], object], view: RoomView) -> bool:
    with contextlib.suppress(KeyError, IndexError):
        return bool(predicate(view))
    return False
