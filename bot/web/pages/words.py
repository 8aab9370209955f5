"""Figures and times as the reader writes them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_datetime, format_time, format_timedelta
from babel.numbers import format_compact_decimal, format_currency, format_decimal, format_percent
from babel.units import format_unit

from handlers.locales import Phrases

_SECOND_MS = 1000
_MINUTE_MS = 60 * _SECOND_MS
_DIME = 0.1
_LARGE = 10_000_000
NONE = "–"
"""Where there is nothing to tell."""


@dataclass(frozen=True, slots=True)
class Words:
    say: Phrases
    zone: ZoneInfo

    @property
    def language(self) -> str:
        return self.say.language

    def count(self, number: float | None) -> str:
        return NONE if number is None else format_decimal(number, "#,##0.##", locale=self.language)

    def brief(self, number: float) -> str:
        """What is large in words: it must fit a card on a phone."""
        if number < _LARGE:
            return self.count(number)
        return format_compact_decimal(number, locale=self.language, fraction_digits=1)

    def figure(self, number: float | None) -> str:
        """With three places: a score."""
        return NONE if number is None else format_decimal(number, "0.###", locale=self.language)

    def money(self, usd: float | None) -> str:
        """US dollars; where it is little with four places, so that a single answer costs something."""
        if usd is None:
            return NONE
        places = 2 if usd >= _DIME else 4
        return format_currency(round(usd, places), "USD", locale=self.language, decimal_quantization=False)

    def share(self, share: float | None) -> str:
        pattern = "0.#%" if self.language == "en" else "0.#\u00a0%"
        return NONE if share is None else format_percent(round(share, 3), pattern, locale=self.language)

    def duration(self, ms: float | None) -> str:
        if ms is None:
            return NONE
        if ms < _SECOND_MS:
            return format_unit(round(ms), "millisecond", "short", locale=self.language)
        if ms < _MINUTE_MS:
            return format_unit(round(ms / _SECOND_MS, 1), "second", "short", locale=self.language)
        return format_unit(round(ms / _MINUTE_MS, 1), "minute", "short", locale=self.language)

    def ago(self, seconds: float | None) -> str:
        if seconds is None:
            return NONE
        if seconds < 1:
            return self.say("web-now")
        span = timedelta(seconds=-round(seconds))
        return format_timedelta(span, add_direction=True, locale=self.language)

    def moment(self, at: datetime) -> str:
        """Day and time, to the second."""
        return format_datetime(at, "medium", tzinfo=self.zone, locale=self.language)

    def day(self, at: datetime) -> str:
        return format_date(at.astimezone(self.zone), "medium", locale=self.language)

    def short_day(self, at: datetime) -> str:
        pattern = {"en": "MMM d", "de": "d. MMM", "ru": "d MMM"}[self.language]
        return format_date(at.astimezone(self.zone), pattern, locale=self.language)

    def hour(self, at: datetime) -> str:
        """For an axis, short."""
        return format_time(at, "h a" if self.language == "en" else "HH:mm", tzinfo=self.zone, locale=self.language)

    def clock(self, at: datetime) -> str:
        return format_time(at, "short", tzinfo=self.zone, locale=self.language)
