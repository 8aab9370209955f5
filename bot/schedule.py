"""The clock of the program. APScheduler only wakes us: what is due stands in the database."""

import logging
from collections.abc import Awaitable, Callable

from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.triggers.cron import CronTrigger  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.triggers.interval import IntervalTrigger  # pyright: ignore[reportMissingTypeStubs]

Job = Callable[[], Awaitable[None]]


class Schedule:
    """Runs jobs by the clock, each at most once at a time; a job's failure is logged and the next run comes."""

    def __init__(self, timezone: str) -> None:
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = AsyncIOScheduler(
            timezone=timezone, job_defaults={"coalesce": True, "misfire_grace_time": 3600, "max_instances": 1}
        )

    def every(self, seconds: int, job: Job) -> None:
        self._scheduler.add_job(job, IntervalTrigger(seconds=seconds))  # pyright: ignore[reportUnknownMemberType]

    def nightly(self, at: str, job: Job) -> None:
        """`at` is HH:MM in the tenant's time zone."""
        hour, minute = at.split(":")
        self._scheduler.add_job(job, CronTrigger(hour=hour, minute=minute))  # pyright: ignore[reportUnknownMemberType]

    def start(self) -> None:
        self._scheduler.start()

    def stop(self) -> None:
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)  # pyright: ignore[reportUnknownMemberType]
