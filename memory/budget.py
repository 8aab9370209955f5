"""What may be spent in a day, and what was: asked before each call of a model, charged right after it.

Rule: everything is in SQL, so that limits hold across restarts; the one process that writes it remembers today's sums,
for every answer asks for them. A day is a day of the tenant's time zone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from sqlalchemy.ext.asyncio import AsyncConnection

from memory import telemetry
from memory.instants import to_ms
from memory.ports import Account, Clock, Purpose
from memory.storage import kept, spend
from memory.storage.database import Database
from memory.storage.spend import Charge
from memory.telemetry import BudgetReached

NANO = 1_000_000_000
WARN_AT = 0.8
BACKGROUND = (Purpose.SUMMARY, Purpose.EXTRACTION, Purpose.CONSOLIDATION)
PERSONAL = (Purpose.CHAT, Purpose.ADVISOR)
_TODAY = "budget.today"
"""kept_values: the day, and whose limits were lifted, and who was warned or told, on it."""


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """US dollars a day; infinity: no limit."""

    per_user: float = math.inf
    background: float = math.inf
    advisor: float = math.inf
    """Of one person, within their own."""
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a budget stands today, in nano US dollars."""

    spent: int
    limit: int | None
    """None: there is no limit, or it was lifted for today."""

    @property
    def is_spent(self) -> bool:
        return self.limit is not None and self.spent >= self.limit

    @property
    def is_nearly_spent(self) -> bool:
        return self.limit is not None and self.spent >= self.limit * WARN_AT


@dataclass(frozen=True, slots=True)
class _Whose:
    """What a sum is of."""

    purposes: tuple[Purpose, ...]
    user_id: int | None
    """None: everybody's."""

    def pays(self, account: Account) -> bool:
        return account.purpose in self.purposes and self.user_id in (None, account.user_id)


class Budget:
    """The one place that knows what may still be spent."""

    def __init__(self, database: Database, clock: Clock, settings: BudgetSettings) -> None:
        self._database = database
        self._clock = clock
        self.settings = settings
        self._zone = ZoneInfo(settings.timezone)
        self._sums: dict[_Whose, int] = {}
        """What was spent today, as far as it was asked for."""
        self._marks: dict[str, Any] | None = None
        self._day = ""
        self._changes = 0
        """What was read before a change is not remembered after it."""

    async def may_spend(self, account: Account) -> bool:
        """Whether a call may be made. One that begins below a limit is made, whatever it comes to."""
        if self._limit(account) is not None and (await self.standing(account)).is_spent:
            return False
        limit = _nano(self.settings.advisor)
        if account.purpose is not Purpose.ADVISOR or limit is None:
            return True
        return await self._spent((Purpose.ADVISOR,), account.user_id) < limit

    async def standing(self, account: Account) -> Standing:
        """How the budget stands that a call is charged to: a person's, or that of background work."""
        limit = self._limit(account)
        is_background = account.purpose in BACKGROUND
        purposes, user_id = (BACKGROUND, None) if is_background else (PERSONAL, account.user_id)
        if limit is not None and key_of(account) in (await self._today())["lifted"]:
            limit = None
        return Standing(await self._spent(purposes, user_id), limit)

    async def charge(self, charges: Sequence[Charge]) -> None:
        """Put on the bill what a call came to."""
        async with self._database.jot() as connection:
            await spend.add(connection, charges, self._now())
        self._changes += 1
        for whose in self._sums:
            self._sums[whose] += sum(charge.nano_usd or 0 for charge in charges if whose.pays(charge.account))

    async def lift(self, key: str) -> None:
        """Let somebody, or the background, spend without a limit until midnight. `key` is that of `key_of`."""
        async with self._database.write() as connection:
            await self._mark(connection, "lifted", key)
            await telemetry.record(connection, BudgetReached(whose=key, step="lifted"), self._now())
        self._forget_marks()

    async def say_once(self, what: Literal["warned", "stopped"], account: Account) -> bool:
        """True for the first time in a day: what is said of a budget is said once."""
        key = key_of(account)
        if key in (await self._today())[what]:
            return False
        async with self._database.write() as connection:
            await self._mark(connection, what, key)
            await telemetry.record(connection, BudgetReached(whose=key, step=what), self._now())
        self._forget_marks()
        return True

    def read_anew(self) -> None:
        """Two people became one, or one two: what each spent stands in SQL."""
        self._sums.clear()
        self._forget_marks()

    def until_midnight(self) -> float:
        """Seconds until the next day begins."""
        return (self._midnight(days=1) - self._clock.now()).total_seconds()

    def day_began(self) -> int:
        """When today began, in ms."""
        return to_ms(self._midnight())

    def month_began(self) -> int:
        """When this month began, in ms."""
        return to_ms(self._midnight().replace(day=1))

    def _limit(self, account: Account) -> int | None:
        is_background = account.purpose in BACKGROUND
        return _nano(self.settings.background if is_background else self.settings.per_user)

    def _midnight(self, days: int = 0) -> datetime:
        now = self._clock.now().astimezone(self._zone) + timedelta(days=days)
        return now.replace(hour=0, minute=0, second=0, microsecond=0)

    async def _spent(self, purposes: tuple[Purpose, ...], user_id: int | None) -> int:
        whose = _Whose(purposes, user_id)
        self._begin_day()
        if whose in self._sums:
            return self._sums[whose]
        before = self._changes
        async with self._database.read() as connection:
            found = await spend.spent(connection, purposes, since=self.day_began(), user_id=user_id)
        if before == self._changes:
            self._sums[whose] = found
        return found

    async def _today(self) -> dict[str, Any]:
        self._begin_day()
        if self._marks is not None:
            return self._marks
        before = self._changes
        async with self._database.read() as connection:
            found = self._of_today(await kept.load(connection, _TODAY))
        if before == self._changes:
            self._marks = found
        return found

    def _begin_day(self) -> None:
        day = f"{self._midnight():%Y-%m-%d}"
        if day != self._day:
            self._day, self._marks = day, None
            self._sums.clear()

    def _forget_marks(self) -> None:
        self._changes += 1
        self._marks = None

    def _of_today(self, stored: dict[str, Any] | None) -> dict[str, Any]:
        day = f"{self._midnight():%Y-%m-%d}"
        if stored is None or stored["day"] != day:
            return {"day": day, "lifted": [], "warned": [], "stopped": []}
        return stored

    async def _mark(self, connection: AsyncConnection, what: str, key: str) -> None:
        today = self._of_today(await kept.load(connection, _TODAY))
        today[what] = sorted({*today[what], key})
        await kept.put(connection, _TODAY, today, self._now())

    def _now(self) -> int:
        return to_ms(self._clock.now())


def key_of(account: Account) -> str:
    """Whose budget it is, as a code: "background" or "user:42"."""
    return "background" if account.purpose in BACKGROUND else f"user:{account.user_id}"


def _nano(usd: float) -> int | None:
    return None if math.isinf(usd) else round(usd * NANO)
