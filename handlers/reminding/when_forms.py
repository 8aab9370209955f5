"""The ways to say parts of a time, as patterns with what they say: for `handlers.reminding.when`. Pure."""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import Any, Literal

from handlers.reminding import when_words as words
from handlers.reminding.recurring import DAYS, WEEKDAYS

_NOON = 12
_HOURS, _MINUTES, _DAYS = 24, 60, 31  # one more than a clock shows; the most days of a month
_LEAP_YEARS = 8  # the most years from one 29 February to the next
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_FREQUENCIES = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}


@dataclass(frozen=True, slots=True)
class Said:
    """What of a time has been said so far."""

    span: timedelta | None = None
    """From now, to the second."""
    day: date | None = None
    day_of_month: int | None = None
    days: tuple[str, ...] = ()
    """Weekdays, as in `DAYS`."""
    is_next: bool = False
    """The weekday is not today's."""
    clock: time | None = None
    part: str | None = None
    """Of the day: morning, evening …"""
    frequency: Literal["DAILY", "WEEKLY", "MONTHLY", "YEARLY"] | None = None
    every: int = 1


_Read = Callable[[re.Match[str], date], dict[str, Any] | None]
"""What a match says, given the date of today; None for what cannot be."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way to say a part of a time."""

    pattern: re.Pattern[str]
    read: _Read
    fits: Callable[[Said], bool]
    """Whether it may come after what was said."""


def weekday(name: str) -> str:
    """The weekday, as in `DAYS`, that a name in any of the languages means; empty for anything else."""
    return next((day for day in DAYS if re.fullmatch(rf"{day}|{_DAY_PATTERNS[day]}", name, re.IGNORECASE)), "")


# --- what a match says -----------------------------------------------------------------------------


def _index(patterns: Iterable[str], word: str) -> int:
    """Which of the patterns a word is of."""
    return next(at for at, pattern in enumerate(patterns) if re.fullmatch(pattern, word, re.IGNORECASE))


def _count(word: str | None) -> int:
    if not word:
        return 1
    return int(word) if word.isdigit() else _index(words.COUNTS, word) + 1


def _unit(word: str) -> str:
    return list(words.UNITS)[_index(words.UNITS.values(), word)]


def _read_span(found: re.Match[str], today: date) -> dict[str, Any] | None:
    """What is counted in minutes is to the second; "in 3 days" names a day."""
    count, unit, more = _count(found["count"] or found["few"]), _unit(found["unit"]), found["unit2"]
    if unit in _SECONDS:
        seconds = count * _SECONDS[unit]
        if more:
            if _unit(more) not in _SECONDS:
                return None
            seconds += int(found["count2"]) * _SECONDS[_unit(more)]
        return {"span": timedelta(seconds=seconds)}
    if more:
        return None
    if unit in ("day", "week"):
        return {"day": today + timedelta(days=count * (7 if unit == "week" else 1))}
    months = today.month - 1 + count * (12 if unit == "year" else 1)
    year, month = today.year + months // 12, months % 12 + 1
    return {"day": date(year, month, min(today.day, monthrange(year, month)[1]))}


def _hour(word: str) -> int:
    return int(word) if word.isdigit() else _index(words.HOURS, word) + 1


def _read_clock(found: re.Match[str], _today: date) -> dict[str, Any] | None:
    groups = found.groupdict()
    hour = _hour(groups["hour"])
    minute = int(groups.get("minute") or groups.get("minute2") or 0)
    suffix = (groups.get("suffix") or "").lower().replace(".", "")
    if suffix in ("am", "pm"):
        if not 1 <= hour <= _NOON:
            return None
        hour = hour % _NOON + (_NOON if suffix == "pm" else 0)
    return {"clock": time(hour, minute)} if hour < _HOURS and minute < _MINUTES else None


def _read_half(shift: int) -> _Read:
    def read(found: re.Match[str], _today: date) -> dict[str, Any] | None:
        hour = (_hour(found["hour"]) + shift) or _NOON
        return {"clock": time(hour, 30)} if 0 < hour < _HOURS else None

    return read


def _whole(year: str, today: date) -> int:
    """A year of which only the last two digits may be written."""
    return int(year) if len(year) > len("26") else today.year // 100 * 100 + int(year)


def _read_date(found: re.Match[str], today: date) -> dict[str, Any] | None:
    """Without a year it is the next such day."""
    month, day, year = found["month"], int(found["day"]), found["year"]
    number = int(month) if month.isdigit() else _index(words.MONTHS, month) + 1
    for each in [_whole(year, today)] if year else range(today.year, today.year + _LEAP_YEARS + 1):
        try:
            wanted = date(each, number, day)
        except ValueError:
            continue
        if year or wanted >= today:
            return {"day": wanted}
    return None


