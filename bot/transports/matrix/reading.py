"""The events of a room, in order and without a gap, each understood as far as it can be and then handed over.

Rule: an event that we cannot make sense of is logged and passed by; a network that fails holds everything up.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import structlog

from bot.transports.matrix.client import KEYS_ONLY, PASSING_SECONDS, Homeserver, Json, quoted
from bot.transports.matrix.errors import MatrixError
from bot.transports.matrix.membership import Membership
from bot.transports.matrix.noting import ENCRYPTED, REDACTION, Noter, Open, relation_of
from bot.transports.matrix.rooms import Room, Rooms
from bot.transports.matrix.state import SyncState

if TYPE_CHECKING:
    from bot.transports.matrix.crypto.machine import Machine

log = structlog.get_logger(__name__)

Commit = Callable[[str, dict[str, Any]], Awaitable[None]]

NEVER_SEALED = ("m.reaction", REDACTION)
"""Beside the line of messages, and open in encrypted rooms, too."""
HEARD = ("m.room.message", *NEVER_SEALED, "m.sticker", "m.poll.start", "org.matrix.msc3381.poll.start")
PAIR = 2
"""Somebody and we ourselves: a private place."""
PAGE = 100
MOST_PAGES = 100
"""10,000 events of one room while we were away: whoever missed more does not want them answered."""
MANY_KEYS = 50
"""A sync with so many may have left some for the next one; Synapse hands out a hundred."""
MOST_KEY_PAGES = 100
"""The rest comes with the next syncs: a flood of keys does not keep the messages out for ever."""
KEY_SECONDS = 10.0
"""A key may come after its message; so long nobody is told that it is missing."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What lies between what we have read of a room and what a sync brought."""

    is_new: bool
    """We were not in the room at the last token."""
    before: str
    """Where the part of the sync begins, if it does not begin where we stopped; else empty."""
    after: str | None
    """Where we stopped."""


