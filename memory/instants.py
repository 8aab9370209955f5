"""Instants are aware datetimes in the program and milliseconds since the epoch (UTC) in the stores."""

from datetime import UTC, datetime


def to_ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def from_ms(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)