def _read_day_of_month(found: re.Match[str], _today: date) -> dict[str, Any] | None:
    day = int(found["day"] or found["number"])
    return {"day_of_month": day} if 1 <= day <= _DAYS else None


def _read_every(found: re.Match[str], _today: date) -> dict[str, Any] | None:
    unit = _unit(found["unit"])
    every = 2 if found["other"] else _count(found["count"])
    return {"frequency": _FREQUENCIES[unit], "every": every} if unit in _FREQUENCIES and every else None


def _read_days(found: re.Match[str], _today: date) -> dict[str, Any]:
    names = re.findall(rf"(?<!\w){_DAY_LISTED}(?!\w)", found["days"], re.IGNORECASE)
    return {"frequency": "WEEKLY", "days": tuple(dict.fromkeys(weekday(name) for name in names))}


def _plural_days(found: re.Match[str]) -> tuple[str, ...]:
    named = [rf"(?<!\w)(?:{name})(?!\w)" for name in _PLURALS]
    return tuple(day for day, name in zip(DAYS, named, strict=True) if re.search(name, found["days"], re.IGNORECASE))


def _read_plurals(found: re.Match[str], _today: date) -> dict[str, Any]:
    return {"frequency": "WEEKLY", "days": _plural_days(found)}


def _read_plurals_of_weeks(found: re.Match[str], _today: date) -> dict[str, Any]:
    """After "every two weeks"."""
    return {"days": _plural_days(found)}


def _read_weekday(found: re.Match[str], _today: date) -> dict[str, Any]:
    return {"days": (weekday(found["weekday"]),)}


def _read_next_weekday(found: re.Match[str], _today: date) -> dict[str, Any]:
    return {"days": (weekday(found["weekday"]),), "is_next": True}


def _says(**values: Any) -> _Read:
    return lambda _found, _today: values


def _says_day(days: int, **values: Any) -> _Read:
    return lambda _found, today: {"day": today + timedelta(days=days), **values}


# --- the forms -------------------------------------------------------------------------------------


def _form(pattern: str, read: _Read, *fields: str, names_when: bool = False) -> Form:
    """`fields` must not have been said before; nothing goes with a span of time."""
    fresh = Said()

    def fits(said: Said) -> bool:
        if said.span is not None or any(getattr(said, field) != getattr(fresh, field) for field in fields):
            return False
        return not names_when or bool(said.day or said.day_of_month or said.days or said.clock)

    return Form(re.compile(rf"(?:{pattern})(?!\w)", re.IGNORECASE), read, fits)


_DAY_PATTERNS = {
    day: f"{name}|{short}|{plural}"
    for day, name, short, plural in zip(DAYS, words.DAY_NAMES, words.DAY_SHORTS, words.DAY_PLURALS, strict=True)
}
_COUNT = rf"(?:\d{{1,3}}|{'|'.join(words.COUNTS)})"
_UNIT = "|".join(words.UNITS.values())
_MONTH = "|".join(words.MONTHS)
_NAME = "|".join(words.DAY_NAMES)
_DAY_LISTED = rf"(?:{_NAME}|{'|'.join(words.DAY_SHORTS)})"
_PLURALS = tuple(name.replace(r"по\s+", r"(?:по\s+)?") for name in words.DAY_PLURALS)
"""As they are said in a list: its first word has "по" alone."""
_PLURAL_LISTED = rf"(?P<days>(?:{'|'.join(words.DAY_PLURALS)})(?:\s*(?:{words.AND})\s*(?:{'|'.join(_PLURALS)})(?!\w))*)"
_ANY_HOUR = rf"(?P<hour>\d{{1,2}}|{'|'.join(words.HOURS)})"
_YEAR = r"(?:,?\s+(?P<year>\d{4})(?![\d:])(?:\s+года|\s*г\.)?)?"

_ONE_DAY = ("day", "day_of_month", "days")
_REPEAT = ("frequency", "days")