class Reader:
    """Reads what a sync brings, room by room."""

    def __init__(  # noqa: PLR0913 - what it connects
        self,
        server: Homeserver,
        state: SyncState,
        rooms: Rooms,
        me: str,
        *,
        membership: Membership,
        noter: Noter,
        machine: "Machine | None",
        open_event: Open,
        refuse_plain: Callable[[Room], Awaitable[None]] | None,
    ) -> None:
        """`refuse_plain` tells a room that is not encrypted why nothing is read there; None where it may be plain."""
        self._server = server
        self._state = state
        self._rooms = rooms
        self._me = me
        self._membership = membership
        self._noter = noter
        self._machine = machine
        self._open = open_event
        self._refuse_plain = refuse_plain
        self.newest: dict[tuple[str, str], str] = {}
        """(room id, thread) -> its newest message."""
        self._read: dict[tuple[str, str], str] = {}
        self._since: dict[str, float] = {}
        """Event id -> when it was first seen undecrypted, by this process."""

    async def receive(self, body: Json) -> None:
        """Keys first: the same sync may hold what they open, and more of them than fit into it."""
        if self._machine is None:
            return
        await self._machine.receive(body)
        for _ in range(MOST_KEY_PAGES):
            if len(body.get("to_device", {}).get("events", [])) < MANY_KEYS:
                return
            before = str(body["next_batch"])
            try:
                body = await self._server.sync(before, full_state=False, seconds=0, only=KEYS_ONLY)
            except MatrixError as error:
                if error.is_passing:
                    raise
                log.warning("matrix.keys_refused", error=error.errcode)
                return
            await self._machine.receive_keys(body)
            if body["next_batch"] == before:
                return
        log.warning("matrix.many_keys", pages=MOST_KEY_PAGES)

    def know(self, room_id: str, part: Json, *, whole: bool) -> None:
        """The state of a room where the part of it begins, or, with `whole`, where it ends."""
        room = self._rooms.of(room_id)
        events: list[Json] = part.get("state", {}).get("events", [])
        for event in events + (part.get("timeline", {}).get("events", []) if whole else []):
            room.apply(event)

    async def read(self, room_id: str, part: Json, gap: Gap, commit: Commit) -> None:
        """Hand over everything that is new in a room."""
        room = self._rooms.of(room_id)
        events: list[Json] = part.get("timeline", {}).get("events", [])
        if gap.before:
            events = await self._missed(room, gap) + events
        if gap.is_new:
            for event in events:
                room.apply(event)
            events = _since_invited(events, self._me)
            if old := self._rooms.replaced_by(room_id):
                await commit(f"moved:{room_id}", {"moved": [old, room_id], "room": {"room_id": old}})
        for event in events:
            await _safely(event, self._take(room, event, commit))
        await self._membership.leave_if_alone(room)

    async def _missed(self, room: Room, gap: Gap) -> list[Json]:
        """What a limited timeline left out, oldest first."""
        missed: list[Json] = []
        query = {"dir": "b", "limit": str(PAGE), "from": gap.before}
        if gap.after:
            query["to"] = gap.after
        for _ in range(MOST_PAGES):
            page = await self._server.call("GET", f"/rooms/{quoted(room.id)}/messages", query=query)
            chunk: list[Json] = page.get("chunk", [])
            missed += chunk
            is_enough = gap.is_new and any(_is_beginning(event, self._me) for event in chunk)
            if not page.get("end") or page["end"] == query["from"] or not chunk or is_enough:
                return missed[::-1]
            query["from"] = str(page["end"])
        log.error("matrix.gap_too_wide", room=room.id, events=len(missed))
        return missed[::-1]

    async def _take(self, room: Room, event: Json, commit: Commit) -> None:
        if "state_key" in event:
            room.apply(event)
            if event["type"] == "m.room.member":
                await self._tell_members(room, event, commit)
            if event["type"] == "m.room.tombstone":
                await self._follow(room, event, commit)
            return
        if event["type"] not in (*HEARD, ENCRYPTED) or not (event.get("content") or event["type"] == REDACTION):
            return  # what was redacted before we saw it has no words
        if event["type"] == ENCRYPTED:
            opened = self._open(room.id, event)
            if opened is None:
                await self._wait_for_key(room, event)
                return
            await self._hear(room, opened, commit, is_sealed=True)
        else:
            await self._hear(room, event, commit, is_sealed=False)

    async def _hear(self, room: Room, event: Json, commit: Commit, *, is_sealed: bool) -> None:
        if event["type"] not in HEARD:
            return
        if event["type"] not in NEVER_SEALED:
            relation = relation_of(event)
            thread = str(relation.get("event_id")) if relation.get("rel_type") == "m.thread" else ""
            self._noter.saw(event)
            if relation.get("rel_type") != "m.replace":
                self.newest[room.id, thread] = event["event_id"]
            if event["sender"] != self._me:
                self._read[room.id, thread] = event["event_id"]
        if event["sender"] == self._me:
            return
        is_plain = not (is_sealed or (room.is_encrypted and event["type"] in NEVER_SEALED))
        if self._refuse_plain and is_plain:
            await self._refuse_plain(room)
            return
        payload = await self._noter.note(room, event)
        if payload is not None:
            await commit(event["event_id"], payload)

    # --- encryption ---

    async def _wait_for_key(self, room: Room, event: Json) -> None:
        if event["sender"] == self._me:
            return
        log.warning("matrix.undecryptable", room=room.id, ref=event["event_id"])
        self._state.wait_for_key(room.id, event)
        if self._machine:
            await self._machine.request_key(room.id, event)

    async def read_again(self, commit: Commit) -> None:
        """What could not be decrypted before: a key may have come. A thread is told once that one is missing (P52)."""
        still: list[Json] = []
        for waiting in self._state.undecrypted:
            room, event = self._rooms.find(waiting["room_id"]), waiting["event"]
            if room is None:
                continue
            if opened := self._open(room.id, event):
                await _safely(event, self._hear(room, opened, commit, is_sealed=True))
                continue
            still.append(waiting)
            since = self._since.setdefault(event["event_id"], monotonic())
            if monotonic() - since >= KEY_SECONDS and not waiting.get("is_told"):
                payload = self._noter.undecryptable(room, event)
                await commit(f"undecryptable:{room.id}:{payload.get('thread', '')}", payload)
                waiting["is_told"] = True
        self._state.undecrypted = still

    # --- who is there ---

    async def _tell_members(self, room: Room, event: Json, commit: Commit) -> None:
        """Somebody came, or left. Who is alone with us is no group; who has only been invited has not come yet."""
        who = str(event["state_key"])
        is_here = who in room.joined
        if who == self._me or (is_here and len(room.present) <= PAIR):
            return
        told = {"came": [who] if is_here else [], "left": [] if is_here else [who], "is_over": False}
        where = {"room_id": room.id, "name": room.name}
        await commit(f"members:{event['event_id']}", {"members": told, "room": where})

    # --- rooms that move ---

    async def _follow(self, room: Room, event: Json, commit: Commit) -> None:
        """A room was upgraded: go where it went."""
        new = room.replacement
        if not new:
            return
        if new in self._state.rooms:
            await commit(f"moved:{new}", {"moved": [room.id, new], "room": {"room_id": room.id}})
            return
        await self._membership.join(new, via=str(event.get("sender", "")).partition(":")[2])

    # --- after a round ---

    async def settle(self) -> None:
        """Say what was read, and look after the keys. Best effort."""
        read, self._read = self._read, {}
        receipts = [self._receipt(room_id, thread, event_id) for (room_id, thread), event_id in read.items()]
        await asyncio.gather(*receipts)
        if self._machine:
            await self._machine.tend()

    async def _receipt(self, room_id: str, thread: str, event_id: str) -> None:
        path = f"/rooms/{quoted(room_id)}/receipt/m.read/{quoted(event_id)}"
        try:
            await self._server.call("POST", path, {"thread_id": thread or "main"}, seconds=PASSING_SECONDS)
        except MatrixError as error:
            log.info("matrix.no_receipt", error=error.errcode)


async def _safely(event: Json, work: Awaitable[None]) -> None:
    """One event that we cannot deal with is passed by; a network that fails is not the event's fault."""
    try:
        await work
    except MatrixError as error:
        if error.is_passing:
            raise
        log.warning("matrix.event_passed_by", ref=event.get("event_id"), error=error.errcode)
    except Exception:
        log.exception("matrix.event_not_understood", ref=event.get("event_id"))


def _is_own_coming(event: Json, me: str) -> bool:
    return event.get("type") == "m.room.member" and event.get("state_key") == me


def _is_beginning(event: Json, me: str) -> bool:
    """What was before concerns us no more: we were invited here, or came without an invitation."""
    if not _is_own_coming(event, me):
        return False
    is_first = "replaces_state" not in event.get("unsigned", {})
    return event.get("content", {}).get("membership") != "join" or is_first


def _since_invited(events: list[Json], me: str) -> list[Json]:
    """Of a room that we have just entered: what was said since somebody wanted us there."""

    def places(membership: str) -> list[int]:
        return [
            at
            for at, event in enumerate(events)
            if _is_own_coming(event, me) and event.get("content", {}).get("membership") == membership
        ]

    begun = places("invite") or places("join")
    return events[begun[-1] :] if begun else []
