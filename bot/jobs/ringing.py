"""Reminders ring here. The table says what is due; the schedule only wakes us, and the minute's sweep if it does not.

Rule: the outbox row and the next time of a reminder are one transaction, so whatever runs twice rings once.
"""

import asyncio
from collections.abc import Collection
from datetime import datetime

import structlog

from bot.schedule import Schedule
from bot.transports.delivery import Delivery
from bot.transports.posting import Context, post
from handlers.locales import phrases
from handlers.reminding.recurring import next_time, times_between, zone
from handlers.reminding.reminders import ring_card
from handlers.types import Place
from memory.instants import from_ms, to_ms
from memory.ports import Clock
from memory.storage import people, reminders
from memory.storage.database import Database
from memory.storage.reminders import Due
from memory.types import Reminder

log = structlog.get_logger(__name__)

LATE_SECONDS = 120  # what rings later than that says when it was due
BATCH = 100


class Ringing:
    """Rings what is due on the transports that run, and plans the next time to look."""

    def __init__(
        self, database: Database, clock: Clock, schedule: Schedule, delivery: Delivery, transports: Collection[str]
    ) -> None:
        self._database = database
        self._clock = clock
        self._schedule = schedule
        self._delivery = delivery
        self._transports = frozenset(transports)
        self._one_at_a_time = asyncio.Lock()

    async def ring(self) -> None:
        """Ring all that is due, then plan. One that fails is logged, and tried again with the next sweep."""
        async with self._one_at_a_time:
            seen = (-1, -1)
            while found := await self._due(seen):
                for each in found:
                    await self._try(each)
                last = found[-1].reminder
                seen = (last.due_at, last.id)
        await self.plan()

    async def plan(self) -> None:
        """Be woken when the next one is due."""
        async with self._database.read() as connection:
            due_at = await reminders.next_due(connection, to_ms(self._clock.now()), self._transports)
        if due_at is not None:
            self._schedule.at(from_ms(due_at), self.ring)

    async def _due(self, seen: tuple[int, int]) -> list[Due]:
        now = to_ms(self._clock.now())
        async with self._database.read() as connection:
            return await reminders.due(connection, now, self._transports, BATCH, seen)

    async def _try(self, due: Due) -> None:
        try:
            await self._ring(due)
        except Exception:
            log.exception("ringing.failed", reminder=due.reminder.id)

    async def _ring(self, due: Due) -> None:
        reminder, now = due.reminder, self._clock.now()
        again_at, missed = _again(reminder, now), _missed(reminder, now)
        place = Place(**reminder.place)
        context = Context(place, reminder.user_id, due.session_id, None)
        async with self._database.write() as connection:
            user = await people.by_id(connection, reminder.user_id)
            if user is None or not await reminders.ring(connection, reminder, again_at):
                return
            name = None if reminder.owner == f"u{user.id}" else user.name
            await post(connection, context, [ring_card(phrases(user.reads), reminder, missed, name)], to_ms(now))
        self._delivery.wake(place)


def _again(reminder: Reminder, now: datetime) -> int | None:
    """The first time that is after this ring and after now: a clock that is set back brings none back."""
    if reminder.rule is None:
        return None
    after = max(now, from_ms(reminder.due_at))
    found = next_time(datetime.fromisoformat(reminder.starts), reminder.rule, zone(reminder.timezone), after)
    return None if found is None else to_ms(found[1])


def _missed(reminder: Reminder, now: datetime) -> list[datetime]:
    """The times that went by unheard, if the first of them is late."""
    due = from_ms(reminder.due_at)
    if (now - due).total_seconds() <= LATE_SECONDS:
        return []
    if reminder.rule is None:
        return [due]
    starts, where = datetime.fromisoformat(reminder.starts), zone(reminder.timezone)
    return [due, *times_between(starts, reminder.rule, where, due, now)]
