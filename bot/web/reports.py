"""What the dashboard and the API tell of what happened: figures by period, by bucket, by tool, by person.

Rule: a period is the time up to now, to the millisecond; hours and days are those of the tenant's clock, so that the
first and the last bucket of a series are cut by the period, and the buckets add up to the overview.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from bot.web.inside import Inside
from memory import telemetry
from memory.instants import from_ms, to_ms
from memory.storage import telemetry as events
from memory.storage.telemetry import QUARTER_MS, Sums, Wanted

NANO = 1_000_000_000
TURNS = telemetry.TurnCompleted.name
TOOLS = telemetry.ToolUsed.name
ERRORS = telemetry.TurnFailed.name
TOO_LONG = telemetry.PtlRecovery.name


class Period(StrEnum):
    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"

    @property
    def span(self) -> timedelta:
        return {"1h": timedelta(hours=1), "24h": timedelta(days=1), "7d": timedelta(days=7)}.get(
            self, timedelta(days=30)
        )


class Granularity(StrEnum):
    QUARTER = "quarter"
    """Of an hour."""
    HOUR = "hour"
    DAY = "day"


class Metric(StrEnum):
    TURNS = "turns"
    COST = "cost"
    TOKENS = "tokens"
    LATENCY = "latency"
    FIRST_TOKEN = "first_token"  # noqa: S105 - of a model's words
    CACHED_SHARE = "cached_share"
    ERRORS = "errors"
    PROMPT_TOO_LONG = "prompt_too_long"
    TOOL_CALLS = "tool_calls"
    RECALL_HITS = "recall_hits"
    RECALL_QUALITY = "recall_quality"


class _Told(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class Tokens(_Told):
    input: int
    output: int
    cache_read: int
    cache_write: int
    total: int


class Overview(_Told):
    period: Period
    since: datetime
    until: datetime
    timezone: str
    turns: int
    cost_usd: float
    tokens: Tokens
    errors: int
    cached_share: float | None
    """Of the tokens that went in, how many came from the provider's cache; null where none went in."""
    prompt_too_long: int
    average_duration_ms: float | None
    average_first_token_ms: float | None


class Point(_Told):
    start: datetime
    """The bucket's first instant, in the tenant's time zone; the first bucket may have begun before the period."""
    value: float | None
    """Null for an average of nothing."""


class Series(_Told):
    metric: Metric
    unit: str
    period: Period
    granularity: Granularity
    timezone: str
    points: list[Point]


class ToolFigures(_Told):
    tool_name: str
    calls: int
    average_duration_ms: float
    success_rate: float


class PersonFigures(_Told):
    user_id: int | None
    name: str | None
    """Null for somebody who was erased."""
    turns: int
    tokens: int
    cost_usd: float


class EventRow(_Told):
    id: int
    name: str
    at: datetime
    user_id: int | None
    session_id: int | None
    chat_id: int | None
    data: dict[str, Any]


class EventPage(_Told):
    page: int
    size: int
    total: int
    pages: int
    items: list[EventRow]


@dataclass(frozen=True, slots=True)
class _Measure:
    """How a metric is made of the sums of one kind of event."""

    event: str
    unit: str
    of: Callable[[Sums], float | None]


def _tokens(sums: Sums) -> int:
    return sums.tokens_in + sums.tokens_out + sums.tokens_cache_read + sums.tokens_cache_write


def _cached_share(sums: Sums) -> float | None:
    went_in = sums.tokens_in + sums.tokens_cache_read + sums.tokens_cache_write
    return sums.tokens_cache_read / went_in if went_in else None


def _latency(sums: Sums) -> float | None:
    return sums.duration_ms / sums.events if sums.events else None


def _first_token(sums: Sums) -> float | None:
    return sums.first_token_ms / sums.first_tokens if sums.first_tokens else None


def _count(sums: Sums) -> float:
    return sums.events


