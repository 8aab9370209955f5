"""What runs in the background, watched: a failure is logged and an event, and the next run comes all the same."""

from collections.abc import Awaitable, Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError

from memory import telemetry
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage.database import Database

log = structlog.get_logger(__name__)


class Watch:
    """Notes what fails."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def job(self, name: str, work: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        """The same work, which never raises but for cancellation."""

        async def run() -> None:
            await self.over(name, work())

        return run

    async def over(self, name: str, work: Awaitable[None]) -> None:
        """Wait for work to end."""
        try:
            await work
        except Exception as error:
            log.exception("watch.failed", job=name)
            await self._note(telemetry.JobFailed(job=name, error=type(error).__name__))

    async def _note(self, event: telemetry.Event) -> None:
        try:
            async with self._database.write() as connection:
                await telemetry.record(connection, event, to_ms(self._clock.now()))
        except (SQLAlchemyError, OSError) as error:  # it may be the store that failed in the first place
            log.warning("watch.not_noted", error=type(error).__name__)
