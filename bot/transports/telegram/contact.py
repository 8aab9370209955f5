"""When Telegram was last heard, and what is in the way: health is the age of an answer, not a living process (P40)."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

import structlog
from telegram.error import Conflict, TelegramError

from bot.transports.telegram.errors import explain, pause

log = structlog.get_logger(__name__)

T = TypeVar("T")

CONFLICT_SECONDS = 60.0
"""Two pollers take turns: a poll that succeeds says nothing about the other one."""


class Contact:
    """One line of health. A problem is logged when it begins and when it ends, not at each attempt."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._made_at: float | None = None
        self._holds_until = 0.0
        self.problem: str | None = None

    def made(self, problem: str | None = None) -> None:
        """Telegram answered or called; the answer itself may tell of a problem."""
        self._made_at = self._clock()
        if problem is not None:
            self._note(problem)
        elif self.problem is not None and self._clock() >= self._holds_until:
            log.info("telegram.recovered", after=self.problem)
            self.problem = None

    def lost(self, error: Exception) -> None:
        """Telegram did not answer, or refused."""
        if isinstance(error, Conflict):
            self._holds_until = self._clock() + CONFLICT_SECONDS
        self._note(explain(error))

    def age(self) -> float | None:
        """Seconds since the last contact; None before the first."""
        return None if self._made_at is None else self._clock() - self._made_at

    def _note(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("telegram.problem", problem=problem)
            self.problem = problem


async def persevere(call: Callable[[], Awaitable[T]], contact: Contact) -> T:
    """Repeat a call that changes nothing by being repeated, until Telegram answers it."""
    attempt = 0
    while True:
        try:
            return await call()
        except TelegramError as error:
            contact.lost(error)
            await asyncio.sleep(pause(error, attempt))
            attempt += 1
