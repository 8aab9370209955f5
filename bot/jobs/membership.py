"""Who is still in a group: a transport that may miss a leaving is asked, off the path of every answer.

Rule: whoever is in doubt counts as present in the group, and is shown nothing of it elsewhere. Each member of each
group is asked after at most once a day; an answer changes nothing that was noted while it was on its way.
"""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import structlog

from bot import pulse
from bot.transports.base import AsksMembers, Fault, SendError, Transport
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import kept, members
from memory.storage.database import Database
from memory.storage.members import Stamped

log = structlog.get_logger(__name__)

SECONDS = 600
"""How often there is a round."""
AT_ONCE = 100
"""Members asked after in a round."""
PAUSE_SECONDS = 0.2
SILENCE = timedelta(hours=23)
"""After so long without contact a leaving may have been missed: Telegram keeps updates for 24 hours."""
EVERY = timedelta(days=1)
_LATER = (Fault.LATER, Fault.UNSENT, Fault.UNKNOWN)


class Membership:
    """Keeps the members of groups fresh."""

    def __init__(self, database: Database, clock: Clock, transports: Iterable[Transport]) -> None:
        self._database = database
        self._clock = clock
        self._transports = {each.name: each for each in transports if isinstance(each, AsksMembers)}
        self._unsure: dict[Stamped, int] = {}
        """Whom a transport cannot tell of, and when it was asked."""

    async def start(self) -> None:
        """Before anything is received: what was missed while Merk was away is in doubt."""
        for name in self._transports:
            async with self._database.read() as connection:
                noted: dict[str, Any] = await kept.load(connection, pulse.key_of(name)) or {}
            at: float | None = noted.get("ever")
            if at is None or self._clock.now().timestamp() - at > SILENCE.total_seconds():
                await self._doubt(name)

    async def refresh(self) -> None:
        """A round: ask after those whose stamp is old, the doubtful first."""
        for name, transport in self._transports.items():
            silent = transport.last_contact()
            if silent is not None and silent > SILENCE.total_seconds():
                await self._doubt(name)
            else:
                await self._round(name, transport)

    async def _round(self, name: str, transport: AsksMembers) -> None:
        before = to_ms(self._clock.now() - EVERY)
        self._unsure = {each: at for each, at in self._unsure.items() if at > before}
        async with self._database.read() as connection:
            old = await members.stamped_before(connection, name, before)
        over = set[int]()
        for each in [one for one in old if one not in self._unsure][:AT_ONCE]:
            if each.chat_id in over:
                continue
            fault = await self._ask(transport, each)
            if fault is Fault.NO_CHAT:
                over.add(each.chat_id)
            elif fault in _LATER:
                return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(self, transport: AsksMembers, each: Stamped) -> Fault | None:
        """Ask after one and note the answer; what was in the way of it."""
        try:
            is_there = await transport.is_member(each.chat, each.identity)
        except SendError as error:
            log.info("membership.not_told", fault=error.fault)
            if error.fault is Fault.NO_CHAT:  # Merk itself is there no more: nobody tells it who is
                async with self._database.write() as connection:
                    await members.replace(connection, each.chat_id, frozenset(), self._now())
            elif error.fault not in _LATER:
                self._unsure[each] = self._now()
            return error.fault
        async with self._database.write() as connection:
            await members.settle(connection, each, self._now() if is_there else None)
        return None

    async def _doubt(self, name: str) -> None:
        async with self._database.write() as connection:
            await members.doubt(connection, name)

    def _now(self) -> int:
        return to_ms(self._clock.now())
