"""What comes in is committed before the sync token moves past it; no event, and no error, ends the sync (P46).

Rule: starting waits for nothing; the loop here is the one place that reads from the homeserver.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from typing import Any

import structlog

from bot.transports.base import Accept
from bot.transports.matrix.account import Account
from bot.transports.matrix.client import LONG_POLL_SECONDS, Homeserver, Json
from bot.transports.matrix.contact import Contact
from bot.transports.matrix.errors import AccountError, MatrixError, pause
from bot.transports.matrix.membership import Membership
from bot.transports.matrix.reading import Gap, Reader
from bot.transports.matrix.rooms import Rooms
from bot.transports.matrix.state import SyncState

log = structlog.get_logger(__name__)

Prepare = Callable[[], Awaitable[None]]


class Receiver:
    """One account's incoming side."""

    def __init__(  # noqa: PLR0913 - what it connects
        self,
        server: Homeserver,
        account: Account,
        state: SyncState,
        rooms: Rooms,
        *,
        membership: Membership,
        reader: Reader,
        prepare: Prepare,
    ) -> None:
        """`prepare` is awaited before the first sync and after each new login: the device's keys, the bot's name."""
        self._server = server
        self._account = account
        self._state = state
        self._rooms = rooms
        self._membership = membership
        self._reader = reader
        self._prepare = prepare
        self.contact = Contact()
        self._gate = asyncio.Lock()
        self._is_stopped = False
        self._has_synced = False
        self._prepared: int | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, accept: Accept) -> None:
        self._accept = accept
        self._tasks = [asyncio.create_task(_watch(self._run()))]

    async def stop(self) -> None:
        async with self._gate:  # a commit under way comes to its end
            self._is_stopped = True
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                await self._account.ensure()
                if self._prepared != self._account.logins:
                    await self._prepare()
                    self._prepared = self._account.logins
                await self._round()
                failures = 0
            except Exception as error:
                # whatever it is, a deaf bot is worse; it is told as a problem
                if isinstance(error, MatrixError):
                    self._account.lost(error)
                elif not isinstance(error, AccountError):
                    log.debug("matrix.round_failed", exc_info=True)
                self.contact.lost(error)
                await asyncio.sleep(pause(error, failures))
                failures += 1

    async def _round(self) -> None:
        """One sync, taken in whole before its token counts."""
        seconds = LONG_POLL_SECONDS if self._has_synced else 0
        body = await self._server.sync(self._state.token, full_state=not self._has_synced, seconds=seconds)
        if self.contact.problem is None:
            self.contact.made()  # taking in what a long absence has brought may need minutes
        await self._reader.receive(body)
        rooms: Json = body.get("rooms", {})
        joined: dict[str, Json] = rooms.get("join", {})
        is_first = self._state.token is None  # then what was said before is nobody's question to us
        for room_id, part in joined.items():
            self._reader.know(room_id, part, whole=is_first)
        if not is_first:
            for room_id, part in joined.items():
                await self._reader.read(room_id, part, self._gap(room_id, part), self._commit)
            await self._reader.read_again(self._commit)
        self._state.rooms |= set(joined)
        for room_id in rooms.get("leave", {}):
            self._rooms.drop(room_id)
            if room_id in self._state.rooms:
                told: Json = {"came": [], "left": [], "is_over": True}
                token = str(body["next_batch"])
                await self._commit(f"left:{token}:{room_id}", {"members": told, "room": {"room_id": room_id}})
            self._state.rooms.discard(room_id)
        await self._membership.take(rooms.get("invite", {}), rooms.get("leave", {}), self._commit)
        self._state.advance(str(body["next_batch"]))
        if not self._has_synced:
            log.info("matrix.synced", rooms=len(self._state.rooms))
        self._has_synced = True
        self.contact.made()
        await self._reader.settle()

    def _gap(self, room_id: str, part: Json) -> Gap:
        timeline: Json = part.get("timeline", {})
        is_new = room_id not in self._state.rooms
        before = str(timeline.get("prev_batch", "")) if timeline.get("limited") else ""
        return Gap(is_new, before, None if is_new else self._state.token)

    async def _commit(self, external_id: str, payload: dict[str, Any]) -> None:
        """Hold the sync up until an event is committed: what is not taken in is not passed by."""
        for attempt in count():
            try:
                await self._hand_over(external_id, payload)
            except Exception as error:  # noqa: BLE001 - whatever a store raises
                reason = str(error).partition("\n")[0]  # what follows may quote the message
                log.error("matrix.not_taken", ref=external_id, error=type(error).__name__, reason=reason)  # noqa: TRY400 - see above
                await asyncio.sleep(pause(error, attempt))
            else:
                return

    async def _hand_over(self, external_id: str, payload: dict[str, Any]) -> None:
        async with self._gate:
            if self._is_stopped:
                raise RuntimeError("stopping")
            await self._accept(external_id, payload)


async def _watch(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        log.exception("matrix.receiving_failed")  # last_contact grows old, which is what health looks at