_SPANS = (
    *(
        _form(said, _says(span=timedelta(minutes=m)), *_ONE_DAY, "clock", "frequency")
        for said, m in words.HALVES.items()
    ),
    _form(
        rf"(?:in\s+(?P<count>{_COUNT})|через(?:\s+(?P<few>{_COUNT}))?)\s*(?P<unit>{_UNIT})(?!\w)"
        rf"(?:\s*(?:{words.AND})?\s*(?P<count2>\d{{1,3}})\s*(?P<unit2>{_UNIT}))?",
        _read_span,
        *_ONE_DAY,
        "clock",
        "frequency",
    ),
)
_REPEATS = (
    _form(
        rf"(?:{words.EVERY})\s+(?:(?P<other>{words.OTHER})\s+|(?P<count>{_COUNT})\s+)?(?P<unit>{_UNIT})",
        _read_every,
        "frequency",
    ),
    _form(
        rf"(?:{words.EVERY})\s+(?P<days>{_DAY_LISTED}(?:\s*(?:{words.AND})\s*(?:(?:{words.EVERY})\s+)?{_DAY_LISTED}(?!\w))*)",
        _read_days,
        *_REPEAT,
    ),
    _form(
        rf"(?:{words.EVERY})\s+(?:{words.WEEKDAY})|{words.ON_WEEKDAYS}",
        _says(frequency="WEEKLY", days=WEEKDAYS),
        *_REPEAT,
    ),
    *(
        _form(rf"(?:{words.EVERY})\s+(?:{said})", _says(frequency="DAILY", part=part), "frequency", "part")
        for part, said in words.EVERY_PART.items()
    ),
    *(_form(said, _says(frequency=often), "frequency") for often, said in words.REPEATED.items()),
    _form(_PLURAL_LISTED, _read_plurals, *_REPEAT),
    _form(_PLURAL_LISTED, _read_plurals_of_weeks, *_ONE_DAY),
)
_DATES = (
    _form(r"(?:on\s+|am\s+)?(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})", _read_date, *_ONE_DAY),
    _form(
        rf"(?:(?:{words.ON_DATE})\s+)?(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})(?!\d)(?:\.(?P<year>\d{{4}}|\d{{2}})?)?",
        _read_date,
        *_ONE_DAY,
    ),
    _form(
        rf"(?:(?:{words.ON_DATE})\s+)?(?P<day>\d{{1,2}})(?:\.|st|nd|rd|th|-?го)?\s+(?:of\s+)?(?P<month>{_MONTH})(?!\w)\.?"
        + _YEAR,
        _read_date,
        *_ONE_DAY,
    ),
    _form(
        rf"(?:on\s+)?(?P<month>{_MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![.:]?\d)" + _YEAR,
        _read_date,
        *_ONE_DAY,
    ),
    _form(
        rf"(?:{words.ON_THE})\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)|(?P<number>\d{{1,2}})(?:-?го)?\s+числа",
        _read_day_of_month,
        *_ONE_DAY,
    ),
    *(_form(said, _says_day(days), *_ONE_DAY) for said, days in words.RELATIVE_DAYS.items()),
    _form(words.TONIGHT, _says_day(0, part="evening"), *_ONE_DAY, "part"),
    _form(
        rf"(?:(?:{words.ON})\s+)?(?:{words.NEXT})\s+(?P<weekday>{_DAY_LISTED})",
        _read_next_weekday,
        *_ONE_DAY,
        "frequency",
    ),
    _form(rf"(?:{words.ON})\s+(?P<weekday>{_DAY_LISTED})", _read_weekday, *_ONE_DAY),
    _form(rf"(?P<weekday>{_NAME})", _read_weekday, *_ONE_DAY),
)
_CLOCKS = (
    *(_form(rf"(?:{said})\s+{_ANY_HOUR}", _read_half(shift), "clock") for said, shift in words.HALF.items()),
    *(
        _form(rf"{at}(?:(?P<hour>\d{{1,2}})[.:](?P<minute>\d\d))(?::\d\d)?(?:\s*{suffix})?", _read_clock, "clock")
        for at, suffix in words.AT.values()
    ),
    *(
        _form(rf"{at}{_ANY_HOUR}(?![.:]?\d)(?!\s+минут)(?:\s*{suffix})?", _read_clock, "clock")
        for at, suffix in words.AT.values()
    ),
    _form(rf"(?P<hour>\d{{1,2}}):(?P<minute>\d\d)(?::\d\d)?(?:\s*{words.BARE_SUFFIX})?", _read_clock, "clock"),
    _form(rf"(?P<hour>\d{{1,2}})(?:\.(?P<minute>\d\d))?\s*{words.BARE_SUFFIX}", _read_clock, "clock"),
    _form(rf"(?P<hour>\d{{1,2}})(?=\s+(?:{words.PART_SUFFIX})(?!\w))", _read_clock, "clock"),
)
_PARTS = (
    *(_form(anywhere, _says(part=part), "part") for part, (anywhere, _) in words.PARTS.items()),
    *(_form(after, _says(part=part), "part", names_when=True) for part, (_, after) in words.PARTS.items()),
)
FORMS = (*_SPANS, *_REPEATS, *_DATES, *_CLOCKS, *_PARTS)
"""In the order in which they are tried."""
