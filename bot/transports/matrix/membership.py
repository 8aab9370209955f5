"""Getting in and out of rooms: invitations, upgrades, and leaving where nobody is left.

Rule: an invitation is accepted from admitted people only; nobody else makes Merk enter a room.
"""

from collections.abc import Awaitable, Callable
from time import monotonic, time
from typing import Any

import structlog

from bot.transports.matrix.client import Homeserver, Json, quoted
from bot.transports.matrix.errors import MatrixError
from bot.transports.matrix.parse import NAME, TWO
from bot.transports.matrix.rooms import Room, Rooms, inviter
from bot.transports.matrix.state import SyncState

log = structlog.get_logger(__name__)

MayInvite = Callable[[str], Awaitable[bool]]
"""(identity): whether this person may take Merk into a room."""

Commit = Callable[[str, dict[str, Any]], Awaitable[None]]
"""(external id, payload): returns when it is in the inbox."""

ASK_AGAIN_SECONDS = 60.0
"""An invitation of a stranger waits: they may be admitted."""


class Membership:
    """Our own coming and going."""

    def __init__(self, server: Homeserver, state: SyncState, rooms: Rooms, me: str, may_invite: MayInvite) -> None:
        self._server = server
        self._state = state
        self._rooms = rooms
        self._me = me
        self._may_invite = may_invite
        self._asked_at = float("-inf")

    async def take(self, invitations: dict[str, Json], left: dict[str, Json], commit: Commit) -> None:
        """What a sync says of rooms that we are not in. A stranger's invitation is handed over: they may be let in."""
        waiting = self._state.invitations
        for room_id in left:
            waiting.pop(room_id, None)
        for room_id, part in invitations.items():
            waiting[room_id] = inviter(part.get("invite_state", {}).get("events", []), self._me)
            if (who := waiting[room_id]) and not await self._may_enter(room_id, who):
                await commit(f"invited:{room_id}:{who}", _invited(room_id, who, part))
        if invitations or (waiting and monotonic() - self._asked_at > ASK_AGAIN_SECONDS):
            await self._consider()

    async def _consider(self) -> None:
        self._asked_at = monotonic()
        for room_id, who in list(self._state.invitations.items()):
            await self._answer(room_id, who)

    async def follow(self, room_id: str) -> None:
        """Something is to be said in a room that may be waiting for us: whoever invited us was let in since."""
        if (who := self._state.invitations.get(room_id)) is not None:
            await self._answer(room_id, who)

    async def _answer(self, room_id: str, who: str) -> None:
        if not await self._may_enter(room_id, who):
            log.info("matrix.invitation_waits", room=room_id)
        elif await self.join(room_id):
            self._state.invitations.pop(room_id, None)

    async def _may_enter(self, room_id: str, who: str) -> bool:
        is_upgrade = self._rooms.replaced_by(room_id) is not None  # we were in the room that it replaces
        return is_upgrade or bool(who and await self._may_invite(f"{NAME}:{who}"))

    async def join(self, room_id: str, via: str = "") -> bool:
        """Enter a room; False where that is refused, or does not work for now."""
        query = {"server_name": via, "via": via} if via else None
        try:
            await self._server.call("POST", f"/join/{quoted(room_id)}", {}, query=query)
        except MatrixError as error:
            log.warning("matrix.not_joined", room=room_id, error=error.errcode, detail=error.detail)
            return False
        log.info("matrix.joined", room=room_id)
        return True

    async def leave_if_alone(self, room: Room) -> None:
        """Nobody is there any more, and nobody is coming."""
        if room.present != [self._me]:
            return
        try:
            await self._server.call("POST", f"/rooms/{quoted(room.id)}/leave", {})
            await self._server.call("POST", f"/rooms/{quoted(room.id)}/forget", {})
        except MatrixError as error:
            log.warning("matrix.not_left", room=room.id, error=error.errcode)
            return
        log.info("matrix.left", room=room.id)


def _invited(room_id: str, who: str, part: Json) -> Json:
    """The payload of an invitation."""
    room = Room(room_id)
    for event in part.get("invite_state", {}).get("events", []):
        room.apply(event)
    return {
        "invited": True,
        "event": {"sender": who, "event_id": "", "origin_server_ts": round(time() * 1000), "type": "m.room.member"},
        "room": {"room_id": room_id, "name": room.name, "people": TWO, "sender_name": room.name_of(who)},
    }
