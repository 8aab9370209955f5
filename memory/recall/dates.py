"""When a question asks about: words of time in English, German and Russian as spans of days. Pure.

Rule: a span is a soft hint and never a filter: what somebody said about March may have been said in April.
"""

import re
from collections.abc import Callable
from datetime import date, timedelta

from memory.language.vocabulary import MONTHS, ORDINARY_VALUES

Span = tuple[date, date]
"""First and last day."""

MONTH_OF: dict[str, int] = {
    word: number for number, name in enumerate(MONTHS, 1) for word in ORDINARY_VALUES[name].split()
}
"""The forms of the months' names -> 1 to 12."""
_YEARS = range(1990, 2100)

_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "couple": 2, "few": 3,
    "ein": 1, "einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "paar": 3,
    "один": 1, "одну": 1, "два": 2, "две": 2, "три": 3, "четыре": 4, "пять": 5, "шесть": 6, "пару": 2,
}  # fmt: skip
_UNIT = {
    "d": r"days?|tag(?:en?)?|день|дня|дней",
    "w": r"weeks?|wochen?|недел\w*",
    "m": r"months?|monat(?:en?|s)?|месяц\w*",
    "y": r"years?|jahr(?:en?|es)?|год\w*|лет",
}
_LAST = r"last|past|previous|letzte[nrsm]?|vorige[nrsm]?|vergangene[nrsm]?|прошл\w+|последн\w+"
_THIS = r"this|current|diese[nrsm]?|эт\w+|текущ\w+"


def _back(days: int, around: int = 0) -> Callable[[date], Span]:
    return lambda today: (today - timedelta(days=days + around), today - timedelta(days=max(days - around, 0)))


def _this_month(today: date) -> Span:
    return today.replace(day=1), today


def _this_year(today: date) -> Span:
    return date(today.year, 1, 1), today


def _last_year(today: date) -> Span:
    return _year(today.year - 1)


_PHRASES: tuple[tuple[str, Callable[[date], Span]], ...] = (
    (r"the day before yesterday|vorgestern|позавчера", _back(2)),
    (r"(?<!before )yesterday|gestern|вчера", _back(1)),
    (r"today|heute|сегодня|this morning|heute (?:früh|morgen)", _back(0)),
    (rf"(?:{_LAST})\s+(?:{_UNIT['w']})", _back(7, 4)),
    (rf"(?:{_LAST})\s+(?:{_UNIT['m']})", _back(30, 15)),
    (rf"(?:{_LAST})\s+(?:{_UNIT['y']})", _last_year),
    (rf"(?:{_THIS})\s+(?:{_UNIT['w']})", _back(3, 4)),
    (rf"(?:{_THIS})\s+(?:{_UNIT['m']})", _this_month),
    (rf"(?:{_THIS})\s+(?:{_UNIT['y']})", _this_year),
    (r"recently|lately|the other day|kürzlich|neulich|letztens|недавно|на днях", _back(10, 10)),
)
_SIMPLE = tuple((re.compile(rf"\b(?:{words})\b", re.IGNORECASE), span) for words, span in _PHRASES)
_AGO = re.compile(
    r"\b(?:(?P<n>\d{1,3}|[a-zäöüа-я]+)\s+(?P<u>days?|weeks?|months?|years?)\s+ago"
    r"|vor\s+(?P<n2>\d{1,3}|[a-zäöü]+)\s+(?P<u2>tag\w*|woche\w*|monat\w*|jahr\w*)"
    r"|(?P<n3>\d{1,3}|[а-я]+)?\s*(?P<u3>день|дня|дней|недел\w+|месяц\w*|год\w*|лет)\s+назад)",
    re.IGNORECASE,
)
_DAYS_OF = {"d": 1, "w": 7, "m": 30, "y": 365}
_WORD = re.compile(r"[^\W_]+")
_BEFORE_A_MONTH = ("in", "of", "since", "until", "by", "last", "during", "this", "next")


def spans(question: str, today: date) -> list[Span]:
    """The spans of days that a question's words of time name, seen from `today`; often none."""
    found = [span(today) for pattern, span in _SIMPLE if pattern.search(question)]
    found += [_ago(match, today) for match in _AGO.finditer(question)]
    return found + _months(question, today)


def _ago(match: re.Match[str], today: date) -> Span:
    said = match["n"] or match["n2"] or match["n3"] or "a"
    unit = (match["u"] or match["u2"] or match["u3"]).lower()
    size = next(days for key, days in _DAYS_OF.items() if re.fullmatch(_UNIT[key], unit))
    count = int(said) if said.isdecimal() else _COUNTS.get(said.lower(), 1)
    return _back(min(count * size, 40_000), max(size // 2, 1) if size > 1 else 0)(today)


def _months(question: str, today: date) -> list[Span]:
    """Months and years by name or number: "im März", "in May 2023", "2019". Without a year it is the latest one."""
    words = [word.lower().replace("ё", "е") for word in _WORD.findall(question)]
    years = [int(word) for word in words if word.isdecimal() and int(word) in _YEARS]
    named = [MONTH_OF[word] for at, word in enumerate(words) if word in MONTH_OF and not _is_verb(words, at)]
    if not named:
        return [_year(year) for year in years]
    return [_month(year, month) for month in named for year in (years or [today.year - (month > today.month)])]


def _is_verb(words: list[str], at: int) -> bool:
    """Say whether "may" or "march" is no month: they are one only behind a preposition or beside a number."""
    if words[at] not in ("may", "march"):
        return False
    before, behind = words[max(at - 1, 0) : at], words[at + 1 : at + 2]
    return not (any(each in _BEFORE_A_MONTH for each in before) or any(each.isdecimal() for each in (*before, *behind)))


def _month(year: int, month: int) -> Span:
    first = date(year, month, 1)
    return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def _year(year: int) -> Span:
    return date(year, 1, 1), date(year, 12, 31)
