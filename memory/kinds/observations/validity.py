"""Until when something holds: "until Friday", "bis Ende März", "до пятницы", "this week". Pure.

Rule: the end is worked out by code from the words that were said, at the time and in the time zone in which they were
said; what cannot be read has no end.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Final

from dateutil.relativedelta import relativedelta

_WEEKDAYS: Final = (
    r"mon(?:day)?|montags?|понедельник\w*",
    r"tue(?:s|sday)?|dienstags?|вторник\w*",
    r"wed(?:nesday)?|mittwochs?|сред[ауые]\w*",
    r"thu(?:r|rs|rsday)?|donnerstags?|четверг\w*",
    r"fri(?:day)?|freitags?|пятниц\w*",
    r"sat(?:urday)?|samstags?|sonnabends?|суббот\w*",
    r"sun(?:day)?|sonntags?|воскресень\w*",
)
_MONTHS: Final = (
    r"jan(?:uary|uar)?|jänner|январ\w*",
    r"feb(?:ruary|ruar)?|феврал\w*",
    r"mar(?:ch)?|märz|март\w*",
    r"apr(?:il)?|апрел\w*",
    r"may|mai|ма[йея]\w*",
    r"june?|juni|июн\w*",
    r"july?|juli|июл\w*",
    r"aug(?:ust)?|август\w*",
    r"sept?(?:ember)?|сентябр\w*",
    r"oct(?:ober)?|oktober|okt|октябр\w*",
    r"nov(?:ember)?|ноябр\w*",
    r"dec(?:ember)?|dezember|dez|декабр\w*",
)
_COUNTS: Final = (
    r"an?|one|einen?|einer?|eine[nmsr]?|один|одну|одного",
    r"two|zwei|два|две|двух",
    r"three|drei|три|тр[её]х",
    r"four|vier|четыре|четыр[её]х",
    r"five|fünf|пять|пяти",
    r"six|sechs|шесть|шести",
    r"seven|sieben|семь|семи",
    r"eight|acht|восемь|восьми",
    r"nine|neun|девять|девяти",
    r"ten|zehn|десять|десяти",
)
_UNITS: Final = {
    "days": r"days?|tage?n?|дн(?:я|ей|и)|день|сутки",
    "weeks": r"weeks?|wochen?|недел[яиьюе]\w*",
    "months": r"months?|monate?n?|месяц(?:а|ев)?",
    "years": r"years?|jahre?n?|года?|лет",
}


def _any_of(patterns: tuple[str, ...]) -> str:
    return "|".join(patterns)


_DAY_WORD = (
    r"(?P<today>today|tonight|heute(?: abend)?|сегодня(?:шн\w+)?|конца дня|end of (?:the )?day)|"
    r"(?P<tomorrow>tomorrow|morgen|завтра(?:шн\w+)?)|"
    r"(?P<after>the day after tomorrow|übermorgen|послезавтра)"
)
_PERIOD = (
    r"(?P<next>next |nächste[rnsm]? |kommende[rnsm]? |следующ\w+ )?"
    r"(?:(?P<weekend>weekend|wochenende\w?|выходн\w+)|(?P<week>week|woche|недел[ияюе])|(?P<month>month|monats?|месяц[ае]?)|"
    r"(?P<year>year|jahr(?:es)?|год[ау]?))"
)
_DATE = (
    r"(?P<iso>\d{4}-\d\d-\d\d)|"
    r"(?P<dotted>\d{1,2}\.\d{1,2}\.(?:\d{4}|\d{2})?)|"
    rf"(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|-?го)?(?: of)? (?P<name>{_any_of(_MONTHS)})\b\.?"
    r"(?:,? (?P<y>\d{4}))?|"
    rf"(?P<name2>{_any_of(_MONTHS)})\.? (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y2>\d{{4}}))?"
)
_END_OF = r"(?P<endof>(?:the )?end of (?:the |this )?|(?:zum )?ende (?:der |des |dieser |dieses )?|конца (?:эт\w+ )?)"
_UNTIL = re.compile(
    r"(?<!\w)(?:until|till|through|up to|bis(?: (?:zum|zur|einschließlich|inklusive|spätestens))?|"
    r"до|по(?= \d)|вплоть до)\s+"
    r"(?:(?:the|this|next|coming|am|nächsten?|kommenden|diesen|den|dem|следующ\w+|эт\w+|ближайш\w+)\s+)??"
    rf"(?:{_END_OF}?(?:{_DATE}|{_PERIOD}|(?P<month_name>{_any_of(_MONTHS)})(?: (?P<my>\d{{4}}))?)|{_DAY_WORD}|"
    rf"(?P<weekday>{_any_of(_WEEKDAYS)}))(?!\w)",
    re.IGNORECASE,
)
_THIS = re.compile(
    r"(?<!\w)(?:(?:only |just |nur |только )?(?:this|diese[sn]?|in dieser|эт(?:у|ой|от|ом|и|их)|на эт(?:ой|их))) "
    r"(?:(?P<weekend>weekend|wochenende|выходны\w+)|(?P<week>week|woche|недел[юеия])|(?P<month>month|monat|месяц[е]?)|"
    r"(?P<year>year|jahr|год[у]?))(?!\w)",
    re.IGNORECASE,
)
_FOR = re.compile(
    r"(?<!\w)(?:for (?:the )?(?:next|coming)|(?:für )?(?:in )?(?:die|den) (?:nächsten?|kommenden)|"
    r"(?:в |на )?(?:ближайш\w+|следующ\w+))\s+"
    rf"(?:(?P<count>\d{{1,3}}|{_any_of(_COUNTS)})\s+)?(?P<unit>{_any_of(tuple(_UNITS.values()))})(?!\w)",
    re.IGNORECASE,
)
_PASSING = re.compile(rf"(?<!\w)(?:{_DAY_WORD})(?!\w)", re.IGNORECASE)
_SATURDAY, _WEEK = 5, 7
_DECEMBER = 12
_CENTURY = 2000


def ends_at(text: str, said_at: datetime, *, is_passing: bool = False) -> datetime | None:
    """The first instant at which what was said no longer holds; None where it names no end, or one that has passed.

    `said_at` is aware, in the speaker's time zone. "today" and "tomorrow" end something only where `is_passing`.
    """
    today = said_at.date()
    for pattern, read in _FORMS:
        if pattern is _PASSING and not is_passing:
            continue
        for match in pattern.finditer(text):
            last = read(match, today)
            if last is not None and last >= today:
                return datetime.combine(last + timedelta(days=1), time(), tzinfo=said_at.tzinfo)
    return None


def _read_until(match: re.Match[str], today: date) -> date | None:
    found = match.groupdict()
    if found["weekday"]:
        return _next_weekday(_index(_WEEKDAYS, found["weekday"]), today)
    if found["month_name"]:
        return _of_month_name(found, today)
    return _read_day(found, today) or _read_date(found, today) or _read_period(found, today)


def _read_day(found: dict[str, str | None], today: date) -> date | None:
    for days, name in enumerate(("today", "tomorrow", "after")):
        if found.get(name):
            return today + timedelta(days=days)
    return None


def _read_passing(match: re.Match[str], today: date) -> date | None:
    return _read_day(match.groupdict(), today)


def _read_date(found: dict[str, str | None], today: date) -> date | None:
    try:
        if iso := found.get("iso"):
            return date.fromisoformat(iso)
        if dotted := found.get("dotted"):
            day, month, year = (*dotted.rstrip(".").split("."), "")[:3]
            return _coming(int(day), int(month), int(year) if year else None, today)
        name, day = found.get("name") or found.get("name2"), found.get("day") or found.get("day2")
        if name and day:
            year = found.get("y") or found.get("y2")
            return _coming(int(day), _index(_MONTHS, name) + 1, int(year) if year else None, today)
    except ValueError:  # the 31st of a month that has 30 days
        return None
    return None


def _coming(day: int, month: int, year: int | None, today: date) -> date:
    if year is not None:
        return date(year if year >= _CENTURY else _CENTURY + year, month, day)
    this = date(today.year, month, day)
    return this if this >= today else date(today.year + 1, month, day)


def _of_month_name(found: dict[str, str | None], today: date) -> date | None:
    """Until March is until it begins, until the end of March is with all of it."""
    month = _index(_MONTHS, found["month_name"] or "") + 1
    said = found.get("my")
    year = int(said) if said else today.year + (month < today.month)
    first = date(year, month, 1)
    return first + relativedelta(months=1, days=-1) if found.get("endof") else first - timedelta(days=1)


def _read_period(found: dict[str, str | None], today: date) -> date | None:
    """The last day of this week, month or year; "until next week" ends before it begins."""
    ends: dict[str, Callable[[], date]] = {
        "weekend": lambda: _next_weekday(6, today),
        "week": lambda: today + timedelta(days=6 - today.weekday()),
        "month": lambda: today + relativedelta(day=31),
        "year": lambda: date(today.year, _DECEMBER, 31),
    }
    name = next((name for name in ends if found.get(name)), None)
    if name is None:
        return None
    last = ends[name]()
    if found.get("next") and found.get("endof"):
        return _one_later(name, last)
    if name == "weekend" and found.get("next"):
        return last + timedelta(days=_WEEK)
    return last


def _one_later(name: str, last: date) -> date:
    if name in ("week", "weekend"):
        return last + timedelta(days=_WEEK)
    return last + (relativedelta(months=1, day=31) if name == "month" else relativedelta(years=1))


def _read_this(match: re.Match[str], today: date) -> date | None:
    return _read_period(match.groupdict(), today)


def _read_for(match: re.Match[str], today: date) -> date | None:
    count = match["count"]
    number = 1 if not count else int(count) if count.isdigit() else _index(_COUNTS, count) + 1
    unit = next(name for name, pattern in _UNITS.items() if re.fullmatch(pattern, match["unit"], re.IGNORECASE))
    spans = {
        "days": relativedelta(days=number),
        "weeks": relativedelta(weeks=number),
        "months": relativedelta(months=number),
        "years": relativedelta(years=number),
    }
    return today + spans[unit]


_Read = Callable[[re.Match[str], date], date | None]
_FORMS: tuple[tuple[re.Pattern[str], _Read], ...] = (
    (_UNTIL, _read_until),
    (_FOR, _read_for),
    (_THIS, _read_this),
    (_PASSING, _read_passing),
)


def _next_weekday(number: int, today: date) -> date:
    """The next such day, today included."""
    return today + timedelta(days=(number - today.weekday()) % _WEEK)


def _index(patterns: tuple[str, ...], word: str) -> int:
    return next(at for at, pattern in enumerate(patterns) if re.fullmatch(pattern, word, re.IGNORECASE))
