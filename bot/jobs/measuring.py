"""Measures recall once a night on people's own chats. When it ran last stands in the database: it runs once a day.

Rule: the day is noted before the work, so that work that fails waits for the next night instead of failing each minute.
"""

from zoneinfo import ZoneInfo

from memory.instants import to_ms
from memory.memory import Memory
from memory.ports import Clock
from memory.retention import is_due
from memory.storage import kept
from memory.storage.database import Database

_RAN = "recall_quality.ran"
"""kept_values: the tenant's day on which it ran last."""


class RecallMeasuring:
    """What the clock does at the hour of the nightly work."""

    def __init__(self, database: Database, clock: Clock, memory: Memory, timezone: str, at: str) -> None:
        self._database = database
        self._clock = clock
        self._memory = memory
        self._timezone = timezone
        self._at = at

    async def run(self) -> None:
        """Measure, where today's run is still to come."""
        now = self._clock.now()
        async with self._database.read() as connection:
            ran_on = await kept.load(connection, _RAN)
        if not is_due(now, self._timezone, self._at, ran_on):
            return
        async with self._database.write() as connection:
            await kept.put(connection, _RAN, now.astimezone(ZoneInfo(self._timezone)).date().isoformat(), to_ms(now))
        await self._memory.quality.run()
