"""When a reminder rings: wall clock time and RFC 5545 rules in a time zone. Pure.

Rule: the wall clock stays over a change to summer time and back. A time that does not exist rings at the first instant
after the gap; one that exists twice rings once, at the first.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from dateutil.rrule import rrulestr

DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
WEEKDAYS = DAYS[:5]
_SHORTEST_MONTH = 28


def zone(name: str) -> ZoneInfo:
    """Raise `ZoneInfoNotFoundError` for a name that `find_zone` does not give."""
    return ZoneInfo(name)


def find_zone(asked: str) -> str | None:
    """The IANA name that is meant: in any case, with spaces, or its last part alone where that is one zone's only."""
    wanted = "_".join(asked.lower().split())
    by_name, by_city = _zones()
    return by_name.get(wanted) or by_city.get(wanted)


@cache
def _zones() -> tuple[dict[str, str], dict[str, str]]:
    by_name = {name.lower(): name for name in available_timezones()}
    cities: dict[str, set[str]] = {}
    for lower, name in by_name.items():
        if lower.split("/")[0] in _CONTINENTS:
            cities.setdefault(lower.rsplit("/", 1)[-1], set()).add(name)
    return by_name, {city: names.pop() for city, names in cities.items() if len(names) == 1}


_CONTINENTS = frozenset(
    ["africa", "america", "antarctica", "asia", "atlantic", "australia", "europe", "indian", "pacific"]
)
"""What begins the names of places; the rest ("Etc", "US") are other names of the same."""


def instant_of(wall: datetime, where: ZoneInfo) -> datetime:
    """The instant (UTC, whole seconds) of a wall clock time without a zone."""
    wall = wall.replace(microsecond=0)
    first = wall.replace(tzinfo=where, fold=0)
    instant = first.astimezone(UTC)
    if instant.astimezone(where).replace(tzinfo=None, fold=0) == wall.replace(fold=0):
        return instant
    return _end_of_gap(first.replace(fold=1).astimezone(UTC), instant, where)


def _end_of_gap(before: datetime, after: datetime, where: ZoneInfo) -> datetime:
    """The first whole second that has the offset of `after`; the clock jumps between the two."""
    offset = after.astimezone(where).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before).total_seconds() // 2)
        if middle.astimezone(where).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after


def wall_of(instant: datetime, where: ZoneInfo) -> datetime:
    """What the clock on the wall shows."""
    return instant.astimezone(where).replace(tzinfo=None, fold=0)


def next_time(starts: datetime, rule: str | None, where: ZoneInfo, after: datetime) -> tuple[datetime, datetime] | None:
    """The first time after an instant, as wall clock time and as an instant; None when there is none any more."""
    for wall in _times(starts, rule, wall_of(after, where)):
        instant = instant_of(wall, where)
        if instant > after:
            return wall, instant
    return None


def times_between(starts: datetime, rule: str, where: ZoneInfo, since: datetime, until: datetime) -> list[datetime]:
    """The instants of a rule after `since`, `until` included."""
    found: list[datetime] = []
    for wall in _times(starts, rule, wall_of(since, where)):
        instant = instant_of(wall, where)
        if instant > until:
            break
        if instant > since:
            found.append(instant)
    return found


def _times(starts: datetime, rule: str | None, after: datetime) -> Iterator[datetime]:
    """Wall clock times from the one that `after` shows on: no earlier one has an instant that is still to come."""
    if rule is not None:
        yield from rrulestr(rule, dtstart=starts).xafter(after, inc=True)
    elif starts >= after:
        yield starts


# --- rules ---------------------------------------------------------------------------------------


def daily(every: int = 1) -> str:
    return _rule("DAILY", every)


def weekly(days: tuple[str, ...], every: int = 1) -> str:
    """`days` as in `DAYS`."""
    return _rule("WEEKLY", every, f"BYDAY={','.join(day for day in DAYS if day in days)}")


def monthly(day: int, every: int = 1) -> str:
    """On this day, or on the last one of a month that is shorter."""
    return _rule("MONTHLY", every, _on_day(day))


def yearly(month: int, day: int, every: int = 1) -> str:
    """On this day; one of a leap year is the last one of February otherwise."""
    on_day = _on_day(day) if (month, day) == (2, 29) else f"BYMONTHDAY={day}"
    return _rule("YEARLY", every, f"BYMONTH={month};{on_day}")


def parts(rule: str) -> dict[str, str]:
    """A rule taken apart: FREQ, INTERVAL, BYDAY."""
    return dict(part.split("=", 1) for part in rule.split(";"))


def _rule(frequency: str, every: int, rest: str = "") -> str:
    interval = f"INTERVAL={every}" if every > 1 else ""
    return ";".join(part for part in (f"FREQ={frequency}", interval, rest) if part)


def _on_day(day: int) -> str:
    if day <= _SHORTEST_MONTH:
        return f"BYMONTHDAY={day}"
    return f"BYMONTHDAY={','.join(str(each) for each in range(_SHORTEST_MONTH, day + 1))};BYSETPOS=-1"