_MEASURES = {
    Metric.TURNS: _Measure(TURNS, "1", _count),
    Metric.COST: _Measure(TURNS, "USD", lambda sums: sums.cost_nano_usd / NANO),
    Metric.TOKENS: _Measure(TURNS, "tokens", _tokens),
    Metric.LATENCY: _Measure(TURNS, "ms", _latency),
    Metric.FIRST_TOKEN: _Measure(TURNS, "ms", _first_token),
    Metric.CACHED_SHARE: _Measure(TURNS, "share", _cached_share),
    Metric.ERRORS: _Measure(ERRORS, "1", _count),
    Metric.PROMPT_TOO_LONG: _Measure(TOO_LONG, "1", _count),
    Metric.TOOL_CALLS: _Measure(TOOLS, "1", _count),
    Metric.RECALL_HITS: _Measure(TURNS, "1", lambda sums: sums.recall_hits),
}


class Reports:
    """Answers questions about what happened."""

    def __init__(self, site: Inside) -> None:
        self._site = site
        self._timezone = site.settings.tenant.timezone
        self._zone = ZoneInfo(self._timezone)

    async def overview(self, period: Period) -> Overview:
        since, until = self._window(period)
        async with self._site.database.search() as connection:
            found = await events.sums(connection, (TURNS, ERRORS, TOO_LONG), since, until, "name")
        turns = found.get(TURNS, Sums())
        return Overview(
            period=period,
            since=self._local(since),
            until=self._local(until),
            timezone=self._timezone,
            turns=turns.events,
            cost_usd=turns.cost_nano_usd / NANO,
            tokens=Tokens(
                input=turns.tokens_in,
                output=turns.tokens_out,
                cache_read=turns.tokens_cache_read,
                cache_write=turns.tokens_cache_write,
                total=_tokens(turns),
            ),
            errors=found.get(ERRORS, Sums()).events,
            cached_share=_cached_share(turns),
            prompt_too_long=found.get(TOO_LONG, Sums()).events,
            average_duration_ms=_latency(turns),
            average_first_token_ms=_first_token(turns),
        )

    async def timeseries(self, metric: Metric, period: Period, granularity: Granularity) -> Series:
        if metric is Metric.RECALL_QUALITY:
            return await self.recall_quality(period, granularity)
        return (await self.several((metric,), period, granularity))[metric]

    async def recall_quality(self, period: Period, granularity: Granularity, user_id: int | None = None) -> Series:
        """Recall@10 as the nights measured it, of everybody or of one person: the mean over questions."""
        since, until = self._window(period)
        async with self._site.database.search() as connection:
            measured = await events.measured(connection, since, until, user_id)
        points: list[Point] = []
        for start, quarters in buckets(since, until, self._zone, granularity):
            of = [each for each in measured if quarters[0] <= each.at < quarters[-1] + QUARTER_MS]
            questions = sum(each.questions for each in of)
            value = sum(each.recall * each.questions for each in of) / questions if questions else None
            points.append(Point(start=start, value=value))
        return Series(
            metric=Metric.RECALL_QUALITY,
            unit="share",
            period=period,
            granularity=granularity,
            timezone=self._timezone,
            points=points,
        )

    async def several(
        self, metrics: Collection[Metric], period: Period, granularity: Granularity
    ) -> dict[Metric, Series]:
        """The series of metrics over the same time: one question to the database for each kind of event."""
        since, until = self._window(period)
        async with self._site.database.search() as connection:
            quarters = {
                event: await events.sums(connection, (event,), since, until, "quarter")
                for event in dict.fromkeys(_MEASURES[metric].event for metric in metrics)
            }
        times = buckets(since, until, self._zone, granularity)
        summed = {
            event: [_add(found.get(each) for each in bucket) for _, bucket in times]
            for event, found in quarters.items()
        }
        return {metric: self._series(metric, period, granularity, times, summed) for metric in metrics}

    def _series(
        self,
        metric: Metric,
        period: Period,
        granularity: Granularity,
        times: Sequence[tuple[datetime, Sequence[int]]],
        summed: Mapping[str, Sequence[Sums]],
    ) -> Series:
        measure = _MEASURES[metric]
        return Series(
            metric=metric,
            unit=measure.unit,
            period=period,
            granularity=granularity,
            timezone=self._timezone,
            points=[
                Point(start=start, value=measure.of(sums))
                for (start, _), sums in zip(times, summed[measure.event], strict=True)
            ],
        )

    async def top_tools(self, period: Period, limit: int) -> list[ToolFigures]:
        since, until = self._window(period)
        async with self._site.database.search() as connection:
            found = await events.sums(connection, (TOOLS,), since, until, "label")
        ranked = sorted(found.items(), key=lambda each: (-each[1].events, each[0]))
        return [
            ToolFigures(
                tool_name=name,
                calls=sums.events,
                average_duration_ms=sums.duration_ms / sums.events,
                success_rate=sums.successes / sums.events,
            )
            for name, sums in ranked[:limit]
        ]

    async def top_people(self, period: Period, limit: int) -> list[PersonFigures]:
        since, until = self._window(period)
        async with self._site.database.search() as connection:
            found = await events.sums(connection, (TURNS,), since, until, "label")
            ranked = sorted(found.items(), key=lambda each: (-each[1].cost_nano_usd, -_tokens(each[1]), each[0]))[
                :limit
            ]
            ids = {label: int(label) if label else None for label, _ in ranked}
            names = await events.names_of_people(connection, [each for each in ids.values() if each is not None])
        return [
            PersonFigures(
                user_id=ids[label],
                name=names.get(ids[label] or 0),
                turns=sums.events,
                tokens=_tokens(sums),
                cost_usd=sums.cost_nano_usd / NANO,
            )
            for label, sums in ranked
        ]

    async def events(
        self,
        period: Period,
        page: int,
        size: int,
        *,
        name: str | None = None,
        chat_id: int | None = None,
        user_id: int | None = None,
    ) -> EventPage:
        """Newest first; pages count from 1."""
        since, until = self._window(period)
        wanted = Wanted(since, until, name, user_id, chat_id)
        async with self._site.database.search() as connection:
            total = await events.count(connection, wanted)
            rows = await events.events(connection, wanted, (page - 1) * size, size)
        items = [
            EventRow(
                id=row["id"],
                name=row["name"],
                at=self._local(row["created_at"]),
                user_id=row["user_id"],
                session_id=row["session_id"],
                chat_id=row["chat_id"],
                data=row["data"],
            )
            for row in rows
        ]
        return EventPage(page=page, size=size, total=total, pages=-(-total // size), items=items)

    def _window(self, period: Period) -> tuple[int, int]:
        """[since, until): up to this very millisecond."""
        now = self._site.clock.now()
        return to_ms(now - period.span), to_ms(now) + 1

    def _local(self, milliseconds: int) -> datetime:
        return from_ms(milliseconds).astimezone(self._zone)


def buckets(
    since: int, until: int, zone: ZoneInfo, granularity: Granularity
) -> Sequence[tuple[datetime, Sequence[int]]]:
    """The hours or days of a zone's clock that [since, until) touches: first instant, and quarters of an hour.

    Every zone's offset is a multiple of a quarter, so a bucket is the quarters that share what the clock shows: an
    hour that comes twice is two buckets, and a day has 23, 24 or 25 hours.
    """
    return _buckets(since // QUARTER_MS, -(-until // QUARTER_MS), zone, granularity)


@lru_cache(maxsize=32)  # they change every quarter of an hour; a page asks for several series at once
def _buckets(
    first: int, end: int, zone: ZoneInfo, granularity: Granularity
) -> tuple[tuple[datetime, tuple[int, ...]], ...]:
    def shown(number: int) -> tuple[object, ...]:
        if granularity is Granularity.QUARTER:
            return (number,)
        local = from_ms(number * QUARTER_MS).astimezone(zone)
        day = (local.year, local.month, local.day)
        return day if granularity is Granularity.DAY else (*day, local.hour, local.utcoffset())

    begin = first
    while shown(begin - 1) == shown(first):
        begin -= 1
    grouped = (tuple(group) for _, group in groupby(range(begin, end), key=shown))
    return tuple(
        (from_ms(numbers[0] * QUARTER_MS).astimezone(zone), tuple(number * QUARTER_MS for number in numbers))
        for numbers in grouped
    )


def _add(of: Iterable[Sums | None]) -> Sums:
    whole = [each for each in of if each is not None]
    return Sums(*(sum(column) for column in zip(*whole, strict=True)))
