"""The clock of the program. APScheduler only wakes us: what is due stands in the database."""

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.triggers.date import DateTrigger  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.triggers.interval import IntervalTrigger  # pyright: ignore[reportMissingTypeStubs]

from memory.ports import Clock

Job = Callable[[], Awaitable[None]]


class Schedule:
    """Runs jobs by the clock, each at most once at a time; a job's failure is logged and the next run comes."""

    def __init__(self, timezone: str, clock: Clock) -> None:
        self._clock = clock
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = AsyncIOScheduler(
            timezone=timezone, job_defaults={"coalesce": True, "misfire_grace_time": 3600, "max_instances": 1}
        )

    def every(self, seconds: int, job: Job, *, at_once: bool = False) -> None:
        """From `seconds` after the start on, or from the start itself."""
        trigger = IntervalTrigger(seconds=seconds)
        if at_once:
            self._scheduler.add_job(job, trigger, next_run_time=datetime.now(UTC))  # pyright: ignore[reportUnknownMemberType]
        else:
            self._scheduler.add_job(job, trigger)  # pyright: ignore[reportUnknownMemberType]

    def at(self, instant: datetime, job: Job) -> None:
        """Run once, at an instant of our clock, in the place of what was planned so before.

        The machine's clock, which APScheduler knows, is looked at again at every wake-up: it may have been set.
        """
        run_at = datetime.now(UTC) + (instant - self._clock.now())
        self._scheduler.add_job(  # pyright: ignore[reportUnknownMemberType]
            job,
            DateTrigger(run_at),
            id="at",
            replace_existing=True,
            misfire_grace_time=None,  # late is better than never
            max_instances=2,  # a job plans its successor before it ends
        )

    def start(self) -> None:
        self._scheduler.start()

    def stop(self) -> None:
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)  # pyright: ignore[reportUnknownMemberType]
