"""A clock that moves when it is told to."""

from datetime import UTC, datetime, timedelta


class FrozenClock:
    def __init__(self, now: datetime = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def advance(self, **span: float) -> None:
        self._now += timedelta(**span)
