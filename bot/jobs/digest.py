"""Sends the weekly digests. When each was sent last stands in the database, so a restart sends none twice.

Rule: the digest and the note that it was sent are one transaction.
"""

from collections.abc import Collection
from datetime import timedelta

from bot.transports.delivery import Delivery
from bot.transports.posting import Context, post
from handlers.locales import phrases
from handlers.remembering.digest import digest_card
from handlers.types import Place
from memory.instants import from_ms, to_ms
from memory.memory import Memory
from memory.ports import Clock
from memory.scope import Audience
from memory.storage import digests, people
from memory.storage.database import Database

WEEK = timedelta(days=7)


class Digests:
    """What the clock does for those who want one, in the private place that each used last."""

    def __init__(
        self, database: Database, clock: Clock, memory: Memory, delivery: Delivery, transports: Collection[str]
    ) -> None:
        self._database = database
        self._clock = clock
        self._memory = memory
        self._delivery = delivery
        self._transports = frozenset(transports)

    async def send(self) -> None:
        """Send all that are due. Where nothing happened in a week, nothing is sent."""
        async with self._database.read() as connection:
            due = await digests.due(connection, to_ms(self._clock.now() - WEEK))
        for user_id, last in due:
            await self._send(user_id, last)

    async def _send(self, user_id: int, last: int) -> None:
        changes = await self._memory.observations.changes(Audience(user_id, 0, is_private=True), from_ms(last))
        now = to_ms(self._clock.now())
        async with self._database.write() as connection:
            user = await people.by_id(connection, user_id)
            found = await people.private_place(connection, user_id) if user else None
            if user is None:
                await digests.drop(connection, user_id)
                return
            if found is None or found[0] not in self._transports:
                return  # a transport that is away: with its return
            if not await digests.note_sent(connection, user_id, last, now):
                return
            card = digest_card(phrases(user.reads), changes)
            if card is None:
                return
            place = Place(*found)
            await post(connection, Context(place, user_id, None, None), [card], now)
        self._delivery.wake(place)
