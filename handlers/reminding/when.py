"""When a person wants to be reminded: a small grammar of English, German and Russian. Pure.

It reads a time at the start of the words, or at their end, or a day at the start and an hour at the end; what is left
is the text. What it does not understand it does not guess.
"""

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from handlers.reminding import recurring
from handlers.reminding import when_words as words
from handlers.reminding.recurring import DAYS, WEEKDAYS, next_time, wall_of
from handlers.reminding.when_forms import FORMS, Said, weekday

DEFAULT_HOUR = 9
"""Of a day that was named without one."""
MOST_YEARS = 100
"""What is further away than that is a slip of the finger."""
FIRST_YEAR = 1900
"""What is longer ago is no time that anybody means, and the first of years have no instant in every zone."""
MOST_WORDS = 12
"""Of a time that stands at the end of a text."""
_NOON = 12


@dataclass(frozen=True, slots=True)
class When:
    """When a reminder rings first, and how it comes back."""

    starts: datetime
    """Wall clock time, without a zone: where the rule begins."""
    rule: str | None
    """RFC 5545 RRULE; None = once."""
    due: datetime
    """The instant of the first ring (UTC). In the past where the person named such a day."""


def understand(said: str, now: datetime, where: ZoneInfo) -> tuple[When, str] | None:
    """The time and the text (maybe empty) of what a person said at an instant; None when there is no time in it."""
    words_said = re.sub(r"(\d{4}-\d\d?-\d\d?)T(?=\d)", r"\1 ", said)
    rest = _strip(re.sub(rf"^\s*(?:{words.BEFORE})(?=\s)", "", words_said, flags=re.IGNORECASE))
    today = wall_of(now, where).date()
    known, text = _read_on(rest, Said(), today)
    if known == Said() and re.match(rf"(?:{words.EVERY})\s", rest, re.IGNORECASE):
        return None  # "every hour": no hour at its end makes that a time
    if known.span is None and known.clock is None:
        known, text = _read_end(text, known, today)
    text = _strip(re.sub(rf"^(?:{words.BEFORE_TEXT}),?(?=\s)", "", text, flags=re.IGNORECASE))
    if known == Said():
        return None
    when = _resolve(known, now, where)
    return None if when is None else (when, text)


def plan(starts: datetime, rule: str | None, now: datetime, where: ZoneInfo) -> When | None:
    """From a wall clock time and a rule; None where nothing is to come in a hundred years."""
    if not FIRST_YEAR <= starts.year <= now.year + MOST_YEARS:
        return None
    if rule is None:
        return When(starts, None, recurring.instant_of(starts, where))
    found = next_time(starts, rule, where, now)
    return None if found is None else When(found[0], rule, found[1])


def repeat_rule(repeat: str, starts: datetime) -> str | None:
    """The rule of one word, or of a list of weekdays; None for anything else."""
    match repeat.strip().lower():
        case "daily":
            return recurring.daily()
        case "weekly":
            return recurring.weekly((DAYS[starts.weekday()],))
        case "weekdays":
            return recurring.weekly(WEEKDAYS)
        case "monthly":
            return recurring.monthly(starts.day)
        case "yearly":
            return recurring.yearly(starts.month, starts.day)
        case listed:
            days = tuple(weekday(name) for name in re.split(r"[\s,;]+", listed))
            return recurring.weekly(days) if all(days) else None


# --- where the time stands -----------------------------------------------------------------------


def _strip(text: str) -> str:
    return text.strip(" \t\n,;:–—-")


def _read_on(text: str, known: Said, today: date) -> tuple[Said, str]:
    """Read forms from the start as long as they come."""
    while True:
        for form in FORMS:
            found = form.pattern.match(text) if form.fits(known) else None
            values = form.read(found, today) if found else None
            if found and values is not None:
                known, text = replace(known, **values), re.sub(r"^[\s,]+", "", text[found.end() :])
                break
        else:
            return known, text


def _read_end(text: str, known: Said, today: date) -> tuple[Said, str]:
    """Read the longest end of the text that is nothing but forms."""
    starts = [found.start() for found in re.finditer(r"(?<=\s)\S", text)]
    for start in starts[-MOST_WORDS:]:
        also, left = _read_on(text[start:], known, today)
        if also != known and not left.strip(" .!"):
            return also, text[:start]
    return known, text


# --- what it means -------------------------------------------------------------------------------


def _resolve(said: Said, now: datetime, where: ZoneInfo) -> When | None:
    if said.span is not None:
        due = now.astimezone(UTC) + said.span
        return When(wall_of(due, where), None, due)
    clock = _clock(said)
    today = wall_of(now, where).date()
    starts = datetime.combine(said.day or today, clock)
    if said.frequency is not None:
        return _recurring(said, starts, now, where)
    if said.day is not None:
        return plan(starts, None, now, where)
    if said.days:
        after = datetime.combine(today, time.max) if said.is_next else None
        since = max(now, recurring.instant_of(after, where)) if after else now
        return _once(starts, recurring.weekly(said.days), since, where)
    rule = recurring.monthly(said.day_of_month) if said.day_of_month else recurring.daily()
    return _once(starts, rule, now, where)


def _once(starts: datetime, rule: str, now: datetime, where: ZoneInfo) -> When | None:
    """The next time of a rule, and no other."""
    found = plan(starts, rule, now, where)
    return None if found is None else replace(found, rule=None)


def _recurring(said: Said, starts: datetime, now: datetime, where: ZoneInfo) -> When | None:
    """The first time as if it came back every time; from there on every second or third."""
    if (said.days and said.frequency != "WEEKLY") or (said.day_of_month and said.frequency != "MONTHLY"):
        return None
    first = plan(starts, _rule(said, starts, 1), now, where)
    return None if first is None else replace(first, rule=_rule(said, first.starts, said.every))


def _rule(said: Said, starts: datetime, every: int) -> str:
    match said.frequency:
        case "WEEKLY":
            return recurring.weekly(said.days or (DAYS[starts.weekday()],), every)
        case "MONTHLY":
            return recurring.monthly(said.day_of_month or (said.day or starts).day, every)
        case "YEARLY":
            return recurring.yearly(starts.month, starts.day, every)
        case _:
            return recurring.daily(every)


def _clock(said: Said) -> time:
    if said.clock is None:
        return time(words.PART_HOURS[said.part] if said.part else DEFAULT_HOUR)
    hour = said.clock.hour
    if said.part in ("afternoon", "evening") and hour < _NOON:
        return said.clock.replace(hour=hour + _NOON)
    if said.part == "night" and hour == _NOON:
        return said.clock.replace(hour=0)
    return said.clock
